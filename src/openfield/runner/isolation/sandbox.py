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
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from openfield.isolation import Isolation, read_size
from openfield.processes.child import one_thread
from openfield.processes.forks import find_marked
from openfield.processes.program import Guard, read_last_line
from openfield.runner.isolation import bubblewrap, listener, supervisor
from openfield.runner.isolation.view import View, list_installations, view_of_command

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
POLL_SECONDS = 0.05
PROC = Path("/proc")
BLOCK, MAX_OUTPUT = 512, 16 << 20


class Sandbox(Guard):
    """A guard around one program that limits what the program sees and uses."""

    def __init__(self, isolation: Isolation, run: Path | None, view: View | None = None) -> None:
        """Prepare a sandbox. Nothing is started yet.

        Args:
            isolation: What the program may see and use.
            run: The run file, which it never sees, if there is one yet.
            view: The files that the program must see; by default those a command of the user needs.
        """
        import fcntl  # not on Windows, where nothing is isolated

        self._isolation, self._run, self._view = isolation, None if run is None else run.resolve(), view
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

    def options(self, *handles: int) -> dict[str, Any]:
        """Return what to start the wrapped command with: nothing is inherited but these files."""
        return {
            "env": self._environment,
            "cwd": self._home or "/",
            "pass_fds": (*self._inherited, *handles),
            "stdin": subprocess.DEVNULL,
            "stdout": self.output,
            "stderr": self.output,
            "start_new_session": True,
        }

    def wrap(self, words: list[str], port: int = 0, grant: Iterable[Path] = ()) -> list[str]:
        """Return the command that starts a program in this sandbox."""
        view, command = view_of_command(words) if self._view is None else (self._view, words)
        view |= View(files=tuple((path, True) for path in grant))
        if port and self._isolation.bubblewrap and not self._isolation.network:
            self._port, theirs = socket.socketpair()
            self._inherited.append(theirs.detach())
            command = [*OWN_PYTHON, listener.__file__, str(self._inherited[-1]), str(port), *command]
            view |= View((Path(listener.__file__).parent,), tuple(list_installations(Path(sys.executable))))
        if view.modules:
            self._environment["PYTHONPATH"] = os.pathsep.join(map(str, dict.fromkeys(view.modules)))
        limited = ["/bin/sh", "-c", LIMITED, "sh", str(read_size(self._isolation.file_size))]
        if not self._isolation.bubblewrap:
            return [*limited, *OWN_PYTHON, supervisor.__file__, self._home, *command]
        self._info, info = os.pipe()
        self._inherited.append(info)
        view |= View(files=tuple(self._isolation.grants), run=self._run)
        return [*limited, *bubblewrap.wrap(command, view, self._isolation, info)]

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
        usual = {"PATH": path, "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": self._home or "/tmp"}  # noqa: S108
        return {**usual, **one_thread(), "PYTHONDONTWRITEBYTECODE": "1", MARK: self._mark, **granted}

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
            elif self._first and _read_state(self._first)[1] == self._pid:  # else another process may be it now
                os.kill(self._first, signal.SIGKILL)
            elif _read_state(self._pid)[0] not in ("", "Z"):
                os.kill(self._pid, signal.SIGKILL)

    def _await_end(self) -> None:
        """Wait until the wrapped command has ended; then none of its processes is left."""
        end = time.monotonic() + END_SECONDS
        while _read_state(self._pid)[0] not in ("", "Z"):
            if time.monotonic() > end:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)
            time.sleep(0.002)

    def _sweep(self) -> None:
        """End processes that lost their supervisor. They are found by the environment they were started with."""
        with suppress(OSError):  # there are no handles left to look for them
            for pid in find_marked(self._mark):
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def has_own_root(first: int) -> bool:
    """Return whether a sandbox is set up. Before, its first process sees all files and processes of this machine."""
    try:
        return bool(first) and not (PROC / str(first) / "root").samefile("/")
    except OSError:  # it has ended
        return False


