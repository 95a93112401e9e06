"""All drawings of pages as SVG: curves around the onset, intervals, differences, plots, stages, and those of a study.

Values come in as data (`figures/`), marks go out. Colours and lines are classes of the style sheet, and positions are
attributes, so that no drawing needs a style of its own; those of a study are also files, and carry their colours with
them. Where there are addresses, marks lead to their sources, and curves carry their values in `data-curves`,
from which the viewer's `charts.js` shows those under the pointer. Coordinates are whole numbers and paths are relative,
to keep pages small.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from markupsafe import Markup, escape

from openfield.metrics.stats import Estimate, Range, two_sided
from openfield.report.figures import Bar, Dot, IntervalPlot, Mark, Place, Plot
from openfield.report.figures.curriculum import AgentTasks, CourseStep
from openfield.report.figures.curves import (
    AgentCurves,
    Curve,
    Point,
    SingleCurve,
    find_detections,
    limit_range,
    pick_evenly,
)

if TYPE_CHECKING:
    from openfield.objectives.study.study import StudyRow

MAX_OVERLAID = 10
"""How many agents one drawing shows: there are no more different kinds of line."""
MAX_FAINT = 12
"""How many single trials of an agent stand behind the means of several agents."""
MAX_UNCROWDED = 3
"""Of more agents single trials are seen only while one of them is pointed at."""
MAX_MARGIN = 210
"""The most room for names beside the lines, in units of the drawing."""
MAX_NAME, MAX_TASK = 24, 16
"""Letters of an agent's name beside its line, and of a task's beside its row."""
LABEL_GAP = 15
"""The least distance of two labels, in units of the drawing."""
RADIUS, MARGIN = 3, 4
"""The size of the dot of an estimate, and the room beside its range, so that a dot at its end is whole."""
ROW = 15
"""The height of a task's row in the picture of a curriculum."""
MAX_SPREAD, STEP = 0.6, 0.15
"""Over which part of a stage's width its agents are spread at most, and how far apart two of them are: marks must not
cover each other."""
HEADROOM = 1.08
"""The top of a plot of objectives, in parts of the highest value."""
SHAPES = {"w": "M1 3h14v5h14", "w q": "M15 5h0", "o": "M15 0v10", "d": "M15 1l4 7h-8z", "d h": "M15 1l4 7h-8z"}
"""Samples of marks that are not a straight line, for a key."""
INK, BLUE, ORANGE = "currentColor", "#0072b2", "#d55e00"
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's colours, which most eyes tell apart, for drawings that are files of their own."""


class Frame(msgspec.Struct, frozen=True):
    """Where something is drawn: the range of its axis, and the size in drawing units."""

    first: float
    last: float
    width: int
    height: int
    left: int = 26
    right: int = 84
    top: int = 16
    bottom: int = 18

    def x(self, at: float) -> int:
        """Return the horizontal position of a place on the axis."""
        inner = self.width - self.left - self.right
        return round(self.left + inner * (at - self.first) / max(1, self.last - self.first))

    def y(self, value: float) -> int:
        """Return the vertical position of a value from 0 to 1."""
        inner = self.height - self.top - self.bottom
        return round(self.top + inner * (1 - min(1.0, max(0.0, value))))


# Curves around the onset


def draw_overlay(curves: Sequence[AgentCurves], label: str, sources: Mapping[str, str]) -> Markup:
    """Draw the agents of a scenario in one drawing: performance above, belief below, both from the onset.

    Args:
        curves: The trials of each agent.
        label: A description of the drawing.
        sources: Agent -> where its trials are listed.
    """
    shown = [each for each in curves if each.mean][:MAX_OVERLAID]
    if not shown:
        return Markup("")
    first, last = share_range(shown)
    margin = min(MAX_MARGIN, 24 + 8 * max(len(each.name) for each in shown))
    names = LABEL_GAP * len(shown)  # so that all find a place beside the lines
    has_beliefs = any(point.belief is not None for each in shown for point in each.mean)
    axis = 0 if has_beliefs else 14  # without a panel below, the axis of episodes is here
    frames = [
        Frame(first, last, 720, max(178, names + 34) + axis, 30, margin, 22, 8 + axis),
        Frame(first, last, 720, max(130, names + 48), 30, margin, 22, 22),
    ]
    onset = any(each.onset for each in shown)
    body = _draw_panel(frames[0], shown, "performance", onset, not has_beliefs, sources)
    height = frames[0].height + (frames[1].height if has_beliefs else 0)
    if has_beliefs:
        lower = _draw_panel(frames[1], shown, "belief", onset, True, sources)
        body += f'<g transform="translate(0 {frames[0].height})">{lower}</g>'
    return _wrap_curves(body, frames[0], height, label, shown, "crowded" if len(shown) > MAX_UNCROWDED else "")


