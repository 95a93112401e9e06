"""What an engine shows at a tick: the things of its world and how the player is.

Between engine and scenes. The engine's package makes a picture and an object for each thing at every tick, which costs
several times as much as to read things where the engine writes them: in the memory it shares with its package. How they
lie there is nowhere promised: every episode begins with a look at both, and if they differ the package's states are
used.
"""

from __future__ import annotations

import functools
import mmap
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

Look = tuple[Any, ...]
"""The player's health and bullets, how many things there are, and the things, each as `FACTS` values in a row."""
HEAD, FACTS = 3, 7
"""Of a thing: number, x, y, z, angle, roll, the first letter of its name."""
_PLAYER = "636xi24xi92604x"
"""Health and bullets."""
_FIRST = 93280
_THING = "I4x4d8xd152xc127x"
_SIZE = struct.calcsize("<" + _THING)
_NAME = struct.Struct("<208x128s")


class Gaze(NamedTuple):
    """What to look at: the engine's package would make a call of each."""

    things: int
    """How many there are."""
    start: int
    end: int
    """From the first to before the other place in the engine's list, things are told by their numbers alone."""
    unpack: Callable[[memoryview], Look]


@functools.lru_cache(maxsize=256)
def gaze(count: int, start: int = 0, end: int = 0) -> Gaze:
    """A look at so many things, some of them by their numbers alone."""
    numbers = f"I{_SIZE - 4}x" * (end - start)
    content = struct.Struct(f"<{_PLAYER}Q{_THING * start}{numbers}{_THING * (count - end)}")
    return Gaze(count, start, end, content.unpack_from)


GLANCE = gaze(0)
"""At the player, and how many things there are."""


class Sight(Protocol):
    """What can be seen."""

    def look(self, gaze: Gaze) -> Look:
        """All in one look; if there are not as many things as expected, only the first `HEAD` values are right."""
        ...

    def name(self, index: int) -> str:
        """The name of a thing."""
        ...


class ListedSight:
    """One state of the engine's package."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._things = state.objects

    def look(self, gaze: Gaze) -> Look:
        """All in one look."""
        health, ammo = map(int, self._state.game_variables.tolist())
        numbers = [thing.id for thing in self._things[gaze.start : gaze.end]]
        before, after = _listed(self._things[: gaze.start]), _listed(self._things[gaze.end : gaze.things])
        missing = (0,) * (FACTS * (gaze.things - len(self._things)))
        return health, ammo, len(self._things), *before, *numbers, *after, *missing

    def name(self, index: int) -> str:
        """The name of a thing."""
        name: str = self._things[index].name
        return name


class SharedSight:
    """The engine's memory: always the last tick, with no state made of it."""

    def __init__(self, memory: Path) -> None:
        """Opens the memory.

        Args:
            memory: The file the engine shares.
        """
        with memory.open("rb") as file:
            self._memory = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))

    def look(self, gaze: Gaze) -> Look:
        """All in one look."""
        return gaze.unpack(self._memory)

    def name(self, index: int) -> str:
        """The name of a thing."""
        name: bytes = _NAME.unpack_from(self._memory, _FIRST + _SIZE * index)[0]
        return name.partition(b"\0")[0].decode("ascii", "replace")


def share_sight(memory: Path | None) -> SharedSight | None:
    """What an engine shows in its memory, None if that cannot be opened."""
    with suppress(OSError, ValueError):
        return None if memory is None else SharedSight(memory)
    return None


def agree(one: Sight, other: Sight) -> bool:
    """Whether two show the same."""
    try:
        head = one.look(GLANCE)
        return head == other.look(GLANCE) and _everything(one, head[-1]) == _everything(other, head[-1])
    except (struct.error, IndexError):  # it lies elsewhere, or is too short
        return False


def _everything(sight: Sight, count: int) -> tuple[Any, ...]:
    return sight.look(gaze(count)), [sight.name(index) for index in range(count)]


def _listed(things: Iterable[Any]) -> Iterator[Any]:
    for thing in things:
        place = thing.position_x, thing.position_y, thing.position_z
        yield from (thing.id, *place, thing.angle, thing.roll, thing.name[:1].encode())
