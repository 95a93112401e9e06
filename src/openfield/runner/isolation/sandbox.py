"""Start and end one isolated program: inside bubblewrap, or under a supervisor where bubblewrap does not work."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from openfield.isolation import Isolation, read_size
from openfield.runner.isolation import bubblewrap, listener, supervisor
from openfield.runner.isolation.usage import PROC, UsageWatch, find_descendants, list_processes
from openfield.runner.isolation.view import View, list_installations, view_of_command
from openfield.runner.processes import ONE_THREAD, read_last_line

LIMITED = (
    "exec 3>&2 2>/dev/null; ulimit -c 0; ulimit -f $(($1 / 512)); echo 1000 > /proc/self/oom_score_adj; "
    'exec 2>&3 3>&-; shift; exec "$@"'
)
"""Limits the size of files, makes this the first process to be ended where memory is short, and runs a command."""
OWN_PYTHON = (sys.executable, "-I", "-S")
"""Starts the small programs of this package, which need no other."""
MARK = "OPENFIELD_SANDBOX"
"""The environment variable by which processes are found that ended their supervisor."""
END_SECONDS = 10.0


class Sandbox:
    """A guard around one program that limits what the program sees and uses."""

    def __init__(self, isolation: Isolation, run: Path | None) -> None:
        """Prepare a sandbox. Nothing is started yet.

        Args:
            isolation: What the program may see and use.
            run: The run file, which it never sees, if there is one yet.
        """
        import fcntl  # not on Windows, where nothing is isolated

        self._isolation, self._run = isolation, None if run is None else run.resolve()
        self._pid, self._first, self._info = 0, 0, -1
        self._watch: UsageWatch | None = None
        self._mark = secrets.token_hex(16)
        self._inherited: list[int] = []
        self._port: socket.socket | None = None
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in the end
        fcntl.fcntl(self.output, fcntl.F_SETFL, os.O_APPEND)  # it may be emptied in between
        self._home = "" if isolation.bubblewrap else tempfile.mkdtemp(prefix="openfield-agent-")
        self._environment = self._make_environment()

    @property
    def reason(self) -> str:
        """Why the program was ended from here; empty if it was not."""
        return "" if self._watch is None else self._watch.reason

    def options(self, *fds: int) -> dict[str, Any]:
        """Return what to start the wrapped command with: nothing is inherited but these files."""
        return {
            "env": self._environment,
            "cwd": self._home or "/",
            "pass_fds": (*self._inherited, *fds),
            "stdin": subprocess.DEVNULL,
            "stdout": self.output,
            "stderr": self.output,
            "start_new_session": True,
        }

    def wrap(self, words: list[str], port: int = 0, grant: Iterable[Path] = ()) -> list[str]:
        """Return the command that starts a program of the user in this sandbox.

        Args:
            words: The user's command.
            port: The port of the server that the program speaks to; 0 if it speaks to none.
            grant: Further folders that it may write to.
        """
        view, told = view_of_command(words)
        view |= View(files=tuple((path, True) for path in grant))
        if port and self._isolation.bubblewrap and not self._isolation.network:
            self._port, theirs = socket.socketpair()
            self._inherited.append(theirs.detach())
            told = [*OWN_PYTHON, listener.__file__, str(self._inherited[-1]), str(port), *told]
            view |= View((Path(listener.__file__).parent,), tuple(list_installations(Path(sys.executable))))
        return self.wrap_with(view, told)

    def wrap_with(self, view: View, words: list[str]) -> list[str]:
        """Return the command that starts a program with a view of its own in this sandbox."""
        if view.modules:
            self._environment["PYTHONPATH"] = os.pathsep.join(map(str, dict.fromkeys(view.modules)))
        limited = ["/bin/sh", "-c", LIMITED, "sh", str(read_size(self._isolation.file_size))]
        if not self._isolation.bubblewrap:
            return [*limited, *OWN_PYTHON, supervisor.__file__, self._home, *words]
        self._info, told = os.pipe()
        self._inherited.append(told)
        view |= View(files=tuple(self._isolation.grants), run=self._run)
        return [*limited, *bubblewrap.wrap(words, view, self._isolation, told)]

    def watch(self, pid: int) -> None:
        """Watch the program that was started with the wrapped command."""
        self._pid = pid
        for fd in self._inherited:
            os.close(fd)
        self._inherited = []
        if self._isolation.bubblewrap:
            self._first = self._read_first()
        self._watch = UsageWatch(self._isolation, self._find_processes, self._kill)
        self._watch.output = self.output.fileno()
        if self._first:
            self._watch.folders = (f"/proc/{self._first}/root/", f"/proc/{self._first}/root/dev")

    def take_port(self) -> socket.socket | None:
        """Wait for the listening socket of a program that speaks to a server, and return it.

        None if the program reaches the server without it, or ended before it could listen.
        """
        if self._port is None:
            return None
        with self._port:
            self._port.settimeout(END_SECONDS)
            with suppress(OSError):
                _, fds, *_ = socket.recv_fds(self._port, 1, 1)
                return socket.socket(fileno=fds[0]) if fds else None
        return None

    def last_words(self) -> str:
        """Return the last line that the program printed."""
        return read_last_line(self.output)

    def end(self) -> None:
        """End the program and everything it started, and forget its folder."""
        if self._watch is not None:
            self._watch.close()
        for fd in (*self._inherited, self._info):
            with suppress(OSError):
                os.close(fd)
        self._inherited, self._info = [], -1
        if self._pid:
            self._kill()
            self._await_end()
            self._pid = 0  # which may soon be the number of another process
        if self._home:
            self._sweep()
            shutil.rmtree(self._home, ignore_errors=True)
        if self._port is not None:
            self._port.close()
        self.output.close()

    def _make_environment(self) -> dict[str, str]:
        granted = {name: os.environ[name] for name in self._isolation.env if name in os.environ}
        folder = self._home or bubblewrap.FOLDER
        path = os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
        threads = {name: os.environ.get(name, "1") for name in ONE_THREAD}
        usual = {"PATH": path, "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": self._home or "/tmp"}  # noqa: S108
        return {**usual, **threads, "PYTHONDONTWRITEBYTECODE": "1", MARK: self._mark, **granted}

    def _read_first(self) -> int:
        """Return the number of the sandbox's first process; with it all others end. 0 if it was not started."""
        pipe, self._info = self._info, -1
        with os.fdopen(pipe, "rb") as info, suppress(msgspec.DecodeError, KeyError):
            return int(msgspec.json.decode(info.read())["child-pid"])
        return 0

    def _find_processes(self) -> list[Path]:
        """Return the program's processes: those of its own process table, or all below its supervisor."""
        if self._isolation.bubblewrap:
            return list_processes(PROC / str(self._first) / "root/proc") if has_own_root(self._first) else []
        return find_descendants(self._pid)

    def _kill(self) -> None:
        """End the first process, which takes the others with it, or have the supervisor end them."""
        with suppress(ProcessLookupError):
            if not self._isolation.bubblewrap:
                os.kill(self._pid, signal.SIGTERM)
            elif self._first and _parent_of(self._first) == self._pid:  # else it has ended, and others may be it now
                os.kill(self._first, signal.SIGKILL)
            elif _state_of(self._pid) not in ("", "Z"):
                os.kill(self._pid, signal.SIGKILL)

    def _await_end(self) -> None:
        """Wait until the wrapped command has ended; then none of its processes is left."""
        end = time.monotonic() + END_SECONDS
        while _state_of(self._pid) not in ("", "Z"):
            if time.monotonic() > end:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)
            time.sleep(0.002)

    def _sweep(self) -> None:
        """End processes that lost their supervisor. They are found by the environment they were started with."""
        mark = f"{MARK}={self._mark}".encode()
        for process in list_processes():
            with suppress(OSError):
                if mark in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)


def has_own_root(first: int) -> bool:
    """Return whether a sandbox is set up. Before, its first process sees all files and processes of this machine."""
    try:
        return bool(first) and not (PROC / str(first) / "root").samefile("/")
    except OSError:  # it has ended
        return False


def _state_of(pid: int) -> str:
    """Return the state of a process as one letter; empty if there is none."""
    with suppress(OSError, IndexError):
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    return ""


def _parent_of(pid: int) -> int:
    with suppress(OSError, IndexError, ValueError):
        return int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    return 0
