"""Detectors of change that sit on agents: `of.with_detector(agent, "cusum")`, or `--agent planner+cusum`.

A detector is what it watches, `signals.py`, and when that counts as changed, `rules.py`; `river_rules.py` has the
rules of the package river. `catalogue.py` puts both together from a text, `agent_with_detector.py` puts a
detector on an agent.
"""

from openfield.agents.detectors.agent_with_detector import DetectorFactory, WithDetector, with_detector
from openfield.agents.detectors.catalogue import KINDS, ChangeDetector, make_detector
from openfield.agents.detectors.rules import DRIFT, MIN_TRAINING, ScoreDistribution, find_bound
from openfield.agents.detectors.signals import (
    EpisodeDetector,
    FallingReturn,
    ObservationShift,
    Seen,
    TransitionSurprise,
    encode_value,
)

__all__ = [
    "DRIFT",
    "KINDS",
    "MIN_TRAINING",
    "ChangeDetector",
    "DetectorFactory",
    "EpisodeDetector",
    "FallingReturn",
    "ObservationShift",
    "ScoreDistribution",
    "Seen",
    "TransitionSurprise",
    "WithDetector",
    "encode_value",
    "find_bound",
    "make_detector",
    "with_detector",
]
