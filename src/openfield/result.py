"""The result of a run: its cells, its numbers, its page.

The end of plan -> rollout -> journal -> metrics -> report. Several run files make one result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

import msgspec

from openfield.console import escape_controls, say_count
from openfield.domain import Domain
from openfield.errors import InvalidInput, OpenfieldError, UnknownName
from openfield.journal.reader import CellRecord, Run
from openfield.metrics.catalogue import CHANGES, find_metrics, installed_metrics, metric_names
from openfield.provenance.people import measure_responses, name_people
from openfield.provenance.provenance import Provenance, mark_versions, read_provenance, split_versions
from openfield.provenance.registration import Registration, list_deviations, read_registration
from openfield.provenance.rules import DomainRules
from openfield.provenance.usage import Usage, read_run_usage
from openfield.run_files import RunRecord, choose_record, name_versions, read_cells, read_record, rename_agents

if TYPE_CHECKING:
    import pandas
    import polars
    from rich.console import RenderableType

    from openfield.metrics.failures import Policy
    from openfield.metrics.metric import Metric, Pooled
    from openfield.metrics.stats import Intervals
    from openfield.metrics.summary import Summary
    from openfield.report.export.paper_figure import PaperFigure
    from openfield.report.export.rows import RowKind
    from openfield.report.figures.paper import FigureKind
    from openfield.report.film import DomainFilm
    from openfield.report.matrix import Across


class NumberChoice(TypedDict, total=False):
    """Which numbers there are in a table, and how they are computed; see `Result.summary`."""

    metrics: Sequence[str] | None
    intervals: Intervals
    failures: Policy
    numbers: str | Sequence[str] | None


class SelectionChoice(TypedDict, total=False):
    """What of a run a figure or a table shows; nothing named stands for all."""

    agents: Sequence[str]
    novelties: Sequence[str]
    domains: Sequence[str]


class VersionChoice(TypedDict, total=False):
    """Options of `Result`."""

    rename: Mapping[str, str] | None
    superseded: bool


class FigureChoice(NumberChoice, SelectionChoice, total=False):
    """What a figure shows; see `Result.figure`."""

    across: Across | None


class Result:
    """One or several run files, read as one."""

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        baseline: str | None = None,
        *,
        rename: Mapping[str, str] | None = None,
        superseded: bool = False,
    ) -> None:
        """Read run files. Versions of an agent that played the same trials in several files are kept apart.

        Args:
            paths: The files, or a single one.
            baseline: The agent that others are compared with; each domain's own if not given.
            rename: Agent -> the name that it has here.
            superseded: Also show what earlier versions of agents had played to the end.
        """
        self.paths = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
        self.baseline = baseline
        self.facts: dict[str, str] = {}
        self.domains: dict[str, Domain[Any] | DomainRules] = {}
        """The domains of the trials: those at hand, and what the run files say of the others."""
        known, agents = dict[str, CellRecord](), dict[str, str | None]()
        self._homes: dict[str, int] = {}  # which of the files the record of a cell is taken from
        files: list[list[CellRecord]] = []
        for path in self.paths:
            with Run(path) as run:
                cells, domains = read_cells(run, superseded)
                files.append(list(name_people(cells, run.facts)))
                self.facts |= run.facts
                agents |= run.agents
                self.domains = domains | self.domains
        for number, (path, cells) in enumerate(zip(self.paths, name_versions(files, self.paths), strict=True)):
            for cell in cells:
                taken = choose_record(known[cell.id], cell, path) if cell.id in known else cell
                known[cell.id] = taken
                self._homes[cell.id] = number if taken is cell else self._homes[cell.id]
        self.provenance: list[Provenance] = read_provenance(self.facts, ", ".join(map(str, self.paths)))
        marked = mark_versions(known.values(), self.provenance, agents)
        self.cells: list[CellRecord] = rename_agents(list(split_versions(marked, self.provenance)), rename or {})
        if any(cell.trial.imported is not None for cell in self.cells):
            from openfield.metrics.scenario import join_imported

            self.cells = join_imported(self.cells)
        if len({self._homes[cell.id] for cell in self.cells if cell.person}) > 1:  # every study has a p01
            self.cells = [
                msgspec.structs.replace(cell, person=f"{self.paths[self._homes[cell.id]].stem} {cell.person}")
                if cell.person
                else cell
                for cell in self.cells
            ]

    def __repr__(self) -> str:
        """Return a few lines for a person: agents and trials, the headline numbers, and where to read on."""
        from openfield.report.terminal import list_headlines

        try:
            lines = [self._title, *list_headlines(self._usual, self.domains)]
        except OpenfieldError as error:  # a debugger must be able to show it
            lines = [f"Result of {', '.join(map(str, self.paths))}: {error}"]
        return escape_controls("\n".join([*lines, 'More: .table(), .page("report.html"), .to_pandas(), .to_polars()']))

    def _repr_html_(self) -> str:
        """Return the tables that a notebook shows."""
        from openfield.report.export.paper_table import draw_tables
        from openfield.report.findings import list_findings
        from openfield.report.render import render
        from openfield.report.words import describe_novelty

        tables = draw_tables(self._usual, self.domains, "html")
        findings = [
            (f"{scenario.domain}: {describe_novelty(scenario, self.domains)}", " ".join(each.text for each in found))
            for scenario, found in list_findings(self._usual)
        ]
        return render("notebook.html", {"title": self._title, "findings": findings, "tables": tables})

    @property
    def _title(self) -> str:
        agents, trials = {cell.agent for cell in self.cells}, {cell.trial.id for cell in self.cells}
        played = f"{say_count(len(agents), 'agent')}, {say_count(len(trials), 'trial')}"
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in self._usual.outcomes.items()) or "none yet"
        return f"Result of {', '.join(map(str, self.paths))}: {played}, cells: {outcomes}"

    @cached_property
    def _usual(self) -> Summary:
        """The summary that is shown where nothing else is asked for."""
        return self.summary()

    @cached_property
    def usage(self) -> dict[str, Usage]:
        """What language models used up, in all attempts, by agent: calls, tokens, seconds and cost."""
        total: dict[str, Usage] = {}
        for number, path in enumerate(self.paths):
            others = {cell for cell, home in self._homes.items() if home != number}
            with Run(path) as run:
                for agent, used in read_run_usage(run, others).items():
                    total[agent] = total[agent] + used if agent in total else used
        return total

    @cached_property
    def records(self) -> list[RunRecord]:
        """What each run file says of itself as a whole: its fingerprint and how much of its plan was played."""
        return [read_record(path) for path in self.paths]

    def summary(
        self,
        metrics: Sequence[str] | None = None,
        intervals: Intervals = "conservative",
        failures: Policy = "count",
        numbers: str | Sequence[str] | None = None,
    ) -> Summary:
        """Return all numbers with their intervals.

        Args:
            metrics: The metrics; by default those that the domains name.
            intervals: `conservative`, valid without a law of the scores, `usual`: narrower, for a single peak, or
                `anytime`: valid at every look. As long as trials of an agent are missing, its intervals are `anytime`.
            failures: `count` trials that an agent failed, or `exclude` them.
            numbers: Which of them tables show: `all`, or names; by default the six that matter most, and returns
                where there is no scale.
        """
        from openfield.metrics.selection import name_numbers, split_names
        from openfield.metrics.stats import KINDS_OF_INTERVALS
        from openfield.metrics.summary import explain_missing, list_counted, summarise

        if intervals not in KINDS_OF_INTERVALS:
            raise UnknownName("kind of intervals", intervals, KINDS_OF_INTERVALS, label="Known")
        cells = self.counted(failures)
        chosen = self._metrics(metrics, list_counted(cells), split_names(numbers))
        asked = chosen if metrics else [metric for metric in chosen if self.baseline and metric.is_related]
        shown = tuple(name_numbers(numbers, chosen, asked))
        found = msgspec.structs.replace(summarise(cells, chosen, intervals, failures), shown=shown)
        if self.registration is not None:
            marked = (
                msgspec.structs.replace(each, registered=each.name in self.registration.numbers)
                for each in found.numbers
            )
            found = msgspec.structs.replace(found, numbers=tuple(marked))
        return msgspec.structs.replace(found, missing=tuple(explain_missing(found, chosen))) if metrics else found

    def select(self, summary: Summary, **options: Unpack[SelectionChoice]) -> Summary:
        """Return some agents, novelties or domains of a summary, without controls, as figures and tables show it.

        Args:
            summary: All numbers.
            options: The names of `agents`, of `novelties` (`gravity` is each difficulty of it) and of `domains`.
        """
        from openfield.metrics.selection import select_groups

        return select_groups(summary, **options)

    def findings(self, intervals: Intervals = "conservative", failures: Policy = "count") -> list[dict[str, Any]]:
        """Return the results of each scenario in sentences (`text`), with its domain, novelty, red light and settings.

        Args:
            intervals: As for `summary`.
            failures: As for `summary`.
        """
        from openfield.report.findings import list_findings

        usual = (intervals, failures) == ("conservative", "count")
        summary = self._usual if usual else self.summary(None, intervals, failures)
        return [
            msgspec.to_builtins(scenario) | {"text": " ".join(finding.text for finding in found)}
            for scenario, found in list_findings(summary)
        ]

    def counted(self, failures: Policy = "count") -> list[CellRecord]:
        """Return the cells as they count: what agents failed to play is filled in, or left out."""
        from openfield.metrics.failures import POLICIES, apply_policy

        if failures not in POLICIES:
            raise UnknownName("policy about failures", failures, POLICIES, label="Known")
        return apply_policy(self.cells, failures)

    def table(self, **options: Unpack[NumberChoice]) -> RenderableType:
        """Return the summary as a table that rich prints: `rich.print(result.table())`.

        Args:
            options: Those of `summary`, such as `numbers="all"`.
        """
        from openfield.console import Escaped
        from openfield.report.terminal import render_summary

        return Escaped(render_summary(self.summary(**options), self.domains))

    def numbers(
        self, metrics: Sequence[str] | None = None, failures: Policy = "count"
    ) -> Iterator[tuple[CellRecord, dict[str, float | None]]]:
        """Yield every cell that counts with its own numbers, before any mean is taken; None if one is not defined."""
        from openfield.metrics.scenario import group_cells, scenario_of
        from openfield.metrics.summary import counts_beliefs, list_numbers

        scored = [cell for cell in self.counted(failures) if cell.is_scored]
        chosen = self._metrics(metrics, scored)
        numbers = [number for number in list_numbers(chosen) if not number.pooled]
        telling = {key for key, played in group_cells(scored).items() if counts_beliefs(played)}
        for cell in scored:
            found = {name: value for metric in chosen for name, value in metric.take(cell).items()}
            is_reported = (scenario_of(cell), cell.agent) in telling
            yield cell, {n.name: found.get(n.name) if is_reported or not n.belief else None for n in numbers}

    def to_pandas(self, rows: RowKind = "estimates", **options: Unpack[NumberChoice]) -> pandas.DataFrame:
        """Return a table of pandas, with the columns of `openfield export`.

        Args:
            rows: The kind of rows: `estimates`, a number of an agent in a scenario with its interval; `cells`, a cell
                with a column for each number; or `episodes`.
            options: Those of `summary` for estimates, and of `numbers` for cells. Episodes have none.
        """
        from openfield.report.export.rows import to_pandas

        return to_pandas(*self.rows(rows, **options))

    def to_polars(self, rows: RowKind = "estimates", **options: Unpack[NumberChoice]) -> polars.DataFrame:
        """Return a table of polars; the arguments are those of `to_pandas`."""
        from openfield.report.export.rows import to_polars

        return to_polars(*self.rows(rows, **options))

    def rows(
        self, rows: RowKind, **options: Unpack[NumberChoice]
    ) -> tuple[type[msgspec.Struct], Iterable[msgspec.Struct]]:
        """Return the kind of the rows of a table, and the rows; the arguments are those of `to_pandas`."""
        from openfield.report.export.rows import EstimateRow, list_estimates, make_cell_rows, make_episode_rows

        allowed = {"estimates": ("metrics", "intervals", "failures"), "cells": ("metrics", "failures"), "episodes": ()}
        if rows not in allowed:
            raise UnknownName("kind of rows", rows, allowed, label="Known")
        for name in options.keys() - set(allowed[rows]):
            raise UnknownName(f"option of a table of {rows}", name, allowed[rows], label="Known")
        if rows == "estimates":
            return EstimateRow, list_estimates(self.summary(**options))
        if rows == "cells":
            failures = options.get("failures", "count")
            return make_cell_rows(self.numbers(options.get("metrics"), failures), failures)
        return make_episode_rows(self.cells, self.responses())

    def responses(self) -> dict[str, list[float | None]]:
        """Return the mean seconds of people's actions in each episode, by cell."""
        found: dict[str, list[float | None]] = {}
        people = {cell.id: cell for cell in self.cells if cell.person}
        for path in self.paths if people else ():
            with Run(path) as run:
                found |= {
                    each.id: measure_responses(run, people[each.id])
                    for each in run.cells(with_episodes=False)
                    if each.id in people
                }
        return found

    @property
    def cautions(self) -> list[str]:
        """Cautions for readers of the numbers: what was registered, and sentences recorded while trials were played."""
        said = [text for key, text in self.facts.items() if key.startswith("caution ")]
        if self.registration is not None:
            said = [self.registration.describe(), *list_deviations(self.registration, self.cells), *said]
        return said

    @cached_property
    def registration(self) -> Registration | None:
        """What was registered of the run before its first trial."""
        return read_registration(self.facts, ", ".join(map(str, self.paths)))

    def page(
        self,
        path: str | Path,
        objectives: dict[str, Any] | None = None,
        films: Sequence[DomainFilm] = (),
        links: Mapping[str, str] | None = None,
        **options: Unpack[NumberChoice],
    ) -> Path:
        """Write the report, one self-contained HTML file, and return its path.

        Args:
            path: Where to write it.
            objectives: What `objectives` returned, for a section about it.
            films: What `films` returned.
            links: Title -> address of what else is on a site that the page is part of.
            options: Those of `summary`, such as `numbers="all"`.
        """
        from openfield.report.page import write_report

        summary, cells = self.summary(**options), self.counted(options.get("failures", "count"))
        write_report(Path(path), self, summary, cells, objectives, films, links or {})
        return Path(path)

    def figure(self, kind: FigureKind = "curves", width: str = "3.3in", **options: Unpack[FigureChoice]) -> PaperFigure:
        """Return a figure for a paper: a notebook shows it, `.save("fig.pdf")` writes it, `.drawn` is matplotlib's.

        Args:
            kind: `curves` of performance around the onset, `belief`, `intervals` of numbers, the performance `profile`
                of each domain, or the `learning` of a curriculum.
            width: How wide it is: a number with in, cm, mm or pt.
            options: Those of `summary`; `agents`, `novelties` and `domains` for some of them only; and `across`, which
                shows numbers in `domains` or in `novelties`.
        """
        from openfield.report.export.paper_figure import PaperFigure
        from openfield.report.figures.paper import FigureSource, trace_figure

        known = [*FigureChoice.__annotations__]
        for name in options.keys() - set(known):
            raise UnknownName("option of a figure", name, known, label="Known")
        chosen = {name: value for name, value in options.items() if name in SelectionChoice.__annotations__}
        numbers = {name: value for name, value in options.items() if name in NumberChoice.__annotations__}
        summary = self.select(self.summary(**cast("NumberChoice", numbers)), **cast("SelectionChoice", chosen))
        cells = self.counted(options.get("failures", "count"))
        source = FigureSource(cells, summary, self.domains, options.get("across"))
        return PaperFigure(trace_figure(kind, source), width)

    def films(self, trust: bool = False) -> list[DomainFilm]:
        """Return a film of each domain that draws: the first changed episode of an agent, which is played again.

        Args:
            trust: Run a domain that a run file names even if this user did not sign it.
        """
        from openfield.report.film import film_domains

        return film_domains(self.paths, self.domains, trust)

    def objectives(self) -> dict[str, Any]:
        """Return the objectives without reward of all agents, in training, before the onset and after it.

        A run whose steps cannot be counted is named with the reason, and the others are computed. If people played in
        one of the runs, the similarity to them is among the objectives.
        """
        from openfield.report.objectives import evaluate_run_files

        return evaluate_run_files(self.paths)

    @property
    def is_over(self) -> bool:
        """Whether all cells have ended, so that the root seed of a sealed run may be shown."""
        return all(cell.outcome is not None or cell.dropped for cell in self.cells)

    def _metrics(
        self, wanted: Sequence[str] | None, cells: Sequence[CellRecord], numbers: Sequence[str] = ()
    ) -> list[Metric]:
        """Return the metrics that were asked for, by their names or by those of their numbers."""
        found = find_metrics(wanted or self._named_metrics())
        if self.baseline is not None or any(found[name].relate for name in wanted or ()):
            self._check_baseline()
        chosen = [metric if wanted else self._where_asked_for(name, metric) for name, metric in found.items()]
        if found and not wanted and any(cell.trial.has_course for cell in cells):
            chosen += find_metrics([CHANGES]).values()
        if not found:  # the domains are not at hand
            chosen = installed_metrics()
        elif self.baseline is not None and not wanted:  # who names a baseline wants the numbers against it
            chosen += [metric for metric in installed_metrics() if metric.relate]
        known = {number.name for metric in chosen for number in metric.numbers}
        if lacking := [] if wanted else [name for name in numbers if name not in known]:
            chosen += [each for each in installed_metrics() if any(one.name in lacking for one in each.numbers)]
        return [metric.among(cells, self.baseline) for metric in chosen]

    def _named_metrics(self) -> list[str]:
        """Return the metrics that the domains name. Those that only a run file names must be installed."""
        named = [
            name
            for domain in self.domains.values()
            for name in domain.metrics
            if isinstance(domain, Domain) or name in metric_names()
        ]
        return list(dict.fromkeys(named))

    def _check_baseline(self) -> None:
        """Raise an error if the baseline is not one of the agents."""
        agents = sorted({cell.agent for cell in self.cells if not cell.control})
        if self.baseline is not None and self.baseline not in agents:
            raise UnknownName("agent", self.baseline, agents, label="In this run")
        if self.baseline is None and not any(domain.baseline in agents for domain in self.domains.values()):
            raise InvalidInput(f"Against which agent? Name it with --baseline: {', '.join(agents)}.")

    def _where_asked_for(self, name: str, metric: Metric) -> Metric:
        """Return the metric, measured only in the domains that name it."""
        domains = self.domains

        def is_asked_for(cell: CellRecord) -> bool:
            domain = domains.get(cell.trial.domain)
            return domain is None or name in domain.metrics

        def measure(cell: CellRecord) -> Mapping[str, float | None]:
            return metric.measure(cell) if is_asked_for(cell) else {}

        def pool(cells: Sequence[CellRecord]) -> Pooled:
            return metric.pool(cells) if metric.pool and all(map(is_asked_for, cells)) else {}

        return metric if metric.relate else replace(metric, measure=measure, pool=pool)
