"""What goes into an agent and what comes out, described so that a file, a wire and Gymnasium can carry it.

Part of a `Spec`; the rollout never looks at it, worlds check actions themselves.
"""

from __future__ import annotations

import math
import operator
import random
from typing import Any

import msgspec
import numpy as np

__all__ = ["Box", "Choice", "Discrete", "Fields", "Sequence", "Space", "Text", "Tuple"]

MAX_DRAWN = 32
"""Parts of a sequence that is drawn at random."""


class Discrete(msgspec.Struct, frozen=True, tag="discrete", omit_defaults=True):
    """The whole numbers 0 .. n-1, or as many from another start on."""

    n: int
    start: int = 0

    def sample(self, rng: random.Random) -> int:
        """Draw a value."""
        return self.start + rng.randrange(self.n)

    def contains(self, value: Any) -> bool:
        """Return whether a value belongs to the space."""
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return whole and bool(self.start <= value < self.start + self.n)


class Choice(msgspec.Struct, frozen=True, tag="choice"):
    """One of some words."""

    options: tuple[str, ...]

    def sample(self, rng: random.Random) -> str:
        """Draw a value."""
        return rng.choice(self.options)

    def contains(self, value: Any) -> bool:
        """Return whether a value belongs to the space."""
        return isinstance(value, str) and value in self.options


class Box(msgspec.Struct, frozen=True, tag="box"):
    """Numbers of a shape between two bounds; shape () is one number.

    A bound may be infinite. JSON has no infinity: there it is null, and read back as the infinity that it was.
    """

    low: int | float | tuple[int | float | None, ...] | None
    """The lower bound of all numbers, or one of each in their order."""
    high: int | float | tuple[int | float | None, ...] | None
    shape: tuple[int, ...] = ()
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """Read null as the infinity that it stands for."""
        for name, infinite in (("low", -math.inf), ("high", math.inf)):
            bound = getattr(self, name)
            if bound is None:
                msgspec.structs.force_setattr(self, name, infinite)
            elif isinstance(bound, tuple) and None in bound:
                filled = tuple(infinite if each is None else each for each in bound)
                msgspec.structs.force_setattr(self, name, filled)

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The lower and the upper bound of each number, as two flat arrays."""
        count, ends = int(np.prod(self.shape)), (self.low, self.high)
        low, high = (np.broadcast_to(np.ravel(np.asarray(end)), count) for end in ends)
        return low, high

    def sample(self, rng: random.Random) -> Any:
        """Draw a value: nested lists of numbers, a bare number for shape ().

        Numbers without a lower and an upper bound are normal, those with one bound exponential from there on.
        """
        draw = self._draw_whole if np.issubdtype(self.dtype, np.integer) or self.dtype == "bool" else _draw_real
        lows, highs = self.bounds
        flat = [draw(rng, low, high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]
        return np.array(flat, object).reshape(self.shape).tolist()

    def contains(self, value: Any) -> bool:
        """Return whether a value belongs to the space."""
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, OverflowError):
            return False
        kinds = "iub" if self.dtype == "bool" else "iu" if np.issubdtype(self.dtype, np.integer) else "iuf"
        if array.dtype.kind not in kinds or array.shape != self.shape:
            return False
        flat = array.ravel()
        return bool(((flat >= np.asarray(self.low)) & (flat <= np.asarray(self.high))).all())

    def _draw_whole(self, rng: random.Random, low: float, high: float) -> int:
        if self.dtype == "bool":
            return rng.randint(int(low), int(high))
        ends = np.iinfo(self.dtype)  # a bound that is a float may be rounded beyond them
        return rng.randint(max(_whole(low), int(ends.min)), min(_whole(high), int(ends.max)))


class Fields(msgspec.Struct, frozen=True, tag="fields"):
    """Named parts, each with a space of its own."""

    parts: dict[str, Space]

    def sample(self, rng: random.Random) -> dict[str, Any]:
        """Draw a value."""
        return {name: part.sample(rng) for name, part in self.parts.items()}

    def contains(self, value: Any) -> bool:
        """Return whether a value belongs to the space."""
        return (
            isinstance(value, dict)
            and value.keys() == self.parts.keys()
            and all(part.contains(value[name]) for name, part in self.parts.items())
        )


class Tuple(msgspec.Struct, frozen=True, tag="tuple"):
    """Parts in an order, each with a space of its own; a value is a list or a tuple."""

    parts: tuple[Space, ...]

    def sample(self, rng: random.Random) -> list[Any]:
        """Draw a value."""
        return [part.sample(rng) for part in self.parts]

    def contains(self, value: Any) -> bool:
        """Return whether a value belongs to the space."""
        return (
            isinstance(value, list | tuple)
            and len(value) == len(self.parts)
            and all(part.contains(each) for part, each in zip(self.parts, value, strict=True))
        )


class Sequence(msgspec.Struct, frozen=True, tag="sequence"):
    """Any number of values of one space; a value is a list or a tuple."""

    part: Space

    def sample(self, rng: random.Random) -> list[Any]:
        """Draw a value. Each further part is added with a chance of three quarters, as in Gymnasium."""
        drawn: list[Any] = []
        while len(drawn) < MAX_DRAWN and rng.random() < 0.75:
            drawn.append(self.part.sample(rng))
        return drawn

    def contains(self, value: Any) -> bool:
        """Return whether a value belongs to the space."""
        is_list = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
        return is_list and all(self.part.contains(each) for each in value)


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A text of some characters."""

    characters: str
    max_length: int
    min_length: int = 0

    def sample(self, rng: random.Random) -> str:
        """Draw a value."""
        return "".join(rng.choices(self.characters, k=rng.randint(self.min_length, self.max_length)))

    def contains(self, value: Any) -> bool:
        """Return whether a value belongs to the space."""
        fits = isinstance(value, str) and self.min_length <= len(value) <= self.max_length
        return fits and set(value) <= set(self.characters)


