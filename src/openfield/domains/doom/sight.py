"""What an engine shows at a tick: the things of its world and how the player is.

Between engine and scenes. The engine's package makes a picture and an object for each thing at every tick, which costs
several times as much as to read things where the engine writes them: in the memory it shares with its package. How they
lie there is nowhere promised: every episode begins with a look at both, and if they differ the package's states are
used.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

Facts = tuple[int, float, float, float, float, float, bytes]
"""A thing: number, x, y, z, angle, roll, the first letter of its name."""
_COUNT = struct.Struct("<93272xQ")
_FIRST = 93280
_THING = struct.Struct("<I4x4d8xd152xc127x")
_SIZE, _unpack = _THING.size, _THING.iter_unpack
_NUMBER = struct.Struct("<I")
_NAME = struct.Struct("<208x128s")


class Sight(Protocol):
    """What can be seen."""

    def vitals(self) -> tuple[float, float]:
        """The player's health and bullets."""
        ...

    def count(self) -> int:
        """How many things there are."""
        ...

    def number(self, index: int) -> int:
        """The number of a thing, by its place in the engine's list."""
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

    def vitals(self) -> tuple[float, float]:
        """The player's health and bullets."""
        health, ammo = self._state.game_variables.tolist()
        return health, ammo

    def count(self) -> int:
        """How many things there are."""
        return len(self._things)

    def number(self, index: int) -> int:
        """The number of a thing, by its place in the engine's list."""
        number: int = self._things[index].id
        return number

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

    def __init__(self, game: Any, memory: Path) -> None:
        """Opens the memory.

        Args:
            game: The engine's `DoomGame`; health and bullets are its variables.
            memory: The file of the memory it shares.
        """
        self._variable = game.get_game_variable
        self._health, self._ammo = game.get_available_game_variables()
        with memory.open("rb") as file:
            self._memory = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))

    def vitals(self) -> tuple[float, float]:
        """The player's health and bullets."""
        return self._variable(self._health), self._variable(self._ammo)

    def count(self) -> int:
        """How many things there are."""
        count: int = _COUNT.unpack_from(self._memory)[0]
        return count

    def number(self, index: int) -> int:
        """The number of a thing, by its place in the engine's list."""
        number: int = _NUMBER.unpack_from(self._memory, _FIRST + _SIZE * index)[0]
        return number

    def name(self, index: int) -> str:
        """The name of a thing."""
        name: bytes = _NAME.unpack_from(self._memory, _FIRST + _SIZE * index)[0]
        return name.partition(b"\0")[0].decode("ascii", "replace")

    def facts(self, start: int, end: int) -> Iterable[Facts]:
        """The things from one place to before another."""
        return _unpack(self._memory[_FIRST + _SIZE * start : _FIRST + _SIZE * end])


def share_sight(game: Any, memory: Path | None) -> SharedSight | None:
    """What an engine shows in its memory, None if that cannot be opened."""
    with suppress(OSError, ValueError):
        return None if memory is None else SharedSight(game, memory)
    return None


def agree(one: Sight, other: Sight) -> bool:
    """Whether two show the same."""
    try:
        return _everything(one) == _everything(other)
    except (struct.error, IndexError):  # it lies elsewhere, or is too short
        return False


def _everything(sight: Sight) -> tuple[Any, ...]:
    count = sight.count()
    names = [sight.name(index) for index in range(min(count, 1 << 16))]
    return sight.vitals(), names, [sight.number(index) for index in range(len(names))], list(sight.facts(0, count))
