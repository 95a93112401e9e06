"""A changed door of MiniGrid: it sticks, and must be pushed three times. The agent plans with what it sees.

Try it: openfield run gym:MiniGrid-DoorKey-5x5-v0 --agent examples/door.py:Planner --novelty examples/door.py:StuckDoor
"""

from collections import deque
from typing import Any

import gymnasium
import numpy as np

import openfield as of

LEFT, RIGHT, FORWARD, PICK_UP, TOGGLE = 0, 1, 2, 3, 5
EMPTY, DOOR, KEY, GOAL = 1, 4, 5, 8
OPEN = 0
HERE, TURNS = (3, 6), [(0, -1), (1, 0), (0, 1), (-1, 0)]
"""Where the agent stands in the 7x7 cells that it sees, and the steps ahead, right, back and left of it."""


class StuckDoor(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Lets the door open only with every third push."""

    pushes = 0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, or push the door in vain."""
        world: Any = self.unwrapped
        ahead = world.grid.get(*world.front_pos)
        if action == TOGGLE and ahead is not None and ahead.type == "door" and not ahead.is_open:
            self.pushes += 1
            if self.pushes % 3:
                action = world.actions.done
        return self.env.step(action)


class Planner:
    """Walks to the goal if it sees a way, else fetches the key, else opens the door, else looks around."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.has_key, self.pushes = False, 0

    def __call__(self, turn: of.Turn) -> of.Reply:
        """Answer a turn. A door that stays shut is a reason to believe in a change."""
        if turn.first:
            self.has_key, self.pushes = False, 0
        action = None
        if turn.ask is of.Ask.ACT:
            action = self.choose(np.asarray(turn.observation["image"]))
            self.has_key |= action == PICK_UP
            self.pushes += action == TOGGLE
        return of.Reply(action, of.Belief(max(0.0, min(1.0, (self.pushes - 1) / 2))))

    def choose(self, seen: Any) -> int:
        """Return the first move on the way to what is wanted next."""
        kinds, states = seen[..., 0], seen[..., 2]
        shut = (kinds == DOOR) & (states != OPEN)
        free = (kinds == EMPTY) | (kinds == GOAL) | ((kinds == DOOR) & (states == OPEN))
        for wanted, use in ((kinds == GOAL, FORWARD), ((kinds == KEY) & (not self.has_key), PICK_UP), (shut, TOGGLE)):
            if (use != TOGGLE or self.has_key) and (move := first_move(free, wanted, use)) is not None:
                return move
        ahead = HERE[0], HERE[1] - 1
        return FORWARD if free[ahead] and not shut[ahead] else RIGHT


def first_move(free: Any, wanted: Any, use: int) -> int | None:
    """Search the shortest way to face a wanted cell, and return its first move; facing it, `use` is the move."""
    paths: deque[tuple[tuple[int, int], int, int | None]] = deque([(HERE, 0, None)])
    known = {(HERE, 0)}
    while paths:
        (x, y), facing, first = paths.popleft()
        ahead = x + TURNS[facing][0], y + TURNS[facing][1]
        inside = 0 <= ahead[0] < 7 and 0 <= ahead[1] < 7
        if inside and wanted[ahead]:
            return use if first is None else first
        steps = [((x, y), (facing - 1) % 4, LEFT), ((x, y), (facing + 1) % 4, RIGHT)]
        if inside and free[ahead]:
            steps.append((ahead, facing, FORWARD))
        for place, turned, move in steps:
            if (place, turned) not in known:
                known.add((place, turned))
                paths.append((place, turned, move if first is None else first))
    return None