def _draw_real(rng: random.Random, low: float, high: float) -> float:
    if math.isfinite(high - low):
        return rng.uniform(low, high)
    if math.isfinite(low) and high == math.inf:
        return low + rng.expovariate(1.0)
    if math.isfinite(high) and low == -math.inf:
        return high - rng.expovariate(1.0)
    return min(high, max(low, rng.gauss(0.0, 1.0)))


def _whole(bound: float) -> int:
    return int(bound) if math.isfinite(bound) else int(math.copysign(2**64, bound))


Space = Discrete | Choice | Box | Fields | Tuple | Sequence | Text
"""What an action or an observation may be."""


def to_numpy(space: Space, value: Any) -> Any:
    """Convert a value of a space to the form it has in Gymnasium: arrays, and a choice as the number of its option."""
    match space:
        case Discrete():
            return np.int64(value)
        case Choice(options):
            return np.int64(options.index(value))
        case Box(dtype=dtype):
            return np.asarray(value, dtype=dtype)
        case Fields(parts):
            return {name: to_numpy(part, value[name]) for name, part in parts.items()}
        case Tuple(items):
            return tuple(to_numpy(part, each) for part, each in zip(items, value, strict=True))
        case Sequence(part):
            return tuple(to_numpy(part, each) for each in value)
        case Text():
            return str(value)


def from_numpy(space: Space, value: Any) -> Any:
    """Convert a value in Gymnasium's form to plain data."""
    match space:
        case Discrete():
            return operator.index(value)
        case Choice(options):
            return dict(enumerate(options))[operator.index(value)]
        case Box():
            return np.asarray(value).tolist()
        case Fields(parts):
            return {name: from_numpy(part, value[name]) for name, part in parts.items()}
        case Tuple(items):
            return [from_numpy(part, each) for part, each in zip(items, value, strict=True)]
        case Sequence(part):
            return [from_numpy(part, each) for each in value]
        case Text():
            return str(value)
