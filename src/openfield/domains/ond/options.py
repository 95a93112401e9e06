"""The options of OND: which tests `serve` serves, and which server the agents of `run` visit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from openfield.options import CommandChanges


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

    def prepare(self) -> CommandChanges:
        """Return the options as they are; the dispatcher reads them."""
        return CommandChanges(serving=self)


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

    def prepare(self) -> CommandChanges:
        """Return that the agents play on a server, if one is named."""
        return CommandChanges(instead=self.visit if self.server else None)

    def visit(self, own: Mapping[str, Any]) -> Any:
        """Play the tests of the server with the agents and settings of the command."""
        from openfield.domains.ond.commands.visit import play_at_server
        from openfield.registry import find_domain

        return play_at_server(find_domain("ond"), self.server or "", self.token, own)


OPTIONS = {"run": OndRunOptions, "serve": OndServeOptions}
