"""Birds in words: objects are distances from the slingshot, shots are an angle, a pull and a tap."""

from __future__ import annotations

import random
from typing import Any

from openfield.agents.turn_writer import Schema, TurnText, TurnWriter, object_schema, read_value
from openfield.domains.birds.actions import TAP_SECONDS
from openfield.domains.birds.agents.human import describe_level, read_shot
from openfield.spaces import Box, Fields

SHOT = Fields({"angle": Box(-180, 180), "pull": Box(0, 1), "tap": Box(0, TAP_SECONDS)})


class BirdsWriter(TurnWriter):
    """Describes levels, and reads shots."""

    rules = (
        "You have a slingshot and some birds; destroy all pigs. Objects are listed as KIND RIGHT UP: how far they are "
        "to the right of the bird in the sling, and how far above it. At full pull a bird leaves with a speed of 10 "
        "units a second, and usually falls with 4.7 units per second squared."
    )
    action = (
        "an object with angle: degrees above the horizontal to the right; pull: from 0 to 1; tap: the seconds after "
        f"which the bird uses its power, 0 for never, at most {TAP_SECONDS:g}"
    )

    @property
    def schema(self) -> Schema:
        """The schema of a shot."""
        number = {"type": "number"}
        return object_schema({"angle": number, "pull": number, "tap": number})

    def describe_observation(self, observation: Any) -> TurnText:
        """Return what is where in a level; other observations as in any domain."""
        if not isinstance(observation, list) or not observation or not isinstance(observation[0], dict):
            return super().describe_observation(observation)
        return TurnText(f"Objects: {describe_level(observation)}")

    def sample(self, rng: random.Random) -> dict[str, float]:
        """Return a shot to the right."""
        return {"angle": rng.uniform(0, 60), "pull": 1.0, "tap": 0.0}

    def read(self, value: Any) -> list[float]:
        """Return the three numbers of a shot."""
        told = read_value(SHOT, value) if isinstance(value, dict) else {"angle": value}
        try:
            shot = read_shot([str(told["angle"]), str(told.get("pull", 1.0)), str(told.get("tap", 0.0))])
        except KeyError:
            shot = None
        if shot is None:
            raise ValueError(f"a shot has angle, pull (0 to 1) and tap (0 to {TAP_SECONDS:g} seconds)")
        return shot
