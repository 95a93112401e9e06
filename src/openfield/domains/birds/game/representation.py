"""Two early novelties that change only how a level is shown: in shades of grey, or turned by 180 degrees."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.domains.birds.game.scene import HEIGHT, WIDTH, Pixel, Scene

LUMA = (0.2126, 0.7152, 0.0722)
"""Shares of red, green and blue in a shade of grey."""


def turn_spot(x: float, y: float, screen: tuple[int, int] = (WIDTH, HEIGHT)) -> tuple[float, float]:
    """Return where a position on the screen is once the screen is turned about its middle, or turned back."""
    return screen[0] - x, screen[1] - y


def turn_scene(scene: Scene) -> Scene:
    """Return a scene with all its pixels turned; a picture of it is turned by `show_picture`."""
    width, height = scene.view.screen

    def turned(ring: tuple[Pixel, ...]) -> tuple[Pixel, ...]:
        return tuple((width - x, height - y) for x, y in ring)

    items = tuple(msgspec.structs.replace(item, ring=turned(item.ring), hole=turned(item.hole)) for item in scene.items)
    return msgspec.structs.replace(
        scene, ground=height - scene.ground, sling=turned(scene.sling), dots=turned(scene.dots), items=items
    )


def show_picture(picture: NDArray[np.uint8], way: str) -> NDArray[np.uint8]:
    """Return a picture as a novelty shows it: `grey`, `turned`, or as it is."""
    if way == "grey":
        shades = np.rint(picture @ np.array(LUMA)).astype(np.uint8)
        return np.repeat(shades[..., None], 3, axis=2)
    return np.ascontiguousarray(picture[::-1, ::-1]) if way == "turned" else picture


def remove_colours(ground_truth: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a ground truth whose colour codes are those of shades of grey."""
    for feature in ground_truth[0]["features"]:
        shares: dict[int, float] = {}
        for entry in feature["properties"]["colormap"]:
            code = grey_code(entry["color"])
            shares[code] = shares.get(code, 0.0) + entry["percent"]
        feature["properties"]["colormap"] = [{"color": code, "percent": share} for code, share in shares.items()]
    return ground_truth


def grey_code(code: int) -> int:
    """Return the code (RRRGGGBB) of the shade of grey of a colour code."""
    channels = ((code >> 5) + 0.5) / 8, ((code >> 2 & 7) + 0.5) / 8, ((code & 3) + 0.5) / 4
    shade = sum(weight * channel for weight, channel in zip(LUMA, channels, strict=True))
    return int(shade * 8) << 5 | int(shade * 8) << 2 | int(shade * 4)
