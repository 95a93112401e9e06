"""Pictures drawn as text, for people who play at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHADES = " .:-=+*#%@"
"""Signs for pixels, from dark to bright. Each is printed twice, because a sign is about twice as high as wide."""
MAX_PIXELS = 32
"""Pixels of a drawn row; larger pictures are thinned out."""
GAP, MAX_COLUMNS = 4, 80
"""Blanks between pictures side by side, and how wide they are together."""


def draw_beside(pictures: Mapping[str, str]) -> str:
    """Return drawn pictures side by side with their titles, in as many rows as the width asks for."""
    blocks = [[title, *text.split("\n")] for title, text in pictures.items()]
    width = max((len(line) for block in blocks for line in block), default=0) + GAP
    beside = max(MAX_COLUMNS // width, 1)
    rows = []
    for at in range(0, len(blocks), beside):
        lines = zip_longest(*blocks[at : at + beside], fillvalue="")
        rows.append("\n".join("".join(text.ljust(width) for text in line).rstrip() for line in lines))
    return "\n\n".join(rows)


def draw(image: NDArray[Any]) -> str:
    """Draw a picture as text; anything that is no picture is printed as numbers."""
    pixels = np.asarray(image, dtype=float)
    pixels = pixels.mean(axis=2) if pixels.ndim == 3 else pixels
    if pixels.ndim != 2:
        return " ".join(f"{value:.3g}" for value in pixels.ravel()[:MAX_PIXELS])
    step = -(-max(pixels.shape) // MAX_PIXELS)
    low, high = float(pixels.min()), float(pixels.max())
    shades = ((pixels[::step, ::step] - low) / ((high - low) or 1.0) * (len(SHADES) - 1)).round().astype(int)
    return "\n".join("".join(SHADES[shade] * 2 for shade in row).rstrip() for row in shades)