def _read_state(pid: int) -> tuple[str, int]:
    """Return the state of a process as one letter and the number of its parent; nothing and 0 if it is gone."""
    with suppress(OSError, ValueError):
        state, parent, *_ = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return state, int(parent)
    return "", 0


class UsageWatch:
    """Looks at an agent's processes from outside, and ends them when they pass a limit."""

    def __init__(self, isolation: Isolation, find: Callable[[], Iterable[Path]], end: Callable[[], None]) -> None:
        """Start to watch.

        Args:
            isolation: The limits.
            find: Returns the folders of the agent's processes in `/proc`, as this process sees them.
            end: Ends all of them.
        """
        self.reason = ""
        """Which limit was passed, in words; empty while none was."""
        self.folders: tuple[str, ...] = ()
        """Folders in memory that only the agent writes to; their files count as its memory."""
        self.output = -1
        """The file that the agent prints to. It is emptied when it is long."""
        self._isolation, self._memory = isolation, read_size(isolation.memory)
        self._find, self._end = find, end
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="openfield-usage", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(POLL_SECONDS):
            if self.output >= 0 and os.fstat(self.output).st_blocks > MAX_OUTPUT // BLOCK:
                os.truncate(self.output, 0)
            if reason := self._find_excess():
                self.reason = reason
                self._end()
                return

    def _find_excess(self) -> str:
        processes = list(self._find())
        if not processes:  # the agent has not started, and its folders are still those of this machine
            return ""
        files = self._files() + sum({key: size for each in processes for key, size in list_memory_files(each)}.values())
        tasks, processor, resident = 0, 0.0, files
        for each in processes:
            with suppress(OSError, ValueError):
                tasks_here, seconds, size = read_stat(each)
                tasks, processor, resident = tasks + tasks_here, processor + seconds, resident + size
        limit = self._isolation
        if tasks > limit.processes:
            return f"The agent had more than {limit.processes:,} processes and threads and was ended."
        if processor > limit.processor_seconds:
            return f"The agent used more than {limit.processor_seconds:,} s of processor time and was ended."
        if resident > self._memory and files + sum(map(read_share, processes)) > self._memory:
            return f"The agent used more than {limit.memory} of memory and was ended. --memory allows more."
        return ""

    def _files(self) -> int:
        """Return how many bytes the agent's own files in memory have."""
        size = 0
        for folder in self.folders:
            with suppress(OSError):
                found = os.statvfs(folder)
                size += (found.f_blocks - found.f_bfree) * found.f_frsize
        return size


def read_stat(process: Path) -> tuple[int, float, int]:
    """Return the threads of a process, its processor seconds with those of its dead children, and its resident bytes.

    Pages that processes share are counted in each of them.
    """
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    return int(fields[17]), sum(map(int, fields[11:15])) / ticks, int(fields[21]) * page


def read_share(process: Path) -> int:
    """Return a process's resident bytes, with its share of pages that several processes have."""
    with suppress(OSError, ValueError, StopIteration):
        lines = (process / "smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) << 10
    with suppress(OSError, ValueError):
        return read_stat(process)[2]
    return 0


def list_memory_files(process: Path) -> Iterator[tuple[int, int]]:
    """Yield the number and the bytes of each file without a name that a process keeps in memory."""
    with suppress(OSError):
        for name in os.listdir(process / "fd"):
            with suppress(OSError):  # it was closed in between
                if os.readlink(process / "fd" / name).startswith("/memfd:"):
                    found = os.stat(process / "fd" / name)
                    yield found.st_ino, found.st_blocks * BLOCK


def list_processes(proc: Path = PROC) -> list[Path]:
    """Return the folders of all processes that a `/proc` shows."""
    with suppress(OSError):
        return [proc / name for name in os.listdir(proc) if name.isdecimal()]
    return []


def find_descendants(ancestor: int) -> list[Path]:
    """Return the folders of all processes below one, but not its own."""
    children: dict[int, list[Path]] = {}
    for process in list_processes():
        with suppress(OSError, ValueError, IndexError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(process)
    found, left = list[Path](), [ancestor]
    while left:
        below = children.pop(left.pop(), [])
        found += below
        left += [int(each.name) for each in below]
    return found
