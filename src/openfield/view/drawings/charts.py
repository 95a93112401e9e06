"""Drawings of the viewer as SVG: curves around the onset, intervals, and differences.

Made from the values that pages have anyway. Colours and lines are classes of the style sheet. A drawing of curves
carries its values in `data-curves`, from which `static/charts.js` shows those under the pointer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec
from markupsafe import Markup, escape

from openfield.metrics.stats import Bounds, Estimate, two_sided
from openfield.report.chart import Curve, Frame, Point, draw_line, pick_evenly
from openfield.view.analysis import AgentCurves, SingleCurve

MAX_OVERLAID = 6
"""How many agents one drawing shows; their lines differ in so many ways."""
MAX_FAINT = 12
"""How many single trials of an agent stand behind the means of several agents."""
MAX_UNCROWDED = 3
"""Of more agents single trials are seen only while one of them is pointed at."""
MIN_BEFORE, MAX_BEFORE = 40, 3
"""Episodes before the onset that are drawn in any case, and how many times those after it at most."""
MAX_MARGIN = 210
"""The most room for names beside the lines, in units of the drawing."""
MAX_NAME = 24
LABEL_GAP = 15
"""The least distance of two labels, in units of the drawing."""
RADIUS = 3
"""The size of the dot of an estimate, in units of the drawing."""
MARGIN = 4
"""Room beside the range of an estimate, so that a dot at its end is whole."""


def draw_overlay(curves: Sequence[AgentCurves], label: str, sources: Mapping[str, str]) -> Markup:
    """Draw the agents of a scenario in one drawing: performance above, belief below, both from the onset.

    Args:
        curves: The trials of each agent.
        label: What is drawn.
        sources: Agent -> where its trials are listed.
    """
    shown = [each for each in curves if each.mean][:MAX_OVERLAID]
    if not shown:
        return Markup("")
    first, last = _range(shown)
    margin = min(MAX_MARGIN, 24 + 8 * max(len(each.name) for each in shown))
    frames = [Frame(first, last, 720, 178, 30, margin, 22, 8), Frame(first, last, 720, 130, 30, margin, 22, 22)]
    told = any(point.belief is not None for each in shown for point in each.mean)
    onset = any(each.onset for each in shown)
    body = _draw_panel(frames[0], shown, "performance", onset, not told, sources)
    height = frames[0].height + (frames[1].height if told else 14)
    if told:
        lower = _draw_panel(frames[1], shown, "belief", onset, True, sources)
        body += f'<g transform="translate(0 {frames[0].height})">{lower}</g>'
    return _wrap(body, frames[0], height, label, shown, "crowded" if len(shown) > MAX_UNCROWDED else "")


def draw_agent(curves: AgentCurves, bounds: tuple[int, int] | None = None, label: str = "") -> Markup:
    """Draw one agent: its single trials, and the means of performance and belief.

    Args:
        curves: The trials of the agent.
        bounds: The first and last episode, where several drawings share them.
        label: What is drawn.
    """
    first, last = bounds or _range([curves])
    frame = Frame(first, last, 420, 200, 30, 14, 22, 22)
    faint = "".join(_draw_single(frame, each) for each in curves.singles)
    mean = _cut(curves.mean, frame)
    lines = draw_line("b", frame, _values(mean, "belief")) + draw_line("p", frame, _values(mean, "performance"))
    body = _draw_ground(frame, curves.onset, True) + faint + lines
    return _wrap(body, frame, frame.height, label or curves.name, [curves])


def share_range(curves: Sequence[AgentCurves]) -> tuple[int, int]:
    """Return the episodes that drawings side by side have in common."""
    return _range(curves)


def draw_estimate(estimate: Estimate, bounds: Bounds | None, kind: str = "p") -> Markup:
    """Draw an estimate as a dot on the range of its number, with its interval as a bar.

    Args:
        estimate: The estimate.
        bounds: The range; without one nothing is drawn.
        kind: `p` for performance, `b` for belief.
    """
    limits = two_sided(bounds)
    if estimate.mean is None or limits is None:
        return Markup("")
    low, high = limits
    x, a, b = (_place(_or(v, estimate.mean), low, high) for v in (estimate.mean, estimate.low, estimate.high))
    zero = f'<path class="zero" d="M{_place(0, low, high)} 1v12"/>' if low < 0 < high else ""
    bar = f'<rect x="{a}" y="4.5" width="{max(0.5, round(b - a, 1))}" height="5" rx="1"/>' if b > a else ""
    return Markup(  # noqa: S704 - only numbers
        f'<svg class="estimate {kind}" viewBox="0 0 {2 * MARGIN + 100} 14" aria-hidden="true">'
        f'<path class="axis" d="M{MARGIN} 7h100"/>{zero}{bar}<circle cx="{x}" cy="7" r="{RADIUS}"/></svg>'
    )


def draw_spark(curve: Curve, changes: bool) -> Markup:
    """Draw a trial as a small line of performance and one of belief, with the onset if the world changes in it."""
    if not curve:
        return Markup("")
    frame = Frame(curve[0].at, curve[-1].at, 120, 26, 2, 2, 3, 3)
    line = f'<path class="o" d="M{frame.x(0)} 0V26"/>' if changes else ""
    body = line + draw_line("b", frame, _values(curve, "belief")) + draw_line("p", frame, _values(curve, "performance"))
    return Markup(f'<svg class="spark" viewBox="0 0 120 26" aria-hidden="true">{body}</svg>')  # noqa: S704 - only numbers


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
        marks.append(f'<a href="{escape(address)}" tabindex="-1" aria-label="{title}">{dot}</a>')
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


def draw_figures(drawing: str) -> Markup:
    """Take over figures that the report draws, which escapes everything that comes from outside.

    The content security policy allows no style inside a page; `static/figures.js` puts it in.
    """
    return Markup(drawing.replace(' style="', ' data-style="'))  # noqa: S704


def draw_key(kind: str) -> Markup:
    """Draw a sample of a line for a key."""
    return Markup(  # noqa: S704 - `kind` is ours
        f'<svg class="sample" viewBox="0 0 30 10" aria-hidden="true"><path class="{kind}" d="M1 5h28"/></svg>'
    )


def _range(curves: Sequence[AgentCurves]) -> tuple[int, int]:
    """Return the episodes that are drawn; where those before the onset are many times more, only the last of them."""
    ats = [point.at for each in curves for point in each.mean] or [0]
    first, last = min(ats), max(ats)
    onset = any(each.onset for each in curves) and last >= 0
    return (max(first, -max(MIN_BEFORE, MAX_BEFORE * last)) if onset else first), last


def _draw_panel(
    frame: Frame, shown: Sequence[AgentCurves], what: str, onset: bool, ticks: bool, sources: Mapping[str, str]
) -> str:
    """Draw one quantity of all agents, each line with its name at the end, which leads to its trials."""
    kind, lines, ends = what[0], "", []
    for slot, each in enumerate(shown):
        chosen = pick_evenly(each.singles, MAX_FAINT) if what == "performance" else []
        faint = "".join(_draw_single(frame, single) for single in chosen)
        values = _values(_cut(each.mean, frame), what)
        known = [(at, value) for at, value in values if value is not None]
        if known:
            ends.append((frame.y(known[-1][1]), slot, each.agent, each.name))
            line = draw_line(f"{kind} slot{slot}", frame, values)
            lines += f'<g class="agent" data-agent="{escape(each.agent)}">{faint}{line}</g>'
    name = f'<text class="quantity {kind}" x="{frame.left}" y="{frame.top - 8}">{what}</text>'
    ground = _draw_ground(frame, onset, ticks, named=what == "performance")
    return ground + lines + label_ends(frame, ends, kind, sources) + name


def _draw_ground(frame: Frame, onset: bool, ticks: bool, named: bool = True) -> str:
    """Draw the grid, the stretch after the onset, and the axis of episodes.

    Args:
        frame: Where.
        onset: Whether there is an onset.
        ticks: Whether the axis has numbers.
        named: Whether the onset has its name; else its line goes on from a panel above.
    """
    right, top, bottom = frame.x(frame.last), frame.y(1), frame.y(0)
    grid = "".join(
        f'<path class="g" d="M{frame.left} {frame.y(value)}H{right}"/>'
        f'<text class="t e" x="{frame.left - 6}" y="{frame.y(value) + 4.5}">{text}</text>'
        for value, text in ((0.0, "0"), (0.5, ".5"), (1.0, "1"))
    )
    band = line = ""
    if onset:
        x = frame.x(0)
        band = f'<path class="a" d="M{x} {top}H{right}V{bottom}H{x}z"/>'
        line = (
            f'<path class="o" d="M{x} {top - (6 if named else frame.top)}V{bottom + (4 if ticks else frame.bottom)}"/>'
        )
        line += f'<text class="t m" x="{x}" y="{top - 9}">onset</text>' if named else ""
    return band + grid + line + (_draw_ticks(frame, onset) if ticks else "")


def _draw_ticks(frame: Frame, onset: bool) -> str:
    span = max(1, frame.last - frame.first)
    step = next(size for size in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 10**9) if span / size <= 8)
    ats = [at for at in range(frame.first, frame.last + 1) if at % step == 0]
    return "".join(
        f'<text class="t m" x="{frame.x(at)}" y="{frame.height - 4}">{_sign(at) if onset else at}</text>' for at in ats
    )


def _sign(at: int) -> str:
    return f"+{at}" if at > 0 else str(at).replace("-", "−")


def label_ends(frame: Frame, ends: Sequence[tuple[int, int, str, str]], kind: str, sources: Mapping[str, str]) -> str:
    """Write the names of lines beside their ends, pushed apart, each joined to its end by a hairline.

    Args:
        frame: Where the lines are drawn.
        ends: The height of each end, its slot, its agent, and what the agent is called.
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
    for (y, at), (_, slot, agent, name) in zip(placed, sorted(ends), strict=True):
        shown = name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"
        drawn += (
            f'<path class="lead" d="M{x + 2} {y:.0f}L{x + 9} {at:.0f}"/><a href="{escape(sources[agent])}">'
            f'<text class="t name {kind} slot{slot}" data-agent="{escape(agent)}" x="{x + 12}" y="{at + 4.5:.1f}">'
            f"{escape(shown)}</text></a>"
        )
    return drawn


