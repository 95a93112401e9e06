"""Programs that this process starts, and Python modules that speak over a channel: none outlives this process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from openfield.processes.channel import Channel

GUARD = 'read -r group && { read -r _; kill -s KILL -- "-$group"; }'
"""Reads a process group, and ends it when its standard input is closed."""
PATIENCE = 20
"""How many times as long as on a processor a bounded program may take by the clock: the machine may be busy."""


class Guard:
    """A shell that ends a program and all it started on request, or when this process is gone, however it went.

    A program cannot be made to look after its parent, and one that was killed can say nothing to it. The sandbox of
    isolated agents is a guard too, and does each of these in its own way.
    """

    def __init__(self, keep_errors: bool = False) -> None:
        """Start the shell before there is anything to guard: from then on a line is all it takes.

        With `keep_errors`, what the program prints as errors is kept for `last_words` and not shown.
        """
        self._group: int | None = None
        quiet, words = subprocess.DEVNULL, ["/bin/sh", "-c", GUARD]
        self._shell = subprocess.Popen(  # noqa: S603
            words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, bufsize=0, start_new_session=True
        )
        self._errors = tempfile.TemporaryFile() if keep_errors else None  # noqa: SIM115 - closed in the end

    @property
    def reason(self) -> str:
        """Why the program was ended from here; empty if it was not."""
        return ""

    def wrap(self, words: list[str], port: int = 0, grant: Iterable[Path] = ()) -> list[str]:
        """Return the command that starts the program.

        Args:
            words: The user's command.
            port: The port of the server that the program speaks to; 0 if it speaks to none.
            grant: Folders that the program must be able to write to.
        """
        return words

    def options(self, *handles: int) -> dict[str, Any]:
        """Return the further arguments of `subprocess.Popen`; of the files of this process only these are inherited."""
        return {"start_new_session": True, "pass_fds": handles, "stderr": self._errors}

    def watch(self, pid: int) -> None:
        """Take note of the process that was started, which leads a process group."""
        self._group = pid
        if self._shell.stdin is not None:
            with suppress(BrokenPipeError):  # it was ended: then only this process can end the program
                self._shell.stdin.write(f"{pid}\n".encode())

    def take_port(self) -> socket.socket | None:
        """Return the socket on which the program looks for its server, if that is not the server's own."""
        return None

    def last_words(self) -> str:
        """Return the last line that the program printed, if it was not printed to the terminal."""
        return "" if self._errors is None else read_last_line(self._errors)

    def end(self) -> None:
        """End the program and all it started, and the guard itself. It may be called again."""
        group, self._group = self._group, None  # which may soon be the number of another one
        if group is not None:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self._shell.communicate()
        if self._errors is not None:
            self._errors.close()


class ModuleProcess:
    """A Python module of ours that runs as a program. It gets its channel from `open_channel`.

    Nothing is imported from the folder it is started in, which may be that of a stranger's files. So this is the way to
    run code that is not trusted; `Child` runs in the modules of this process.
    """

    def __init__(self, module: str, guard: Guard, environment: dict[str, str] | None = None) -> None:
        """Start the module.

        Args:
            module: Its name.
            guard: What surrounds it.
            environment: Its environment, if the guard gives it none; by default that of this process.
        """
        ours, theirs = socket.socketpair()
        self.channel, self.guard = Channel(ours), guard
        try:
            with theirs:
                command = guard.wrap([sys.executable, "-P", "-m", module, str(theirs.fileno())])
                options = {"stdin": subprocess.DEVNULL, "env": environment, **guard.options(theirs.fileno())}
                self.process: subprocess.Popen[bytes] = subprocess.Popen(command, **options)  # noqa: S603
        except BaseException:
            self.channel.close()
            guard.end()
            raise
        guard.watch(self.process.pid)

    def end(self) -> None:
        """End the process and all that it started."""
        self.channel.close()
        self.guard.end()
        self.process.wait()


def run_bounded(
    command: Sequence[str], seconds: int, output: int | IO[bytes], environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes] | None:
    """Run a program of ours that reads a strange file, and return how it ended; None if it took too long.

    It has neither channel nor guard: it gets no messages and starts nothing, and it limits its own memory and processor
    time before it reads, so that it ends soon also when this process is gone.

    Args:
        command: The program and its arguments.
        seconds: The processor time that it may take.
        output: Where it prints: a file, or `subprocess.PIPE`.
        environment: Its environment; by default that of this process.
    """
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    try:
        return subprocess.run(command, stdout=output, timeout=PATIENCE * seconds, check=False, **quiet)  # noqa: S603
    except subprocess.TimeoutExpired:
        return None


def read_last_line(file: IO[bytes]) -> str:
    """Return the last line that a program printed to a file."""
    file.seek(0, os.SEEK_END)
    file.seek(max(file.tell() - 2_000, 0))
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
