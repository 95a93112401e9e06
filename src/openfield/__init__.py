"""openfield tells you what your agent does when its world changes.

Everything an author of an agent, a domain or a metric needs is here; `docs/reference` lists it by theme. Begin with
`run`, which evaluates agents, or read `rollout.py`, the loop in the middle of it all.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.agents.detectors import with_detector
    from openfield.agents.policy import policy
    from openfield.api import resume, run, trials
    from openfield.capabilities import Film
    from openfield.core import (
        Agent,
        AgentFactory,
        Ask,
        Belief,
        Ending,
        Remembers,
        Reply,
        Saves,
        Spec,
        Truth,
        Turn,
        World,
    )
    from openfield.domain import Domain
    from openfield.domains.gym.domain import from_gymnasium
    from openfield.episodic import EpisodicWorld, Play
    from openfield.errors import (
        AgentAway,
        AgentCrashed,
        AgentDiffers,
        AgentFault,
        AgentGone,
        AgentProtocol,
        AgentTimeout,
        Cancelled,
        DamagedRun,
        DiskFull,
        Incomplete,
        InvalidInput,
        JournalError,
        MissingExtra,
        NotARun,
        NothingScored,
        OpenfieldError,
        ReplayMismatch,
        RunBusy,
        UnknownName,
        WorldFault,
    )
    from openfield.gym.environment import env
    from openfield.isolation import isolate
    from openfield.journal.reader import CellRecord, Episode, Run
    from openfield.journal.writer import Journal
    from openfield.metrics.metric import Metric, Number
    from openfield.novelty import Novelty
    from openfield.parameters import with_parameters
    from openfield.record import AttemptEnd, EpisodeEnd
    from openfield.registry import find_agent, find_domain
    from openfield.result import Result
    from openfield.rollout import Rollout, drive
    from openfield.settings import Settings
    from openfield.spaces import Box, Choice, Discrete, Fields, Sequence, Space, Text, Tuple
    from openfield.trial import Limits, Phase, Trial

__version__ = "0.2.0"
__all__ = [
    "Result",
    "env",
    "find_agent",
    "find_domain",
    "from_gymnasium",
    "isolate",
    "policy",
    "resume",
    "run",
    "trials",
]
__all__ += ["with_detector", "with_parameters"]
__all__ += ["Agent", "AgentFactory", "Ask", "Belief", "Ending", "Remembers", "Reply", "Saves", "Spec", "Truth", "Turn"]
__all__ += ["Domain", "EpisodicWorld", "Film", "Limits", "Novelty", "Phase", "Play", "Settings", "Trial", "World"]
__all__ += ["Box", "Choice", "Discrete", "Fields", "Sequence", "Space", "Text", "Tuple"]
__all__ += ["AttemptEnd", "CellRecord", "Episode", "EpisodeEnd", "Journal", "Rollout", "Run", "drive"]
__all__ += ["Metric", "Number"]
__all__ += [
    "Cancelled",
    "Incomplete",
    "InvalidInput",
    "MissingExtra",
    "NothingScored",
    "OpenfieldError",
    "UnknownName",
    "WorldFault",
]
__all__ += ["DamagedRun", "DiskFull", "JournalError", "NotARun", "RunBusy"]
__all__ += [
    "AgentAway",
    "AgentCrashed",
    "AgentDiffers",
    "AgentFault",
    "AgentGone",
    "AgentProtocol",
    "AgentTimeout",
    "ReplayMismatch",
]


def _register_environments() -> None:
    """Register our environments with Gymnasium if the program uses it: Gymnasium has no way to ask for them."""
    if sys.modules.get("gymnasium") and "openfield.gym" not in sys.modules:
        import_module("openfield.gym")


__getattr__, __dir__ = attach(__name__, before=_register_environments)
_register_environments()
