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
from openfield.objectives.frames.encode import (
    check_bins,
    check_finite,
    encode_frames,
    find_bins,
    grey,
    pack_digits,
    shrink,
    taps,
    whole,
)
from openfield.objectives.frames.table_of_episodes import hash_of
from openfield.objectives.tables.codes import WORD, words_of
from openfield.objectives.tables.histograms import Array
from openfield.record import action_key

CHANNELS = (1, 3, 4)
"""Numbers of colours a picture may have; a fourth one is opacity."""


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


class FunctionInputs:
    """Inputs that a function of the user tells apart."""

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
            return Coded(words_of(keys))
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
        self._scale = 1.0 / (2 * size**3) ** 2
        # A sum of 8-bit pixels times whole weights: exact in float32 on the way, and 32 bits hold the result.
        self._exact = 255 * 2 * size**3 < 1 << 24 and 255 * (2 * size**3) ** 2 < 1 << 32
        self._fits: dict[tuple[int, ...], tuple[Array, Array, Array]] = {}
        self._kind: np.dtype[Any] | None = None

    def key(self, observation: Any) -> bytes:
        """Return the code of a picture if thresholds are known, or else the bytes of its small values."""
        sums = self._sums(observation)
        if self.bins is None:
            return sums.tobytes()
        small = sums.reshape(-1, 1) * self._scale if sums.dtype == np.uint32 else sums.reshape(-1, 1)
        levels = (small >= self.bins.reshape(-1, self.bins.shape[2])).sum(axis=1, dtype=np.uint8)
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
        exact = self._kind == np.uint32
        values: Array = np.frombuffer(raw, np.uint32 if exact else np.float64).reshape(shape)
        return np.multiply(values, self._scale) if exact else values

    def _sums(self, observation: Any) -> Array:
        """Return a small picture: as sums in 32 bits if they are exact, else as values in float64."""
        picture: Array = observation if isinstance(observation, np.ndarray) else np.asarray(observation)
        fit = self._fits.get((*picture.shape, picture.dtype.num)) or self._fit(picture)
        rows, across, down = fit
        if not len(rows):
            check_finite(picture[None], np.float32)
            return np.asarray(shrink(grey(picture)[None], self.size)[0])
        part = picture[rows]
        if part.ndim == 3:
            grey_part = part[:, :, 0].astype(np.uint16)
            for colour in range(1, min(part.shape[2], 3)):
                grey_part += part[:, :, colour]
            if part.shape[2] >= 3:
                grey_part //= 3
            part = grey_part
        sums: Array = down @ (part.astype(np.float32) @ across)
        return sums.astype(np.uint32)

    def _fit(self, picture: Array) -> tuple[Array, Array, Array]:
        """Prepare for pictures of one shape; without rows they take the general way."""
        flat = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] in CHANNELS)
        if not flat or 0 in picture.shape or picture.dtype.kind not in "biuf":
            raise InvalidInput(
                f"An observation of {picture.dtype} {picture.shape} is no picture (height, width[, colours]). "
                "Give a function of your own: Tracker(env, codes=FUNCTION)."
            )
        exact = self._exact and picture.dtype == np.uint8
        kind = np.dtype(np.uint32 if exact else np.float64)
        if self._kind not in (None, kind):
            raise InvalidInput(f"Pictures changed to {picture.dtype}; all must be of one kind.")
        self._kind = kind
        rows, columns = taps(picture.shape[0], self.size), taps(picture.shape[1], self.size)
        across = np.zeros((picture.shape[1], self.size), np.float32)
        across[columns.used] = columns.weights.T
        fit = rows.used if exact else np.empty(0, np.int64), across, rows.weights.astype(np.float64)
        self._fits[*picture.shape, picture.dtype.num] = fit
        return fit
