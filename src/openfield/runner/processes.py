"""Processes that this one starts: nothing disturbs their birth, and none outlives it.

Below the executors of runs and of studies, and below agents that are programs.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Protocol

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Workers are the parallelism: two of them with two BLAS threads each took 45 s for what takes 8 with one."""
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


class Confinement(Protocol):
    """What surrounds a program that is an agent: it may limit the program, and it ends all that the program started."""

    @property
    def reason(self) -> str:
        """Why the program was ended from here; empty if it was not."""
        ...

    def wrap(self, words: list[str], port: int = 0, grant: Iterable[Path] = ()) -> list[str]:
        """Return the command that starts the program.

        Args:
            words: The user's command.
            port: The port of the server that the program speaks to; 0 if it speaks to none.
            grant: Folders that the program must be able to write to.
        """
        ...

    def options(self) -> dict[str, Any]:
        """Return the further arguments of `subprocess.Popen`."""
        ...

    def watch(self, pid: int) -> None:
        """Take note of the process that was started."""
        ...

    def take_port(self) -> socket.socket | None:
        """Return the socket on which the program looks for its server, if that is not the server's own."""
        ...

    def last_words(self) -> str:
        """Return the last line that the program printed, if it was not printed to the terminal."""
        ...

    def end(self) -> None:
        """End the program and all it started. It may be called again."""
        ...


class Guard:
    """A shell that ends a program and all it started when it is told so, or when this process is gone, however it went.

    A program cannot be made to look after its parent, and one that was killed can say nothing to it.
    """

    reason = ""

    def __init__(self) -> None:
        """Start the shell before there is anything to guard: from then on a line is all it takes."""
        self._group: int | None = None
        quiet, words = subprocess.DEVNULL, ["/bin/sh", "-c", GUARD]
        self._shell = subprocess.Popen(  # noqa: S603
            words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, bufsize=0, start_new_session=True
        )

    def wrap(self, words: list[str], port: int = 0, grant: Iterable[Path] = ()) -> list[str]:
        """Return the command as it is."""
        return words

    def options(self) -> dict[str, Any]:
        """Return what makes the program lead a process group."""
        return {"start_new_session": True}

    def take_port(self) -> None:
        """Return None: the program reaches its server."""

    def last_words(self) -> str:
        """Return nothing: the program prints to the terminal."""
        return ""

    def watch(self, group: int) -> None:
        """Tell the guard which process group to end."""
        self._group = group
        if self._shell.stdin is not None:
            with suppress(BrokenPipeError):  # it was ended: then only this process can end the program
                self._shell.stdin.write(f"{group}\n".encode())

    def end(self) -> None:
        """End the process group, if the guard knows one, and the guard itself."""
        group, self._group = self._group, None  # which may soon be the number of another one
        if group is not None:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._shell.communicate()
