"""From frames to image codes: downscale, discretize, encode, index.

Names and numbers are those of the published code. Where its text and its behaviour differ (dtypes), this follows the
behaviour.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.codes import integers_of, rank
from openfield.objectives.tables.histograms import Array

CHUNK = 1 << 10
"""Frames handled at once."""
AT_ONCE = 8
"""Frames handled at once: 0.6 MB as float32, which stay in the cache; 32 take half as long again."""
LIMB = 32
"""Bits of a limb: the product of two fits into 64 bits."""
CHANNELS = (1, 3, 4)
"""Numbers of colours a picture may have; a fourth one is opacity."""


def downscale(images: Array, size: int) -> Array:
    """Downscale frames of any height and width to (T, size, size) float64.

    Each frame is sampled bilinearly on a grid of size^2 x size^2 points, without antialiasing, and averaged in blocks.
    For 8-bit frames and a size that is a power of two the result is exact.

    Raises:
        InvalidInput: The images are not (T, H, W); colour frames must be made grey first.
    """
    images = np.asarray(images)
    if images.ndim != 3 or 0 in images.shape[1:]:
        raise InvalidInput(
            f"Frames must be (T, H, W); these are {images.shape}. Average the colours of colour frames first."
        )
    check_finite(images, np.float32)
    if whole(size, "size") < 1:
        raise InvalidInput(f"The size is {size}; it must be positive.")
    return shrink(images, size)


def grey(picture: Array) -> Array:
    """Average the colours of a picture, as whole numbers if they are; a fourth channel (opacity) is ignored."""
    if picture.ndim == 3 and picture.shape[2] in (1, 3, 4):
        colours = picture[:, :, :3]
        if picture.dtype == np.uint8:
            total: Array = colours.sum(axis=2, dtype=np.uint16) // colours.shape[2]
            return total.astype(np.uint8)
        return np.asarray(colours.mean(axis=2))
    return picture


def check_finite(images: Array, kind: type = np.float64, start: int = 0) -> None:
    """Check that frames hold finite real numbers: one NaN would spoil the thresholds of its pixel for all frames.

    They will be computed in the dtype `kind`; messages count frames from `start`.

    Raises:
        InvalidInput: A value is not a finite number; the message names the frame.
    """
    if images.dtype.kind in "biu":
        return
    if images.dtype.kind != "f":
        raise InvalidInput(f"Frames must be real numbers; these are {images.dtype}.")
    for at in range(0, len(images), CHUNK):
        with np.errstate(over="ignore", invalid="ignore"):
            part: Array = images[at : at + CHUNK].astype(kind, copy=False)
            fine = np.isfinite(part.sum())  # a sum is quick; one beyond the range needs a second look
        if not fine and not (finite := np.isfinite(part).reshape(len(part), -1).all(axis=1)).all():
            wrong = int(np.argmin(finite))
            value = images[at + wrong][~np.isfinite(part[wrong])][0]
            raise InvalidInput(f"frame {start + at + wrong} holds {value}; pixels are finite numbers.")


def whole(number: Any, name: str) -> int:
    """Return a number as an int.

    Raises:
        InvalidInput: It is not whole.
    """
    try:
        return operator.index(number)
    except TypeError:
        raise InvalidInput(f"The {name} is {number!r}; it must be a whole number.") from None


@overload
def discretize(
    images: Array, bin_count: int | None = ..., return_bins: Literal[False] = ..., color_bins: Array | None = ...
) -> Array: ...
@overload
def discretize(
    images: Array, bin_count: int | None = ..., *, return_bins: Literal[True], color_bins: Array | None = ...
) -> tuple[Array, Array]: ...
def discretize(
    images: Array, bin_count: int | None = None, return_bins: bool = False, color_bins: Array | None = None
) -> Array | tuple[Array, Array]:
    """Compute the level of every pixel, as int64 of the same shape.

    The thresholds of a pixel are evenly spaced percentiles of its distinct values, so rare values weigh as much as
    common ones. The level of a value is the number of thresholds at or below it. A pixel that never changes is at the
    top level.

    Args:
        images: Frames, (T, H, W).
        bin_count: Number of levels; ignored if thresholds are given.
        return_bins: Return the thresholds (H, W, levels - 1) as well.
        color_bins: Thresholds to use instead of finding them.
    """
    images = np.asarray(images)
    if images.ndim != 3:
        raise InvalidInput(f"Frames must be (T, H, W); these are {images.shape}.")
    check_finite(images)
    bins = find_bins(images, bin_count) if color_bins is None else check_bins(color_bins, images.shape[1:])
    levels = np.empty(images.shape, np.int64)
    for at in range(0, len(images), CHUNK):
        levels[at : at + CHUNK] = _levels(images[at : at + CHUNK], bins)
    return (levels, bins) if return_bins else levels


def find_bins(images: Array, bin_count: int | None) -> Array:
    """Find the thresholds that `discretize` uses for these frames."""
    if bin_count is None or whole(bin_count, "number of levels") < 1:
        raise InvalidInput(f"The number of levels is {bin_count}; give a positive bin_count, or color_bins.")
    if not len(images):
        raise InvalidInput("There are no frames to find thresholds for.")
    height, width = images.shape[1:]
    pixels = np.ascontiguousarray(images.reshape(len(images), -1).T)
    return np.array([percentiles(np.unique(pixel), bin_count) for pixel in pixels]).reshape(
        height, width, bin_count - 1
    )


def percentiles(distinct: Array, bin_count: int) -> Array:
    """Compute the thresholds of one pixel from its distinct values."""
    marks = marks_of(bin_count)
    return np.percentile(np.asarray(distinct, np.float64), marks) if marks else np.empty(0)


def marks_of(bin_count: int) -> list[float]:
    """Return the percentiles at which the thresholds are."""
    return [100 * step / bin_count for step in range(1, bin_count)]


def check_bins(bins: Array, shape: tuple[int, ...]) -> Array:
    """Check that thresholds are finite and fit frames of this shape. Return them as float64."""
    bins = np.asarray(bins, np.float64)
    if bins.ndim != 3 or bins.shape[:2] != tuple(shape):
        raise InvalidInput(f"Thresholds of shape {bins.shape} do not fit frames of {tuple(shape)}.")
    if not np.isfinite(bins).all():
        raise InvalidInput("Thresholds must be finite numbers.")
    return bins


def encode(discrete: Array, bin_count: int) -> list[int]:
    """Encode each frame as one integer: its levels are the digits, row by row, the first pixel the least significant.

    Raises:
        InvalidInput: A level is not below `bin_count`, so two different frames could get the same code.
    """
    return integers_of(encode_packed(discrete, bin_count))


def encode_packed(discrete: Array, bin_count: int) -> Array:
    """Encode frames as `encode` does, as (T, W) words of 64 bits, the lowest first; W is at least 2."""
    discrete = np.asarray(discrete)
    if discrete.ndim < 2 or discrete.dtype.kind not in "biu":
        raise InvalidInput(
            f"Levels must be whole numbers of shape (T, H, W); these are {discrete.dtype} {discrete.shape}."
        )
    if whole(bin_count, "number of levels") < 1:
        raise InvalidInput(f"The number of levels is {bin_count}; it must be positive.")
    digits = discrete.reshape(len(discrete), math.prod(discrete.shape[1:]))
    if digits.size and (int(digits.max()) >= bin_count or int(digits.min()) < 0):
        wrong = int(digits.max()) if int(digits.max()) >= bin_count else int(digits.min())
        raise InvalidInput(f"A level is {wrong}; levels go from 0 to {bin_count - 1}.")
    return pack_digits(digits, bin_count)


def encode_frames(images: Array, color_bins: Array) -> Array:
    """Compute `encode_packed(discretize(images, color_bins=...))` in less memory."""
    images = np.asarray(images)
    check_finite(images)
    bins = check_bins(color_bins, images.shape[1:])
    count = bins.shape[2] + 1
    if not len(images):
        return pack_digits(np.empty((0, bins.shape[0] * bins.shape[1]), np.uint8), count)
    parts = (_levels(images[at : at + CHUNK], bins) for at in range(0, len(images), CHUNK))
    return np.concatenate([pack_digits(part.reshape(len(part), -1), count) for part in parts])


def dense_indices(codes: Sequence[int], start: int = 0) -> list[int]:
    """Number codes in the order they first appear; equal codes get equal indices.

    Start with 1 for tables whose code books will be compared, which treat 0 specially.
    """
    seen: dict[int, int] = {}
    return [seen.setdefault(code, len(seen) + start) for code in codes]


def code_book(codes: Sequence[int], start: int = 0) -> dict[int, int]:
    """Return the index of each code, as `dense_indices` numbers them."""
    return {code: number for number, code in enumerate(dict.fromkeys(codes), start)}


def index_words(words: Array, start: int = 0) -> tuple[Array, Array]:
    """Number packed codes as `dense_indices` does. Return the index of each, and the distinct codes in that order."""
    ranks, size = rank(words)
    first = np.full(size, len(words))
    np.minimum.at(first, ranks, np.arange(len(words)))
    order = np.argsort(first)
    number = np.empty(size, np.int64)
    number[order] = np.arange(start, start + size)
    return number[ranks], words[first[order]]


def _levels(images: Array, bins: Array) -> Array:
    """Count the thresholds at or below each value, in a byte if that is enough."""
    levels: Array = np.zeros(images.shape, np.uint8 if bins.shape[2] < 256 else np.int64)
    for threshold in np.moveaxis(bins, 2, 0):
        levels += images >= threshold
    return levels


class Taps(NamedTuple):
    """Which rows (or columns) are read, and their weights in each of the results; weights are over 2 * size^3."""

    used: Array
    weights: Array
    """(size, len(used))."""


def shrink(images: Array, size: int) -> Array:
    """Return frames of shape (T, H, W) as (T, size, size) float64."""
    count, height, width = images.shape
    rows, columns = taps(height, size), taps(width, size)
    scale = 1.0 / (2 * size**3) ** 2
    result = np.empty((count, size, size), np.float64)
    exact = images.dtype == np.uint8 and 255 * 2 * size**3 < 1 << 24  # the bits of a float32, for all weights
    kind = np.float32 if exact else np.float64
    across = np.zeros((width, size), kind)
    across[columns.used] = columns.weights.T
    down = rows.weights.astype(np.float64)
    for at in range(0, count, AT_ONCE):
        part: Array = images[at : at + AT_ONCE, rows.used].astype(np.float32).astype(kind, copy=False)
        result[at : at + AT_ONCE] = down @ (part @ across).astype(np.float64) * scale
    return result


@lru_cache(maxsize=64)
def taps(length: int, size: int) -> Taps:
    """Return the weights of `length` source lines in `size` results.

    Sample point i of size^2 lies at (i + 1/2) * length / size^2 - 1/2, clamped to the frame.
    """
    grid = size * size
    weights = np.zeros((size, length), np.int64)
    for point in range(grid):
        twice = (2 * point + 1) * length - grid
        low, part = divmod(twice, 2 * grid)
        if low < 0:
            low, part = 0, 0
        if low >= length - 1:
            low, part = length - 1, 0
        weights[point // size, low] += 2 * grid - part
        if part:
            weights[point // size, low + 1] += part
    used = np.flatnonzero(weights.any(axis=0))
    return Taps(used, weights[:, used])


def pack_digits(digits: Array, base: int) -> Array:
    """Compute sum(digit[i] * base**i) for each row, as at least two 64-bit words, the lowest first."""
    bits = max((base - 1).bit_length(), 1)
    if base == 1 << bits and bits in (1, 2, 4, 8):
        return _pack_bits(digits, bits)
    return _pack_limbs(digits, base)


def _pack_bits(digits: Array, bits: int) -> Array:
    """Pack digits of 1, 2, 4 or 8 bits byte by byte."""
    count, length = digits.shape
    per_byte = 8 // bits
    words = max(2, -(-length * bits // 64))
    small = digits.astype(np.uint8)
    if length != words * 8 * per_byte:
        small = np.pad(small, ((0, 0), (0, words * 8 * per_byte - length)))
    parts = small.reshape(count, words * 8, per_byte)
    packed = parts[:, :, 0].copy()
    for place in range(1, per_byte):
        packed |= parts[:, :, place] << np.uint8(place * bits)
    return packed.view("<u8")


def _pack_limbs(digits: Array, base: int) -> Array:
    """Pack digits of any base: from the highest digit down, multiply all limbs by the base and add the digit."""
    count, length = digits.shape
    words = max(2, -(-int(base**length - 1).bit_length() // 64))
    limbs = np.zeros((2 * words, count), np.uint64)
    for at in range(length - 1, -1, -1):
        carry = digits[:, at].astype(np.uint64)
        for limb in limbs:
            product = limb * np.uint64(base) + carry
            limb[:] = product & np.uint64(0xFFFFFFFF)
            carry = product >> np.uint64(LIMB)
    return np.ascontiguousarray((limbs[0::2] | limbs[1::2] << np.uint64(LIMB)).T)


class _Fit(NamedTuple):
    """The preparation for frames of one shape; weights are whole numbers."""

    rows: Array
    across: Array
    down: Array
    exact: bool


class FrameScaler:
    """Downscales single pictures of any height and width to one size, quickly and with the results of `downscale`."""

    def __init__(self, size: int) -> None:
        """Set the height and width of the results."""
        self.size = size
        self.scale = 1.0 / (2 * size**3) ** 2
        """What sums are multiplied by to give values of pixels."""
        self._fits: dict[tuple[int, ...], _Fit] = {}

    def sums(self, observation: Any) -> tuple[Array, bool]:
        """Return a small picture as float64, and whether it holds exact sums, which `scale` turns into values.

        Raises:
            InvalidInput: It is not a picture, or holds something else than finite numbers.
        """
        picture: Array = observation if isinstance(observation, np.ndarray) else np.asarray(observation)
        fit = self._fits.get((*picture.shape, picture.dtype.num)) or self._fit(picture)
        if not fit.exact:
            check_finite(picture[None], np.float32)
            return shrink(grey(picture)[None], self.size)[0], False
        part = picture.take(fit.rows, axis=0)
        if part.ndim == 3:
            part = part[:, :, 0] if part.shape[2] == 1 else _grey(part)
        return fit.down @ (part.astype(np.float32) @ fit.across), True

    def values(self, observation: Any) -> Array:
        """Return a small picture as `downscale` does."""
        found, exact = self.sums(observation)
        return found * self.scale if exact else found

    def _fit(self, picture: Array) -> _Fit:
        flat = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] in CHANNELS)
        if not flat or 0 in picture.shape or picture.dtype.kind not in "biuf":
            raise InvalidInput(
                f"An observation of {picture.dtype} {picture.shape} is not a picture (height, width[, colours]). "
                "Give a function of your own: codes=FUNCTION."
            )
        rows, columns = taps(picture.shape[0], self.size), taps(picture.shape[1], self.size)
        across = np.zeros((picture.shape[1], self.size), np.float32)
        across[columns.used] = columns.weights.T
        exact = picture.dtype == np.uint8 and 255 * 2 * self.size**3 < 1 << 24  # the bits of a float32
        fit = _Fit(rows.used, across, rows.weights.astype(np.float64), exact)
        self._fits[*picture.shape, picture.dtype.num] = fit
        return fit


def _grey(part: Array) -> Array:
    """Average the first three colours as `grey` does: of every three neighbours, which is faster than with strides."""
    numbers = part.reshape(-1).astype(np.uint16)
    means = numbers[:-2] + numbers[1:-1]
    means += numbers[2:]
    means //= 3
    return means[:: part.shape[2]].reshape(part.shape[:2])
