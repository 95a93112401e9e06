"""Changes of small grey images: what attribute and environment novelties do to a sample.

Pure functions on arrays N x H x W of values from 0 to 1, for the builder.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.settings import OndSettings

Images = NDArray[np.float32]
OTHER_SLANT = -0.5
"""The slant that stands for another typeface where samples are handwritten."""


def change_images(images: Images, settings: OndSettings) -> Images:
    """Return images changed as the settings say."""
    if settings.rotation:
        angle = math.radians(settings.rotation)
        images = warp(images, np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]))
    other_hand = OTHER_SLANT if settings.typeface != "sans" and settings.data != "glyphs" else 0.0
    if slant := settings.slant or other_hand:
        images = warp(images, np.array([[1.0, 0.0], [slant, 1.0]]))
    for _ in range(settings.blur):
        images = blur(images)
    if settings.contrast < 1:
        images = 0.5 + (images - 0.5) * np.float32(settings.contrast)
    if settings.background:
        slope = np.linspace(0, settings.background, images.shape[2], dtype=np.float32)
        images = np.maximum(images, slope)
    return images.astype(np.float32)


def warp(images: Images, matrix: NDArray[np.float64]) -> Images:
    """Return images after a linear map about their centre, interpolated linearly; the outside is black."""
    _, height, width = images.shape
    centre = np.array([(height - 1) / 2, (width - 1) / 2])
    grid = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1) - centre
    rows, columns = np.moveaxis(grid @ matrix.T + centre, -1, 0)
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = rows - top, columns - left
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    result = np.zeros_like(images)
    for row, column, weight in (
        (0, 0, (1 - down) * (1 - right)),
        (0, 1, (1 - down) * right),
        (1, 0, down * (1 - right)),
        (1, 1, down * right),
    ):
        y, x = np.clip(top + row + 1, 0, height + 1), np.clip(left + column + 1, 0, width + 1)
        result += padded[:, y, x] * weight.astype(np.float32)
    return result


def blur(images: Images) -> Images:
    """Return images in which each pixel is the mean of the nine around it."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), mode="edge")
    _, height, width = images.shape
    total = sum(padded[:, y : y + height, x : x + width] for y in range(3) for x in range(3))
    return np.asarray(total / 9, dtype=np.float32)
