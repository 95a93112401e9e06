"""Where the numbers of a tick come from: the engine's shared memory, or the states of the engine's package.

The package makes a picture and an object for each entity at every tick. Reading the memory that the engine shares with
the package costs a fraction of that. The layout of this memory is not documented. So every episode begins with a
comparison of both sources, and the package's states are used if they differ.
"""

from __future__ import annotations

import functools
import mmap
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

RawState = tuple[Any, ...]
"""The player's health and bullets, the number of entities, and `ENTITY_FIELDS` values for each entity."""
HEADER_FIELDS, ENTITY_FIELDS = 3, 7
"""An entity's values: the engine's number, x, y, z, angle, roll, the first letter of its name."""
_PLAYER = "636xi24xi92604x"
"""Health and bullets."""
_FIRST = 93280
_ENTITY = "I4x4d8xd152xc127x"
_SIZE = struct.calcsize("<" + _ENTITY)
_NAME = struct.Struct("<208x128s")


KNOWN_VERSIONS = ("1.3.2",)
"""The versions of vizdoom whose memory is known to have this layout. Others may have it, too: every episode looks."""


def describe_unknown() -> str:
    """Return the warning for memory with another layout."""
    return (
        f"openfield does not know the memory layout of vizdoom {version('vizdoom')}: it reads the game's state through "
        f"vizdoom's slower interface. Results are the same. Known: {', '.join(KNOWN_VERSIONS)}."
    )


class ReadFormat(NamedTuple):
    """Which values to read. All are read in one call."""

    entities: int
    """The number of entities."""
    start: int
    end: int
    """From `start` to before `end`, only the engine's number of an entity is read."""
    unpack: Callable[[memoryview], RawState]


@functools.lru_cache(maxsize=256)
def read_format(count: int, start: int = 0, end: int = 0) -> ReadFormat:
    """Make the format for a number of entities; from `start` to before `end`, only their numbers are read.

    With none, only the player's numbers and the number of entities are read.
    """
    numbers = f"I{_SIZE - 4}x" * (end - start)
    content = struct.Struct(f"<{_PLAYER}Q{_ENTITY * start}{numbers}{_ENTITY * (count - end)}")
    return ReadFormat(count, start, end, content.unpack_from)


class PackageSource:
    """Reads one state of the engine's package."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._entities = state.objects

    def read(self, wanted: ReadFormat) -> RawState:
        """Read the values. Only the header is right if the number of entities differs from the format's."""
        health, ammo = map(int, self._state.game_variables.tolist())
        numbers = [entity.id for entity in self._entities[wanted.start : wanted.end]]
        before, after = _values(self._entities[: wanted.start]), _values(self._entities[wanted.end : wanted.entities])
        missing = (0,) * (ENTITY_FIELDS * (wanted.entities - len(self._entities)))
        return health, ammo, len(self._entities), *before, *numbers, *after, *missing

    def name(self, index: int) -> str:
        """Return the name of an entity."""
        name: str = self._entities[index].name
        return name


class MemorySource:
    """Reads the engine's shared memory, which always shows the last tick."""

    def __init__(self, memory: Path) -> None:
        with memory.open("rb") as file:
            self._memory = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))

    def read(self, wanted: ReadFormat) -> RawState:
        """Read the values. Only the header is right if the number of entities differs from the format's."""
        return wanted.unpack(self._memory)

    def name(self, index: int) -> str:
        """Return the name of an entity."""
        name: bytes = _NAME.unpack_from(self._memory, _FIRST + _SIZE * index)[0]
        return name.partition(b"\0")[0].decode("ascii", "replace")


StateSource = PackageSource | MemorySource
"""Gives the numbers of the current tick."""


def open_memory(memory: Path) -> MemorySource | None:
    """Open an engine's shared memory; return None if that fails."""
    with suppress(OSError, ValueError):
        return MemorySource(memory)
    return None


def sources_agree(one: StateSource, other: StateSource) -> bool:
    """Check whether two sources show the same state."""
    try:
        head = one.read(read_format(0))
        return head == other.read(read_format(0)) and _read_all(one, head[-1]) == _read_all(other, head[-1])
    except (struct.error, IndexError):  # the memory has another layout, or is too short
        return False


def _read_all(source: StateSource, count: int) -> tuple[Any, ...]:
    return source.read(read_format(count)), [source.name(index) for index in range(count)]


def _values(entities: Iterable[Any]) -> Iterator[Any]:
    for entity in entities:
        position = entity.position_x, entity.position_y, entity.position_z
        yield from (entity.id, *position, entity.angle, entity.roll, entity.name[:1].encode())
