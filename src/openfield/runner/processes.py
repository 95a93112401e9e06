"""Processes that this one starts: nothing disturbs their birth, and none outlives it.

Below the executors of runs and of studies, and below agents that are programs.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import IO, Any, Protocol

from openfield.errors import InvalidInput

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Workers are the parallelism: two of them with two BLAS threads each took 45 s for what takes 8 with one."""
WORKER_NAME = "openfield worker"
"""The name of processes that play cells for a run. If one is lost, another takes its place."""
WORD_NAME = "OPENFIELD_WORKER"
"""The variable that tells the processes of one worker from those of another."""
HANDLES = 16
"""How many files a worker must be able to open after a cell: an agent may have left it with fewer."""
DEATH_SECONDS = 10
"""How long forks are looked for: one that the system cannot end must not hold up a run."""
MARK = b"--multiprocessing-fork"
"""On the command line of workers, and so of what is forked off them."""
GUARD = 'read -r group && { read -r _; kill -s KILL -- "-$group"; }'
"""Reads a process group, and ends it when its standard input is closed."""


def check_signals() -> None:
    """Refuse to start workers where they could not be told to stop.

    Raises:
        InvalidInput: The system has no POSIX signals.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        raise InvalidInput("Worker processes need POSIX signals, which this system lacks. Use one process: --workers 0")


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


def end_with_parent(leave: Callable[[], object] | None = None) -> None:
    """End this process when its parent ends, even if the parent is killed: no other process would end it.

    Args:
        leave: What to do before.
    """

    def wait_and_end() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
        try:
            if leave is not None:
                leave()
        finally:
            os._exit(1)

    threading.Thread(target=wait_and_end, daemon=True).start()


def read_last_line(file: IO[bytes]) -> str:
    """Return the last line that a program printed to a file."""
    file.seek(0, os.SEEK_END)
    file.seek(max(file.tell() - 2_000, 0))
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


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
    """Raise an OSError unless this process can open as many files as a cell needs.

    Args:
        any_handle: One that is open.
    """
    held: list[int] = []
    try:
        for _ in range(HANDLES):
            held.append(os.dup(any_handle))
    finally:
        for handle in held:
            os.close(handle)


class Forks:
    """What is forked off a worker process, or off one of its forks. All carry a word in their environment.

    So they are found also if they left their session, if their parent has ended, and if they began only now.
    """

    def __init__(self) -> None:
        self._word = secrets.token_hex(16)
        self._forked = True
        """Whether there may be any; in the worker itself known."""

    @contextmanager
    def marked(self) -> Iterator[None]:
        """Mark the process that is started meanwhile, and so all that is forked off it."""
        os.environ[WORD_NAME] = self._word
        try:
            yield
        finally:
            del os.environ[WORD_NAME]

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
            for pid in self._find():
                self._forked = True
                with suppress(OSError):  # it has ended; or another process started it, and sees its end
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _find(self) -> list[int]:
        """Return the processes that carry the word and have not become another program, but for this one."""
        names = os.listdir("/proc") if Path("/proc").exists() else []
        folders = [Path("/proc", name) for name in names if name.isdecimal() and int(name) != os.getpid()]
        return [int(folder.name) for folder in folders if self._is_fork(folder)]

    def _is_fork(self, folder: Path) -> bool:
        with suppress(OSError):  # it has ended, or belongs to another user
            marked = f"{WORD_NAME}={self._word}".encode() in (folder / "environ").read_bytes()
            return marked and MARK in (folder / "cmdline").read_bytes()
        return False


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