def draw_agent(curves: AgentCurves, bounds: tuple[int, int], faint: int, label: str) -> Markup:
    """Draw one agent: its single trials, and the means of performance and belief.

    Args:
        curves: The trials of the agent.
        bounds: The first and last episode, which several drawings share.
        faint: How many single trials are drawn at most.
        label: A description of the drawing.
    """
    frame = Frame(*bounds, 420, 200, 30, 14, 22, 22)
    lines = "".join(_draw_single(frame, each) for each in pick_evenly(curves.singles, faint))
    mean = _cut(curves.mean, frame)
    body = (
        _draw_ground(frame, curves.onset, True, strength=mean)
        + _draw_test_start(frame, mean)
        + lines
        + _draw_both(frame, mean)
    )
    return _wrap_curves(body, frame, frame.height, label, [curves])


def share_range(curves: Sequence[AgentCurves]) -> tuple[int, int]:
    """Return the episodes that are drawn; where those before the onset are many times more, only the last of them."""
    return limit_range([point.at for each in curves for point in each.mean], any(each.onset for each in curves))


def draw_spark(curve: Curve, changes: bool) -> Markup:
    """Draw a trial as a small line of performance and one of belief, with the onset if the world changes in it.

    A filled mark is the first detection after the onset, a hollow one a false alarm.
    """
    if not curve:
        return Markup("")
    frame = Frame(curve[0].at, curve[-1].at, 120, 26, 2, 2, 3, 3)
    body = _draw_strength(frame, curve) + (f'<path class="o" d="M{frame.x(0)} 0V26"/>' if changes else "")
    body += _draw_both(frame, curve)
    body += "".join(
        f'<path class="{"d" if changes and point.at >= 0 else "d h"}" d="M{frame.x(point.at)} 19l3 6h-6z"/>'
        for point in find_detections(curve, changes)
    )
    return Markup(f'<svg class="spark" viewBox="0 0 120 26" aria-hidden="true">{body}</svg>')  # noqa: S704 - only numbers


def _draw_panel(
    frame: Frame, shown: Sequence[AgentCurves], what: str, onset: bool, ticks: bool, sources: Mapping[str, str]
) -> str:
    """Draw one quantity of all agents, each line with its name at the end, which leads to its trials."""
    kind, lines, ends = what[0], "", []
    for slot, each in enumerate(shown):
        chosen = pick_evenly(each.singles, MAX_FAINT) if what == "performance" else []
        faint = "".join(_draw_single(frame, single) for single in chosen if single.address)
        values = _values(_cut(each.mean, frame), what)
        known = [(at, value) for at, value in values if value is not None]
        if known:
            ends.append((frame.y(known[-1][1]), f"own c{each.colour}", each.agent, each.name))
            line = _draw_line(f"{kind} slot{slot}", frame, values)
            lines += f'<g class="agent own c{each.colour}" data-agent="{escape(each.agent)}">{faint}{line}</g>'
    name = f'<text class="quantity {kind}" x="{frame.left}" y="{frame.top - 8}">{what}</text>'
    ground = _draw_ground(frame, onset, ticks, named=what == "performance", strength=_cut(shown[0].mean, frame))
    return ground + lines + _label_ends(frame, ends, kind, sources) + name


def _draw_ground(frame: Frame, onset: bool, ticks: bool, named: bool = True, strength: Curve = ()) -> str:
    """Draw the grid, the stretch after the onset or the strength of the change, and the axis of episodes.

    Args:
        frame: Where.
        onset: Whether there is an onset.
        ticks: Whether the axis has numbers.
        named: Whether the onset has its name; else its line goes on from a panel above.
        strength: A curve that tells how strong the change is, if it comes gradually, again, or several times.
    """
    right, top, bottom = frame.x(frame.last), frame.y(1), frame.y(0)
    band = line = ""
    if onset:
        x = frame.x(0)
        band = _draw_strength(frame, strength) or f'<path class="a" d="M{x} {top}H{right}V{bottom}H{x}z"/>'
        line = (
            f'<path class="o" d="M{x} {top - (6 if named else frame.top)}V{bottom + (4 if ticks else frame.bottom)}"/>'
        )
        line += f'<text class="t m" x="{x}" y="{top - 9}">onset</text>' if named else ""
    return band + _draw_grid(frame) + line + (_draw_ticks(frame, onset) if ticks else "")


