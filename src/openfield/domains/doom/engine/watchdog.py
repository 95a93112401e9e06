"""A small process beside each process with engines: it ends engines that hang, and all of them when their owner ends.

Some of the engine's calls hold Python's lock while they wait, so a thread could not help. And an engine whose owner was
killed would wait for ever. This file is also the program of that process. It imports only the standard library, so
that it starts in milliseconds.
"""

from __future__ import annotations

import itertools
import mmap
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MAX_ENGINES = 512
"""Engines in one process at a time. Each has a place in the file of heartbeats."""
HEARTBEATS_FILE = "pulses"
ARGUMENTS_FILE = "words"
"""The file in an engine's folder with the arguments it was started with."""
ROUND_SECONDS = 0.5
DEATH_SECONDS = 1.0
"""How long a killed engine may take to be gone."""
MUTEX = struct.Struct("<iIiIi")
MUTEX_AT, SHARED_MUTEX = 48, 128
"""The mutex of an engine's queue and where it is: lock, count, the thread that holds it, users, and this kind."""
FUTEX_CALLS = {"x86_64": 202, "aarch64": 98}
FUTEX_WAKE, ALL = 1, (1 << 31) - 1
MAX_REMOVALS = 20
"""Attempts to remove a folder before it is left to the next process."""


class Watchdog:
    """The owner's side: notes when a call to an engine begins and ends."""

    def __init__(self, folder: Path, patience: float, ends_owner: bool = False) -> None:
        """Start the process.

        Args:
            folder: Has the settings of all engines of this process, and is removed with them.
            patience: How many seconds a call may take.
            ends_owner: Whether this process may be ended if a call never returns, because another one replaces it.
        """
        path = folder / HEARTBEATS_FILE
        path.write_bytes(bytes(8 * MAX_ENGINES))
        with path.open("r+b") as file:
            self._heartbeats = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
        command = [sys.executable, "-I", "-S", __file__, str(folder), str(patience), str(int(ends_owner))]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
        )
        self._last = 0
        self._given: weakref.WeakValueDictionary[int, EngineHeartbeat] = weakref.WeakValueDictionary()

    def add_engine(self) -> EngineHeartbeat:
        """Return the heartbeat of another engine, at the next free place; raise `RuntimeError` if all are taken."""
        places = ((self._last + step) % MAX_ENGINES for step in range(1, MAX_ENGINES + 1))
        free = next((place for place in places if place not in self._given), None)
        if free is None:
            raise RuntimeError(f"There are {MAX_ENGINES} engines in this process already.")
        self._last = free
        heartbeat = self._given[free] = EngineHeartbeat(self._heartbeats, free)
        return heartbeat

    def close(self) -> None:
        """End the remaining engines and the process."""
        self._process.communicate()

    def outlive_owner(self) -> None:
        """Let the process wait until this one has ended. Python closes only the pipe it knows of before it ends."""
        if self._process.stdin is not None:
            os.dup(self._process.stdin.fileno())

    def detach(self) -> None:
        """Leave the process to its owner, after a fork: it waits until every process has closed the pipe."""
        if self._process.stdin is not None:
            self._process.stdin.close()


class EngineHeartbeat:
    """A counter that is odd during a call to an engine; as a context, it marks one call."""

    def __init__(self, heartbeats: memoryview, number: int) -> None:
        self.number = number
        self.beat = heartbeats[number : number + 1]
        self.beat[0] &= ~1  # the engine that had this place before may have ended within a call

    def __enter__(self) -> None:
        self.beat[0] |= 1

    def __exit__(self, *_: object) -> None:
        self.beat[0] += 1


def settings_name(number: int) -> str:
    """Return the name of an engine's settings file, by which the engine's process is found."""
    return f"engine-{number}.ini"


def end_engines(folder: Path, name: str = "") -> None:
    """End the engines whose settings are in a folder, or only the one with this settings file."""
    path = os.fsencode(folder / name) if name else os.fsencode(folder) + b"/"
    for number, arguments in _engines():
        if any(word == path or (not name and word.startswith(path)) for word in arguments):
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
            _await_death(number)
            _free_queues(arguments)
            _sweep(arguments)


def remove_folder(folder: Path) -> None:
    """Remove a folder, the engines whose settings are in it, and their shared memory.

    An engine's shell may write one more file into it, once its mark is gone: so it is tried several times.
    """
    for _ in range(MAX_REMOVALS):
        end_engines(folder)
        for arguments in _written_arguments(folder):
            _sweep(arguments)
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def find_shared(settings: Path, part: str = "SM") -> list[Path]:
    """Find a part of the shared memory of the engine with this settings file; the usual one shows its state."""
    own = os.fsencode(settings)
    return [path for _, arguments in _engines() if own in arguments for path in _shared(arguments, part)]


