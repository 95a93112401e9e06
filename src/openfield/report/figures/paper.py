"""The figures of a paper as data: curves around the onset, beliefs, numbers with intervals, profiles, learning.

Cells and their numbers -> panels, which `report/export/paper_figure.py` draws and writes as a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from openfield.console import say_count
from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import CellRecord
from openfield.metrics.metric import Number
from openfield.metrics.scenario import Key, Scenario, group_cells, unit_of
from openfield.metrics.selection import pick_numbers
from openfield.metrics.stats import Intervals, bound_mean, estimate_mean
from openfield.metrics.summary import AgentResults, Summary, score_agent
from openfield.parameters import shorten_agents
from openfield.report.figures import IntervalPlot, Mark, Place, Plot, PlotLine, Spread
from openfield.report.figures.curriculum import collect_answers, list_blocks
from openfield.report.figures.curves import limit_range, name_unit, pick_drawn, trace_all
from openfield.report.matrix import Across, Matrix, make_matrix, name_scenarios
from openfield.report.words import Domains, group_scenarios

FigureKind = Literal["curves", "belief", "intervals", "profile", "learning"]
"""What a figure shows, see `trace_figure`."""
KINDS: tuple[FigureKind, ...] = get_args(FigureKind)
LEVELS = 51
"""Points of a performance profile."""
BLOCKS = 20
"""Points of a learning curve."""
SURE = "with {intervals} 95 % intervals"
CAPTIONS: dict[FigureKind, str] = {
    "curves": "Performance{onset}: mean of {trials}, {sure} for each {point} alone.",
    "belief": "Belief that the world has changed{onset}: mean of {trials}, {sure} for each {point} alone.",
    "intervals": "{titles}: {trials}, {sure}.",
    "profile": "Share of {trials} with at least the performance across, {sure} for each value alone.",
    "learning": "Share of right answers to each task of a curriculum: mean of {trials}, {sure} for each point alone. "
    "Dashed: the same task played alone.",
}
NOTHING: dict[FigureKind, str] = {
    "curves": "There are no curves to draw: no episode has a performance. Returns need a scale for it, such as "
    "--set return=0,500.",
    "belief": "There are no beliefs to draw: no agent states one.",
    "intervals": "There is no number to draw.",
    "profile": "There is no profile to draw: no trial has a performance.",
    "learning": "There is no learning to draw: no agent plays a curriculum.",
}
NOT_PLAYED = "There is nothing to draw: no agent but controls has played yet."


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of a paper."""

    kind: FigureKind
    panels: list[Plot | IntervalPlot]
    agents: dict[str, str]
    """Agent -> what it is called, in the order of their colours: all that were chosen, so that colours stay the same
    in all figures of a run, whichever agents have something to draw."""
    across: str
    values: str
    """The names of the axes."""
    caption: str
    """What it shows, in a sentence or two."""

    @property
    def drawn(self) -> set[str]:
        """The agents that have something to draw."""
        found = [panel.agents if isinstance(panel, IntervalPlot) else _list_agents(panel) for panel in self.panels]
        return {agent for agents in found for agent in agents}


class FigureSource(NamedTuple):
    """What a figure is made of."""

    cells: Sequence[CellRecord]
    """The cells that count."""
    summary: Summary
    """Their numbers, of what is shown."""
    domains: Domains
    across: Across | None = None
    """What the places of intervals are, if it is said."""

    @property
    def members(self) -> dict[Key, list[CellRecord]]:
        """The scored cells of each agent in each scenario, of those that are shown."""
        found = group_cells(self.cells)
        wanted = [(group.scenario, group.agent) for group in self.summary.groups]
        return {key: [cell for cell in found[key] if cell.is_scored] for key in wanted if key in found}

    def name_scenarios(self) -> dict[Scenario, str]:
        """Return a short name for each scenario that is shown."""
        scenarios = [scenario for scenario, _ in group_scenarios(self.summary)]
        return name_scenarios(scenarios, len({scenario.domain for scenario in scenarios}) > 1)


