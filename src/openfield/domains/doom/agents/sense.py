"""Feature vectors read back as scenes, for agents that think in scenes.

Below the agents; they see what any agent sees, nothing else.
"""

from __future__ import annotations

from typing import Any

from openfield.core import Spec
from openfield.domains.doom.engine.scene import ITEMS, Body, Scene
from openfield.domains.doom.maps.scenario import Wall
from openfield.errors import InvalidInput


def scene_of(features: dict[str, Any]) -> Scene:
    """The scene a feature vector of either task shows."""
    items = features.get("items", {})
    player = features["player"]
    return Scene(
        _body(player),
        float(player.get("ammo", 1.0)),
        [_body(enemy) for enemy in features["enemies"]],
        {kind: [_body(item) for item in items.get(kind, ())] for kind in ITEMS},
        [_body(bolt) for bolt in features.get("projectiles", ())],
    )


def walls_of(features: dict[str, Any]) -> list[Wall]:
    """The walls the first vector of an episode tells of; none in the duel."""
    return [Wall(wall["x1"], wall["x2"], wall["y1"], wall["y2"]) for wall in features.get("walls", ())]


def task_of(spec: Spec) -> str:
    """Which task an agent is made for; agents that need feature vectors refuse arrays."""
    if spec.observations is not None:
        raise InvalidInput("This agent reads feature vectors; leave the setting observation=features.")
    return "arena" if spec.domain.endswith("arena") else "duel"


def _body(entry: dict[str, Any]) -> Body:
    return Body(
        entry["id"],
        entry["x_position"],
        entry["y_position"],
        entry["z_position"],
        entry.get("angle", 0.0),
        entry.get("health", 0.0),
    )
