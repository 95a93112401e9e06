"""Coarse forms of observations and actions, for measures that count how often each one occurs.

Exact outlines, noisy colours and aims to the pixel never occur twice, and what never occurs twice cannot be counted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.domains.birds.actions import Shot, SlingshotLaunch, read_action
from openfield.domains.birds.game.ground_truth import CLASSES, classify
from openfield.domains.birds.game.scene import HEIGHT, WIDTH

SQUARE = HEIGHT / 8
"""Side, in pixels, of the squares into which the screen is divided."""
PULL = 20.0
"""Side, in pixels, of the squares into which release points are divided."""


def coarse_truth(truth: list[dict[str, Any]]) -> tuple[tuple[str, int, int], ...]:
    """Return class and square of every object in a ground truth."""
    return tuple(sorted({_coarse(feature) for feature in truth[0]["features"] if feature["properties"]["colormap"]}))


def coarse_table(table: NDArray[np.float32]) -> tuple[tuple[str, int, int], ...]:
    """Return class and square of every object in the compact form; an object is where the centre of its box is."""
    kinds = np.rint(table[:, 0] * len(CLASSES)).astype(int)
    middles = (table[:, 1:3] + table[:, 3:5]) / 2 * (WIDTH, HEIGHT) // SQUARE
    rows = zip(kinds.tolist(), middles.astype(int).tolist(), strict=True)
    return tuple(sorted({(CLASSES[kind - 1], x, y) for kind, (x, y) in rows if kind}))


def _coarse(feature: dict[str, Any]) -> tuple[str, int, int]:
    ring = feature["geometry"]["coordinates"][0]
    x, y = (sum(point[axis] for point in ring) / len(ring) for axis in (0, 1))
    return classify(feature["properties"]["colormap"]), int(x // SQUARE), int(y // SQUARE)


def coarse_action(action: Any) -> tuple[Any, ...] | None:
    """Return release point or direction and power of a shot, and whether it taps; None for other actions."""
    match read_action(action):
        case Shot(x, y, tap):
            return "shoot", int(x // PULL), int(y // PULL), tap > 0
        case SlingshotLaunch(dx, dy, tap):
            return "launch", round(math.atan2(dy, dx) / math.tau * 32) % 32, round(4 * math.hypot(dx, dy)), tap > 0
        case _:
            return None
