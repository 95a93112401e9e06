"""What came of a run: its cells, its numbers, its page.

The end of plan -> rollout -> journal -> metrics -> report; several run files make one result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openfield.errors import OpenfieldError, UnknownName
from openfield.registry import find_domain, installed_metrics
from openfield.view import CellRecord, Run

if TYPE_CHECKING:
    from rich.console import RenderableType

    from openfield.domain import Domain
    from openfield.metrics.metric import Metric
    from openfield.metrics.summary import Summary


class Result:
    """One or several run files, read as one."""

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self.paths = [Path(path) for path in paths]
        self.cells: list[CellRecord] = []
        self.facts: dict[str, str] = {}
        for path in self.paths:
            with Run(path) as run:
                self.cells += run.cells()
                self.facts |= run.facts

    def summary(self, metrics: Sequence[str] | None = None) -> Summary:
        """All numbers with their intervals; by default those of the metrics the domains name."""
        from openfield.metrics.summary import summarise

        return summarise(self.cells, self._metrics(metrics))

    def table(self, metrics: Sequence[str] | None = None) -> RenderableType:
        """The summary as a table that rich prints: `rich.print(result.table())`."""
        from openfield.report.terminal import render_summary

        return render_summary(self.summary(metrics), self.domains)

    def page(self, path: str | Path, metrics: Sequence[str] | None = None) -> Path:
        """Writes the report, one self-contained HTML file, and returns its path."""
        from openfield.report.page import write_page

        title = " + ".join(path.stem for path in self.paths)
        facts = {key: value for key, value in self.facts.items() if not key.startswith(("domain ", "session "))}
        write_page(Path(path), title, self.cells, self.domains, facts, self._metrics(metrics))
        return Path(path)

    @property
    def domains(self) -> dict[str, Domain[Any]]:
        """The domains of the trials, as far as they are at hand."""
        found: dict[str, Domain[Any]] = {}
        for name in {cell.trial.domain for cell in self.cells}:
            try:
                found[name] = find_domain(self.facts.get(f"domain {name}", name))
            except OpenfieldError:
                continue  # the reader of the run file has warned already
        return found

    def _metrics(self, wanted: Sequence[str] | None) -> list[Metric]:
        known = {metric.name: metric for metric in installed_metrics()}
        names = wanted or list(dict.fromkeys(name for domain in self.domains.values() for name in domain.metrics))
        for name in names:
            if name not in known:
                raise UnknownName("metric", name, known)
        return [known[name] if wanted else self._where_asked_for(known[name]) for name in names or known]

    def _where_asked_for(self, metric: Metric) -> Metric:
        """The metric, measured only in domains that name it."""
        domains = self.domains

        def measure(cell: CellRecord) -> Mapping[str, float | None]:
            domain = domains.get(cell.trial.domain)
            return metric.measure(cell) if domain is None or metric.name in domain.metrics else {}

        return replace(metric, measure=measure)
