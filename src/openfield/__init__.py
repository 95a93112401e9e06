"""openfield tells you what your agent does when its world changes.

Here is what most programs need. The rest has its theme: `openfield.spaces`, `openfield.errors`, `openfield.journal`
and the other modules named below; `docs/reference` lists them. Begin with `run`, which evaluates agents, or read
`rollout.py`, the loop in the middle of it all.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield import agents as agents
    from openfield import capabilities as capabilities
    from openfield import core as core
    from openfield import episodic as episodic
    from openfield import errors as errors
    from openfield import journal as journal
    from openfield import metrics as metrics
    from openfield import objectives as objectives
    from openfield import options as options
    from openfield import record as record
    from openfield import registry as registry
    from openfield import report as report
    from openfield import rollout as rollout
    from openfield import runner as runner
    from openfield import serving as serving
    from openfield import spaces as spaces
    from openfield import testing as testing
    from openfield.agents.detectors import with_detector
    from openfield.agents.policy import policy
    from openfield.api import resume, run, trials
    from openfield.core import Agent, Ask, Belief, Reply, Spec, Truth, Turn, World
    from openfield.domain import Domain
    from openfield.domains.gym.domain import from_gymnasium
    from openfield.episodic import EpisodicWorld
    from openfield.gym.environment import env
    from openfield.isolation import isolate
    from openfield.novelty import Novelty
    from openfield.result import Result
    from openfield.settings import Settings
    from openfield.trial import Limits, Phase, Trial

__version__ = "0.2.0"
__all__ = ["Result", "env", "from_gymnasium", "isolate", "policy", "resume", "run", "trials", "with_detector"]
__all__ += ["Agent", "Ask", "Belief", "Reply", "Spec", "Truth", "Turn"]
__all__ += ["Domain", "EpisodicWorld", "Limits", "Novelty", "Phase", "Settings", "Trial", "World"]


def _register_environments() -> None:
    """Register our environments with Gymnasium if the program uses it: Gymnasium has no way to ask for them."""
    if sys.modules.get("gymnasium") and "openfield.gym" not in sys.modules:
        import_module("openfield.gym")


__getattr__, __dir__ = attach(__name__, before=_register_environments)
_register_environments()
