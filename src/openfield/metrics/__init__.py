"""Pure functions of the record that give numbers with intervals."""

from __future__ import annotations

from openfield.metrics.adaptation import ADAPTATION
from openfield.metrics.baseline import BASELINE
from openfield.metrics.characterisation import CHARACTERISATION
from openfield.metrics.detection import DETECTION
from openfield.metrics.gradual import GRADUAL
from openfield.metrics.metric import Kind, Metric, Number
from openfield.metrics.openset.cells import OPENSET
from openfield.metrics.passive import PASSIVE
from openfield.metrics.performance import PERFORMANCE
from openfield.metrics.programme import PROGRAMME
from openfield.metrics.stats import Estimate
from openfield.metrics.summary import Comparison, Group, Scenario, Summary, summarise

__all__ = [
    "BUILT_IN",
    "Comparison",
    "Estimate",
    "Group",
    "Kind",
    "Metric",
    "Number",
    "Scenario",
    "Summary",
    "summarise",
]

BUILT_IN = (PERFORMANCE, DETECTION, ADAPTATION, PASSIVE, GRADUAL, PROGRAMME, BASELINE, CHARACTERISATION, OPENSET)
"""The metrics that come with openfield; plugins add theirs through the entry points `openfield.metrics`."""
