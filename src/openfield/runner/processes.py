"""Processes that this one starts: nothing disturbs their birth, and none outlives it.

Below the executors of runs and of studies, and below agents that are programs.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker

GUARD = 'read -r group && { read -r _; kill -s KILL -- "-$group"; }'
"""Reads a process group, and ends it when its standard input is closed."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back Ctrl-C until the end, and in processes begun meanwhile until they allow it.

    A process that is only starting would end in its first lines, with a traceback.
    """
    resource_tracker.ensure_running()  # which lets Ctrl-C through again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """End this process when its parent ends, even if the parent is killed: no other process would end it."""
    threading.Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


class Guard:
    """A shell that ends a program and all it started when it is told so, or when this process is gone, however it went.

    A program cannot be made to look after its parent, and one that was killed can say nothing to it.
    """

    def __init__(self) -> None:
        """Start the shell before there is anything to guard: from then on a line is all it takes."""
        self._group: int | None = None
        quiet, words = subprocess.DEVNULL, ["/bin/sh", "-c", GUARD]
        self._shell = subprocess.Popen(  # noqa: S603
            words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, bufsize=0, start_new_session=True
        )

    def watch(self, group: int) -> None:
        """Tell the guard which process group to end."""
        self._group = group
        if self._shell.stdin is not None:
            with suppress(BrokenPipeError):  # it was ended: then only this process can end the program
                self._shell.stdin.write(f"{group}\n".encode())

    def end(self) -> None:
        """End the process group, if the guard knows one, and the guard itself."""
        if self._group is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._group, signal.SIGKILL)
        self._shell.communicate()
