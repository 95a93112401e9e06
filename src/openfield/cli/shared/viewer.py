"""Start the viewer for a command: print its address, open it in the browser, and serve beside a run that is played."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Event

    from openfield.view import ViewServer

LOOK_SECONDS = 0.2
"""How often a command looks whether the viewer that it started is alive."""


def announce(server: ViewServer, browser: bool, path: str = "/", stream: TextIO | None = None) -> None:
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
    from openfield.view import check_view

    check_view()
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    viewer = context.Process(target=_serve_beside, args=(run, ready), daemon=True)
    viewer.start()
    try:
        while not ready.wait(LOOK_SECONDS) and viewer.is_alive():
            pass  # its address is printed before the bars of the run are drawn
        yield viewer
    finally:
        viewer.terminate()
        viewer.join()


def wait_for_readers(viewer: BaseProcess) -> None:
    """Let the viewer go on after a run, until Ctrl-C."""
    print("The viewer goes on. Ctrl-C stops it.", file=sys.stderr, flush=True)
    with suppress(KeyboardInterrupt):
        viewer.join()


def _serve_beside(run: Path, ready: Event) -> None:
    from openfield.report.addresses import name_run, run_address
    from openfield.runner.processes import end_with_parent
    from openfield.view import Library, ViewServer

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command ends it when it has ended itself
    end_with_parent()
    server = ViewServer(Library([run]))

    def begin() -> None:
        announce(server, True, run_address(name_run(run)), sys.stderr)
        ready.set()

    with suppress(KeyboardInterrupt):
        server.serve(begin)
