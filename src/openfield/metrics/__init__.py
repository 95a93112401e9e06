"""Pure functions of the record that give numbers with intervals."""

from __future__ import annotations

from openfield.metrics.adaptation import ADAPTATION
from openfield.metrics.detection import DETECTION
from openfield.metrics.metric import Kind, Metric, Number
from openfield.metrics.openset.cells import OPENSET
from openfield.metrics.performance import PERFORMANCE
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

BUILT_IN = (PERFORMANCE, DETECTION, ADAPTATION, OPENSET)
"""The metrics that come with openfield; plugins add theirs through the entry points `openfield.metrics`."""
