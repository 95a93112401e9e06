"""Doom in a browser: keys, and pictures at the game's own pace."""

from __future__ import annotations

from openfield.agents.key_page import KeyAction, KeyPage
from openfield.core import Turn
from openfield.domains.doom.agents.doom_writer import find_features, list_values
from openfield.domains.doom.episode import buttons_of

TICK_MILLISECONDS = 1000 / 35
"""The pace of the original game."""
TURN_TICKS = 9
"""A turn is by 45 degrees: a held key turns four times a second."""
SHOT_TICKS = 14
"""A held key fires as fast as the pistol of the original game, which is two and a half times a second."""
KEYS = {
    "forward": ("Forward", "w", 1),
    "backward": ("Back", "s", 1),
    "left": ("Step left", "a", 1),
    "right": ("Step right", "d", 1),
    "turn_left": ("Turn left", "ArrowLeft", TURN_TICKS),
    "turn_right": ("Turn right", "ArrowRight", TURN_TICKS),
    "shoot": ("Shoot", "Space", SHOT_TICKS),
    "give_up": ("Give up", "g", 35),
}


def make_doom_page(actions: tuple[str, ...], buttons: bool = False) -> KeyPage:
    """Return the page of a task with these actions; where an action is a list of buttons, a key presses one."""
    turns = "turn_left" in actions
    bound = []
    known = buttons_of(actions)
    for name in known if buttons else actions:
        if name in KEYS:
            label, key, ticks = KEYS[name]
            arrows = {"w": "ArrowUp", "s": "ArrowDown"} | ({} if turns else {"a": "ArrowLeft", "d": "ArrowRight"})
            action = [int(each == name) for each in known] if buttons else name
            bound.append(KeyAction(action, label, (key,), ticks))
            if key in arrows:
                bound.append(KeyAction(action, "", (arrows[key],), ticks))
    idle = [0] * len(known) if buttons else "nothing"
    return KeyPage(bound, idle, TICK_MILLISECONDS, describe_player)


def describe_player(turn: Turn) -> dict[str, str]:
    """Return the numbers that the game shows on its screen."""
    feedback = turn.feedback or {}
    left = {"time left": f"{feedback['performance']:.0%}"} if "performance" in feedback else {}
    return list_values(turn.observation) | left | ({"result": describe_result(turn)} if turn.last else {})


def describe_result(turn: Turn) -> str:
    """Return who won an episode that has ended, as far as the player sees it: with pictures alone, by the reward."""
    features = find_features(turn.observation)
    won = turn.reward > 0 if features is None else not features["enemies"]
    died = features is not None and features["player"]["health"] <= 0
    return "won" if won else "lost: you died" if died else "lost: time is up" if turn.last == "truncated" else "lost"
