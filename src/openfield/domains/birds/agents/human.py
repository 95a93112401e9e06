"""The human player of birds: it is said in words where things are, and shots are typed as an angle and a power."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import msgspec

from openfield.agents.human import LineHuman, read_json
from openfield.core import Ask, Turn
from openfield.domains.birds.actions import TAP_SECONDS, Load, read_action
from openfield.domains.birds.agents.observed_level import ObservedLevel, ObservedObject, observe_level
from openfield.errors import AgentProtocol

HELP = f"""Shoot by typing an angle and a power: '35 0.8' shoots 35 degrees upwards at 0.8 of the full power.
  0 degrees is to the right, 90 straight up, 180 to the left. Power goes from 0 to 1; without it, it is 1.
  A third number lets the bird use its power after so many seconds (0 to {TAP_SECONDS:g}): '35 1 1.5'. Not red ones.
  'xy 60 330' pulls the bird to this pixel of the screen instead. Any other action is typed as JSON.
  Between two levels Enter goes on, and 'load 3' loads level 3 where a set allows to choose.
  '? 0.7' says how sure you are that the world has changed (0 to 1), '?' shows this help, QUIT stops."""
BEGINS = {
    "trial": "A trial begins.",
    "training set": "The training begins.",
    "test set": "The test begins.",
    "training goes on": "The training goes on.",
    "level": "A level is ready.",
}
GROUPS = {
    "pig": "pig",
    "wood": "block of wood",
    "ice": "block of ice",
    "stone": "block of stone",
    "platform": "platform",
    "tnt": "box of TNT",
    "fan": "fan",
    "wind": "field of wind",
    "novel": "thing of an unknown colour",
}
"""How the classes of objects are called, in the order they are told."""
MAX_TOLD = 8
STATES = {"won": "You have won the level.", "lost": "You have lost the level.", "playing": "The level was left."}


class BirdsHuman(LineHuman):
    """Says where the objects are, and reads shots."""

    help = HELP

    def describe(self, observation: Any) -> str:
        """Say where the objects of a level are; say what begins."""
        if isinstance(observation, dict) and "begins" in observation:
            levels = observation.get("levels")
            told = f" Levels: {levels}." if isinstance(levels, int) and levels else ""
            return f"{BEGINS.get(observation['begins'], observation['begins'])}{told}"
        if not isinstance(observation, list):
            return super().describe(observation)
        return "\n".join(_tell_level(observe_level(observation)))

    def parse(self, text: str) -> Any:
        """Parse numbers as a shot, `xy` and a pixel, `load N` as a choice of a level, and JSON as any other action."""
        words = text.split()
        if len(words) == 2 and words[0] == "load" and words[1].isdecimal():
            return msgspec.to_builtins(Load(int(words[1])))
        given = _pixel(words) or _shot(words) or read_json(text)
        with suppress(AgentProtocol):
            read_action(given)
            return given
        return None

    def _show(self, turn: Turn) -> None:
        """Print a turn line by line."""
        feedback = turn.feedback if isinstance(turn.feedback, dict) else {}
        if turn.ask is not Ask.NONE:
            self._say(self.describe(turn.observation))
        if "score" in feedback:
            gained = f" ({turn.reward:+g})" if turn.reward else ""
            self._say(f"Score: {feedback['score']}{gained}.")
        if turn.red_light:
            self._say("RED LIGHT: the world has changed.")
        if turn.last is not None:
            self._say(f"-- {STATES.get(feedback.get('state', ''), 'The level is over.')} --\n")

    def _prompt(self, turn: Turn) -> str:
        if turn.ask is Ask.READY:
            return "Ready? Press Enter: "
        return "Angle and power, such as 35 1 (? for help): " if turn.ask is Ask.ACT else super()._prompt(turn)


def _tell_level(level: ObservedLevel) -> list[str]:
    """Return the lines that describe a level."""
    birds = sorted(
        (seen for seen in level.objects if seen.look.startswith("bird_")),
        key=lambda seen: math.dist(seen.centre, level.rest),
    )
    names = [seen.look.removeprefix("bird_") for seen in birds]
    ready = f"A {names[0]} bird is on the slingshot" if names else "No bird is left"
    waiting = f"; {', '.join(names[1:])} wait{'s' if len(names) == 2 else ''} behind it" if names[1:] else ""
    lines = [f"{ready}{waiting}. Distances are from the slingshot, in units: the sling can be pulled by one."]
    for look, name in GROUPS.items():
        if found := sorted(level.of(look), key=lambda seen: seen.centre):
            count = f"1 {name}" if len(found) == 1 else f"{len(found)} {_plural(name)}"
            more = f" and {len(found) - MAX_TOLD} more" if len(found) > MAX_TOLD else ""
            lines.append(f"  {count}: {', '.join(_tell(level, seen) for seen in found[:MAX_TOLD])}{more}")
    if level.dots:
        lines.append(f"  The last bird flew to {_tell_place(level, level.dots[-1])}.")
    return lines


def _plural(name: str) -> str:
    first, _, rest = name.partition(" ")
    return f"{first}{'es' if first.endswith('x') else 's'} {rest}".strip()


def _tell(level: ObservedLevel, seen: ObservedObject) -> str:
    left, top, right, bottom = seen.box
    wide, high = ((right - left) / level.scale, (bottom - top) / level.scale)
    size = f" ({wide:.1f} wide, {high:.1f} high)" if seen.look in ("platform", "wind") else ""
    return f"{_tell_place(level, seen.centre)}{size}"


def _tell_place(level: ObservedLevel, place: tuple[float, float]) -> str:
    """Return a place in words, such as `12.3 right 1.0 up`."""
    x, y = ((a - b) / level.scale for a, b in zip(place, level.rest, strict=True))
    return f"{abs(x):.1f} {'right' if x >= 0 else 'left'} {abs(y):.1f} {'down' if y >= 0 else 'up'}"


def _pixel(words: list[str]) -> dict[str, int] | None:
    """Return a shot that pulls the bird to a pixel."""
    if len(words) != 3 or words[0] != "xy":
        return None
    try:
        x, y = int(words[1]), int(words[2])
    except ValueError:
        return None
    return {"x": x, "y": y}


def _shot(words: list[str]) -> list[float] | None:
    """Return a launch for an angle, a power and a tap; None if the words are something else."""
    try:
        degrees, pull, tap = [*map(float, words), *(1.0, 0.0)[len(words) - 1 :]] if words else []
    except ValueError:
        return None
    if not (all(map(math.isfinite, (degrees, pull, tap))) and 0 <= pull <= 1 and 0 <= tap <= TAP_SECONDS):
        return None
    angle = math.radians(degrees)
    return [pull * math.cos(angle), pull * math.sin(angle), tap / TAP_SECONDS]
