"""A small process beside each process with engines: ends engines that hang, and all of them when their owner is gone.

Below the engine. Some of the engine's calls hold Python's lock while they wait, so that no thread could help, and an
engine whose owner was killed would wait for it for ever. This file is also what that process runs: nothing but Python's
own library is imported, for it to start in milliseconds.
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

MOST_ENGINES = 512
"""At a time, in one process; each has a place in the file of pulses."""
PULSES = "pulses"
WORDS = "words"
"""The file, where an engine works, that has the words it was started with."""
ROUND_SECONDS = 0.5
MOST_REMOVALS = 20
"""Of one folder before it is left to the next process that looks for such."""


class Keeper:
    """The owner's side: takes note of when a call to an engine begins and ends."""

    def __init__(self, folder: Path, patience: float) -> None:
        """Starts the process.

        Args:
            folder: Where all engines of this process have their settings; removed with them.
            patience: Seconds a call may take.
        """
        path = folder / PULSES
        path.write_bytes(bytes(8 * MOST_ENGINES))
        with path.open("r+b") as file:
            self._pulses = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
        command = [sys.executable, "-I", "-S", __file__, str(folder), str(patience)]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
        )
        self._last = 0
        self._given: weakref.WeakValueDictionary[int, Pulse] = weakref.WeakValueDictionary()

    def pulse(self) -> Pulse:
        """The pulse of a further engine, at the next place that no other has.

        Raises:
            RuntimeError: All places are taken.
        """
        places = ((self._last + step) % MOST_ENGINES for step in range(1, MOST_ENGINES + 1))
        free = next((place for place in places if place not in self._given), None)
        if free is None:
            raise RuntimeError(f"There are {MOST_ENGINES} engines in this process already.")
        self._last = free
        pulse = self._given[free] = Pulse(self._pulses, free)
        return pulse

    def close(self) -> None:
        """Has the process end what is left, and itself."""
        self._process.communicate()

    def outlive(self) -> None:
        """Has the process wait until this one is gone; Python, before it ends, closes the pipe it knows of."""
        if self._process.stdin is not None:
            os.dup(self._process.stdin.fileno())

    def part(self) -> None:
        """Leaves the process to its owner, in one that was forked from it: whoever has the pipe open is waited for."""
        if self._process.stdin is not None:
            self._process.stdin.close()


class Pulse:
    """Odd while a call to an engine is under way; as a context, marks one."""

    def __init__(self, pulses: memoryview, number: int) -> None:
        self.number = number
        self.beat = pulses[number : number + 1]
        self.beat[0] &= ~1  # whoever had the place before may have been ended within a call

    def __enter__(self) -> None:
        self.beat[0] |= 1

    def __exit__(self, *_: object) -> None:
        self.beat[0] += 1


def settings_name(number: int) -> str:
    """What an engine's settings file is called: by it the engine's process is found."""
    return f"engine-{number}.ini"


def end_engines(folder: Path, name: str = "") -> None:
    """Ends engines whose settings lie in a folder, or only the one whose settings file is called so."""
    place = os.fsencode(folder / name) if name else os.fsencode(folder) + b"/"
    for number, words in _engines():
        if any(word == place or (not name and word.startswith(place)) for word in words):
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
            _sweep(words)


def remove(folder: Path) -> None:
    """Ends engines whose settings lie in a folder and removes it, and what any that worked there left in shared memory.

    An engine's shell that does not find the mark of its start any more leaves a word there, once: then again.
    """
    for _ in range(MOST_REMOVALS):
        end_engines(folder)
        for file in folder.glob(f"*/{WORDS}"):
            with suppress(OSError):
                _sweep(file.read_bytes().split(b"\0")[:-1])  # what is after the last end was cut off
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def find_memory(settings: Path) -> Path | None:
    """Where the engine with this settings file writes what it shows; None if that is not to be found."""
    place = os.fsencode(settings)
    found = [path for _, words in _engines() if place in words for path in _shared(words, "SM")]
    return found[0] if found else None


def hold_queues(settings: Path) -> None:
    """Has the system set aside all memory of an engine's queues: who dies of lack of it within one leaves it locked."""
    place = os.fsencode(settings)
    for path in [path for _, words in _engines() if place in words for path in _shared(words, "MQ*")]:
        with suppress(OSError), path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def watch(folder: Path, patience: float) -> None:
    """What the process does, until its owner closes the pipe or is gone.

    An owner whose call goes on though its engine is no more waits for ever, holding Python's lock: the engine died
    within one of the queues they share. Nothing inside that process could help it, so it is ended.
    """
    since, owner = dict.fromkeys(range(MOST_ENGINES), (0, 0.0)), os.getppid()
    stuck: dict[int, int] = {}
    with (folder / PULSES).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        while not select.select([sys.stdin], [], [], min(ROUND_SECONDS, patience / 4))[0]:
            now = time.monotonic()
            for number, pulse in enumerate(memoryview(content).cast("Q").tolist()):
                if pulse != since[number][0]:
                    since[number] = pulse, now
                elif pulse % 2 and now > since[number][1] + patience:
                    if stuck.get(number) == pulse and not _is_stopped(owner):
                        os.kill(owner, signal.SIGKILL)
                    end_engines(folder, settings_name(number))
                    since[number] = pulse, now
                    stuck[number] = pulse
    remove(folder)


def _is_stopped(process: int) -> bool:
    """Whether somebody has told a process to pause, as with Ctrl-Z: then it is not stuck."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b") ")[2][:1] in b"Tt"
    return False


def _engines() -> Iterator[tuple[int, list[bytes]]]:
    """All engines of this machine that can be seen: their process ids and the words they were started with."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = command.read_bytes().split(b"\0")
            if words[0].endswith(b"vizdoom"):
                yield int(command.parent.name), words


def _sweep(words: list[bytes]) -> None:
    """Removes the shared memory of an engine that was ended."""
    for path in _shared(words, "*"):
        path.unlink(missing_ok=True)


def _shared(words: list[bytes], part: str) -> list[Path]:
    """What an engine, known by the words it was started with, has in shared memory."""
    name = dict(itertools.pairwise(words)).get(b"+viz_instance_id")
    if not name:
        return []
    instance = os.fsdecode(name)
    return list(Path("/dev/shm").glob(f"ViZDoom{part}{instance}"))  # noqa: S108


if __name__ == "__main__":
    watch(Path(sys.argv[1]), float(sys.argv[2]))
