"""`openfield view`: look at runs in the browser, while they are played and afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from openfield.cli.shared.parameters import Trust
from openfield.cli.shared.viewer import announce_viewer
from openfield.options import Port


@Parameter(name="*", group=Group("Connection", sort_key=3))
@dataclass(frozen=True)
class ViewOptions:
    """Where browsers connect."""

    host: Annotated[str, Parameter(metavar="ADDRESS")] = "127.0.0.1"
    """The address to listen on [127.0.0.1]. Other machines are let in only with a token."""
    port: Port | None = None
    """The port to listen on [7464, or a free one]; 0 takes a free one."""
    token: Annotated[str | None, Parameter(metavar="SECRET")] = None
    """A secret that lets browsers in [one that works once]."""


LOCAL = ViewOptions()


def view(
    *runs: Path,
    no_browser: bool = False,
    trust: Trust = False,
    listen: ViewOptions = LOCAL,
) -> None:
    """Look at runs in the browser, while they are played and afterwards. Ctrl-C stops.

    Args:
        runs: Run files, and folders of run files [runs].
        no_browser: Only print the address, do not open it.
        trust: Draw pictures in domains that run files name even if you did not sign them.
        listen: Where browsers connect.

    Example:
        openfield view runs/
    """
    from openfield.errors import Cancelled
    from openfield.view import check_view

    check_view()
    from openfield.view import Library, ViewServer  # these need the parts that were just checked

    places = runs or (Path("runs"),)
    _check_places(places)
    server = ViewServer(Library(places, trust), listen.host, listen.port, listen.token)
    try:
        server.serve(lambda: announce_viewer(server, not no_browser))
    except KeyboardInterrupt:  # how it is meant to end: nothing to complain of
        raise SystemExit(Cancelled.exit_status) from None


def _check_places(places: Iterable[Path]) -> None:
    """Check that places are run files or folders. A folder may be empty: runs are shown as they begin."""
    from openfield.errors import InvalidInput
    from openfield.files.near import suggest_run
    from openfield.report.run_list import summarise_run

    for place in places:
        if not place.exists():
            raise InvalidInput(f"There is no run file or folder {place}.{suggest_run(place)}")
        if not place.is_dir() and summarise_run(place) is None:
            raise InvalidInput(f"{place} is not a run of openfield. Name run files, or folders of them.")
