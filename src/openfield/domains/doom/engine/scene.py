"""What is in the world at a tick: bodies, each somewhere, with some health.

Between engine and feature vectors: rules and features look at scenes, never at the engine.
"""

from __future__ import annotations

import msgspec

ITEMS = ("health", "ammo", "trap", "obstacle")


class Body(msgspec.Struct, gc=False):
    """Something somewhere."""

    id: int
    x: float
    y: float
    z: float
    angle: float
    health: float = 0.0
    tag: int = 0
    """How many enemies stand before it in the map: how orders call it."""


class Scene(msgspec.Struct, gc=False):
    """Everything at a tick."""

    player: Body
    ammo: float
    enemies: list[Body]
    """Only those alive."""
    items: dict[str, list[Body]]
    bolts: list[Body]
