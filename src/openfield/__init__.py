"""openfield tells you what your agent does when its world changes."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openfield.campaign import resume, run, trials
    from openfield.core import Agent, Ask, Belief, Reply, Spec, Truth, Turn, World
    from openfield.domain import Domain
    from openfield.episodes import EpisodicWorld
    from openfield.novelty import Novelty
    from openfield.result import Result
    from openfield.rollout import Rollout, drive
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
    "episodes": ("EpisodicWorld",),
    "novelty": ("Novelty",),
    "result": ("Result",),
    "rollout": ("Rollout", "drive"),
    "campaign": ("resume", "run", "trials"),
    "settings": ("Settings",),
    "spaces": ("Box", "Choice", "Discrete", "Fields"),
    "trial": ("Limits", "Phase", "Trial"),
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used, so that the command line answers at once."""
    for home, names in _HOMES.items():
        if name in names:
            _register_environments()
            value = getattr(import_module(f"openfield.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'openfield' has no attribute '{name}'")


def _register_environments() -> None:
    """Makes `gymnasium.make("openfield/...")` work for those who have imported Gymnasium; it has no way to ask us."""
    if "gymnasium" in sys.modules and "openfield.gym" not in sys.modules:
        import_module("openfield.gym")


_register_environments()
