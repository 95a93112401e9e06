"""Print a summary as tables on a terminal.

Stands at the end of plan -> rollout -> journal -> metrics -> report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from textwrap import fill
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.console import Group as Stack
from rich.measure import Measurement
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from openfield.console import MAX_WIDTH, say_count
from openfield.metrics.comparison import Comparison
from openfield.metrics.metric import Number
from openfield.metrics.scenario import CurriculumResults, Scenario
from openfield.metrics.selection import ALL, pick_numbers, shows_all
from openfield.metrics.stats import Estimate
from openfield.metrics.summary import AgentResults, Summary
from openfield.parameters import shorten_agents
from openfield.provenance.provenance import Provenance
from openfield.report import words
from openfield.report.findings import ScenarioFinding, list_findings
from openfield.report.matrix import Matrix, make_campaign_matrix
from openfield.report.words import NONE, OF_TASK, Domains

SHORT = ("Note", "Tags", "Git revision", "Versions")
"""What the terminal says about a command; the page has all of it."""

HEADLINES = ("concordance", "correct", "alarmed", "after", "tasks_solved", "borders_found")
"""The numbers of controls that a terminal has room for."""

LINES = r", (?=p|\d+ trial)| (?=[\[(])"
"""Where an estimate is folded: before its interval or what stands for it, and before its p-value."""

TITLE_WIDTH = 12
"""Columns for the title of a number above a column."""

LINE = Rule(style="dim")
"""Parts scenarios from those whose rules are loose."""

MAX_SCENARIOS, MAX_AGENTS = 4, 8
"""How many scenarios, and agents of each, a short overview shows."""


def render_summary(summary: Summary, domains: Domains) -> RenderableType:
    """Return everything a summary says: what failed first, then a table for each scenario."""
    parts: list[RenderableType] = []
    if words.count_failed(summary.outcomes):
        parts += [_failures(summary), *_notes(summary), Text()]
    findings = dict(list_findings(summary))
    for scenario, members in groupby(summary.groups, key=lambda group: group.scenario):
        groups = list(members)
        agents, controls = words.split_controls(groups)
        rivals, note = words.pick_comparisons(summary.comparisons, groups)
        if scenario.loose and LINE not in parts:
            parts += [LINE, Text(words.LOOSE, style="dim")]
        parts += [_heading(scenario, groups, domains), *_findings(scenario, findings), _Results(summary, agents)]
        tasks = [one for one in summary.curricula if one.scenario == scenario and one.task_steps and not one.control]
        parts += [
            *map(_tasks, tasks),
            *([_Fitted(partial(_comparisons, rivals, agents))] if rivals else []),
            Text(note, style="dim"),
        ]
        parts += [_Fitted(partial(_controls, summary, controls)), Text(words.CONTROLS, style="dim")] if controls else []
    for _, members in groupby(summary.totals, key=lambda group: group.scenario.domain):
        groups = list(members)
        title = words.title_domain(groups[0].scenario, domains)
        subtitle = "All scenarios together, each trial counted once"
        parts += [Text(title, style="bold").append(f"\n{subtitle}", style="not bold"), _Results(summary, groups)]
    if matrix := make_campaign_matrix(summary, domains):
        title = "All domains" if matrix.shared is None else f"All domains: {matrix.shared.title}"
        parts += [Text(title, style="bold"), _Fitted(partial(_matrix, matrix)), Text(matrix.explain(), style="dim")]
    return Stack(*parts, *_say_more(summary), Text(words.explain_reading(summary), style="dim"))


def _say_more(summary: Summary) -> Iterator[Text]:
    """Yield how to see the numbers that are left out, if some are."""
    groups = (*summary.groups, *summary.totals)
    shown = {number.name for each in groups for number in pick_numbers(summary, [each])}
    left = {name for each in groups for name in each.estimates} - shown
    if left:
        more = say_count(len(left), "more number")
        yield Text(f'{more}: --numbers {ALL}, or their names (in Python: numbers="{ALL}")', style="dim")


def list_headlines(summary: Summary, domains: Domains) -> Iterator[str]:
    """Yield lines of plain text: in each scenario the agents with their two most telling numbers, the best first."""
    scenarios = [list(members) for _, members in groupby(summary.groups, key=lambda group: group.scenario)]
    for members in scenarios[:MAX_SCENARIOS]:
        scenario, groups = members[0].scenario, words.split_controls(members)[0] or members
        loose = ", by loose rules" if scenario.loose else ""
        yield f"{words.title_domain(scenario, domains)}: {words.describe_novelty(scenario, domains)}{loose}"
        names = shorten_agents(group.agent for group in groups)
        shown = _pick_telling(pick_numbers(summary, groups))
        lines = [["", *(words.name_number(number, scenario)[0] for number in shown)]]
        for group in words.rank_agents(groups, summary.comparisons)[:MAX_AGENTS]:
            texts = (words.format_estimate(group.estimates.get(number.name), number, group) for number in shown)
            lines.append([names[group.agent], *texts])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        yield from ("  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        if len(groups) > MAX_AGENTS:
            yield f"  and {len(groups) - MAX_AGENTS} more agents"
    if len(scenarios) > MAX_SCENARIOS:
        yield f"and {len(scenarios) - MAX_SCENARIOS} more scenarios"
    if any(group.valid == "anytime" for group in summary.groups):
        yield words.OPEN


def render_provenance(provenance: Sequence[Provenance]) -> RenderableType:
    """Return how a run was made, in few lines: the latest command, and how many there were before it."""
    if not provenance:
        return Text()
    known = words.describe_provenance(provenance[-1])
    before = f", after {len(provenance) - 1} earlier" if len(provenance) > 1 else ""
    text = Text(f"Made by {known['Command']} ({known['Started']}{before})", style="dim")
    rest = "; ".join(f"{title.lower()}: {value}" for title, value in known.items() if title in SHORT)
    return text.append(f"\n{rest}") if rest else text


def _failures(summary: Summary) -> Table:
    """Return how cells ended; the scored outcomes are there for comparison."""
    table = Table(title="Not every cell was played to its end", title_justify="left", title_style="bold red")
    table.add_column("outcome")
    table.add_column("cells", justify="right")
    table.add_column("meaning")
    for outcome, count in summary.outcomes.items():
        style = "" if outcome in ("done", "truncated") else "red"
        table.add_row(Text(outcome, style=style), str(count), Text(words.OUTCOMES.get(outcome, "")))
    return table


def _notes(summary: Summary) -> Iterator[Text]:
    """Yield the notes of failed cells: the first of each agent and outcome."""
    for failure in summary.failures:
        if failure.note:
            first = f", the first of {failure.cells}" if failure.cells > 1 else ""
            yield Text(f"{failure.agent}, {failure.outcome}{first}: {words.shorten_note(failure.note)}")


def _heading(scenario: Scenario, groups: list[AgentResults], domains: Domains) -> Text:
    text = Text(words.title_domain(scenario, domains), style="bold")
    text.append(f"\n{words.describe_novelty(scenario, domains)}", style="not bold")
    for terms in filter(None, (words.describe_terms(scenario), words.describe_onset(groups))):
        text.append(f"\n{terms}", style="not bold dim")
    return text


def _findings(scenario: Scenario, findings: Mapping[Scenario, Sequence[ScenarioFinding]]) -> list[Text]:
    """Return the results of a scenario, as a paragraph."""
    text = " ".join(finding.text for finding in findings[scenario])
    return [Text(text)] if text else []


class _Results:
    """Numbers down and agents across, the best first; where they do not fit the terminal, agents down."""

    def __init__(self, summary: Summary, groups: list[AgentResults]) -> None:
        self._summary = summary
        self._groups = words.rank_agents(groups, summary.comparisons)
        self._names = shorten_agents(group.agent for group in groups)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        def fits(table: Table) -> bool:
            return _fits(table, console, options)

        tables = (self._tabulate(narrow) for narrow in (False, True))
        fitting = next(filter(fits, tables), None)
        yield from self._split(fits) if fitting is None and len(self._groups) > 1 else [fitting or self._tabulate(True)]
        renamed = [f"{name} is {agent}" for agent, name in self._names.items() if name != agent]
        yield from [Text("; ".join(renamed), style="dim")] if renamed else []

    def _split(self, fits: Callable[[Table], bool]) -> Iterator[Table]:
        """Yield tables with a row for each agent, each with as many numbers as fit."""
        left = pick_numbers(self._summary, self._groups)
        while left:
            tables = ((count, self._transpose(left[:count])) for count in range(len(left), 1, -1))
            count, table = next((found for found in tables if fits(found[1])), (1, self._transpose(left[:1])))
            yield table
            left = left[count:]

    def _tabulate(self, narrow: bool = False) -> Table:
        """Return a table with a column for each agent; in a narrow one p-values stand below their numbers."""
        summary, groups = self._summary, self._groups
        table = Table(caption_justify="left")
        table.add_column("")
        for group in groups:
            table.add_column(Text(self._names[group.agent]), justify="right")
        table.add_row("cells", *(Text(words.format_outcomes(group.outcomes)) for group in groups), style="dim")
        if any(group.unchanged for group in groups):
            trials = (Text(words.format_trials(group)) for group in groups)
            table.add_row("trials", *(_fold(each, ", ") if narrow else each for each in trials), style="dim")
        if any(group.versions for group in groups):
            table.add_row("version", *(Text(group.versions, style="yellow") for group in groups))
        for number in pick_numbers(summary, groups):
            cells = (_estimate(group.estimates.get(number.name), number, group) for group in groups)
            folded = (_fold(cell, ", (?=p)") for cell in cells) if narrow else cells
            table.add_row(Text(words.name_number(number, groups[0].scenario)[0]), *folded)
            if any(number.name in group.completed for group in groups):
                beside = (_estimate(group.completed.get(number.name), number, group) for group in groups)
                table.add_row("  of completed trials", *beside, style="dim")
        if shows_all(summary) and any(group.iqm for group in groups):
            table.add_row("Interquartile mean", *(_estimate(group.iqm, None, group) for group in groups))
        return table

    def _transpose(self, numbers: Sequence[Number]) -> Table:
        """Return a table with a row for each agent, and intervals below the values."""
        table = Table(box=box.SIMPLE_HEAD)
        table.add_column("")
        for number in numbers:
            title = words.name_number(number, self._groups[0].scenario)[0]
            table.add_column(fill(title, TITLE_WIDTH), justify="right", no_wrap=True)
        for group in self._groups:
            name = Text(self._names[group.agent]).append(f"\n{words.format_outcomes(group.outcomes)}", style="dim")
            name.append(f"\nversion: {group.versions}" if group.versions else "", style="yellow")
            cells = (_estimate(group.estimates.get(each.name), each, group) for each in numbers)
            table.add_row(name, *(_fold(cell, LINES) for cell in cells))
        return table


class _Fitted:
    """A table with a narrow form for terminals that its wide form does not fit."""

    def __init__(self, make: Callable[[bool], Table]) -> None:
        """Take what makes the table, given whether it must be narrow."""
        self._make = make

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = self._make(False)
        yield wide if _fits(wide, console, options) else self._make(True)


def _fits(table: Table, console: Console, options: ConsoleOptions) -> bool:
    endless = options.update(width=MAX_WIDTH)  # a measure is never more than the width there is
    return Measurement.get(console, endless, table).maximum <= options.max_width


def _pick_telling(numbers: Sequence[Number]) -> list[Number]:
    """Return the two most telling of the numbers that are shown: not what came before the change, if there is one."""
    names = {number.name for number in numbers}
    return [number for number in numbers if number.name.replace("before", "after") not in names - {number.name}][:2]


def _fold(text: Text, where: str) -> Text:
    """Return a text whose parts, separated by a pattern, stand in lines of their own."""
    first, *rest = re.split(where, text.plain)
    return Text.assemble(text[: len(first)], *(Text(f"\n{part}", style="dim") for part in rest))


def _estimate(estimate: Estimate | None, number: Number | None, group: AgentResults) -> Text:
    """Return the estimate, with its own number of trials if needed."""
    if estimate is None:
        return Text(NONE, style="dim")
    n = words.count_trials(estimate, number, group)
    return Text(str(estimate)).append("" if n is None else f" n={n}", style="dim")


def _controls(summary: Summary, groups: list[AgentResults], narrow: bool) -> Table:
    """Return what controls reach, one below the other; the page and the JSON have all their numbers."""
    known = {number.name: number for number in summary.numbers}
    shown = [known[name] for name in HEADLINES if any(name in group.estimates for group in groups)]
    table = _table(narrow, title="Controls", title_justify="left")
    table.add_column("")
    for number in shown:
        title = words.name_number(number, groups[0].scenario)[0]
        table.add_column(fill(title, TITLE_WIDTH) if narrow else title, justify="right")
    for group in groups:
        cells = (_estimate(group.estimates.get(one.name), one, group) for one in shown)
        table.add_row(Text(group.agent), *(_fold(cell, LINES) if narrow else cell for cell in cells))
    return table


def _matrix(matrix: Matrix, narrow: bool) -> Table:
    """Return agents down and domains across, in order; in a narrow table intervals stand below the values."""
    table = _table(narrow)
    table.add_column("rank", justify="right")
    table.add_column("")
    for column in matrix.columns:
        lines = [column.title, *([] if matrix.shared else [column.number.title])]
        table.add_column("\n".join(fill(line, TITLE_WIDTH) if narrow else line for line in lines), justify="right")
    if matrix.has_mean:
        table.add_column("mean", justify="right")
    for row in matrix.rows:
        cells = []
        for at, group in enumerate(row.cells):
            found = Text(NONE, style="dim")
            if group is not None:
                number = matrix.columns[at].number
                found = _estimate(group.estimates.get(number.name), number, group)
                found = _fold(found, LINES) if narrow else found
            cells.append(Text.assemble("*", found, style="bold") if row.best[at] else found)
        rank = "" if row.rank is None else str(row.rank)
        table.add_row(rank, Text(row.name), *cells, *([words.format_number(row.mean)] if matrix.has_mean else []))
    return table


def _table(narrow: bool, **form: Any) -> Table:
    """Return an empty table; a narrow one has few lines."""
    return Table(**form, box=box.SIMPLE_HEAD if narrow else box.HEAVY_HEAD)


def _tasks(results: CurriculumResults) -> Table:
    """Return the tasks of an agent that have steps of their own, one below the other."""
    title = f"Tasks of {results.agent}, {results.task_steps:,} steps each"
    title += f"; version {results.versions}" if results.versions else ""
    table = Table(title=Text(title), title_justify="left")
    columns = [name for name in OF_TASK if any(getattr(task, name) is not None for task in results.tasks)]
    table.add_column("task")
    for name in columns:
        table.add_column(name, justify="right")
    for task in results.tasks:
        table.add_row(Text(task.task), *(Text(_say_task(getattr(task, name))) for name in columns))
    if results.transfer is not None:
        table.add_row("all tasks", *(str(results.transfer) if name == "transfer" else "" for name in columns))
    return table


def _say_task(estimate: Estimate | None) -> str:
    return NONE if estimate is None else str(estimate)


def _comparisons(comparisons: list[Comparison], groups: list[AgentResults], narrow: bool) -> Table:
    """Return one agent against another in each row; in a narrow table the basis stands below the p-value."""
    names = shorten_agents(group.agent for group in groups)
    table = _table(narrow)
    for title in ("first", "second", "difference", "P(first is better)"):
        table.add_column(title)
    for title in ("p, corrected\nbasis",) if narrow else ("p, corrected", "basis"):
        table.add_column(title)
    for one in comparisons:
        estimates = (Text(str(each)) for each in (one.difference, one.improvement))
        texts = words.format_corrected(one), words.describe_basis(one)
        table.add_row(
            *map(Text, (names[one.first], names[one.second])),
            *(_fold(each, LINES) if narrow else each for each in estimates),
            *map(Text, ("\n".join(texts),) if narrow else texts),
        )
    return table
