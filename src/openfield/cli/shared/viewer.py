"""Start the viewer for a command: print its address, open it in the browser, and serve beside a run that is played."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from openfield.processes.channel import Channel
    from openfield.view import ViewServer


def announce_viewer(server: ViewServer, browser: bool, path: str = "/", stream: TextIO | None = None) -> None:
    """Print the address of a viewer, and open it in the browser.

    Args:
        server: The server.
        browser: Whether to open it.
        path: The page to begin with.
        stream: Where to print [standard output].
    """
    address = server.address(path)
    print(f"The viewer: {address}   Ctrl-C stops.", file=stream, flush=True)

    def renew(token: str) -> None:
        print(f"A fresh address: {server.origin}{path}?token={token}", file=stream, flush=True)

    server.access.renew = renew
    if browser and has_screen():
        webbrowser.open(address)


def has_screen() -> bool:
    """Return whether a browser can be opened: without a screen one that writes into the terminal would be taken."""
    known = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in known)


@contextmanager
def viewing(run: Path) -> Iterator[BaseProcess]:
    """Show a run in the viewer while it is played, from a process of its own: the run is not to be slowed down."""
    from openfield.processes.child import Child
    from openfield.view import check_view

    check_view()
    viewer = Child(_serve_beside, run)
    try:
        with suppress(EOFError, OSError):  # it ended
            viewer.channel.receive()  # its address is printed before the bars of the run are drawn
        yield viewer.process
    finally:
        viewer.process.terminate()
        viewer.process.join()
        viewer.end()


def wait_for_readers(viewer: BaseProcess) -> None:
    """Let the viewer go on after a run, until Ctrl-C."""
    print("The viewer goes on. Ctrl-C stops it.", file=sys.stderr, flush=True)
    with suppress(KeyboardInterrupt):
        viewer.join()


def _serve_beside(channel: Channel, run: Path) -> None:
    from openfield.report.addresses import name_run, run_address
    from openfield.view import Library, ViewServer

    server = ViewServer(Library([run]))

    def begin() -> None:
        announce_viewer(server, True, run_address(name_run(run)), sys.stderr)
        channel.send(b"ready")

    with suppress(KeyboardInterrupt):
        server.serve(begin)
