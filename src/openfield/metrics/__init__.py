"""Numbers of recorded trials, with 95 % intervals over trials: pure functions of the journal.

Start with `metric`, which says what a metric is, and `performance`, the simplest ones. A metric measures one cell;
`scenario` groups cells by scenario and agent, `summary` estimates each number (`stats`), and `comparison` compares the
agents. `metrics.json` has the titles and notes of all numbers, `curricula` the measures for tasks that follow each
other, `openset` those for samples of known and unknown classes.
"""

from __future__ import annotations

from openfield.metrics.characterisation import CHARACTERISATION
from openfield.metrics.comparison import Comparison
from openfield.metrics.curricula.borders import BORDERS
from openfield.metrics.curricula.gradual import GRADUAL
from openfield.metrics.detection import DETECTION, PASSIVE
from openfield.metrics.metric import Kind, Metric, Number
from openfield.metrics.openset.cells import OPENSET
from openfield.metrics.performance import ADAPTATION, PERFORMANCE, RETURNS, WINNING
from openfield.metrics.programme import BASELINE, PROGRAMME
from openfield.metrics.scenario import Scenario
from openfield.metrics.sets import SETS
from openfield.metrics.stats import Estimate, Intervals
from openfield.metrics.summary import AgentResults, Summary, summarise

__all__ = [
    "BUILT_IN",
    "AgentResults",
    "Comparison",
    "Estimate",
    "Intervals",
    "Kind",
    "Metric",
    "Number",
    "Scenario",
    "Summary",
    "summarise",
]

BUILT_IN = (
    *(PERFORMANCE, RETURNS, WINNING, SETS, DETECTION, ADAPTATION, PASSIVE, GRADUAL, BORDERS),
    *(PROGRAMME, BASELINE, CHARACTERISATION, OPENSET),
)
"""The metrics that come with openfield; plugins add theirs through the entry points `openfield.metrics`."""
