"""openfield tells you what your agent does when its world changes."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.core import Agent, Ask, Belief, Reply, Spec, Truth, Turn, World
    from openfield.domain import Domain
    from openfield.episodic import EpisodicWorld
    from openfield.novelty import Novelty
    from openfield.result import Result
    from openfield.rollout import Rollout, drive
    from openfield.runner.run import resume, run, trials
    from openfield.settings import Settings
    from openfield.spaces import Box, Choice, Discrete, Fields
    from openfield.trial import Limits, Phase, Trial

__version__ = "0.1.0"
__all__ = [
    "Agent",
    "Ask",
    "Belief",
    "Box",
    "Choice",
    "Discrete",
    "Domain",
    "EpisodicWorld",
    "Fields",
    "Limits",
    "Novelty",
    "Phase",
    "Reply",
    "Result",
    "Rollout",
    "Settings",
    "Spec",
    "Trial",
    "Truth",
    "Turn",
    "World",
    "drive",
    "resume",
    "run",
    "trials",
]
_HOMES = {
    "core": ("Agent", "Ask", "Belief", "Reply", "Spec", "Truth", "Turn", "World"),
    "domain": ("Domain",),
    "episodic": ("EpisodicWorld",),
    "novelty": ("Novelty",),
    "result": ("Result",),
    "rollout": ("Rollout", "drive"),
    "runner.run": ("resume", "run", "trials"),
    "settings": ("Settings",),
    "spaces": ("Box", "Choice", "Discrete", "Fields"),
    "trial": ("Limits", "Phase", "Trial"),
}


def _register_environments() -> None:
    """Makes `gymnasium.make("openfield/...")` work for those who have imported Gymnasium; it has no way to ask us."""
    if "gymnasium" in sys.modules and "openfield.gym" not in sys.modules:
        import_module("openfield.gym")


__getattr__, __dir__ = attach(__name__, _HOMES, before=_register_environments)
_register_environments()
