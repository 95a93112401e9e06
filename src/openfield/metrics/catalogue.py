"""Find metrics: built-in ones by name, those of plugins, and others as `module:attribute` or `file.py:attribute`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from openfield.errors import InvalidInput, UnknownName
from openfield.metrics import BUILT_IN
from openfield.metrics.metric import Metric
from openfield.registry import find_entry_points, load, load_all


def installed_metrics() -> list[Metric]:
    """Return the built-in metrics and those of plugins. One that cannot be loaded is a warning."""
    points = find_entry_points("openfield.metrics")
    return [
        *BUILT_IN,
        *load_all(points, lambda name: _as_metric(load(points[name].value), points[name].value), "metric"),
    ]


def find_metrics(sources: Iterable[str]) -> dict[str, Metric]:
    """Return metrics by how they were named: a name, `package.module:attribute` or `file.py:attribute`."""
    known = {metric.name: metric for metric in installed_metrics()}
    return {source: known[source] if source in known else _load_metric(source, known) for source in sources}


def _load_metric(source: str, known: Iterable[str]) -> Metric:
    if ":" in source:
        return _as_metric(load(source), source)
    if source.endswith(".py"):
        raise InvalidInput(f"Which metric of {source}? Write {source}:NAME.")
    raise UnknownName("metric", source, known)


def _as_metric(found: Any, source: str) -> Metric:
    if not isinstance(found, Metric):
        raise InvalidInput(f"'{source}' is a {type(found).__name__}, not a Metric.")
    return found
