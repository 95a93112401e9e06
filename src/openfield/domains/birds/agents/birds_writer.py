"""Birds in words: objects are distances from the slingshot, shots are an angle, a pull and a tap."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec

from openfield.agents.turn_writer import Schema, TurnText, TurnWriter, decode_line, fit_value, object_schema
from openfield.core import Ask, Spec, Turn
from openfield.domains.birds.actions import TAP_SECONDS, Load, read_action
from openfield.domains.birds.agents.observed_level import ObservedLevel, observe_level
from openfield.errors import AgentProtocol
from openfield.spaces import Box, Fields

HELP = """\
Type the angle of a shot in degrees above the ground: 42. Behind it you may type
the pull of the sling, 0 to 1, and the seconds until the bird uses its power:
42 0.8, or 42 1 1.5. A whole pull at 45 degrees carries a bird about 21 units far.
Red birds have no power.

  Enter     goes on between levels
  load 3    loads level 3, between levels
  ? 0.7     says how sure you are that the world has changed
  ?         shows this
  QUIT      stops; the same command goes on
"""
ENDINGS = {"won": "You won the level", "lost": "You lost the level", "playing": "You left the level"}
MAX_LISTED = 20
"""Numbers of levels that are listed."""
SHOT = Fields({"angle": Box(-180, 180), "pull": Box(0, 1), "tap": Box(0, TAP_SECONDS)})


class BirdsWriter(TurnWriter):
    """Describes levels, and reads shots."""

    task = "Destroy all pigs of each level with the birds you have."
    rules = (
        "Objects are listed by their kind, each as RIGHT UP: how far it is to the right of the bird in the sling, and "
        "how far above it, in units. At full pull a bird leaves with a speed of 10 units a second, and usually falls "
        "with 4.7 units per second squared."
    )
    help = HELP
    action = (
        "an object with angle: degrees above the horizontal to the right; pull: from 0 to 1; tap: the seconds after "
        f"which the bird uses its power, 0 for never, at most {TAP_SECONDS:g}; red birds have no power"
    )

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._level, self._over = 0, False

    @property
    def schema(self) -> Schema:
        """The schema of a shot."""
        number = {"type": "number"}
        return object_schema({"angle": number, "pull": number, "tap": number})

    def describe(self, turn: Turn) -> TurnText:
        """Return a turn in words. The feedback to a turn that begins a level is its number."""
        if turn.first and isinstance(turn.feedback, dict):
            self._level = turn.feedback.get("accepted", 0)
        self._over = turn.last is not None
        return super().describe(turn)

    def describe_observation(self, observation: Any) -> TurnText:
        """Describe the objects of a level, or the set that begins; other observations as in any domain."""
        if isinstance(observation, dict) and "begins" in observation:
            return TurnText(announce(observation))
        if not isinstance(observation, list) or not observation or not isinstance(observation[0], dict):
            return super().describe_observation(observation)
        return TurnText(describe_level(observe_level(observation)))

    def describe_feedback(self, feedback: Any) -> str:
        """Return the level, its score, and whether there was no bird to shoot."""
        if not isinstance(feedback, dict) or "score" not in feedback:
            return super().describe_feedback(feedback)
        refused = "" if feedback["accepted"] or self._over else "There was no bird to shoot. "
        return f"Level {self._level}. {refused}Score {feedback['score']:,}."

    def describe_end(self, turn: Turn) -> str:
        """Return how a level ended."""
        state = turn.feedback.get("state") if isinstance(turn.feedback, dict) else None
        return f"{ENDINGS[state]}." if state in ENDINGS else super().describe_end(turn)

    def sample(self, rng: random.Random) -> dict[str, float]:
        """Return a shot to the right."""
        return {"angle": rng.uniform(0, 60), "pull": 1.0, "tap": 0.0}

    def read(self, value: Any) -> list[float]:
        """Return the three numbers of a shot."""
        fields = fit_value(SHOT, value) if isinstance(value, dict) else {"angle": value}
        try:
            shot = read_shot([str(fields["angle"]), str(fields.get("pull", 1.0)), str(fields.get("tap", 0.0))])
        except KeyError:
            shot = None
        if shot is None:
            raise ValueError(f"a shot has angle, pull (0 to 1) and tap (0 to {TAP_SECONDS:g} seconds)")
        return shot

    def prompt(self, turn: Turn) -> str:
        """Ask for an angle, or for a level where one can be chosen."""
        if turn.ask is Ask.READY and isinstance(turn.observation, dict) and turn.observation.get("selection"):
            return "Ready? Press Enter, or choose a level with 'load N': "
        return "Angle, or ? for help: " if turn.ask is Ask.ACT else super().prompt(turn)

    def read_line(self, line: str) -> Any:
        """Read numbers as a shot, `load N` as a choice of a level, and JSON as any other action."""
        words = line.split()
        if len(words) == 2 and words[0] == "load" and words[1].isdecimal():
            return msgspec.to_builtins(Load(int(words[1])))
        given = read_shot(words) or decode_line(line)
        try:
            read_action(given)
        except AgentProtocol:
            raise ValueError(
                f"a shot is its angle, its pull (0 to 1) and its tap (0 to {TAP_SECONDS:g} seconds), not '{line}'"
            ) from None
        return given


def announce(facts: dict[str, Any]) -> str:
    """Return in words what begins: a trial, a set with its limits, or a level."""
    begins, levels = facts["begins"], facts.get("levels", 0)
    if begins == "level":
        available = facts["available"]
        said = f"{len(available)} of {len(facts['scores'])} levels can be played"
        if not facts["selection"]:
            return f"{said}."
        return f"{said}: {', '.join(map(str, available[:MAX_LISTED]))}{', ...' * (len(available) > MAX_LISTED)}."
    if begins in ("trial", "training goes on"):
        return "A trial begins." if begins == "trial" else "Training goes on."
    limits = [f"{facts['seconds']:,} seconds"] if facts["seconds"] > 0 else []
    limits += [f"{facts['interactions']:,} shots and loads"] if facts["interactions"] > 0 else []
    tries = f"{facts['attempts']} each" if facts["attempts"] > 0 else "as many as you like"
    order = "in any order" if facts["selection"] else "in order"
    allowed = f", at most {' and '.join(limits)}" if limits else ""
    return f"A {begins} begins: {levels} levels {order}, attempts: {tries}{allowed}."


def describe_level(level: ObservedLevel) -> str:
    """Return where the objects are, a line for each kind, and how far the last bird flew."""
    places: dict[str, list[str]] = {}
    for seen in level.objects:
        places.setdefault(seen.look.replace("_", " "), []).append(_place(level, seen.centre))
    lines = [f"- {look}: {'; '.join(found)}" for look, found in places.items()]
    lines += [f"The last bird flew until {_place(level, level.dots[-1])}."] if level.dots else []
    return "\n".join(["Objects:", *lines])


def _place(level: ObservedLevel, centre: tuple[float, float]) -> str:
    """Return how far a pixel is to the right of the bird on the sling, and how far above it, in units."""
    x, y = ((a - b) / level.scale for a, b in zip(centre, level.rest, strict=True))
    return f"{round(x, 1) + 0.0:+.1f} {round(-y, 1) + 0.0:+.1f}"  # no minus before a zero


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