def trace_figure(kind: FigureKind, source: FigureSource) -> Figure:
    """Return a figure of a run.

    Args:
        kind: `curves` of performance around the onset or of `belief`, a panel for each novelty; `intervals` of numbers,
            a panel for each; the performance `profile` of each domain; or the `learning` of a curriculum, a panel for
            each task.
        source: What it is made of.

    Raises:
        InvalidInput: There is nothing to draw.
    """
    makers: dict[FigureKind, Callable[[FigureSource], Iterator[Plot | IntervalPlot]]] = {
        "curves": lambda of: _trace_curves(of, "performance"),
        "belief": lambda of: _trace_curves(of, "belief"),
        "intervals": _trace_numbers,
        "profile": _trace_profiles,
        "learning": _trace_learning,
    }
    if kind not in makers:
        raise UnknownName("kind of figure", kind, KINDS, label="Known")
    panels = list(makers[kind](source))
    if not panels:
        played = any((cell.attempt or cell.episodes) and not cell.control for cell in source.cells)
        raise InvalidInput(NOTHING[kind] if played else NOT_PLAYED)
    across, values = _name_axes(kind, panels)
    return Figure(
        kind=kind,
        panels=panels,
        agents=shorten_agents(sorted({group.agent for group in source.summary.groups})),
        across=across,
        values=values,
        caption=_write_caption(kind, panels, source.summary.intervals),
    )


def list_rows(
    figure: Figure,
) -> Iterator[tuple[str, str, str, float | str, float | None, float | None, float | None, int]]:
    """Yield every point of a figure: panel, agent, line, place, value, the ends of its interval, number of trials."""
    for panel in figure.panels:
        if isinstance(panel, IntervalPlot):
            for mark in panel.marks:
                low, high = mark.interval or (None, None)
                yield panel.title, mark.agent, "", mark.place, mark.value, low, high, mark.trials
            continue
        for line in panel.lines:
            name = "alone" if figure.kind == "learning" and line.kind == "b" else ""
            for (at, value), (low, high, trials) in zip(line.points, line.spreads, strict=True):
                yield panel.title, line.agent, name, at, value, low, high, trials


def _trace_curves(source: FigureSource, what: Literal["performance", "belief"]) -> Iterator[Plot]:
    """Yield a panel for each scenario: a quantity of each agent, by episode or step."""
    members = source.members
    for scenario, title in source.name_scenarios().items():
        drawn = {agent: pick_drawn(cells) for (own, agent), cells in members.items() if own == scenario}
        joined = [cell for cells, _ in drawn.values() for cell in cells]
        traced = iter(trace_all(joined))  # all at once, so that all agents have the same bins
        lines = []
        for agent, (cells, _) in drawn.items():
            values: dict[int, dict[str, list[float]]] = {}
            for cell in cells:
                for point in next(traced):
                    value = getattr(point, what)
                    if value is not None and not point.training:
                        values.setdefault(point.at, {}).setdefault(unit_of(cell), []).append(value)
            units = len({unit_of(cell) for cell in cells})
            known = [(at, [_mean(own) for own in found.values()]) for at, found in sorted(values.items())]
            line = _make_line(agent, [each for each in known if 2 * len(each[1]) >= units], source.summary.intervals)
            lines += [line] if line.points else []
        if lines:
            onset = any(changed for _, changed in drawn.values())
            first, last = limit_range([int(at) for line in lines for at, _ in line.points], onset)
            shown = [_cut(line, first) for line in lines]
            place, unit = 0 if onset else None, name_unit(joined)
            yield Plot(title=title, lines=shown, first=first, last=last, onset=place, unit=unit, values=what)


def _trace_profiles(source: FigureSource) -> Iterator[Plot]:
    """Yield a panel for each domain: in which share of its trials each agent performs at least so well."""
    domains: dict[str, dict[str, list[CellRecord]]] = {}
    for (scenario, agent), cells in source.members.items():
        if not scenario.loose:
            domains.setdefault(scenario.domain, {}).setdefault(agent, []).extend(cells)
    for domain, agents in domains.items():
        lines = []
        for agent, cells in agents.items():
            units = score_agent(cells).units
            levels = [number / (LEVELS - 1) for number in range(LEVELS)]
            found = [(level, [float(unit >= level) for unit in units]) for level in levels] if units else []
            lines += [_make_line(agent, found, source.summary.intervals)] if found else []
        if lines:
            yield Plot(title=domain, lines=lines, values="share of trials")


def _trace_learning(source: FigureSource) -> Iterator[Plot]:
    """Yield a panel for each task of each curriculum: how agents learn it there, and where they play it alone."""
    members, names = group_cells(source.cells), source.name_scenarios()
    tasks: dict[tuple[Scenario, str], list[tuple[str, str, list[str]]]] = {}
    for results in source.summary.curricula:
        for task, (here, alone) in collect_answers(results, members, source.cells).items():
            own = tasks.setdefault((results.scenario, task), [])
            own += [(results.agent, kind, marks) for kind, marks in (("p", here), ("b", alone)) if marks]
    several = len({scenario for scenario, _ in tasks}) > 1
    for (scenario, task), found in tasks.items():
        longest = max((len(marks) for _, _, trials in found for marks in trials), default=0)
        size = max(1, math.ceil(longest / BLOCKS))
        lines = [
            _make_line(agent, list(list_blocks(trials, size)), source.summary.intervals, kind)
            for agent, kind, trials in found
            if any(trials)
        ]
        if lines:
            title = f"{names[scenario]}: {task}" if several else task
            yield Plot(title=title, lines=lines, last=longest, values="share of right answers")


