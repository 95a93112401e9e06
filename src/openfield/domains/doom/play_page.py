"""Doom in a browser: keys, and pictures at the game's own pace."""

from __future__ import annotations

from openfield.agents.key_page import KeyAction, KeyPage
from openfield.core import Turn
from openfield.domains.doom.agents.doom_writer import list_values

TICK_MILLISECONDS = 1000 / 35
"""The pace of the original game."""
TURN_TICKS = 9
"""A turn is by 45 degrees: a held key turns four times a second."""
KEYS = {
    "forward": ("Forward", "w", 1),
    "backward": ("Back", "s", 1),
    "left": ("Step left", "a", 1),
    "right": ("Step right", "d", 1),
    "turn_left": ("Turn left", "ArrowLeft", TURN_TICKS),
    "turn_right": ("Turn right", "ArrowRight", TURN_TICKS),
    "shoot": ("Shoot", "Space", 1),
    "give_up": ("Give up", "g", 35),
}


def make_doom_page(actions: tuple[str, ...]) -> KeyPage:
    """Return the page of a task with these actions."""
    turns = "turn_left" in actions
    bound = []
    for name in actions:
        if name in KEYS:
            label, key, ticks = KEYS[name]
            arrows = {"w": "ArrowUp", "s": "ArrowDown"} | ({} if turns else {"a": "ArrowLeft", "d": "ArrowRight"})
            bound.append(KeyAction(name, label, (key,), ticks))
            if key in arrows:
                bound.append(KeyAction(name, "", (arrows[key],), ticks))
    return KeyPage(bound, "nothing", TICK_MILLISECONDS, describe_player)


def describe_player(turn: Turn) -> dict[str, str]:
    """Return what a player reads off the screen of the game."""
    feedback = turn.feedback or {}
    left = {"time left": f"{feedback['performance']:.0%}"} if "performance" in feedback else {}
    return list_values(turn.observation) | left