def _draw_single(frame: Frame, single: SingleCurve) -> str:
    """Draw a trial as a faint line that leads to it; a wide line that is not seen makes it easy to point at.

    The Tab key passes it by: there are many, and the arrow keys walk through them (`static/charts.js`).
    """
    line = draw_line("f", frame, _values(_cut(single.points, frame), "performance"))
    if not line:
        return ""
    wide = line.replace('class="f"', 'class="hit"', 1)
    title = f"trial {single.cell[:8]}"
    return (
        f'<a class="single" href="{escape(single.address)}" tabindex="-1" aria-label="{escape(title)}">{wide}{line}</a>'
    )


def _cut(curve: Curve, frame: Frame) -> Curve:
    """Return the part of a curve that is inside a frame."""
    return tuple(point for point in curve if frame.first <= point.at <= frame.last)


def _values(curve: Iterable[Point], what: str) -> list[tuple[float, float | None]]:
    return [(point.at, getattr(point, what)) for point in curve]


def _wrap(body: str, frame: Frame, height: int, label: str, shown: Sequence[AgentCurves], kind: str = "") -> Markup:
    """Return a drawing with its name and its values."""
    values = {
        "left": frame.x(frame.first),
        "right": frame.x(frame.last),
        "first": frame.first,
        "last": frame.last,
        "onset": any(each.onset for each in shown),
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


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _place(value: float, low: float, high: float) -> float:
    return round(MARGIN + 100 * min(1.0, max(0.0, (value - low) / (high - low))), 1)


def _spread(value: float) -> float:
    return 160 + 150 * min(1.0, max(-1.0, value))


def _or(value: float | None, other: float) -> float:
    return other if value is None else value
