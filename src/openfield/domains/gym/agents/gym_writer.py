"""Environments of Gymnasium in words: what actions are called, and the grids of MiniGrid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from openfield.agents.turn_writer import TurnText, TurnWriter
from openfield.core import Spec
from openfield.domains.gym.environment import Env

OBJECTS = ("unseen", "", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent")
COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")
DOORS = ("open", "closed", "locked")
"""What the numbers of a MiniGrid view mean, as its documentation has them."""
SIGNS = {"unseen": "?", "": ".", "wall": "#", "floor": "."}
MAP = "The map of it: you are ^ and look up, # is a wall, . is free, ? is not seen, letters are things."
GRID_SHAPE = 3
"""Numbers of a square of MiniGrid: object, colour and state."""


class GymWriter(TurnWriter):
    """Names actions, and says what a MiniGrid agent sees; the rest as in any domain."""

    def __init__(self, spec: Spec, actions: Sequence[str]) -> None:
        """Take the names of the actions.

        Args:
            spec: The trial as agents know it.
            actions: The names of discrete actions in their order; none if the environment has none.
        """
        super().__init__(spec)
        named = ", ".join(f"{number} {name.lower()}" for number, name in enumerate(actions))
        self.rules = f"The actions: {named}." if named else ""

    def describe_observation(self, observation: Any) -> TurnText:
        """Describe the view."""
        grid = observation.get("image") if isinstance(observation, dict) and "mission" in observation else None
        view = None if grid is None else np.asarray(grid)
        if view is None or view.ndim != GRID_SHAPE or view.shape[2] != GRID_SHAPE:
            return super().describe_observation(observation)
        return TurnText(f"Mission: {observation['mission']}\n{describe_grid(view)}")


def describe_grid(view: Any) -> str:
    """Return the things in the view of a MiniGrid agent, who stands in the middle of the last row, and a map of it."""
    width, height = view.shape[:2]
    found: list[tuple[int, str]] = []
    for x in range(width):
        for y in range(height):
            name = _name(*(int(one) for one in view[x, y]))
            if name not in ("", "wall") and (x, y) != (width // 2, height - 1):
                ahead, side = height - 1 - y, x - width // 2
                aside = f", {abs(side)} to the {'right' if side > 0 else 'left'}" if side else ""
                found.append((ahead + abs(side), f"{name} {ahead} ahead{aside}"))
    carried = _name(*(int(one) for one in view[width // 2, height - 1]))
    seen = "; ".join(text for _, text in sorted(found)) or "nothing"
    return f"You see: {seen}.{f' You carry: {carried}.' if carried else ''}\n{MAP}\n{_draw_map(view)}"


def _draw_map(view: Any) -> str:
    """Return a view as lines of signs; things have their first letter."""
    width, height = view.shape[:2]
    rows = [[_sign(int(kind)) for kind in row] for row in view[:, :, 0].T]
    rows[height - 1][width // 2] = "^"
    return "\n".join("".join(row) for row in rows)


def _sign(kind: int) -> str:
    word = OBJECTS[kind] if kind < len(OBJECTS) else "x"
    return SIGNS.get(word, word[:1].upper())


def _name(kind: int, colour: int, state: int) -> str:
    """Return a thing in words; empty if unseen, free or floor."""
    word = OBJECTS[kind] if kind < len(OBJECTS) else f"thing {kind}"
    if word in ("", "unseen", "floor"):
        return ""
    painted = f"{COLOURS[colour]} " if word in ("door", "key", "ball", "box") and colour < len(COLOURS) else ""
    return f"{DOORS[state]} {painted}{word}" if word == "door" and state < len(DOORS) else f"{painted}{word}"


def name_actions(env: Env, count: int) -> list[str]:
    """Return the names that an environment has for its actions, as Atari and MiniGrid do; empty if not one for each."""
    bare: Any = env.unwrapped
    meanings = getattr(bare, "get_action_meanings", None)
    if callable(meanings):
        names = list(meanings())
    else:
        names = [str(each.name) for each in getattr(bare, "actions", ()) or () if hasattr(each, "name")]
    return names if len(names) == count and all(isinstance(name, str) for name in names) else []
