"""A person who plays birds by typing: what is where is told in units from the slingshot, shots are angles.

Stands in the place of an agent; `openfield play birds` uses it.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from openfield.agents.human import HELP, LineHuman, read_json
from openfield.domains.birds.actions import TAP_SECONDS, Load, read_action
from openfield.domains.birds.agents.planner import ObservedLevel, ObservedObject, observe_level
from openfield.errors import AgentProtocol

SHOTS = (
    "A shot is an angle in degrees, how far the sling is pulled (0 to 1), and after how many seconds the bird uses its "
    "power: '42', '42 0.8', '42 1 1.5'. Between levels 'load 3' chooses one; every other action is typed as JSON."
)


class BirdsHuman(LineHuman):
    """Tells a person what is where, and takes angles."""

    help = f"{HELP}\n{SHOTS}"

    def describe(self, observation: Any) -> str:
        """Levels as distances; announcements as they are."""
        if not isinstance(observation, list):
            return super().describe(observation)
        sight = observe_level(observation)
        return "; ".join(_tell(sight, seen) for seen in sight.objects)

    def parse(self, text: str) -> Any:
        """Numbers are a shot, `load` chooses a level, JSON is whatever agents may say."""
        words = text.split()
        if len(words) == 2 and words[0] == "load" and words[1].isdecimal():
            return msgspec.to_builtins(Load(int(words[1])))
        return _shot(words) or _action(read_json(text))


def _tell(sight: ObservedLevel, seen: ObservedObject) -> str:
    x, y = ((a - b) / sight.scale for a, b in zip(seen.centre, sight.rest, strict=True))
    return f"{seen.look.replace('_', ' ')} {round(x, 1) + 0.0:+.1f} {round(-y, 1) + 0.0:+.1f}"  # no minus before a zero


def _shot(words: list[str]) -> list[float] | None:
    """Angle, pull and tap; None if these are no such numbers."""
    try:
        degrees, pull, tap = [*map(float, words), *(1.0, 0.0)[len(words) - 1 :]] if words else []
    except ValueError:
        return None
    if not (all(map(math.isfinite, (degrees, pull, tap))) and 0 <= pull <= 1 and 0 <= tap <= TAP_SECONDS):
        return None
    angle = math.radians(degrees)
    return [pull * math.cos(angle), pull * math.sin(angle), tap / TAP_SECONDS]


def _action(given: Any) -> Any:
    try:
        read_action(given)
    except AgentProtocol:
        return None
    return given
