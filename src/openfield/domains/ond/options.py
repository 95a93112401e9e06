"""The options of OND: which tests `serve` serves, and which server the agents of `run` visit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from openfield.options import CommandChanges

if TYPE_CHECKING:
    from openfield.domain import Domain


@dataclass(frozen=True, kw_only=True)
class OndServeOptions:
    """Options of `serve`.

    Example:
        openfield serve ond --data tests --port 3307
    """

    data: Annotated[Path | None, Parameter(metavar="DIR")] = None
    """A directory of tests to serve."""
    import_legacy: Annotated[Path | None, Parameter(metavar="DIR")] = None
    """A directory of results of the original server, to go on with."""
    compat: bool = False
    """Accept what old clients post."""


@dataclass(frozen=True, kw_only=True)
class OndRunOptions:
    """Options of `run`.

    Example:
        openfield run ond -a knn --server http://HOST:3307 --set data=DIR
    """

    server: Annotated[str | None, Parameter(metavar="URL")] = None
    """The server where the agents play, or `here` for one in this process."""
    token: Annotated[str | None, Parameter(metavar="SECRET")] = None
    """The secret which that server asks for."""


OPTIONS = {"run": OndRunOptions, "serve": OndServeOptions}


def prepare(domain: Domain[Any], options: OndServeOptions | OndRunOptions | None) -> CommandChanges:
    """Return what the options change: what is served, or that the agents play on a server."""
    if not isinstance(options, OndRunOptions):
        return CommandChanges(serving=options)
    server = options.server
    if server is None:
        return CommandChanges()

    def visit(own: Mapping[str, Any]) -> Any:
        from openfield.domains.ond.commands.visit import play_at_server

        return play_at_server(domain, server, options.token, own)

    return CommandChanges(instead=visit)
