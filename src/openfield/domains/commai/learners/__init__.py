"""Learners: simple ones to compare with, an oracle, a baseline that really learns, and adapters."""

from openfield.domains.commai.learners.oracle import Oracle
from openfield.domains.commai.learners.simple import (
    EchoLearner,
    MemorisingLearner,
    RandomLearner,
    SilentLearner,
)

__all__ = ["EchoLearner", "MemorisingLearner", "Oracle", "RandomLearner", "SilentLearner"]
