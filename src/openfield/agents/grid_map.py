"""A map for people who play: places on a grid that an observation tells, drawn as squares.

For domains that draw nothing themselves and whose observations have whole numbers for places, such as a small maze.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.spaces import Box, Fields, Space

SQUARE = 28
"""Pixels of a square."""
MAX_SQUARES = 40
"""Squares along a side; larger grids are not drawn."""
FLOOR, LINE = (238, 236, 230), (222, 219, 211)
COLOURS = ((0, 101, 163), (43, 138, 80), (184, 79, 0), (120, 80, 160))
"""Of the places, in their order: the first is usually the player's."""


class GridMap:
    """The places of observations in a space: whole numbers for column and row, all with the same bounds."""

    def __init__(self, size: int, names: list[str]) -> None:
        self.size, self.names = size, names

    def draw(self, observation: Any) -> NDArray[np.uint8]:
        """Return a picture of the places that an observation tells."""
        picture = np.full((self.size * SQUARE, self.size * SQUARE, 3), FLOOR, np.uint8)
        picture[::SQUARE] = picture[:, ::SQUARE] = LINE
        for name, colour in reversed(list(zip(self.names, COLOURS, strict=False))):
            x, y = (int(number) * SQUARE for number in observation[name])
            picture[y + 3 : y + SQUARE - 2, x + 3 : x + SQUARE - 2] = colour
        return picture


def find_grid(space: Space | None) -> GridMap | None:
    """Return the map of a space of observations; None if they tell no places on a grid."""
    parts = space.parts if isinstance(space, Fields) else {}
    names = [name for name, part in parts.items() if isinstance(part, Box) and _is_place(part)]
    sizes = {part.high for name in names if isinstance(part := parts[name], Box)}
    if len(sizes) != 1 or not isinstance(high := sizes.pop(), int) or not 1 <= high < MAX_SQUARES:
        return None
    return GridMap(high + 1, names)


def _is_place(part: Box) -> bool:
    return part.shape == (2,) and part.low == 0 and np.issubdtype(part.dtype, np.integer)
