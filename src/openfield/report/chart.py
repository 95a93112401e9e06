"""Curves of performance and belief as small inline SVG drawings.

Stands in report: cells -> curves -> page. Coordinates are whole numbers and paths are relative, to keep pages small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import TypeVar

import msgspec

from openfield.journal.reader import CellRecord, Episode
from openfield.metrics.stretches import mean, performances, split

T = TypeVar("T")

MOST_POINTS = 60
"""Longer curves are averaged in bins: more points than this cannot be told apart at the size drawn."""


class Point(msgspec.Struct, frozen=True):
    """One episode of a curve, or the mean of several."""

    at: int
    """Episodes from the onset; without an onset, from the start of the test."""
    performance: float | None
    belief: float | None
    detected: bool = False
    training: bool = False


Curve = tuple[Point, ...]


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
        """The drawing unit of an episode."""
        inner = self.width - self.left - self.right
        return round(self.left + inner * (at - self.first) / max(1, self.last - self.first))

    def y(self, value: float) -> int:
        """The drawing unit of a value from 0 to 1."""
        inner = self.height - self.top - self.bottom
        return round(self.top + inner * (1 - min(1.0, max(0.0, value))))


def trace_all(cells: Sequence[CellRecord]) -> list[Curve]:
    """Cells as curves, counted from the onset, or from the start of the test if nothing changes."""
    longest = max((len(cell.episodes) for cell in cells), default=0)
    step = max(1, math.ceil(longest / MOST_POINTS))
    return [_trace(cell, step) for cell in cells]


def average(curves: Sequence[Curve]) -> Curve:
    """The mean curve, where at least half of the curves have something to say."""
    columns: dict[int, list[Point]] = {}
    for point in (point for curve in curves for point in curve):
        columns.setdefault(point.at, []).append(point)
    return tuple(_merge(at, columns[at]) for at in sorted(columns) if 2 * len(columns[at]) >= len(curves))


def draw_panel(label: str, curves: Sequence[Curve], faint: int, onset: bool) -> str:
    """All trials of an agent: some of them faintly, their mean and its belief boldly, the onset marked."""
    ats = [point.at for curve in curves for point in curve]
    frame = Frame(min(ats), max(ats), 380, 190)
    middle = average(curves)
    lines = "".join(
        draw_line("f", frame, [(p.at, p.performance) for p in curve]) for curve in pick_evenly(curves, faint)
    )
    body = (
        _ground(frame, onset)
        + _test_start(frame, curves[0])
        + lines
        + _both_lines(frame, middle)
        + _end_labels(frame, middle)
    )
    return wrap_svg(frame, label, body)


def draw_trial(label: str, curve: Curve, onset: bool) -> str:
    """One trial: its performance, its belief, and a mark at each detection."""
    frame = Frame(curve[0].at, curve[-1].at, 232, 96, left=4, right=4, top=8, bottom=8)
    marks = "".join(_mark(frame, point, onset) for point in _first_detections(curve, onset))
    return wrap_svg(frame, label, _band(frame, onset) + _both_lines(frame, curve) + marks)


def draw_interval(low: float, middle: float, high: float, bounds: tuple[float, float]) -> str:
    """An interval as a bar with a tick at the mean, on the number's whole range; the style sheet draws it."""
    a, b, c = (round((value - bounds[0]) / (bounds[1] - bounds[0]), 3) for value in (low, middle, high))
    return f'<i class="iv{" z" if bounds[0] < 0 else ""}" style="--a:{a};--b:{b};--c:{c}"></i>'


