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
MAX_REMOVALS = 20
"""Attempts to remove a folder before it is left to the next process."""


class Watchdog:
    """The owner's side: notes when a call to an engine begins and ends."""

    def __init__(self, folder: Path, patience: float) -> None:
        """Start the process. A call may take `patience` seconds.

        The folder has the settings of all engines of this process and is removed with them.
        """
        path = folder / HEARTBEATS_FILE
        path.write_bytes(bytes(8 * MAX_ENGINES))
        with path.open("r+b") as file:
            self._heartbeats = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
        command = [sys.executable, "-I", "-S", __file__, str(folder), str(patience)]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
        )
        self._last = 0
        self._given: weakref.WeakValueDictionary[int, EngineHeartbeat] = weakref.WeakValueDictionary()

    def add_engine(self) -> EngineHeartbeat:
        """Return the heartbeat of another engine, at the next free place; raise `RuntimeError` if there is none."""
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
            _sweep(arguments)


def remove_folder(folder: Path) -> None:
    """Remove a folder, the engines whose settings are in it, and what they left in shared memory.

    An engine's shell may write one more file into it, once its mark is gone: so it is tried several times.
    """
    for _ in range(MAX_REMOVALS):
        end_engines(folder)
        for file in folder.glob(f"*/{ARGUMENTS_FILE}"):
            with suppress(OSError):
                _sweep(file.read_bytes().split(b"\0")[:-1])  # what follows the last zero was cut off
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


def watch(folder: Path, patience: float) -> None:
    """End engines that hang, until the owner closes the pipe or ends. This is what the process does.

    If the engine died within one of the queues they share, the owner's call waits for ever and holds Python's lock.
    Nothing inside the owner could help it, so it is ended.
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
                    if stuck.get(number) == beat and not _is_stopped(owner):
                        os.kill(owner, signal.SIGKILL)
                    end_engines(folder, settings_name(number))
                    since[number] = beat, now
                    stuck[number] = beat
    remove_folder(folder)


def _is_stopped(process: int) -> bool:
    """Check whether a process was told to pause, as with Ctrl-Z: then it is not stuck."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b") ")[2][:1] in b"Tt"
    return False


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
    watch(Path(sys.argv[1]), float(sys.argv[2]))
