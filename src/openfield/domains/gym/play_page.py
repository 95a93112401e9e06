"""Keys for an environment of Gymnasium: from what it calls its actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from openfield.agents.key_page import IDLE, KeyPage, LinePage, bind_keys, make_page
from openfield.core import Spec
from openfield.domains.gym.environment import Env
from openfield.spaces import Discrete

MIN_FPS, MAX_FPS = 5.0, 60.0
"""Steps a second that a person can follow."""


def make_gym_page(env: Env, spec: Spec, fps: float | None) -> KeyPage | LinePage:
    """Return the page of an environment. One with an action that does nothing runs in time; others wait.

    Args:
        env: The environment.
        spec: What agents know of it.
        fps: How many steps a second its films show; None if it draws nothing.
    """
    space = spec.actions
    names = _find_names(env, space.n) if isinstance(space, Discrete) else []
    if not names or not isinstance(space, Discrete):
        return make_page(spec)
    actions = bind_keys(names, range(space.start, space.start + space.n))
    idle = next((each for each in actions if each.label in IDLE), None)
    if idle is None or fps is None:
        return KeyPage(actions)
    pace = 1000 / min(max(fps, MIN_FPS), MAX_FPS)
    return KeyPage([each for each in actions if each is not idle], idle.action, pace)


def _find_names(env: Env, count: int) -> Sequence[str]:
    """Return the names that an environment has for its actions; none if it has none, or others than it says."""
    bare: Any = env.unwrapped
    meanings = getattr(bare, "get_action_meanings", None)
    if callable(meanings):
        names = list(meanings())
    else:
        names = [str(each.name) for each in getattr(bare, "actions", ()) if hasattr(each, "name")]
    return names if len(names) == count and all(isinstance(name, str) for name in names) else []
