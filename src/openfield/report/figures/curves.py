"""Curves of performance and belief, counted from the onset: in episodes, or in steps where the test counts those.

Stands in report: cells -> curves -> drawing.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from openfield.journal.reader import CellRecord, Episode
from openfield.metrics.failures import counts_steps
from openfield.metrics.performance import has_borders, mean, performances, split_periods
from openfield.metrics.summary import score_trials
from openfield.report.addresses import trial_address

T = TypeVar("T")

MAX_POINTS = 60
"""Longer curves are averaged in bins: more points cannot be distinguished at the size drawn."""
COLOURS = 8
"""How many colours of agents there are; most eyes tell them apart (`page.css`)."""
MAX_SINGLES = 24
"""How many single trials of an agent are drawn."""
MIN_BEFORE, MAX_BEFORE = 40, 3
"""Episodes before the onset that are drawn in any case, and how many times those after it at most."""


class Point(msgspec.Struct, frozen=True):
    """One episode of a curve, or the mean of several."""

    at: int
    """Episodes or steps from the onset; without an onset, from the start of the test."""
    performance: float | None
    belief: float | None
    detected: bool = False
    training: bool = False
    strength: float | None = None
    """How strong the change is; None where it comes at once and stays."""


Curve = tuple[Point, ...]


class SingleCurve(msgspec.Struct, frozen=True):
    """A trial that an agent played, episode by episode."""

    cell: str
    address: str
    points: Curve


class AgentCurves(msgspec.Struct, frozen=True):
    """The trials of an agent in a scenario, counted from the onset: their mean, and some of them one by one."""

    agent: str
    name: str
    """Its name in drawings."""
    control: bool
    trials: int
    mean: Curve
    singles: list[SingleCurve]
    """From the worst to the best, evenly picked where there are many."""
    onset: bool
    """Whether the world changes in them."""
    early: int = 0
    """How many trials ended before the onset, and are not among them."""
    unchanged: int = 0
    """How many twins in which nothing changes are not among them."""
    unit: str = "episode"
    """What is counted from the onset: `episode`, or `step` where the test counts steps."""
    colour: int = 0
    """The number of its colour, below `COLOURS`: the same on all pages of a run."""


def choose_colours(agents: Iterable[str]) -> dict[str, int]:
    """Return a colour for each agent: the one that its name stands for, or the next that is free.

    So an agent keeps its colour on all pages of a run and, unless others have taken it, in other runs too.
    """
    chosen: dict[str, int] = {}
    for agent in sorted(agents):
        own = zlib.crc32(agent.encode()) % COLOURS
        free = ((own + step) % COLOURS for step in range(COLOURS))
        taken = {*chosen.values()} if len(chosen) < COLOURS else set()
        chosen[agent] = next(colour for colour in free if colour not in taken)
    return chosen


def trace_agent(agent: str, name: str, cells: Sequence[CellRecord], run: str, colour: int = 0) -> AgentCurves | None:
    """Return the curves of an agent in a scenario; trials that do not change are left out if some do.

    Args:
        agent: The agent.
        name: Its name in drawings.
        cells: Its cells in the scenario.
        run: The key of the run that they are in.
        colour: The number of its colour.
    """
    played = [cell for cell in cells if cell.episodes]
    chosen, changed = pick_drawn(played)
    if not chosen:
        return None
    curves = trace_all(chosen)
    scores = [next(iter(score_trials([cell]).values()), -1.0) for cell in chosen]
    ranked = pick_evenly(sorted(range(len(chosen)), key=lambda index: (scores[index], index)), MAX_SINGLES)
    unchanged = sum(cell.trial.is_unchanged_twin for cell in played) if changed else 0
    return AgentCurves(
        agent=agent,
        colour=colour,
        name=name,
        control=all(cell.control for cell in chosen),
        trials=len(chosen),
        mean=average_curves(curves),
        singles=[SingleCurve(chosen[at].id, trial_address(run, chosen[at].id), curves[at]) for at in ranked],
        onset=changed,
        early=len(played) - len(chosen) - unchanged,
        unchanged=unchanged,
        unit=name_unit(chosen),
    )


def name_unit(cells: Sequence[CellRecord]) -> str:
    """Return what is counted from the onset in the curves of cells: an episode or a step."""
    return "step" if counts_steps(cells[0].trial) else "episode"


def pick_drawn(cells: Iterable[CellRecord]) -> tuple[list[CellRecord], bool]:
    """Return the cells that curves are of, and whether the world changes in them: others only where it never does."""
    played = [cell for cell in cells if cell.episodes]
    changed = [cell for cell in played if any(episode.novel for episode in cell.episodes)]
    return changed or played, bool(changed)


def trace_all(cells: Sequence[CellRecord]) -> list[Curve]:
    """Return cells as curves, counted from the onset, or from the start of the test if nothing changes."""
    longest = max((sum(_measure(cell, episode) for episode in cell.episodes) for cell in cells), default=0)
    width = max(1, math.ceil(longest / MAX_POINTS))
    return [_trace(cell, width) for cell in cells]


def average_curves(curves: Sequence[Curve]) -> Curve:
    """Return the mean curve, where at least half of the curves have a point."""
    columns: dict[int, list[Point]] = {}
    for point in (point for curve in curves for point in curve):
        columns.setdefault(point.at, []).append(point)
    return tuple(_merge(at, columns[at]) for at in sorted(columns) if 2 * len(columns[at]) >= len(curves))


def pick_evenly(items: Sequence[T], limit: int) -> list[T]:
    """Pick at most `limit` items, evenly spread from the first to the last."""
    if len(items) <= limit:
        return list(items)
    if limit < 2:
        return [items[len(items) // 2]] * limit
    return [items[round(index * (len(items) - 1) / (limit - 1))] for index in range(limit)]


def limit_range(ats: Sequence[int], onset: bool) -> tuple[int, int]:
    """Return the first and last episode to draw; where those before the onset are many times more, only the last."""
    first, last = min(ats, default=0), max(ats, default=0)
    return (max(first, -max(MIN_BEFORE, MAX_BEFORE * last)) if onset and last >= 0 else first), last


def find_detections(curve: Curve, onset: bool) -> list[Point]:
    """Return the first detection after the onset, and every one before it, which is a false alarm."""
    said = [point for point in curve if point.detected]
    late = [point for point in said if onset and point.at >= 0]
    return [point for point in said if not onset or point.at < 0] + late[:1]


def _measure(cell: CellRecord, episode: Episode) -> int:
    """Return how long an episode is on the axis of its curve."""
    return max(1, episode.steps) if counts_steps(cell.trial) else 1


def _trace(cell: CellRecord, width: int) -> Curve:
    """Return one curve, in bins that never cross the onset: each is the mean of the episodes that reach into it.

    Where only tasks change, beliefs have no marks.
    """
    parts, marked = split_periods(cell), not has_borders(cell.trial)
    early = (*parts.training, *(parts.before if parts.after else ()))
    start = -sum(_measure(cell, episode) for episode in early)
    bins: dict[int, list[Episode]] = {}
    detections: set[int] = set()
    for episode in (*parts.training, *parts.before, *parts.after):
        end = start + _measure(cell, episode)
        for place in range(start // width, (end - 1) // width + 1):
            bins.setdefault(place * width, []).append(episode)
        if marked and episode.detected and episode.phase == "test":
            detections.add((end - 1) // width * width)
        start = end
    stated = _list_stated(cell, -sum(_measure(cell, episode) for episode in early))
    return tuple(
        Point(
            at,
            mean(performances(episodes)),
            mean(_list_beliefs(episodes) if stated is None else _find_last(stated, at + width)),
            at in detections,
            episodes[-1].phase == "training",
            mean([episode.strength for episode in episodes if episode.strength is not None]),
        )
        for at, episodes in bins.items()
    )


def _list_stated(cell: CellRecord, start: int) -> list[tuple[int, float]] | None:
    """Return the beliefs of a cell with the steps from the onset at which they were stated, if steps are counted."""
    if cell.stated is None or not counts_steps(cell.trial):
        return None
    return [(start + steps, belief) for steps, belief in cell.stated.beliefs]


def _list_beliefs(episodes: Sequence[Episode]) -> list[float]:
    return [episode.belief.highest for episode in episodes if episode.belief is not None]


def _find_last(stated: Sequence[tuple[int, float]], end: int) -> list[float]:
    """Return the last belief that was stated up to a step, if there is one."""
    return [belief for steps, belief in stated if steps <= end][-1:]


def _merge(at: int, points: Sequence[Point]) -> Point:
    performance = mean([point.performance for point in points if point.performance is not None])
    belief = mean([point.belief for point in points if point.belief is not None])
    strength = mean([point.strength for point in points if point.strength is not None])
    return Point(at, performance, belief, training=all(point.training for point in points), strength=strength)
