"""The human player of birds: objects are printed as distances from the slingshot, shots are typed as angles."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import msgspec

from openfield.agents.human import HELP, LineHuman, read_json
from openfield.domains.birds.actions import TAP_SECONDS, Load, read_action
from openfield.domains.birds.agents.observed_level import ObservedLevel, ObservedObject, observe_level
from openfield.errors import AgentProtocol

SHOTS = (
    "A shot is an angle in degrees, the pull of the sling (0 to 1), and the seconds until the bird uses its power: "
    "'42', '42 0.8', '42 1 1.5'. Between levels 'load 3' loads level 3. Any other action is typed as JSON."
)


class BirdsHuman(LineHuman):
    """Prints where the objects are, and reads shots."""

    help = f"{HELP}\n{SHOTS}"

    def describe(self, observation: Any) -> str:
        """Describe a level by the distances of its objects; print an announcement as it is."""
        return describe_level(observation) if isinstance(observation, list) else super().describe(observation)

    def parse(self, text: str) -> Any:
        """Parse numbers as a shot, `load N` as a choice of a level, and JSON as any other action."""
        words = text.split()
        if len(words) == 2 and words[0] == "load" and words[1].isdecimal():
            return msgspec.to_builtins(Load(int(words[1])))
        given = read_shot(words) or read_json(text)
        with suppress(AgentProtocol):
            read_action(given)
            return given
        return None


def describe_level(observation: list[dict[str, Any]]) -> str:
    """Return what is where in a level: how far to the right of the sling, and how far above it."""
    level = observe_level(observation)
    return "; ".join(_tell(level, seen) for seen in level.objects)


def _tell(level: ObservedLevel, seen: ObservedObject) -> str:
    x, y = ((a - b) / level.scale for a, b in zip(seen.centre, level.rest, strict=True))
    return f"{seen.look.replace('_', ' ')} {round(x, 1) + 0.0:+.1f} {round(-y, 1) + 0.0:+.1f}"  # no minus before a zero


def read_shot(words: list[str]) -> list[float] | None:
    """Return a launch for an angle, a pull and a tap; None if the words are something else."""
    try:
        degrees, pull, tap = [*map(float, words), *(1.0, 0.0)[len(words) - 1 :]] if words else []
    except ValueError:
        return None
    if not (all(map(math.isfinite, (degrees, pull, tap))) and 0 <= pull <= 1 and 0 <= tap <= TAP_SECONDS):
        return None
    angle = math.radians(degrees)
    return [pull * math.cos(angle), pull * math.sin(angle), tap / TAP_SECONDS]
