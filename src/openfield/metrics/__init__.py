"""Numbers of recorded trials, with 95 % intervals over trials: pure functions of the journal.

Start with `metric`, which says what a metric is, and `performance`, the simplest ones. A metric measures one cell;
`scenario` groups cells by scenario and agent, `summary` estimates each number (`stats`), and `comparison` compares the
agents. `metrics.json` has the titles and notes of all numbers, `curricula` the measures for tasks that follow each
other, `openset` those for samples of known and unknown classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.metrics.catalogue import BUILT_IN
    from openfield.metrics.comparison import Comparison
    from openfield.metrics.drift.alarms import DriftScores, score_alarms
    from openfield.metrics.metric import Kind, Metric, Number
    from openfield.metrics.scenario import Scenario
    from openfield.metrics.stats import Estimate, Intervals
    from openfield.metrics.summary import AgentResults, Summary, summarise

__all__ = [
    "BUILT_IN",
    "AgentResults",
    "Comparison",
    "DriftScores",
    "Estimate",
    "Intervals",
    "Kind",
    "Metric",
    "Number",
    "Scenario",
    "Summary",
    "score_alarms",
    "summarise",
]

__getattr__, __dir__ = attach(__name__)
