"""Ground truth in the format of the original game, its noise, and a compact form for learners.

The types matter: public clients fail unless coordinates are whole numbers and shares are floats.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.domains.birds.game.scene import SLING_ID, Pixel, Scene, SceneItem, bounds, load_palette

GROUND_ID, TRAJECTORY_ID = -100, "2147483647"
FEATURE_ROWS = 40
CLASSES = (
    *("sling", "bird_red", "bird_blue", "bird_yellow", "bird_black", "bird_white", "pig", "wood", "ice", "stone"),
    *("platform", "tnt", "fan", "wind", "novel"),
)
FEATURES = 1 + 4
"""Numbers in a row of the compact form: the class, and the bounding box, all as fractions."""


class Noise:
    """The noise of the noisy ground truth."""

    def __init__(self, rng: random.Random, disc: bool = False) -> None:
        """Use offsets up to 1 pixel (SAIL-ON), or uniform in a disc of 2 pixels (Phy-Q)."""
        self._rng, self._disc = rng, disc

    def shift(self) -> Pixel:
        """Draw one offset for a whole object."""
        spread = 2 * math.sqrt(self._rng.random()) if self._disc else min(1.0, max(0.0, self._rng.gauss(0.5, 0.5)))
        angle = self._rng.uniform(0, 2 * math.pi)
        return round(spread * math.cos(angle)), round(spread * math.sin(angle))

    def blur(self, colours: dict[int, float]) -> dict[int, float]:
        """Change the shares of colours by one or two hundredths; they still add up to one."""
        blurred = {
            code: max(0.001, share + self._rng.choice((-1, 1)) * self._rng.uniform(0.01, 0.02))
            for code, share in colours.items()
        }
        total = math.fsum(blurred.values())
        return {code: share / total for code, share in blurred.items()}


def ground_truth(scene: Scene, dev: bool = False, noise: Noise | None = None) -> list[dict[str, Any]]:
    """Return a scene as a list with one collection of features; `dev` names every object and its life."""
    features: list[dict[str, Any]] = [
        _feature({}, str(GROUND_ID), "Ground", [], {"yindex": scene.ground}),
        _feature(_polygon([scene.sling]), str(SLING_ID), "Slingshot", _colormap("sling", None)),
    ]
    if scene.dots:
        shifts = ((x, y, noise.shift() if noise else (0, 0)) for x, y in scene.dots)
        dots = [[x + dx, y + dy] for x, y, (dx, dy) in shifts]
        features.append(_feature({"type": "MultiPoint", "coordinates": dots}, TRAJECTORY_ID, "Trajectory", []))
    features += [_object(item, dev, noise) for item in scene.items]
    return [{"type": "FeatureCollection", "features": features}]


def compact(scene: Scene) -> NDArray[np.float32]:
    """Return a scene as a fixed table: one row per object with class and bounding box, empty rows at the end."""
    table = np.zeros((FEATURE_ROWS, FEATURES), dtype=np.float32)
    width, height = scene.view.screen
    objects = [("sling", scene.sling), *((item.look, item.ring) for item in scene.items)]
    for row, (look, ring) in enumerate(objects[:FEATURE_ROWS]):
        left, top, right, bottom = bounds(ring)
        kind = (CLASSES.index(look if look in CLASSES else "novel") + 1) / len(CLASSES)
        table[row] = (kind, left / width, top / height, right / width, bottom / height)
    return np.clip(table, 0.0, 1.0)


def classify(colormap: Iterable[dict[str, Any]]) -> str:
    """Return the class whose colours overlap most with a colormap."""
    shares = {entry["color"]: entry["percent"] for entry in colormap}
    overlaps = {
        name: sum(min(share, look.colours.get(code, 0.0)) for code, share in shares.items())
        for name, look in load_palette().items()
    }
    return max(overlaps, key=lambda name: overlaps[name])


def _object(item: SceneItem, dev: bool, noise: Noise | None) -> dict[str, Any]:
    blurred = noise if item.rank != "bird" else None
    dx, dy = blurred.shift() if blurred else (0, 0)
    rings = [tuple((x + dx, y + dy) for x, y in ring) for ring in (item.ring, item.hole) if ring]
    extra = {"currentLife": round(item.life, 4) if item.life is not None else 1.0} if dev else {}
    label = item.sprite if dev else "Object"
    return _feature(_polygon(rings), str(item.id), label, _colormap(item.look, blurred), extra)


def _feature(
    geometry: dict[str, Any], name: str, label: str, colormap: list[dict[str, Any]], extra: dict[str, Any] | None = None
) -> dict[str, Any]:
    properties = {"id": name, "label": label, "colormap": colormap, **(extra or {})}
    return {"type": "Feature", "geometry": geometry, "properties": properties}


def _polygon(rings: Iterable[Iterable[Pixel]]) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": [[[x, y] for x, y in ring] for ring in rings]}


def _colormap(look: str, noise: Noise | None) -> list[dict[str, Any]]:
    colours = load_palette()[look].colours
    if noise is not None:
        colours = noise.blur(colours)
    return [{"color": code, "percent": float(share)} for code, share in colours.items()]
