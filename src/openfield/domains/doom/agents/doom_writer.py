"""Doom in words: health, bullets, and what is ahead, to the left, behind and to the right."""

from __future__ import annotations

from typing import Any

from openfield.agents.turn_writer import TurnText, TurnWriter
from openfield.core import Spec, Turn
from openfield.domains.doom.agents.human import describe_surroundings
from openfield.domains.doom.features import read_walls
from openfield.domains.doom.maps.scenario import Wall


class DoomWriter(TurnWriter):
    """Describes what is around the player. Arrays and pictures are shown as in any domain."""

    rules = (
        "You see distances in units; you walk some units with every action and turn by some degrees. Shoot when an "
        "enemy is in your line of fire. Less time is a better score."
    )

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._walls: list[Wall] = []

    def describe(self, turn: Turn) -> TurnText:
        """Return a turn in words; walls are told at the start of an episode."""
        features = _find_features(turn.observation)
        if turn.first and features is not None:
            self._walls = read_walls(features)
        return super().describe(turn)

    def describe_observation(self, observation: Any) -> TurnText:
        """Return what is around."""
        features = _find_features(observation)
        if features is None:
            return super().describe_observation(observation)
        player = features["player"]
        parts = [f"Health {player['health']:.0f}."]
        parts += [f"Bullets {player['ammo']:.0f}."] if "ammo" in player else []
        hints = [hint for hint in features.get("hint") or () if any(hint.values())]
        parts += [f"Hint: {', '.join(str(word) for word in hint.values() if word)}." for hint in hints]
        beside = {key: value for key, value in observation.items() if key == "image"}
        pictures = super().describe_observation(beside).images if beside else ()
        return TurnText(f"{' '.join(parts)}\n{describe_surroundings(features, self._walls)}", pictures)


def _find_features(observation: Any) -> dict[str, Any] | None:
    """Return the features of an observation, which may have an image beside them; None if it has none."""
    found = observation.get("features", observation) if isinstance(observation, dict) else None
    return found if isinstance(found, dict) and "player" in found else None
