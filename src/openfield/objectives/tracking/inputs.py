"""Turn observations into inputs that can be counted: pictures as in the paper, or codes by a function.

`Life` asks for the key of every observation, and for the codes of all distinct keys when a table is made. Pictures
keep all their values until then, as the thresholds of their levels depend on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.frames.encode import FrameScaler, check_bins, encode_frames, find_bins, pack_digits, whole
from openfield.objectives.frames.table_of_episodes import hash_of
from openfield.objectives.tables.codes import WORD, to_words
from openfield.objectives.tables.histograms import Array
from openfield.record import action_key


class Coded(NamedTuple):
    """The codes of some keys."""

    words: Array
    """(K, W) of uint64, the lowest word first."""
    bins: Array | None = None
    """The thresholds by which pictures were coded."""

    @property
    def thresholds(self) -> str | None:
        """The hash of the thresholds."""
        return None if self.bins is None else hash_of(self.bins)


class Inputs(Protocol):
    """What turns observations into keys, and distinct keys into codes."""

    def key(self, observation: Any) -> Hashable:
        """Return the key of an observation; equal inputs have equal keys."""

    def payload(self, key: Any) -> bytes:
        """Return the same bytes for a key in every process; inputs are sampled by their hash."""

    def codes(self, keys: Sequence[Any]) -> Coded:
        """Return the codes of distinct keys."""


def can_hold_pictures(space: Any) -> bool:
    """Return whether the observations of a space of Gymnasium are pictures: height, width and perhaps colours."""
    return len(getattr(space, "shape", None) or ()) in (2, 3) and hasattr(space, "low")


class FunctionInputs:
    """Inputs that a function of the user distinguishes."""

    def __init__(self, function: Callable[[Any], Hashable]) -> None:
        """Take the function, which gets an observation and returns a number, a text, bytes, or a tuple of these."""
        if not callable(function):
            raise InvalidInput(f"codes is {function!r}; it must be a function of an observation.")
        self.key = function

    def payload(self, key: Any) -> bytes:
        """Return the bytes of a code."""
        try:
            return action_key(key)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput(f"A code is {key!r:.80}; codes are numbers, texts, bytes or tuples of these.") from error

    def codes(self, keys: Sequence[Any]) -> Coded:
        """Return whole numbers as they are, and 128 bits of the hash of everything else."""
        if all(type(key) is int and 0 <= key < 1 << 2 * WORD for key in keys):
            return Coded(to_words(keys))
        raw = b"".join(blake2b(self.payload(key), digest_size=16).digest() for key in keys)
        return Coded(np.frombuffer(raw, "<u8").reshape(-1, 2))


class PictureInputs:
    """Pictures, downscaled and cut into levels as in the paper."""

    def __init__(self, size: int = 8, levels: int = 4, thresholds: Array | None = None) -> None:
        """Set how pictures become codes.

        Args:
            size: Height and width to which pictures are downscaled.
            levels: Levels of a pixel.
            thresholds: The thresholds between levels; without them, those of all pictures seen when a table is made.
        """
        if whole(size, "size") < 1 or whole(levels, "number of levels") < 1:
            raise InvalidInput(f"Pictures of size {size} in {levels} levels; both must be positive.")
        self.size, self.levels = size, levels
        self.bins = None if thresholds is None else check_bins(thresholds, (size, size))
        self._scaler = FrameScaler(size)
        self._whole = 255 * (2 * size**3) ** 2 < 1 << 32
        """Whether 32 bits hold the sums of 8-bit pixels."""
        self._kind: type | None = None

    def key(self, observation: Any) -> bytes:
        """Return the code of a picture if thresholds are known, or else the bytes of its small values."""
        small = self._small(observation)
        if self.bins is None:
            return small.tobytes()
        values = small.reshape(-1, 1) * (self._scaler.scale if self._kind is np.uint32 else 1.0)
        levels = (values >= self.bins.reshape(-1, self.bins.shape[2])).sum(axis=1, dtype=np.uint8)
        return pack_digits(levels[None], self.bins.shape[2] + 1).tobytes()

    def payload(self, key: bytes) -> bytes:
        """Return the key itself."""
        return key

    def codes(self, keys: Sequence[bytes]) -> Coded:
        """Return the codes of pictures, by thresholds of all of them unless some were given."""
        raw = b"".join(keys)
        if self.bins is not None:
            return Coded(np.frombuffer(raw, "<u8").reshape(len(keys), -1), self.bins)
        frames = self.small(raw)
        bins = find_bins(frames, self.levels)
        return Coded(encode_frames(frames, bins), bins)

    def small(self, raw: bytes) -> Array:
        """Return small pictures from the bytes of their keys, as `downscale` gives them."""
        shape = (-1, self.size, self.size)
        exact = self._kind is np.uint32
        values: Array = np.frombuffer(raw, np.uint32 if exact else np.float64).reshape(shape)
        return np.multiply(values, self._scaler.scale) if exact else values

    def _small(self, observation: Any) -> Array:
        """Return a small picture: as sums in 32 bits if they are exact, else as values in float64."""
        small, exact = self._scaler.sums(observation)
        kind = np.uint32 if exact and self._whole else np.float64
        if self._kind is not kind:
            if self._kind is not None:
                raise InvalidInput("Pictures changed from whole 8-bit numbers to others; all must be of one kind.")
            self._kind = kind
        if kind is np.uint32:
            return small.astype(np.uint32)
        return small * self._scaler.scale if exact else small