def pick_evenly(items: Sequence[T], most: int) -> list[T]:
    """At most so many items, evenly spread from the first to the last."""
    if len(items) <= most:
        return list(items)
    if most < 2:
        return [items[len(items) // 2]] * most
    return [items[round(index * (len(items) - 1) / (most - 1))] for index in range(most)]


def _trace(cell: CellRecord, step: int) -> Curve:
    """One curve; episodes are averaged in bins of `step` that never cross the onset."""
    parts = split(cell)
    origin = len(parts.training) + (len(parts.before) if parts.after else 0)
    bins: dict[int, list[Episode]] = {}
    for index, episode in enumerate((*parts.training, *parts.before, *parts.after)):
        bins.setdefault((index - origin) // step * step, []).append(episode)
    return tuple(_summarise(at, episodes) for at, episodes in bins.items())


def _summarise(at: int, episodes: Sequence[Episode]) -> Point:
    beliefs = [episode.belief.highest for episode in episodes if episode.belief is not None]
    detected = any(episode.detected for episode in episodes if episode.phase == "test")
    return Point(at, mean(performances(episodes)), mean(beliefs), detected, episodes[-1].phase == "training")


def _merge(at: int, points: Sequence[Point]) -> Point:
    performance = mean([point.performance for point in points if point.performance is not None])
    return Point(at, performance, mean([point.belief for point in points if point.belief is not None]))


def wrap_svg(frame: Frame, label: str, body: str) -> str:
    """A drawing with its name."""
    name = escape(label)
    return f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img"><title>{name}</title>{body}</svg>'


def _ground(frame: Frame, onset: bool) -> str:
    """Grid lines at 0, ½ and 1, the stretch after the onset tinted, and the ends of both axes."""
    right = frame.x(frame.last)
    grid = "".join(
        f'<path class="g" d="M{frame.left} {frame.y(value)}H{right}"/>'
        f'<text class="t e" x="{frame.left - 5}" y="{frame.y(value) + 3}">{text}</text>'
        for value, text in ((0.0, "0"), (0.5, ".5"), (1.0, "1"))
    )
    ends = [0] * onset + [at for at in (frame.first, frame.last) if abs(frame.x(at) - frame.x(0)) > 20 or not onset]
    ticks = "".join(
        f'<text class="t m" x="{frame.x(at)}" y="{frame.height - 4}">{_signed(at, onset)}</text>' for at in ends
    )
    return _band(frame, onset) + grid + ticks


def _test_start(frame: Frame, curve: Curve) -> str:
    """A hairline where training ends; its name only where the onset's leaves room."""
    trained = [point.at for point in curve if point.training]
    if not trained or len(trained) == len(curve):
        return ""
    x = (frame.x(trained[-1]) + frame.x(next(point.at for point in curve if not point.training))) // 2
    name = f'<text class="t m" x="{x}" y="{frame.y(1) - 8}">test</text>' if abs(x - frame.x(0)) > 32 else ""
    return f'<path class="s" d="M{x} {frame.y(1) - 5}V{frame.y(0)}"/>{name}'


def _band(frame: Frame, onset: bool) -> str:
    """The stretch after the onset, with a line where it starts."""
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
    """A path through the points that have a value; gaps are bridged."""
    found = [(frame.x(at), frame.y(value)) for at, value in points if value is not None]
    if not found:
        return ""
    steps = "".join(f"l{x - u} {y - v}" for (u, v), (x, y) in pairwise(found))
    return f'<path class="{kind}" d="M{found[0][0]} {found[0][1]}{(steps or "h2").replace(" -", "-")}"/>'


def _end_labels(frame: Frame, curve: Curve) -> str:
    """The names of both lines at their ends, pushed apart where they would touch."""
    ends = [
        (frame.y(value), kind, name)
        for kind, name, value in (
            ("p", "performance", next((p.performance for p in reversed(curve) if p.performance is not None), None)),
            ("b", "belief", next((p.belief for p in reversed(curve) if p.belief is not None), None)),
        )
        if value is not None
    ]
    return "".join(
        f'<text class="l {kind}" x="{frame.x(frame.last) + 6}" y="{y + 4}">{name}</text>'
        for y, kind, name in _apart(ends, frame.y(0) - 4)
    )


def _apart(ends: list[tuple[int, str, str]], floor: int, least: int = 13) -> list[tuple[int, str, str]]:
    """Labels from the lowest up, none below the floor, no two nearer than `least`."""
    placed: list[tuple[int, str, str]] = []
    for y, kind, name in sorted(ends, reverse=True):
        placed.append((min(y, placed[-1][0] - least if placed else floor), kind, name))
    return placed


def _first_detections(curve: Curve, onset: bool) -> list[Point]:
    """The first detection after the onset, and every one before it."""
    said = [point for point in curve if point.detected]
    late = [point for point in said if onset and point.at >= 0]
    return [point for point in said if not onset or point.at < 0] + late[:1]


def _mark(frame: Frame, point: Point, onset: bool) -> str:
    """A filled triangle for a detection, a hollow one for a false alarm."""
    right = onset and point.at >= 0
    words = f"detected after {point.at}" if right else "false alarm"
    return (
        f'<path class="{"d" if right else "d h"}" d="M{frame.x(point.at)} {frame.height - 9}l4 7h-8z">'
        f"<title>{words}</title></path>"
    )


def _signed(at: int, onset: bool) -> str:
    """An episode's number, with a plus where an onset divides them."""
    return (f"{at:+d}" if at and onset else str(at)).replace("-", "−")
