"""Find metrics: built-in ones by name, those of plugins, and others as `module:attribute` or `file.py:attribute`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.metric import Metric
from openfield.registry import find_entry_points, load, load_all

PLACES = {
    "performance": "openfield.metrics.performance:PERFORMANCE",
    "returns": "openfield.metrics.performance:RETURNS",
    "winning": "openfield.metrics.performance:WINNING",
    "sets": "openfield.metrics.curricula.sets:SETS",
    "detection": "openfield.metrics.detection:DETECTION",
    "adaptation": "openfield.metrics.performance:ADAPTATION",
    "changes": "openfield.metrics.drift.changes:CHANGES",
    "passive": "openfield.metrics.detection:PASSIVE",
    "gradual": "openfield.metrics.curricula.gradual:GRADUAL",
    "borders": "openfield.metrics.curricula.borders:BORDERS",
    "programme": "openfield.metrics.programme:PROGRAMME",
    "baseline": "openfield.metrics.programme:BASELINE",
    "characterisation": "openfield.metrics.characterisation:CHARACTERISATION",
    "openset": "openfield.metrics.openset.cells:OPENSET",
}
"""Where the built-in metrics are found, by name: a run loads only those that its domain names."""
CHANGES = "changes"
"""The metric of trials whose changes have a process or follow each other; no domain needs to name it."""
BUILT_IN: tuple[Metric, ...]
"""The metrics that come with openfield; plugins add theirs through the entry points `openfield.metrics`."""


def __getattr__(name: str) -> Any:
    """Load the built-in metrics when they are first asked for."""
    if name != "BUILT_IN":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return tuple(map(load, PLACES.values()))


def installed_metrics() -> list[Metric]:
    """Return the built-in metrics and those of plugins. One that cannot be loaded is a warning."""
    return [*map(load, PLACES.values()), *_load_plugins()]


def metric_names() -> set[str]:
    """Return the names of the built-in metrics and of those of plugins."""
    return {*PLACES, *(metric.name for metric in _load_plugins())}


def find_metrics(sources: Iterable[str]) -> dict[str, Metric]:
    """Return metrics by how they were named: a name, `package.module:attribute` or `file.py:attribute`."""
    plugins = {metric.name: metric for metric in _load_plugins()}
    return {source: plugins[source] if source in plugins else _load_metric(source, plugins) for source in sources}


def _load_plugins() -> Iterator[Metric]:
    points = find_entry_points("openfield.metrics")
    return load_all(points, lambda name: _as_metric(load(points[name].value), points[name].value), "metric")


def _load_metric(source: str, plugins: Iterable[str]) -> Metric:
    source = PLACES.get(source, source)
    if ":" in source:
        return _as_metric(load(source), source)
    if source.endswith(".py"):
        raise InvalidInput(f"Which metric of {source}? Write {source}:NAME.")
    raise UnknownName("metric", source, {*PLACES, *plugins})


def _as_metric(found: Any, source: str) -> Metric:
    if not isinstance(found, Metric):
        raise InvalidInput(f"'{source}' is a {type(found).__name__}, not a Metric.")
    return found
