"""Charts of performance and belief, episode by episode, as small inline SVG drawings.

Stands in report: cells -> curves -> page. Coordinates are whole numbers and paths are relative, to keep pages small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import TypeVar

import msgspec

from openfield.journal.reader import CellRecord, Episode
from openfield.metrics.curricula.instances import has_borders
from openfield.metrics.performance import mean, performances, split_periods
from openfield.metrics.summary import score_trials

T = TypeVar("T")

MAX_POINTS = 60
"""Longer curves are averaged in bins: more points cannot be told apart at the size drawn."""
KEY = (
    ('<path class="p" d="M1 5h28"/>', "performance, mean over trials"),
    ('<path class="f" style="opacity:.5" d="M1 3h28M1 7h28"/>', "single trials"),
    ('<path class="b" d="M1 5h28"/>', "belief that the world has changed"),
)
MAX_TOGETHER = 8
"""Agents whose lines are drawn in one panel: more cannot be told apart."""
TOGETHER = (("p", "performance", "Performance"), ("b", "belief", "Belief that the world has changed"))
ONSET = ('<path class="o" d="M15 0v10"/>', "onset, from which episodes are counted")
DETECTION = ('<path class="d" d="M15 1l4 7h-8z"/>', "first detection after the onset")
ALARM = ('<path class="d h" d="M15 1l4 7h-8z"/>', "false alarm")


class Point(msgspec.Struct, frozen=True):
    """One episode of a curve, or the mean of several."""

    at: int
    """Episodes from the onset; without an onset, from the start of the test."""
    performance: float | None
    belief: float | None
    detected: bool = False
    training: bool = False


Curve = tuple[Point, ...]
Place = tuple[int, float | None]
"""An episode and a value there."""


class Frame(msgspec.Struct, frozen=True):
    """Where curves are drawn: the range of episodes, and the size in drawing units."""

    first: int
    last: int
    width: int
    height: int
    left: int = 26
    right: int = 84
    top: int = 16
    bottom: int = 18

    def x(self, at: float) -> int:
        """Return the horizontal position of an episode."""
        inner = self.width - self.left - self.right
        return round(self.left + inner * (at - self.first) / max(1, self.last - self.first))

    def y(self, value: float) -> int:
        """Return the vertical position of a value from 0 to 1."""
        inner = self.height - self.top - self.bottom
        return round(self.top + inner * (1 - min(1.0, max(0.0, value))))


def draw_curves(played: Mapping[str, Sequence[CellRecord]], faint: int, single: int) -> str:
    """Draw small multiples of the agents' scored cells: all trials in one panel, then some trials one by one.

    A panel shows at most `faint` single trials; at most `single` of each agent are drawn one by one.
    """
    traced = [(agent, cells, trace_all(cells)) for agent, cells in played.items() if cells]
    if not traced:
        return ""
    panels = _draw_together(traced) + "".join(
        _draw_agent(agent, cells, curves, faint) for agent, cells, curves in traced
    )
    singles = "".join(_draw_singles(agent, cells, curves, single) for agent, cells, curves in traced if single)
    key = draw_key(*KEY, *([ONSET] if any(_has_onset(cells) for _, cells, _ in traced) else []))
    return f'<h3>Episode by episode</h3>{key}<div class="panels">{panels}</div>{singles}'


def trace_all(cells: Sequence[CellRecord]) -> list[Curve]:
    """Return cells as curves, counted from the onset, or from the start of the test if nothing changes."""
    longest = max((len(cell.episodes) for cell in cells), default=0)
    step = max(1, math.ceil(longest / MAX_POINTS))
    return [_trace(cell, step) for cell in cells]


def average(curves: Sequence[Curve]) -> Curve:
    """Return the mean curve, where at least half of the curves have a point."""
    columns: dict[int, list[Point]] = {}
    for point in (point for curve in curves for point in curve):
        columns.setdefault(point.at, []).append(point)
    return tuple(_merge(at, columns[at]) for at in sorted(columns) if 2 * len(columns[at]) >= len(curves))


def draw_panel(label: str, curves: Sequence[Curve], faint: int, onset: bool) -> str:
    """Draw all trials of an agent: at most `faint` single ones, their mean performance and belief, and the onset."""
    ats = [point.at for curve in curves for point in curve]
    frame = Frame(min(ats), max(ats), 380, 190)
    middle = average(curves)
    lines = "".join(
        draw_line("f", frame, [(p.at, p.performance) for p in curve]) for curve in pick_evenly(curves, faint)
    )
    ground = _ground(frame, onset) + _test_start(frame, curves[0])
    return wrap_svg(frame, label, ground + lines + _both_lines(frame, middle) + _end_labels(frame, middle))


def draw_trial(label: str, curve: Curve, onset: bool) -> str:
    """Draw one trial: its performance, its belief, and a mark at each detection."""
    frame = Frame(curve[0].at, curve[-1].at, 232, 96, left=4, right=4, top=8, bottom=8)
    marks = "".join(_mark(frame, point, onset) for point in _first_detections(curve, onset))
    return wrap_svg(frame, label, _band(frame, onset) + _both_lines(frame, curve) + marks)


def draw_interval(low: float, middle: float, high: float, bounds: tuple[float, float]) -> str:
    """Draw an interval as a bar with a tick at the mean, on the number's whole range; the style sheet draws it."""
    a, b, c = (round((value - bounds[0]) / (bounds[1] - bounds[0]), 3) for value in (low, middle, high))
    return f'<i class="iv{" z" if bounds[0] < 0 else ""}" style="--a:{a};--b:{b};--c:{c}"></i>'


