"""Keys for an environment of Gymnasium: from the names of its actions, or from the range of a force."""

from __future__ import annotations

import numpy as np

from openfield.agents.key_page import IDLE, KeyAction, KeyPage, LinePage, bind_keys, make_page
from openfield.core import Spec
from openfield.domains.gym.agents.gym_writer import name_actions
from openfield.domains.gym.environment import Env
from openfield.spaces import Box, Discrete

MIN_FPS, MAX_FPS = 5.0, 60.0
"""Steps a second that a person can follow."""
FORCE_KEYS = (("ArrowLeft", "ArrowRight"), ("ArrowDown", "ArrowUp"), ("a", "d"), ("s", "w"))
"""The keys that push the numbers of an action down and up."""
HALF_KEYS = ("a", "d")


def make_gym_page(env: Env, spec: Spec, fps: float | None) -> KeyPage | LinePage:
    """Return the page of an environment. One with an action that does nothing runs in time; others wait.

    Args:
        env: The environment.
        spec: What agents know of it.
        fps: How many steps a second its films show; None if it draws nothing.
    """
    space = spec.actions
    if isinstance(space, Box) and fps is not None and (forces := bind_forces(space)):
        return KeyPage(forces, [0.0] * len(forces[0].action), 1000 / min(max(fps, MIN_FPS), MAX_FPS))
    names = name_actions(env, space.n) if isinstance(space, Discrete) else []
    if not names or not isinstance(space, Discrete):
        return make_page(spec)
    actions = bind_keys(names, range(space.start, space.start + space.n))
    idle = next((each for each in actions if each.label in IDLE), None)
    if idle is None or fps is None:
        return KeyPage(actions)
    pace = 1000 / min(max(fps, MIN_FPS), MAX_FPS)
    return KeyPage([each for each in actions if each is not idle], idle.action, pace)


def bind_forces(space: Box) -> list[KeyAction]:
    """Return keys that push each number of an action to its ends; none unless the numbers are few and rest at 0.

    A single number also has keys that push it half as far.
    """
    count = space.shape[0] if len(space.shape) == 1 else 0
    lows, highs = (np.broadcast_to(np.asarray(end, float), space.shape) for end in (space.low, space.high))
    rests = np.isfinite(lows) & np.isfinite(highs) & (lows <= 0) & (highs >= 0)
    if not 1 <= count <= len(FORCE_KEYS) or not rests.all():
        return []
    ends = [
        (place, float(end), key)
        for place, keys in enumerate(FORCE_KEYS[:count])
        for end, key in zip((lows[place], highs[place]), keys, strict=True)
    ]
    if count == 1:
        ends += [(place, end / 2, key) for (place, end, _), key in zip(ends, HALF_KEYS, strict=True)]
    return [
        KeyAction(
            [end if place == each else 0.0 for each in range(count)],
            f"{f'{place + 1}: ' if count > 1 else ''}{end:+g}".replace("-", "−"),
            (key,),
        )
        for place, end, key in ends
        if end
    ]