def _draw_strength(frame: Frame, curve: Curve) -> str:
    """Draw how strong the change is, as an area; nothing where it comes at once and stays."""
    known = [(frame.x(point.at), frame.y(point.strength)) for point in curve if point.strength is not None]
    if not any(point.strength for point in curve):
        return ""
    line = "".join(f"H{x}V{y}" for x, y in known[1:])
    return f'<path class="a" d="M{known[0][0]} {frame.y(0)}V{known[0][1]}{line}V{frame.y(0)}z"/>'


def _draw_grid(frame: Frame, high: float | None = None) -> str:
    """Draw lines at the bottom, the middle and the top, with their numbers: from 0 to 1, or to a higher value."""
    shown = ("0", ".5", "1") if high is None else [f"{high * part:.3g}" for part in (0.0, 0.5, 1.0)]
    return "".join(
        f'<path class="g" d="M{frame.left} {frame.y(part)}H{frame.width - frame.right}"/>'
        f'<text class="t e" x="{frame.left - 6}" y="{frame.y(part) + 4}">{text}</text>'
        for part, text in zip((0.0, 0.5, 1.0), shown, strict=True)
    )


def _draw_ticks(frame: Frame, onset: bool) -> str:
    first, last = int(frame.first), int(frame.last)
    sizes = (size * 10**power for power in range(18) for size in (1, 2, 5))
    step = next(size for size in sizes if (last - first) / size <= 8)
    ats = range(-(-first // step) * step, last + 1, step)
    return "".join(
        f'<text class="t m" x="{frame.x(at)}" y="{frame.height - 4}">{_sign(at, onset)}</text>' for at in ats
    )


def _sign(at: int, onset: bool) -> str:
    return f"+{at:,}" if at > 0 and onset else f"{at:,}".replace("-", "−")


def _draw_test_start(frame: Frame, curve: Curve) -> str:
    """Draw a hairline where training ends, with its name unless the onset is too near."""
    trained = [point.at for point in curve if point.training]
    if not trained or len(trained) == len(curve):
        return ""
    x = (frame.x(trained[-1]) + frame.x(next(point.at for point in curve if not point.training))) // 2
    name = f'<text class="t m" x="{x}" y="{frame.y(1) - 9}">test</text>' if abs(x - frame.x(0)) > 40 else ""
    return f'<path class="s" d="M{x} {frame.y(1) - 6}V{frame.y(0)}"/>{name}'


def _draw_single(frame: Frame, single: SingleCurve) -> str:
    """Draw a trial as a faint line that leads to it; a wide line that is not seen makes it easy to point at.

    The Tab key passes it by: there are many, and the arrow keys walk through them (`charts.js`).
    """
    line = _draw_line("f", frame, _values(_cut(single.points, frame), "performance"))
    if not line or not single.address:
        return line
    title, wide = escape(f"trial {single.cell[:8]}"), line.replace('class="f"', 'class="hit"', 1)
    return f'<a class="single" href="{escape(single.address)}" tabindex="-1" aria-label="{title}">{wide}{line}</a>'


def _draw_both(frame: Frame, curve: Curve) -> str:
    belief = _draw_line("b", frame, _values(curve, "belief"))
    return belief + _draw_line("p", frame, _values(curve, "performance"))


def _draw_line(kind: str, frame: Frame, points: Iterable[Place]) -> str:
    """Draw a path through the points that have a value; gaps are bridged."""
    found = [(frame.x(at), frame.y(value)) for at, value in points if value is not None]
    if not found:
        return ""
    steps = "".join(f"l{x - u} {y - v}" for (u, v), (x, y) in pairwise(found))
    return f'<path class="{kind}" d="M{found[0][0]} {found[0][1]}{(steps or "h2").replace(" -", "-")}"/>'


def _label_ends(frame: Frame, ends: Sequence[tuple[int, str, str, str]], kind: str, sources: Mapping[str, str]) -> str:
    """Write the names of lines beside their ends, pushed apart, each joined to its end by a hairline.

    Args:
        frame: Where the lines are drawn.
        ends: The height of each end, the class of its colour, its agent, and what the agent is called.
        kind: The class of the lines.
        sources: Agent -> the address that its name leads to.
    """
    placed: list[list[float]] = [[y, y] for y, *_ in sorted(ends)]
    for above, below in pairwise(placed):
        below[1] = max(below[1], above[1] + LABEL_GAP)
    over = placed[-1][1] - frame.height + 4 if placed else 0.0
    for each in reversed(placed):
        each[1] -= max(0.0, over)
        over = max(0.0, over - 2)
    x = frame.x(frame.last)
    drawn = ""
    for (y, at), (_, colour, agent, name) in zip(placed, sorted(ends), strict=True):
        text = (
            f'<text class="t name {kind} {colour}" data-agent="{escape(agent)}" x="{x + 12}" y="{at + 4.5:.1f}">'
            f"{escape(_shorten(name, MAX_NAME))}</text>"
        )
        drawn += f'<path class="lead" d="M{x + 2} {y:.0f}L{x + 9} {at:.0f}"/>{_link(text, sources[agent])}'
    return drawn


def _cut(curve: Curve, frame: Frame) -> Curve:
    """Return the part of a curve that is inside a frame."""
    return tuple(point for point in curve if frame.first <= point.at <= frame.last)


def _values(curve: Iterable[Point], what: str) -> list[Place]:
    return [(point.at, getattr(point, what)) for point in curve]


def _wrap_curves(
    body: str, frame: Frame, height: int, label: str, shown: Sequence[AgentCurves], kind: str = ""
) -> Markup:
    """Return a drawing with its name and, where it leads to trials, with its values for a script."""
    if not any(single.address for each in shown for single in each.singles):
        return _wrap(body, frame.width, height, label)
    values = {
        "left": frame.x(frame.first),
        "right": frame.x(frame.last),
        "first": frame.first,
        "last": frame.last,
        "onset": any(each.onset for each in shown),
        "unit": shown[0].unit if shown else "episode",
        "agents": [
            {
                "name": each.name,
                "points": [[p.at, _short(p.performance), _short(p.belief)] for p in _cut(each.mean, frame)],
            }
            for each in shown
        ],
    }
    data = escape(msgspec.json.encode(values).decode())
    return Markup(  # noqa: S704 - names were escaped where they were put in
        f'<svg class="curves {kind}" viewBox="0 0 {frame.width} {height}" role="group" tabindex="0" '
        f'aria-label="{escape(label)}" data-curves="{data}">{body}</svg>'
    )


def _wrap(body: str, width: int, height: int, label: str, kind: str = "") -> Markup:
    """Return a drawing with its name; one with links in it is a group of them."""
    role = "group" if "<a " in body else "img"
    return Markup(  # noqa: S704 - names were escaped where they were put in
        f'<svg class="curves{kind and f" {kind}"}" viewBox="0 0 {width} {height}" role="{role}" '
        f'aria-label="{escape(label)}">{body}</svg>'
    )


def _link(drawn: str, address: str, rest: str = "") -> str:
    """Return something drawn in a link to its source, if that has an address."""
    return f'<a href="{escape(address)}"{rest}>{drawn}</a>' if address else drawn


def _shorten(name: str, most: int) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


# Estimates and keys


def draw_estimate(estimate: Estimate, bounds: Range | None, kind: str = "p") -> Markup:
    """Draw an estimate as a dot on the range of its number, with its interval as a bar.

    Args:
        estimate: The estimate.
        bounds: The range; without one nothing is drawn.
        kind: `p` for performance, `b` for belief.
    """
    limits = two_sided(bounds)
    if estimate.mean is None or limits is None:
        return Markup("")
    x, a, b = (_place(_or(v, estimate.mean), *limits) for v in (estimate.mean, estimate.low, estimate.high))
    zero = f'<path class="tick" d="M{_place(0, *limits):g} 1v12"/>' if limits[0] < 0 < limits[1] else ""
    return Markup(  # noqa: S704 - only numbers
        f'<svg class="estimate {kind}" viewBox="0 0 {2 * MARGIN + 100} 14" aria-hidden="true">'
        f'{zero}<path d="M{a:g} 7h{b - a:.3g}"/><path d="M{x:g} 7h0"/></svg>'
    )


def draw_differences(values: Iterable[tuple[float, str, str]], estimate: Estimate) -> Markup:
    """Draw paired differences as dots from -1 to 1, with their mean and its interval below.

    Args:
        values: Each difference with the name of its trial and the address where it is seen.
        estimate: Their mean.
    """
    dots = sorted(values)
    heights: dict[int, int] = {}
    marks = []
    for value, trial, address in dots:
        x = round(_spread(value))
        level = heights[x // 5] = heights.get(x // 5, -1) + 1
        title = escape(f"trial {trial[:8]}: {value:+.2f}")
        dot = f'<circle class="dot" cx="{x}" cy="{max(6, 40 - 5 * level)}" r="2.6"><title>{title}</title></circle>'
        marks.append(_link(dot, address, f' tabindex="-1" aria-label="{title}"'))
    body = '<path class="axis" d="M10 46H310"/><path class="zero" d="M160 2V62"/>' + "".join(marks)
    if estimate.mean is not None:
        middle = round(_spread(estimate.mean), 1)
        if estimate.low is not None and estimate.high is not None:
            a, b = round(_spread(estimate.low), 1), round(_spread(estimate.high), 1)
            body += f'<rect class="bar" x="{a}" y="52" width="{max(1, round(b - a, 1))}" height="6" rx="1"/>'
        body += f'<circle class="middle" cx="{middle}" cy="55" r="3.5"/>'
    ends = '<text x="10" y="60" class="t">−1</text><text x="310" y="60" class="t e">+1</text>'
    text = f"{len(dots)} paired differences"
    return Markup(  # noqa: S704 - names were escaped where they were put in
        f'<svg class="differences" viewBox="0 0 320 64" role="group" aria-label="{text}">{body}{ends}</svg>'
    )


def draw_key(kind: str) -> Markup:
    """Draw a sample of a mark for a key."""
    shape = SHAPES.get(kind, "M1 5h28")
    return Markup(  # noqa: S704 - `kind` is ours
        f'<svg class="sample" viewBox="0 0 30 10" aria-hidden="true"><path class="{kind}" d="{shape}"/></svg>'
    )


def _place(value: float, low: float, high: float) -> float:
    return round(MARGIN + 100 * min(1.0, max(0.0, (value - low) / (high - low))), 1)


def _spread(value: float) -> float:
    return 160 + 150 * min(1.0, max(-1.0, value))


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


# Plots of samples and tasks


def draw_plot(plot: Plot) -> Markup:
    """Draw lines over one axis, with the ends and the name of the axis below it."""
    size = (232, 96, 20, 6, 8, 16) if plot.small else (380, 200, 26, 14, 16, 28)
    frame = Frame(plot.first, plot.last, *size)
    body = _draw_grid(frame)
    if plot.onset is not None:
        body += f'<path class="o" d="M{frame.x(plot.onset)} {frame.y(1) - 5}V{frame.y(0)}"/>'
    body += "".join(
        f'<path class="s th" d="M{frame.left} {frame.y(at)}H{frame.x(plot.last)}"/>' for at in plot.thresholds
    )
    body += "".join(_draw_line(line.kind, frame, line.points) for line in plot.lines)
    end = frame.x(frame.last)
    places = (("", frame.left), (" m", (frame.left + end) // 2), (" e", end))
    body += "".join(
        f'<text class="t{kind}" x="{x}" y="{frame.y(0) + (13 if plot.small else 16)}">{escape(text)}</text>'
        for (kind, x), text in zip(places, plot.ends, strict=True)
        if text
    )
    drawn = _wrap(body, frame.width, frame.height, plot.title, "fine")
    return Markup(_link(drawn, plot.address, ' class="plot"'))  # noqa: S704 - names were escaped where they were put in


def draw_courses(tasks: AgentTasks, faint: int) -> Markup:
    """Draw which task was played when, one line for each of some trials, with a dot where a task is solved."""
    names, chosen = tasks.names, pick_evenly(tasks.courses, faint)
    steps = max((step.start + step.steps for course in chosen for step in course.visits[-1:]), default=0)
    widest = max(min(len(name), MAX_TASK) for name in names)
    frame = Frame(0, max(steps, 1), 380, ROW * len(names) + 24, left=10 + round(5.6 * widest), right=14, top=4)
    body = "".join(
        f'<path class="g" d="M{frame.left} {_row(row)}H{frame.width - frame.right}"/>'
        f'<text class="t e" x="{frame.left - 6}" y="{_row(row) + 4}">{escape(_shorten(name, MAX_TASK))}</text>'
        for row, name in enumerate(names)
    )
    body += "".join(
        _link(drawn, course.address, f' class="trial" tabindex="-1" aria-label="{escape(f"trial {course.trial}")}"')
        for course in chosen
        if (drawn := _draw_course(frame, names, course.visits))
    )
    body += "".join(
        f'<text class="t {kind}" x="{frame.x(at)}" y="{frame.height - 5}">{words}</text>'
        for at, kind, words in ((0, "m", "0"), (steps, "e", f"{steps:,} steps"))
    )
    return _wrap(body, frame.width, frame.height, f"{tasks.agent}: the task at each step", "fine")


def _draw_course(frame: Frame, names: Sequence[str], visits: Sequence[CourseStep]) -> str:
    """Draw the way of one trial through the tasks."""
    once, again = ([visit for visit in visits if visit.again is retest] for retest in (False, True))
    dots = "".join(
        f"M{frame.x(visit.start + after)} {_row(names.index(visit.task))}h0"
        for visit in visits
        if (after := visit.solved_after) is not None
    )
    lines = "".join(
        f'<path class="{kind}" d="{_climb(frame, names, part)}"/>'
        for kind, part in (("w", once), ("w v", again))
        if part
    )
    return lines + (f'<path class="w q" d="{dots}"/>' if dots else "")


def _climb(frame: Frame, names: Sequence[str], visits: Sequence[CourseStep]) -> str:
    """Return the path of steps from task to task."""
    path = f"M{frame.x(visits[0].start)} {_row(names.index(visits[0].task))}"
    for visit in visits:
        path += f"V{_row(names.index(visit.task))}H{frame.x(visit.start + visit.steps)}"
    return path


def _row(number: int) -> int:
    return 10 + ROW * number


# Objectives at each stage


def draw_stages(plot: IntervalPlot, names: Mapping[str, str], sources: Mapping[str, str]) -> Markup:
    """Draw an objective: a line for each agent through its stages, with an interval or the band of a null.

    Agents have the same order and the same kinds of line as in the curves of the run. The colour is that of text: blue
    is performance and orange belief, and these are neither.

    Args:
        plot: The data of the drawing.
        names: Agent -> its name.
        sources: Agent -> the address of the source of its values.
    """
    stages = plot.places
    ends = [end for mark in plot.marks for end in (mark.value, *(mark.interval or ()), *(mark.band or ()))]
    high = max(ends) * HEADROOM or 1.0
    widest = max(len(names[agent]) for agent in plot.agents)
    frame = Frame(0, len(stages), 460, 200, 52, min(130, 22 + 8 * widest), 12, 24)
    body = _draw_grid(frame, high)
    for number, stage in enumerate(stages):
        body += f'<text class="t m" x="{frame.x(number + 0.5)}" y="{frame.height - 8}">{escape(stage)}</text>'
        kind = "o" if number == plot.onset else "g"
        body += f'<path class="{kind}" d="M{frame.x(number)} {frame.y(1)}V{frame.y(0)}"/>' if number else ""
    last = []
    for slot, agent in enumerate(plot.agents):
        own = sorted((mark for mark in plot.marks if mark.agent == agent), key=lambda mark: stages.index(mark.place))
        shift = min(MAX_SPREAD, STEP * len(plot.agents)) * ((slot + 0.5) / len(plot.agents) - 0.5)
        ats = [stages.index(mark.place) + 0.5 + shift for mark in own]
        points = [(at, mark.value / high) for at, mark in zip(ats, own, strict=True)]
        line = _draw_line(f"i slot{slot}", frame, points) if len(own) > 1 else ""
        line += "".join(_draw_mark(mark, frame, at, high) for at, mark in zip(ats, own, strict=True))
        body += _link(line, sources[agent], ' class="agent" tabindex="-1"')
        last += [(frame.y(own[-1].value / high), f"slot{slot}", agent, names[agent])] if own else []
    body += _label_ends(frame, last, "i", sources)
    return _wrap(body, frame.width, frame.height, plot.title)


def _draw_mark(mark: Mark, frame: Frame, at: float, high: float) -> str:
    """Draw a dot with a line for its interval, over a bar for the band of its null."""
    x, drawn = frame.x(at), ""
    if mark.band:
        low, top = (frame.y(end / high) for end in mark.band)
        drawn += f'<rect class="null" x="{x - 5}" y="{top}" width="10" height="{max(low - top, 2)}"/>'
    if mark.interval:
        low, top = (frame.y(end / high) for end in mark.interval)
        drawn += f'<path class="i" d="M{x} {low}V{top}"/>'
    label = escape(f"{mark.agent}, {mark.place}: {mark.value:.4g}")
    return (
        f'{drawn}<circle class="i" cx="{x}" cy="{frame.y(mark.value / high)}" r="3.5"><title>{label}</title></circle>'
    )


# A study of objectives: drawings that are also files of their own


def draw_scatter(title: str, x: str, y: str, dots: Sequence[Dot]) -> Markup:
    """Draw agents as points, one colour per environment.

    Args:
        title: The title of the drawing.
        x: The name of the axis across.
        y: The name of the axis upwards.
        dots: The points.
    """
    width, height, left, bottom, top, right = 360, 270, 52, 40, 14, 96
    groups = sorted({dot.group for dot in dots})
    across = _fit([dot.x for dot in dots], left, width - right)
    up = _fit([dot.y for dot in dots], height - bottom, top)
    parts = [*_draw_axes(across, up, x, y, height, bottom)]
    for dot in dots:
        colour = PALETTE[groups.index(dot.group) % len(PALETTE)]
        name = escape(f"{dot.label}, {dot.group}: {dot.x:.4g}, {dot.y:.4g}")
        place = f'cx="{across.at(dot.x):.1f}" cy="{up.at(dot.y):.1f}"'
        parts.append(f'<circle {place} r="4" fill="{colour}" fill-opacity=".8"><title>{name}</title></circle>')
    for number, group in enumerate(groups):
        line = top + 8 + 15 * number
        parts.append(f'<circle cx="{width - right + 12}" cy="{line}" r="4" fill="{PALETTE[number % len(PALETTE)]}"/>')
        parts.append(_write(width - right + 20, line + 4, group))
    return _wrap_file(title, width, height, parts)


def draw_lives(title: str, rows: Sequence[StudyRow], name: str) -> Markup:
    """Draw a value of each life as a dot, a panel per environment and a line per agent, with means and intervals.

    Args:
        title: The title of the drawing.
        rows: The agents in their environments.
        name: The name of the value.
    """
    environments = list(dict.fromkeys(row.environment for row in rows))
    line, left, width, gap = 20, 120, 150, 24
    most = max(sum(row.environment == place for row in rows) for place in environments)
    parts = []
    for number, place in enumerate(environments):
        mine = [row for row in rows if row.environment == place]
        start = left + number * (width + gap)
        across = _fit(_shown_range(mine, name), start, start + width)
        parts.append(_write(start + width / 2, 12, place, "middle"))
        parts += [_write(across.at(mark), 40 + line * most, f"{mark:.3g}", "middle") for mark in across.marks()[::2]]
        for at, row in enumerate(mine):
            parts += _draw_lives_of(row, name, across, 32 + line * at)
            parts += [_write(left - 8, 36 + line * at, row.agent.replace("_", " "), "end")] if not number else []
    return _wrap_file(title, left + len(environments) * (width + gap), 50 + line * most, parts)


def draw_heat_map(title: str, names: Sequence[str], values: Sequence[Sequence[float | None]]) -> Markup:
    """Draw correlations as coloured cells: blue below zero, orange above, grey where not defined.

    Args:
        title: The title of the drawing.
        names: The correlated quantities.
        values: A row for each name.
    """
    cell, left, top = 46, 150, 100
    width, height = left + cell * len(names) + 50, top + cell * len(names) + 10  # the last name leans to the right
    parts = []
    for row, name in enumerate(names):
        parts.append(_write(left - 8, top + cell * row + cell / 2 + 4, name, "end"))
        place = left + cell * row + cell / 2
        parts.append(_write(place, top - 8, name, turn=-40))
        for column, value in enumerate(values[row]):
            parts += _draw_cell(left + cell * column, top + cell * row, cell, value)
    return _wrap_file(title, width, height, parts)


def draw_bars(title: str, bars: Sequence[Bar]) -> Markup:
    """Draw values from -1 to 1 with intervals; a diamond marks what the paper found."""
    width, left, right, line = 460, 150, 20, 26
    height = 30 + line * len(bars)
    scale = _Scale(-1.0, 1.0, left, width - right)
    parts = []
    for mark in (-1, 0, 1):
        at = scale.at(mark)
        parts.append(_rule((at, 6), (at, height - 22), 0.6 if mark == 0 else 0.15))
        parts.append(_write(at, height - 8, str(mark), "middle"))
    for number, bar in enumerate(bars):
        parts += _draw_bar(bar, scale, 18 + line * number, left)
    return _wrap_file(title, width, height, parts)


class _Scale(NamedTuple):
    """Numbers to drawing units."""

    low: float
    high: float
    start: float
    stop: float

    def at(self, value: float) -> float:
        return self.start + (self.stop - self.start) * (value - self.low) / (self.high - self.low)

    def marks(self) -> list[float]:
        return [self.low + (self.high - self.low) * part for part in (0.1, 0.5, 0.9)]


def _fit(values: Sequence[float], start: float, stop: float) -> _Scale:
    """Return a scale with a margin on both sides of the values."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return _Scale(low - margin, high + margin, start, stop)


def _shown_range(rows: Sequence[StudyRow], name: str) -> list[float]:
    """Return the ends of a panel: all lives, and of intervals as much as is half as wide again on each side."""
    lives = [life[name] for row in rows for life in row.lives if name in life]
    low, high = min(lives, default=0.0), max(lives, default=1.0)
    room = (high - low) / 2
    limits = [limit for row in rows for limit in row.intervals.get(name, ())]
    return [*lives, *(min(max(limit, low - room), high + room) for limit in limits)]


def _draw_lives_of(row: StudyRow, name: str, across: _Scale, y: float) -> list[str]:
    parts = [_rule((across.start, y), (across.stop, y), 0.12)]
    if name in row.intervals:
        low, high = (min(max(across.at(limit), across.start), across.stop) for limit in row.intervals[name])
        parts.append(_rule((low, y), (high, y), 0.9))
    parts += [
        f'<circle cx="{across.at(life[name]):.1f}" cy="{y:.1f}" r="3" fill="{BLUE}" fill-opacity=".55"/>'
        for life in row.lives
        if name in life
    ]
    mean = row.values.get(name)
    return parts if mean is None else [*parts, _fill((across.at(mean) - 1, y - 6), (2.5, 12), ORANGE, 1.0)]


def _draw_axes(across: _Scale, up: _Scale, x: str, y: str, height: int, bottom: int) -> list[str]:
    floor = height - bottom
    corner = (across.start, floor)
    parts = [_rule(corner, (across.stop, floor), 0.5), _rule(corner, (across.start, up.stop), 0.5)]
    parts += [_write(across.at(mark), floor + 14, f"{mark:.3g}", "middle") for mark in across.marks()]
    parts += [_write(across.start - 5, up.at(mark) + 4, f"{mark:.2g}", "end") for mark in up.marks()]
    parts.append(_write((across.start + across.stop) / 2, height - 8, x, "middle"))
    return [*parts, _write(11, (floor + up.stop) / 2, y, "middle", turn=-90)]


def _draw_cell(x: float, y: float, size: int, value: float | None) -> list[str]:
    if value is None:
        return [_fill((x, y), (size - 2, size - 2), INK, 0.06)]
    colour = ORANGE if value >= 0 else BLUE
    return [
        _fill((x, y), (size - 2, size - 2), colour, min(1.0, abs(value)) * 0.85),
        _write(x + size / 2 - 1, y + size / 2 + 4, f"{value:.2f}", "middle"),
    ]


def _draw_bar(bar: Bar, scale: _Scale, y: float, left: int) -> list[str]:
    zero, end = scale.at(0.0), scale.at(bar.value)
    parts = [_write(left - 8, y + 4, bar.label, "end")]
    parts.append(_fill((min(zero, end), y - 6), (abs(end - zero), 12), BLUE, 0.5))
    if bar.low is not None and bar.high is not None:
        parts.append(_rule((scale.at(bar.low), y), (scale.at(bar.high), y), 1.0))
    if bar.reference is not None:
        at = scale.at(bar.reference)
        corners = " ".join(f"{at + dx:.1f},{y + dy:.1f}" for dx, dy in ((-5, 0), (0, -5), (5, 0), (0, 5)))
        title = f"<title>paper: {bar.reference:.2f}</title>"
        parts.append(f'<polygon points="{corners}" fill="{ORANGE}">{title}</polygon>')
    return parts


def _rule(start: tuple[float, float], end: tuple[float, float], opacity: float) -> str:
    place = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {place} stroke="{INK}" stroke-opacity="{opacity:g}"/>'


def _fill(corner: tuple[float, float], size: tuple[float, float], colour: str, opacity: float) -> str:
    place = f'x="{corner[0]:.1f}" y="{corner[1]:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}"'
    return f'<rect {place} fill="{colour}" fill-opacity="{opacity:.2f}"/>'


def _write(x: float, y: float, text: str, anchor: str = "start", turn: int = 0) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
    return f'<text {place} font-size="11" fill="{INK}"{turned}>{escape(text)}</text>'


def _wrap_file(title: str, width: int, height: int, parts: Sequence[str]) -> Markup:
    body = "".join(parts)
    return Markup(  # noqa: S704 - names were escaped where they were put in
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif"><title>{escape(title)}</title>{body}</svg>'
    )