def pick_evenly(items: Sequence[T], most: int) -> list[T]:
    """Pick at most `most` items, evenly spread from the first to the last."""
    if len(items) <= most:
        return list(items)
    if most < 2:
        return [items[len(items) // 2]] * most
    return [items[round(index * (len(items) - 1) / (most - 1))] for index in range(most)]


def _trace(cell: CellRecord, step: int) -> Curve:
    """Return one curve. Episodes are averaged in bins of `step` that never cross the onset.

    Where only tasks change, a belief is no alarm and has no mark.
    """
    parts, marked = split_periods(cell), not has_borders(cell.trial)
    origin = len(parts.training) + (len(parts.before) if parts.after else 0)
    bins: dict[int, list[Episode]] = {}
    for index, episode in enumerate((*parts.training, *parts.before, *parts.after)):
        bins.setdefault((index - origin) // step * step, []).append(episode)
    return tuple(_summarise(at, episodes, marked) for at, episodes in bins.items())


def _summarise(at: int, episodes: Sequence[Episode], marked: bool) -> Point:
    beliefs = [episode.belief.highest for episode in episodes if episode.belief is not None]
    detected = any(episode.detected for episode in episodes if episode.phase == "test") and marked
    return Point(at, mean(performances(episodes)), mean(beliefs), detected, episodes[-1].phase == "training")


def _merge(at: int, points: Sequence[Point]) -> Point:
    performance = mean([point.performance for point in points if point.performance is not None])
    return Point(at, performance, mean([point.belief for point in points if point.belief is not None]))


def wrap_svg(frame: Frame, label: str, body: str) -> str:
    """Return a drawing with its name."""
    name = escape(label)
    return f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img"><title>{name}</title>{body}</svg>'


def _ground(frame: Frame, onset: bool) -> str:
    """Draw the grid, the tinted stretch after the onset, and the ends of both axes."""
    ends = [0] * onset + [at for at in (frame.first, frame.last) if abs(frame.x(at) - frame.x(0)) > 20 or not onset]
    ticks = "".join(
        f'<text class="t m" x="{frame.x(at)}" y="{frame.height - 4}">{_signed(at, onset)}</text>' for at in ends
    )
    return _band(frame, onset) + draw_grid(frame) + ticks


def draw_grid(frame: Frame) -> str:
    """Draw lines at 0, ½ and 1, with their numbers."""
    right = frame.x(frame.last)
    return "".join(
        f'<path class="g" d="M{frame.left} {frame.y(value)}H{right}"/>'
        f'<text class="t e" x="{frame.left - 5}" y="{frame.y(value) + 3}">{text}</text>'
        for value, text in ((0.0, "0"), (0.5, ".5"), (1.0, "1"))
    )


def _test_start(frame: Frame, curve: Curve) -> str:
    """Draw a hairline where training ends, with its name unless the onset is too near."""
    trained = [point.at for point in curve if point.training]
    if not trained or len(trained) == len(curve):
        return ""
    x = (frame.x(trained[-1]) + frame.x(next(point.at for point in curve if not point.training))) // 2
    name = f'<text class="t m" x="{x}" y="{frame.y(1) - 8}">test</text>' if abs(x - frame.x(0)) > 32 else ""
    return f'<path class="s" d="M{x} {frame.y(1) - 5}V{frame.y(0)}"/>{name}'


def _band(frame: Frame, onset: bool) -> str:
    """Draw the stretch after the onset, with a line where it starts."""
    if not onset:
        return ""
    x, top, bottom = frame.x(0), frame.y(1), frame.y(0)
    band = f'<path class="a" d="M{x} {top}H{frame.x(frame.last)}V{bottom}H{x}z"/>'
    line = f'<path class="o" d="M{x} {top - 5}V{bottom}"/>'
    return band + line + (f'<text class="t m" x="{x}" y="{top - 8}">onset</text>' if frame.top > 12 else "")


def _both_lines(frame: Frame, curve: Curve) -> str:
    performance = draw_line("p", frame, [(point.at, point.performance) for point in curve])
    return draw_line("b", frame, [(point.at, point.belief) for point in curve]) + performance


def draw_line(kind: str, frame: Frame, points: Iterable[tuple[float, float | None]]) -> str:
    """Draw a path through the points that have a value; gaps are bridged."""
    found = [(frame.x(at), frame.y(value)) for at, value in points if value is not None]
    if not found:
        return ""
    steps = "".join(f"l{x - u} {y - v}" for (u, v), (x, y) in pairwise(found))
    return f'<path class="{kind}" d="M{found[0][0]} {found[0][1]}{(steps or "h2").replace(" -", "-")}"/>'


def _end_labels(frame: Frame, curve: Curve) -> str:
    """Write the names of both lines at their ends, pushed apart where they would touch."""
    ends = []
    for name in ("performance", "belief"):
        values = [value for point in curve if (value := getattr(point, name)) is not None]
        ends += [(frame.y(value), name[0], name) for value in values[-1:]]
    return "".join(
        f'<text class="l {kind}" x="{frame.x(frame.last) + 6}" y="{y + 4}">{name}</text>'
        for y, kind, name in _apart(ends, frame.y(0) - 4)
    )


def _apart(ends: list[tuple[int, str, str]], floor: int, least: int = 13) -> list[tuple[int, str, str]]:
    """Place labels from the lowest up: none below the floor, no two nearer than `least`."""
    placed: list[tuple[int, str, str]] = []
    for y, kind, name in sorted(ends, reverse=True):
        placed.append((min(y, placed[-1][0] - least if placed else floor), kind, name))
    return placed


def _first_detections(curve: Curve, onset: bool) -> list[Point]:
    """Return the first detection after the onset, and every one before it."""
    said = [point for point in curve if point.detected]
    late = [point for point in said if onset and point.at >= 0]
    return [point for point in said if not onset or point.at < 0] + late[:1]


def _mark(frame: Frame, point: Point, onset: bool) -> str:
    """Draw a filled triangle for a detection, a hollow one for a false alarm."""
    kind, words = ("d", f"detected after {point.at}") if onset and point.at >= 0 else ("d h", "false alarm")
    path = f"M{frame.x(point.at)} {frame.height - 9}l4 7h-8z"
    return f'<path class="{kind}" d="{path}"><title>{words}</title></path>'


def _signed(at: int, onset: bool) -> str:
    """Return an episode's number, with a plus where an onset divides them."""
    return (f"{at:+d}" if at and onset else str(at)).replace("-", "−")


def draw_key(*items: tuple[str, str]) -> str:
    """Draw what the marks of a chart mean."""
    drawn = (f'<li><svg viewBox="0 0 30 10">{mark}</svg>{meaning}</li>' for mark, meaning in items)
    return f'<ul class="key">{"".join(drawn)}</ul>'


def _draw_together(traced: Sequence[tuple[str, Sequence[CellRecord], Sequence[Curve]]]) -> str:
    """Draw the mean curves of all agents in one panel: their performance, and in another one their beliefs."""
    if len(traced) < 2:
        return ""
    onset = any(_has_onset(cells) for _, cells, _ in traced)
    means = [(agent, average(_align(cells, curves, onset))) for agent, cells, curves in traced[:MAX_TOGETHER]]
    left_out = f"; {len(traced) - MAX_TOGETHER} more have panels of their own" if len(traced) > MAX_TOGETHER else ""
    figures = []
    for kind, field, title in TOGETHER:
        lines = [(agent, [(each.at, getattr(each, field)) for each in curve]) for agent, curve in means]
        known = [(agent, line) for agent, line in lines if any(value is not None for _, value in line)]
        if known:
            which = f"mean over trials of {len(known)} agent{'s' if len(known) > 1 else ''}{left_out}"
            drawing = _draw_lines(f"{title}, {which}", kind, known, onset)
            caption = f"<figcaption><b>{title}</b> <small>{which}</small></figcaption>"
            figures.append(f'<figure class="together">{caption}{drawing}</figure>')
    return "".join(figures)


def _draw_lines(label: str, kind: str, lines: Sequence[tuple[str, Sequence[Place]]], onset: bool) -> str:
    """Draw one line for each agent, with its name at the end."""
    ats = [at for _, line in lines for at, _ in line]
    frame = Frame(min(ats), max(ats), 380, 190)
    drawn, ends = _ground(frame, onset), []
    for number, (agent, line) in enumerate(lines):
        drawn += draw_line(f"{kind} k{number}", frame, line)
        values = [value for _, value in line if value is not None]
        ends.append((frame.y(values[-1]), kind, agent if len(agent) <= 13 else f"{agent[:12]}…"))
    labels = "".join(
        f'<text class="l {mark}" x="{frame.x(frame.last) + 6}" y="{y + 4}">{escape(name)}</text>'
        for y, mark, name in _apart(ends, frame.y(0) - 4)
    )
    return wrap_svg(frame, label, drawn + labels)


def _align(cells: Sequence[CellRecord], curves: Sequence[Curve], onset: bool) -> list[Curve]:
    """Return the curves that fit the axis: those with an onset, if there are any."""
    aligned = [curve for cell, curve in zip(cells, curves, strict=True) if _has_onset([cell]) == onset]
    return aligned or list(curves)


def _draw_agent(agent: str, cells: Sequence[CellRecord], curves: Sequence[Curve], faint: int) -> str:
    """Draw an agent's panel. Trials without an onset do not fit its axis; the caption counts them."""
    onset = _has_onset(cells)
    aligned = [curve for cell, curve in zip(cells, curves, strict=True) if _has_onset([cell]) == onset]
    unchanged = sum(cell.trial.is_unchanged_twin for cell in cells) if onset else 0
    drawn, early = min(faint, len(aligned)), len(curves) - len(aligned) - unchanged
    which = f"{drawn} trials" if drawn == len(aligned) else f"mean of {len(aligned)} trials, {drawn} of them drawn"
    which += f"; {early} more ended before the onset" if early else ""
    which += f"; {unchanged} more are unchanged" if unchanged else ""
    drawing = draw_panel(f"{agent}: performance and belief, {which}", aligned, faint, onset)
    return f"<figure><figcaption><b>{escape(agent)}</b> <small>{which}</small></figcaption>{drawing}</figure>"


def _draw_singles(agent: str, cells: Sequence[CellRecord], curves: Sequence[Curve], most: int) -> str:
    """Draw trials from the worst to the best, evenly picked if there are too many."""
    scores = [next(iter(score_trials([cell]).values()), -1.0) for cell in cells]
    ranked = sorted(range(len(cells)), key=lambda index: (scores[index], index))
    chosen = pick_evenly(ranked, most)
    shown = f"{len(chosen)} of {len(cells)}, evenly picked" if len(chosen) < len(cells) else f"all {len(cells)}"
    figures = "".join(_draw_single(cells[index], curves[index]) for index in chosen)
    summary = f"<b>{escape(agent)}</b>, trial by trial <small>from the worst to the best: {shown}</small>"
    alarms = [] if all(has_borders(cell.trial) for cell in cells) else [ALARM]
    marks = draw_key(*([DETECTION] if _has_onset(cells) else []), *alarms)
    return f'<details><summary>{summary}</summary>{marks}<div class="trials">{figures}</div></details>'


def _draw_single(cell: CellRecord, curve: Curve) -> str:
    words = _say_trial(cell)
    name = f"<b>{escape(cell.trial.id)}</b>" + (f" repeat {cell.repeat}" if cell.repeat else "")
    drawing = draw_trial(words, curve, _has_onset([cell]))
    return f"<figure><figcaption>{name} · {escape(words)}</figcaption>{drawing}</figure>"


def _say_trial(cell: CellRecord) -> str:
    """Return in a few words how the trial went."""
    parts = split_periods(cell)
    first = next((index for index, episode in enumerate(parts.after) if episode.detected), None)
    alarms = 0 if has_borders(cell.trial) else sum(episode.detected for episode in parts.before)
    words = ["unchanged"] if cell.trial.is_unchanged_twin else []
    words += ["not detected" if first is None else f"detected after {first}"] if parts.after else []
    words += [f"{alarms} false alarm{'s' if alarms > 1 else ''}"] if alarms else []
    score = next(iter(score_trials([cell]).values()), None)
    words += [] if score is None else [f"performance {score:.2f}"]
    return ", ".join(words + (["truncated"] if cell.outcome == "truncated" else [])) or "nothing measured"


def _has_onset(cells: Sequence[CellRecord]) -> bool:
    return any(split_periods(cell).after for cell in cells)
