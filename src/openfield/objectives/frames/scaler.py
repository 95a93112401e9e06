"""Downscale single frames quickly, as they come from an environment: what `downscale` gives for each of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.frames.encode import check_finite, grey, shrink, taps
from openfield.objectives.tables.histograms import Array

CHANNELS = (1, 3, 4)
"""Numbers of colours a picture may have; a fourth one is opacity."""


class _Fit(NamedTuple):
    """What is prepared for frames of one shape; weights are whole numbers."""

    rows: Array
    across: Array
    down: Array
    exact: bool


class FrameScaler:
    """Downscales pictures of any height and width, grey or in colours, to one size."""

    def __init__(self, size: int) -> None:
        """Set the height and width of the results."""
        self.size = size
        self.scale = 1.0 / (2 * size**3) ** 2
        """What sums are multiplied by to give values of pixels."""
        self._fits: dict[tuple[int, ...], _Fit] = {}

    def sums(self, observation: Any) -> tuple[Array, bool]:
        """Return a small picture as float64, and whether it holds exact sums, which `scale` turns into values.

        Raises:
            InvalidInput: It is no picture, or holds what is no finite number.
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
                f"An observation of {picture.dtype} {picture.shape} is no picture (height, width[, colours]). "
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
