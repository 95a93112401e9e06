"""Plots of objectives without reward: each agent in training, before the onset and after it.

Agents have the same order and the same kinds of line as in the curves of the run, and their names stand at the ends.
The colour is that of text: blue is performance and orange belief, and these are neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from markupsafe import Markup, escape

from openfield.report.chart import Frame, draw_line
from openfield.report.stages import LABELS, PLOTTED, STAGES, Mark, find_marks
from openfield.view.drawings.charts import MAX_OVERLAID, label_ends

MAX_SPREAD, STEP = 0.6, 0.15
"""Over which part of a stage's width its agents are spread at most, and how far apart two of them are: marks must not
cover each other."""
HEADROOM = 1.08
"""The top of a plot, in parts of the highest value."""


class ObjectivePlot(msgspec.Struct, frozen=True):
    """One objective of all agents in a scenario, at each stage."""

    title: str
    unit: str
    """The unit, and over which transitions."""
    marks: list[Mark]
    agents: list[str]
    """Those that are drawn, in order."""


def list_plots(groups: Sequence[Mapping[str, Any]], agents: Sequence[str]) -> Iterator[ObjectivePlot]:
    """Yield the plots of a scenario: of every objective that has a value.

    Args:
        groups: The records of the agents at all stages.
        agents: The agents, in the order in which they are drawn; those that are too many are left out.
    """
    shown = agents[:MAX_OVERLAID]
    for name, title in PLOTTED.items():
        marks = [mark for group in groups if group["agent"] in shown for mark in find_marks(name, group)]
        if marks:
            equal = any(group["equal"] for group in groups) and name != "empowerment"
            unit = next((group["units"].get(name) for group in groups), None)
            over = "at equal numbers of transitions" if equal else "of all transitions"
            yield ObjectivePlot(title, f"in {unit}, {over}" if unit else over, marks, list(shown))


def draw_stages(plot: ObjectivePlot, names: Mapping[str, str], sources: Mapping[str, str]) -> Markup:
    """Draw an objective: a line for each agent through its stages, with an interval or the band of a null.

    Args:
        plot: What is drawn.
        names: Agent -> what it is called.
        sources: Agent -> the address of what its values were made of.
    """
    stages = [stage for stage in STAGES if any(mark.stage == stage for mark in plot.marks)]
    ends = [end for mark in plot.marks for end in (mark.value, *(mark.interval or ()), *(mark.band or ()))]
    high = max(ends) * HEADROOM or 1.0
    widest = max(len(names[agent]) for agent in plot.agents)
    frame = Frame(0, len(stages), 460, 200, 52, min(130, 22 + 8 * widest), 12, 24)
    body = _draw_ground(frame, stages, high)
    last = []
    for slot, agent in enumerate(plot.agents):
        own = sorted((mark for mark in plot.marks if mark.agent == agent), key=lambda mark: stages.index(mark.stage))
        shift = min(MAX_SPREAD, STEP * len(plot.agents)) * ((slot + 0.5) / len(plot.agents) - 0.5)
        ats = [stages.index(mark.stage) + 0.5 + shift for mark in own]
        line = draw_line(f"i slot{slot}", frame, [(at, mark.value / high) for at, mark in zip(ats, own, strict=True)])
        marks = "".join(_draw_mark(mark, frame, at, high) for at, mark in zip(ats, own, strict=True))
        place = escape(sources[agent])
        body += f'<a class="agent" href="{place}" tabindex="-1">{line if len(own) > 1 else ""}{marks}</a>'
        last += [(frame.y(own[-1].value / high), slot, agent, names[agent])] if own else []
    body += label_ends(frame, last, "i", sources)
    return Markup(  # noqa: S704 - names were escaped where they were put in
        f'<svg class="curves" viewBox="0 0 {frame.width} {frame.height}" role="group" '
        f'aria-label="{escape(plot.title)}">{body}</svg>'
    )


def _draw_ground(frame: Frame, stages: Sequence[str], high: float) -> str:
    """Draw the grid with its values, and the stages, with the onset between those before and after it."""
    right = frame.width - frame.right
    parts = [
        f'<path class="g" d="M{frame.left} {frame.y(part)}H{right}"/>'
        f'<text class="t e" x="{frame.left - 5}" y="{frame.y(part) + 4}">{high * part:.3g}</text>'
        for part in (0.0, 0.5, 1.0)
    ]
    for number, stage in enumerate(stages):
        parts.append(f'<text class="t m" x="{frame.x(number + 0.5)}" y="{frame.height - 8}">{LABELS[stage]}</text>')
        if number:
            kind = "o" if stage == "after" else "g"
            parts.append(f'<path class="{kind}" d="M{frame.x(number)} {frame.y(1)}V{frame.y(0)}"/>')
    return "".join(parts)


def _draw_mark(mark: Mark, frame: Frame, at: float, high: float) -> str:
    """Draw a dot with a line for its interval, over a bar for the band of its null."""
    x, drawn = frame.x(at), ""
    if mark.band:
        low, top = (frame.y(end / high) for end in mark.band)
        drawn += f'<rect class="null" x="{x - 5}" y="{top}" width="10" height="{max(low - top, 2)}"/>'
    if mark.interval:
        low, top = (frame.y(end / high) for end in mark.interval)
        drawn += f'<path class="i" d="M{x} {low}V{top}"/>'
    told = escape(f"{mark.agent}, {LABELS[mark.stage]}: {mark.value:.4g}")
    return f'{drawn}<circle class="i" cx="{x}" cy="{frame.y(mark.value / high)}" r="3.5"><title>{told}</title></circle>'
