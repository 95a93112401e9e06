"""What goes into an agent and what comes out, described so that a file, a wire and Gymnasium can carry it.

Part of a `Spec`; the rollout never looks at it, worlds check actions themselves.
"""

from __future__ import annotations

import operator
import random
from typing import Any

import msgspec
import numpy as np


class Discrete(msgspec.Struct, frozen=True, tag="discrete"):
    """The whole numbers 0 .. n-1."""

    n: int

    def sample(self, rng: random.Random) -> int:
        """Draw a value."""
        return rng.randrange(self.n)

    def contains(self, value: Any) -> bool:
        """Return whether a value belongs to the space."""
        return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(0 <= value < self.n)


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
    """Numbers of a shape between two bounds; shape () is one number."""

    low: float | tuple[float, ...]
    """The lower bound of all numbers, or one of each in their order."""
    high: float | tuple[float, ...]
    shape: tuple[int, ...] = ()
    dtype: str = "float32"

    def sample(self, rng: random.Random) -> Any:
        """Draw a value: nested lists of numbers, a bare number for shape ()."""
        whole = np.issubdtype(self.dtype, np.integer)
        lows, highs = (np.broadcast_to(np.ravel(bound), int(np.prod(self.shape))) for bound in (self.low, self.high))
        pairs = zip(lows.tolist(), highs.tolist(), strict=True)
        flat = [rng.randint(int(low), int(high)) if whole else rng.uniform(low, high) for low, high in pairs]
        return np.array(flat).reshape(self.shape).tolist()

    def contains(self, value: Any) -> bool:
        """Return whether a value belongs to the space."""
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, OverflowError):
            return False
        kinds = "iu" if np.issubdtype(self.dtype, np.integer) else "iuf"
        if array.dtype.kind not in kinds or array.shape != self.shape:
            return False
        flat = array.ravel()
        return bool(np.all((flat >= np.ravel(self.low)) & (flat <= np.ravel(self.high))))


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


Space = Discrete | Choice | Box | Fields
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
