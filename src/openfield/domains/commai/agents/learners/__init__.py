"""Learners: simple ones to compare with, an oracle, a baseline that really learns, and adapters."""

from openfield.domains.commai.agents.learners.adapters import LearnerAdapter, load_learner
from openfield.domains.commai.agents.learners.mapper import MappingLearner
from openfield.domains.commai.agents.learners.oracle import Oracle
from openfield.domains.commai.agents.learners.simple import (
    EchoLearner,
    MemorisingLearner,
    RandomLearner,
    SilentLearner,
)

__all__ = [
    "EchoLearner",
    "LearnerAdapter",
    "MappingLearner",
    "MemorisingLearner",
    "Oracle",
    "RandomLearner",
    "SilentLearner",
    "load_learner",
]