def hold_queues(settings: Path) -> None:
    """Reserve all memory of an engine's queues: a process that dies for lack of it within a queue leaves it locked."""
    for path in find_shared(settings, "MQ*"):
        with suppress(OSError), path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def watch_engines(folder: Path, patience: float, ends_owner: bool) -> None:
    """End engines that hang, until the owner closes the pipe or ends. This is what the process does.

    If the engine died within one of the queues they share, the owner's call would wait for ever and hold Python's lock:
    so the queue is freed. If a call still does not return, nothing inside the owner could help it. A worker is then
    ended, because another one takes its place, and a process of the user is not.
    """
    since, owner = dict.fromkeys(range(MAX_ENGINES), (0, 0.0)), os.getppid()
    stuck: dict[int, int] = {}
    with (folder / HEARTBEATS_FILE).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        while not select.select([sys.stdin], [], [], min(ROUND_SECONDS, patience / 4))[0]:
            now = time.monotonic()
            for number, beat in enumerate(memoryview(content).cast("Q").tolist()):
                if beat != since[number][0]:
                    since[number] = beat, now
                elif beat % 2 and now > since[number][1] + patience:
                    if ends_owner and stuck.get(number) == beat and not _is_stopped(owner):
                        os.kill(owner, signal.SIGKILL)
                    end_engines(folder, settings_name(number))
                    for arguments in _written_arguments(folder, settings_name(number)):
                        _free_queues(arguments)  # of an engine that died by itself
                    since[number] = beat, now
                    stuck[number] = beat
    remove_folder(folder)


def _is_stopped(process: int) -> bool:
    """Check whether a process was paused, as with Ctrl-Z: then it is not stuck."""
    return _state(process) in ("T", "t")


def _state(process: int) -> str:
    """Return the system's letter for the state of a process or thread; empty if it does not exist."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][:1]
    return ""


def _await_death(process: int) -> None:
    """Wait until a killed process holds nothing any more."""
    end = time.monotonic() + DEATH_SECONDS
    while _state(process) not in ("", "Z", "X") and time.monotonic() < end:
        time.sleep(0.01)


def _written_arguments(folder: Path, name: str = "") -> Iterator[list[bytes]]:
    """Yield the arguments of engines whose folders are in this one, or only of those with this settings file."""
    for file in folder.glob(f"{name}*/{ARGUMENTS_FILE}"):
        with suppress(OSError):
            yield file.read_bytes().split(b"\0")[:-1]  # what follows the last zero was cut off


def _free_queues(arguments: list[bytes]) -> None:
    """Unlock the queues of an engine that died while it had them locked, and wake those that wait for them."""
    for path in _shared(arguments, "MQ*"):
        with suppress(OSError, ValueError, struct.error), path.open("r+b") as file:  # or a queue of another version
            memory = mmap.mmap(file.fileno(), 0)
            lock, count, holder, users, kind = MUTEX.unpack_from(memory, MUTEX_AT)
            if kind == SHARED_MUTEX and lock and _state(holder) in ("", "Z", "X"):
                MUTEX.pack_into(memory, MUTEX_AT, 0, count, 0, max(users - 1, 0), kind)
                _wake(memory)


def _wake(memory: mmap.mmap) -> None:
    """Wake all threads that wait for the mutex of a queue."""
    import ctypes  # rarely needed, and this process must start fast

    call = FUTEX_CALLS.get(os.uname().machine)
    if call is not None:
        word = ctypes.c_int.from_buffer(memory, MUTEX_AT)
        ctypes.CDLL(None).syscall(call, ctypes.byref(word), FUTEX_WAKE, ALL, None, None, 0)
        del word  # or the memory could not be closed


def _engines() -> Iterator[tuple[int, list[bytes]]]:
    """Yield the process ids and arguments of all visible engines of this machine."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            arguments = command.read_bytes().split(b"\0")
            if arguments[0].endswith(b"vizdoom"):
                yield int(command.parent.name), arguments


def _sweep(arguments: list[bytes]) -> None:
    """Remove the shared memory of an engine that was ended."""
    for path in _shared(arguments, "*"):
        path.unlink(missing_ok=True)


def _shared(arguments: list[bytes], part: str) -> list[Path]:
    """Find the shared memory of the engine with these arguments."""
    name = os.fsdecode(dict(itertools.pairwise(arguments)).get(b"+viz_instance_id", b""))
    return list(Path("/dev/shm").glob(f"ViZDoom{part}{name}")) if name else []  # noqa: S108


if __name__ == "__main__":
    watch_engines(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] == "1")