def _trace_numbers(source: FigureSource) -> Iterator[IntervalPlot]:
    """Yield a panel for each number that is shown: each agent in each novelty, or domain."""
    summary, across = source.summary, source.across or "novelties"
    found = [
        (number, matrix)
        for number in pick_numbers(summary, summary.groups)
        if (matrix := make_matrix(summary, source.domains, across, number.name)) is not None
    ]
    titles = [column.title for _, matrix in found for column in matrix.columns]
    order = list(source.name_scenarios().values()) if across == "novelties" else sorted(set(titles))
    places = [title for title in order if title in titles]
    for number, matrix in found:
        marks = list(_list_marks(matrix))
        agents = sorted({mark.agent for mark in marks})
        title = _title(number, summary.groups)
        yield IntervalPlot(title=title, marks=marks, agents=agents, places=places, bounds=number.bounds)


def _list_marks(matrix: Matrix) -> Iterator[Mark]:
    for row in matrix.rows:
        for at, column in enumerate(matrix.columns):
            found = row.estimate(at, column)
            if found is not None and found.mean is not None:
                ends = None if found.low is None or found.high is None else (found.low, found.high)
                yield Mark(column.title, row.agent, found.mean, ends, None, found.n)


def _title(number: Number, groups: Sequence[AgentResults]) -> str:
    changes = any(group.scenario.novelty for group in groups)
    return number.title if changes else number.title.replace(" before the onset", " in the test")


def _make_line(
    agent: str, values: Sequence[tuple[float, Sequence[float]]], intervals: Intervals, kind: str = "p"
) -> PlotLine:
    """Return the line of the means of values, with the interval of each.

    Args:
        agent: Whose line it is.
        values: For each place the values there, all from 0 to 1.
        intervals: The rule of the intervals.
        kind: As in `PlotLine`.
    """
    estimate = bound_mean if intervals == "conservative" else estimate_mean
    points: list[Place] = []
    spreads: list[Spread] = []
    for at, sample in values:
        found = estimate(sample, (0.0, 1.0))
        points.append((at, found.mean))
        spreads.append((found.low, found.high, found.n))
    return PlotLine(kind, points, agent, spreads)


def _cut(line: PlotLine, first: int) -> PlotLine:
    """Return the part of a line from a place on."""
    at = next(number for number, (place, _) in enumerate(line.points) if place >= first)
    return msgspec.structs.replace(line, points=line.points[at:], spreads=line.spreads[at:])


def _list_agents(panel: Plot) -> list[str]:
    return [line.agent for line in panel.lines]


def _name_axes(kind: FigureKind, panels: Sequence[Plot | IntervalPlot]) -> tuple[str, str]:
    if kind in ("curves", "belief"):
        units = " or ".join(f"{unit}s" for unit in _list_units(panels))
        across = f"{units} {'from the onset' if _has_onset(panels) else 'of the test'}"
    else:
        across = {"profile": "performance", "learning": "questions"}.get(kind, "")
    return across, next((panel.values for panel in panels if isinstance(panel, Plot)), "")


def _write_caption(kind: FigureKind, panels: Sequence[Plot | IntervalPlot], intervals: Intervals) -> str:
    counts: list[int] = []
    for panel in panels:
        if isinstance(panel, IntervalPlot):
            counts += [mark.trials for mark in panel.marks]
        else:
            counts += [max(trials for _, _, trials in line.spreads) for line in panel.lines]
    low, high = min(counts), max(counts)
    trials = say_count(low, "trial") if low == high else f"{low} to {high} trials"
    titles = ", ".join(panel.title for panel in panels)
    point = "episode" if _list_units(panels) == ["episode"] else "point"
    onset = " around the onset (dashed line)" if _has_onset(panels) else f", {point} by {point}"
    sure = SURE.format(intervals=intervals)
    return CAPTIONS[kind].format(trials=trials, titles=titles, onset=onset, point=point, sure=sure)


def _list_units(panels: Sequence[Plot | IntervalPlot]) -> list[str]:
    return sorted({panel.unit for panel in panels if isinstance(panel, Plot)})


def _has_onset(panels: Sequence[Plot | IntervalPlot]) -> bool:
    return any(isinstance(panel, Plot) and panel.onset is not None for panel in panels)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
