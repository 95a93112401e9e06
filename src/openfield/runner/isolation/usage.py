"""Watch what the processes of an isolated agent use, and end them all if it is too much."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from openfield.isolation import Isolation, read_size

POLL_SECONDS = 0.05
PROC = Path("/proc")
BLOCK, MAX_OUTPUT = 512, 16 << 20


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
