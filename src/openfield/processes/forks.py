"""The forks of a process in which agents play: found even if they left their session and lost their parent."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

WORKER_NAME = "openfield worker"
"""The name of processes that play cells for a run. If one is lost, another takes its place."""
WORD_NAME = "OPENFIELD_WORKER"
"""The variable that distinguishes the processes of one worker from those of another."""
HANDLES = 16
"""How many files a worker must be able to open after a cell: an agent may have left it with fewer."""
DEATH_SECONDS = 10
"""How long forks are looked for: one that the system cannot end must not hold up a run."""
MARK = b"--multiprocessing-fork"
"""On the command line of workers, and so of their forks."""


class Forks:
    """The forks of a worker process, and theirs. All carry a word in their environment.

    So they are found also if they left their session, if their parent has ended, and if they began only now.
    """

    def __init__(self) -> None:
        self.mark = {WORD_NAME: secrets.token_hex(16)}
        """The environment variable of the process, and so of all that is forked off it."""
        self._forked = True
        """Whether there may be any; in the worker itself known."""

    def note(self) -> None:
        """Note from now on when this process forks: most never do, and there is nothing to look for."""

        def note() -> None:
            self._forked = True

        self._forked = False
        os.register_at_fork(before=note)

    def end(self) -> None:
        """End all of them, also those that begin meanwhile, but not this process.

        Raises:
            OSError: This process cannot look for them, as an agent left it without handles; its parent can.
        """
        latest = time.monotonic() + DEATH_SECONDS
        while self._forked and time.monotonic() < latest:
            self._forked = False
            for pid in find_marked(self.mark[WORD_NAME], MARK):
                self._forked = True
                with suppress(OSError):  # it has ended; or another process started it, and sees its end
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


def find_marked(word: str, command: bytes = b"") -> Iterator[int]:
    """Yield the other processes that have a word in their environment, also those that lost their parents.

    With a part of their command line, only those that have not become another program since. Raises an OSError if this
    process has no handles left to look for them.
    """
    for folder in map(Path("/proc").joinpath, os.listdir("/proc") if Path("/proc").exists() else ()):
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            with suppress(OSError):  # it has ended, or belongs to another user
                if word.encode() in (folder / "environ").read_bytes() and command in (folder / "cmdline").read_bytes():
                    yield int(folder.name)


def refuse_signals_to_parent() -> None:
    """Keep code in this process from ending the parent, or the group of both, by a signal from Python.

    Code that goes around Python can still do so. The parent then stops as if the user had asked it to.
    """
    parent, group = os.getppid(), os.getpgrp()

    def check(event: str, details: tuple[Any, ...]) -> None:
        if event not in ("os.kill", "os.killpg"):
            return
        target, number = details
        targets = (parent, 0, -1, -group) if event == "os.kill" else (0, group)
        if number and target in targets:
            raise PermissionError("an agent may not send signals to the process that evaluates it")

    sys.addaudithook(check)


def need_handles(any_handle: int) -> None:
    """Raise an OSError unless this process can open as many files as a cell needs; any open one is copied for it."""
    held: list[int] = []
    try:
        for _ in range(HANDLES):
            held.append(os.dup(any_handle))
    finally:
        for handle in held:
            os.close(handle)
