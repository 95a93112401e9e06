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
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

Signs = tuple[int, ...]
"""The player's health and bullets, how many things there are, and the numbers of some of them."""
Facts = tuple[int, float, float, float, float, float, bytes]
"""A thing: number, x, y, z, angle, roll, the first letter of its name."""
_PLAYER = "636xi24xi92604x"
"""Health and bullets."""
_FIRST = 93280
_THING = struct.Struct("<I4x4d8xd152xc127x")
_SIZE, _unpack = _THING.size, _THING.iter_unpack
_NAME = struct.Struct("<208x128s")


class Sight(Protocol):
    """What can be seen."""

    def signs(self, start: int, end: int) -> Signs:
        """The signs with the numbers of the things from one place in the engine's list to before another."""
        ...

    def name(self, index: int) -> str:
        """The name of a thing."""
        ...

    def facts(self, start: int, end: int) -> Iterable[Facts]:
        """The things from one place to before another."""
        ...


class ListedSight:
    """One state of the engine's package."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._things = state.objects

    def signs(self, start: int, end: int) -> Signs:
        """The signs with the numbers of the things from one place to before another."""
        health, ammo = map(int, self._state.game_variables.tolist())
        return health, ammo, len(self._things), *(thing.id for thing in self._things[start:end])

    def name(self, index: int) -> str:
        """The name of a thing."""
        name: str = self._things[index].name
        return name

    def facts(self, start: int, end: int) -> Iterable[Facts]:
        """The things from one place to before another."""
        for thing in self._things[start:end]:
            place = thing.position_x, thing.position_y, thing.position_z
            yield thing.id, *place, thing.angle, thing.roll, thing.name[:1].encode()


class SharedSight:
    """The engine's memory: always the last tick, with no state made of it."""

    def __init__(self, memory: Path) -> None:
        """Opens the memory.

        Args:
            memory: The file the engine shares.
        """
        with memory.open("rb") as file:
            self._memory = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))

    def signs(self, start: int, end: int) -> Signs:
        """The signs with the numbers of the things from one place to before another."""
        return _signs(start, end).unpack_from(self._memory)

    def name(self, index: int) -> str:
        """The name of a thing."""
        name: bytes = _NAME.unpack_from(self._memory, _FIRST + _SIZE * index)[0]
        return name.partition(b"\0")[0].decode("ascii", "replace")

    def facts(self, start: int, end: int) -> Iterable[Facts]:
        """The things from one place to before another."""
        return _unpack(self._memory[_FIRST + _SIZE * start : _FIRST + _SIZE * end])


def share_sight(memory: Path | None) -> SharedSight | None:
    """What an engine shows in its memory, None if that cannot be opened."""
    with suppress(OSError, ValueError):
        return None if memory is None else SharedSight(memory)
    return None


def agree(one: Sight, other: Sight) -> bool:
    """Whether two show the same."""
    try:
        return _everything(one) == _everything(other)
    except (struct.error, IndexError):  # it lies elsewhere, or is too short
        return False


def _everything(sight: Sight) -> tuple[Any, ...]:
    signs = sight.signs(0, 0)
    names = [sight.name(index) for index in range(min(signs[2], 1 << 16))]
    return signs, names, list(sight.facts(0, len(names)))


@functools.cache
def _signs(start: int, end: int) -> struct.Struct:
    """All signs in one look; the engine's package would make a call of each."""
    numbers = f"I{_SIZE - 4}x" * (end - start)
    return struct.Struct(f"<{_PLAYER}Q{_SIZE * start}x{numbers}")
