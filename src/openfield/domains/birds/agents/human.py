"""The human player of birds: objects are told as distances from the slingshot, shots are typed as angles."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, TextIO

import msgspec

from openfield.agents.belief_question import BELIEF_QUESTION
from openfield.agents.human import LineHuman, read_json
from openfield.core import Ask, Spec, Turn
from openfield.domains.birds.actions import TAP_SECONDS, Load, read_action
from openfield.domains.birds.agents.observed_level import ObservedLevel, ObservedObject, observe_level
from openfield.errors import AgentProtocol

TASK = "Destroy all pigs of each level with the birds you have."
HELP = """\
Type the angle of a shot in degrees above the ground: 42. Behind it you may type
the pull of the sling, 0 to 1, and the seconds until the bird uses its power:
42 0.8, or 42 1 1.5. Distances are in units from the bird on the sling. A whole
pull at 45 degrees carries a bird about 21 units far.

  Enter     goes on between levels
  load 3    loads level 3, between levels
  ? 0.7     says how sure you are that the world has changed
  ?         shows this
  QUIT      stops; the same command goes on
"""
ENDINGS = {"won": "You won level {}.", "lost": "You lost level {}.", "playing": "You left level {}."}
MAX_LISTED = 20
"""Numbers of levels that are listed."""


class BirdsHuman(LineHuman):
    """Says where the objects are, and reads shots."""

    help = HELP

    def __init__(self, spec: Spec, seed: int, source: TextIO | None = None, target: TextIO | None = None) -> None:
        self._level = 0
        super().__init__(msgspec.structs.replace(spec, task=TASK), seed, source, target)

    def describe(self, observation: Any) -> str:
        """Describe a level by the distances of its objects, an announcement in words."""
        if isinstance(observation, list):
            return list_objects(observe_level(observation))
        if isinstance(observation, dict) and "begins" in observation:
            return announce(observation)
        return super().describe(observation)

    def _show(self, turn: Turn) -> None:
        feedback = turn.feedback
        if not isinstance(feedback, dict):  # between levels
            self._say(self.describe(turn.observation))
            return
        if turn.first:
            self._level = feedback["accepted"]
        score = f"Score {feedback['score']:,}."
        if turn.last is not None:
            said = f"{ENDINGS[feedback['state']].format(self._level)} {score}"
        else:
            refused = "" if feedback["accepted"] else " There was no bird to shoot."
            said = f"Level {self._level} ({turn.phase}).{refused} {score}"
        light = " RED LIGHT: the world has changed." if turn.red_light else ""
        self._say(f"{said}{light}\n{self.describe(turn.observation)}")

    def _prompt(self, turn: Turn) -> str:
        if turn.ask is Ask.BELIEF:
            return f"{BELIEF_QUESTION} "
        return "Ready? Press Enter: " if turn.ask is Ask.READY else "Angle, or ? for help: "

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


def announce(facts: dict[str, Any]) -> str:
    """Return in words what begins: a trial, a set with its limits, or a level."""
    begins, levels = facts["begins"], facts.get("levels", 0)
    if begins == "level":
        available = facts["available"]
        said = f"{len(available)} of {len(facts['scores'])} levels can be played."
        if not facts["selection"]:
            return said
        more = ", ..." if len(available) > MAX_LISTED else ""
        return f"{said} 'load N' chooses one: {', '.join(map(str, available[:MAX_LISTED]))}{more}."
    if begins in ("trial", "training goes on"):
        return "A trial begins." if begins == "trial" else "Training goes on."
    limits = [f"{facts['seconds']:,} seconds"] if facts["seconds"] > 0 else []
    limits += [f"{facts['interactions']:,} shots and loads"] if facts["interactions"] > 0 else []
    tries = f"{facts['attempts']} each" if facts["attempts"] > 0 else "as many as you like"
    order = "in any order" if facts["selection"] else "in order"
    allowed = f", at most {' and '.join(limits)}" if limits else ""
    return f"A {begins} begins: {levels} levels {order}, attempts: {tries}{allowed}."


def list_objects(level: ObservedLevel) -> str:
    """Return where the objects are, a line for each class, and how far the last bird flew."""
    places: dict[str, list[str]] = {}
    for seen in level.objects:
        places.setdefault(seen.look.replace("_", " "), []).append(_words(*_place(level, seen.centre)))
    lines = [f"  {look + ':':14}{'; '.join(found)}." for look, found in places.items()]
    if level.dots:
        lines.append(f"  The last bird flew until it was {_words(*_place(level, level.dots[-1]))}.")
    return "\n".join(lines)


def describe_level(observation: list[dict[str, Any]]) -> str:
    """Return what is where in a level: how far to the right of the sling, and how far above it."""
    level = observe_level(observation)
    return "; ".join(_tell(level, seen) for seen in level.objects)


def _tell(level: ObservedLevel, seen: ObservedObject) -> str:
    x, y = _place(level, seen.centre)
    return f"{seen.look.replace('_', ' ')} {x:+.1f} {y:+.1f}"


def _place(level: ObservedLevel, centre: tuple[float, float]) -> tuple[float, float]:
    """Return how far a pixel is to the right of the bird on the sling, and how far above it, in units."""
    x, y = ((a - b) / level.scale for a, b in zip(centre, level.rest, strict=True))
    return round(x, 1) + 0.0, round(-y, 1) + 0.0  # no minus before a zero


def _words(x: float, y: float) -> str:
    """Return a place in words."""
    return f"{abs(x):.1f} {'right' if x >= 0 else 'left'}, {abs(y):.1f} {'up' if y >= 0 else 'down'}"


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
