"""The result of a run: its cells, its numbers, its page.

The end of plan -> rollout -> journal -> metrics -> report. Several run files make one result.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.capabilities import HasDetectionRule
from openfield.errors import InvalidInput, OpenfieldError, UnknownName
from openfield.journal.reader import CellRecord, Run
from openfield.metrics.catalogue import find_metrics, installed_metrics
from openfield.registry import find_domain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from openfield.domain import Domain
    from openfield.metrics.failures import Policy
    from openfield.metrics.metric import Metric
    from openfield.metrics.stats import Intervals
    from openfield.metrics.summary import Summary


class Result:
    """One or several run files, read as one."""

    def __init__(self, paths: Sequence[str | Path], baseline: str | None = None) -> None:
        """Read run files.

        Args:
            paths: The files.
            baseline: The agent that others are compared with; each domain's own if not given.
        """
        self.paths = [Path(path) for path in paths]
        self.baseline = baseline
        self.cells: list[CellRecord] = []
        self.facts: dict[str, str] = {}
        for path in self.paths:
            with Run(path) as run:
                self.cells += read_cells(run)
                self.facts |= run.facts

    def summary(
        self, metrics: Sequence[str] | None = None, intervals: Intervals = "usual", failures: Policy = "count"
    ) -> Summary:
        """Return all numbers with their intervals.

        Args:
            metrics: The metrics; by default those that the domains name.
            intervals: `usual`, or `conservative`: wider, and valid without a law of the scores.
            failures: `count` trials that an agent failed, or `exclude` them.
        """
        from openfield.metrics.stats import KINDS_OF_INTERVALS
        from openfield.metrics.summary import summarise

        if intervals not in KINDS_OF_INTERVALS:
            raise UnknownName("kind of intervals", intervals, KINDS_OF_INTERVALS, label="Known")
        cells = self.counted(failures)
        return summarise(cells, self._metrics(metrics, cells), intervals, failures)

    def counted(self, failures: Policy = "count") -> list[CellRecord]:
        """Return the cells as they count: what agents failed to play is filled in, or left out."""
        from openfield.metrics.failures import POLICIES, apply_policy

        if failures not in POLICIES:
            raise UnknownName("policy about failures", failures, POLICIES, label="Known")
        return apply_policy(self.cells, failures)

    def table(
        self, metrics: Sequence[str] | None = None, intervals: Intervals = "usual", failures: Policy = "count"
    ) -> RenderableType:
        """Return the summary as a table that rich prints: `rich.print(result.table())`."""
        from openfield.console import Escaped
        from openfield.report.terminal import render_summary

        return Escaped(render_summary(self.summary(metrics, intervals, failures), self.domains))

    def numbers(
        self, metrics: Sequence[str] | None = None, failures: Policy = "count"
    ) -> Iterator[tuple[CellRecord, dict[str, float | None]]]:
        """Yield every cell that counts with its own numbers, before any mean is taken; None if one is not defined."""
        from openfield.metrics.scenario import group_cells, scenario_of
        from openfield.metrics.summary import list_numbers, states_beliefs

        scored = [cell for cell in self.counted(failures) if cell.is_scored]
        chosen = self._metrics(metrics, scored)
        numbers = list_numbers(chosen)
        telling = {key for key, played in group_cells(scored).items() if states_beliefs(played)}
        for cell in scored:
            found = {name: value for metric in chosen for name, value in metric.take(cell).items()}
            told = (scenario_of(cell), cell.agent) in telling
            yield cell, {n.name: found.get(n.name) if told or not n.belief else None for n in numbers}

    @property
    def cautions(self) -> list[str]:
        """What a reader of the numbers must know: sentences that were recorded while the trials were played."""
        return [text for key, text in self.facts.items() if key.startswith("caution ")]

    def page(
        self,
        path: str | Path,
        metrics: Sequence[str] | None = None,
        intervals: Intervals = "usual",
        failures: Policy = "count",
    ) -> Path:
        """Write the report, one self-contained HTML file, and return its path."""
        from openfield.report.page import render_page, write_page

        title = " + ".join(path.stem for path in self.paths)
        facts = {key: value for key, value in self.facts.items() if not key.startswith(("domain ", "session "))}
        summary = self.summary(metrics, intervals, failures)
        page = render_page(title, self.counted(failures), self.domains, facts, summary, self.baseline)
        write_page(Path(path), page)
        return Path(path)

    @property
    def domains(self) -> dict[str, Domain[Any]]:
        """The domains of the trials, as far as they are installed."""
        found: dict[str, Domain[Any]] = {}
        for name in sorted({cell.trial.domain for cell in self.cells}):  # the order of metrics follows
            try:
                found[name] = find_domain(self.facts.get(f"domain {name}", name))
            except OpenfieldError:
                continue  # the reader of the run file has warned already
        return found

    def _metrics(self, wanted: Sequence[str] | None, cells: Sequence[CellRecord]) -> list[Metric]:
        named = dict.fromkeys(name for domain in self.domains.values() for name in domain.metrics)
        found = find_metrics(wanted or named)
        if self.baseline is not None or any(found[name].relate for name in wanted or ()):
            self._check_baseline()
        chosen = [metric if wanted else self._where_asked_for(name, metric) for name, metric in found.items()]
        if not found:  # the domains are not at hand
            chosen = installed_metrics()
        elif self.baseline is not None and not wanted:  # who names a baseline wants the numbers against it
            chosen += [metric for metric in installed_metrics() if metric.relate]
        return [metric.among(cells, self.baseline) for metric in chosen]

    def _check_baseline(self) -> None:
        """Raise an error if the baseline is none of the agents."""
        agents = sorted({cell.agent for cell in self.cells})
        if self.baseline is not None and self.baseline not in agents:
            raise UnknownName("agent", self.baseline, agents, label="In this run")
        if self.baseline is None and not any(domain.baseline in agents for domain in self.domains.values()):
            raise InvalidInput(f"Against which agent? Name it with --baseline: {', '.join(agents)}.")

    def _where_asked_for(self, name: str, metric: Metric) -> Metric:
        """Return the metric, measured only in the domains that name it."""
        domains = self.domains

        def measure(cell: CellRecord) -> Mapping[str, float | None]:
            domain = domains.get(cell.trial.domain)
            return metric.measure(cell) if domain is None or name in domain.metrics else {}

        return metric if metric.relate else replace(metric, measure=measure)


def read_cells(run: Run) -> list[CellRecord]:
    """Return the cells of a run file, with detections by the rules of their domains."""
    cells, facts = run.cells(), run.facts
    domains = {name: _find_domain(run, facts.get(f"domain {name}", name)) for name in {c.trial.domain for c in cells}}
    return [_detect(cell, domains[cell.trial.domain]) for cell in cells]


def _find_domain(run: Run, source: str) -> Domain[Any] | None:
    try:
        return find_domain(source)
    except OpenfieldError as error:
        warnings.warn(f"{run.path}: beliefs of 0.5 and more count as detections: {error}", stacklevel=3)
        return None


def _detect(cell: CellRecord, domain: Domain[Any] | None) -> CellRecord:
    """Return a cell whose episodes say what its domain takes for a detection."""
    if domain is None or not any(episode.belief for episode in cell.episodes):
        return cell
    rule = domain.detection_rule(cell.trial) if isinstance(domain, HasDetectionRule) else domain.detected
    episodes = [
        episode if episode.belief is None else msgspec.structs.replace(episode, detected=rule(episode.belief))
        for episode in cell.episodes
    ]
    return msgspec.structs.replace(cell, episodes=tuple(episodes))
