"""The objectives section of the report page: what agents did in training, before the onset and after it.

Draws the record that `report.objectives` makes of runs: a plot per objective with the stages side by side, and a table
for each agent. Everything that comes from outside is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any, NamedTuple

from openfield.report.objectives import EQUAL_NOTE, explain_missing, table_rows, title_group
from openfield.report.tables import draw_table

PLOTTED = {
    "input_entropy": "Input entropy",
    "info_gain_dirichlet": "Information gain (Dirichlet)",
    "info_gain_sqrt_counts": "Information gain (square root of counts)",
    "info_gain_log_counts": "Information gain (log of counts)",
    "empowerment": "Empowerment: plug-in value, and grey the 95 % of its permutation null",
}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's colours, which most eyes tell apart."""
STAGES = ("training", "before", "after")
LABELS = {"training": "training", "before": "before the onset", "after": "after the onset"}
MAX_AGENTS = len(COLOURS)
"""Agents that a plot shows; tables show all."""
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 400, 190, 46, 10, 12, 24


class Mark(NamedTuple):
    """A value of an agent at a stage, with an interval or the band of its null where it has one."""

    stage: str
    agent: str
    value: float
    interval: Sequence[float] | None = None
    band: Sequence[float] | None = None


def draw_objectives(record: Mapping[str, Any] | None) -> str:
    """Draw the objectives of runs as a section of the report page; nothing if there is no record."""
    if record is None:
        return ""
    failed = [run["error"] for run in record["runs"] if "error" in run]
    alerts = "".join(f"<li>{escape(error)}</li>" for error in failed)
    body = f'<div class="alert"><ul>{alerts}</ul></div>' if failed else ""
    for _, block in groupby(sorted(record["groups"], key=_scenario), _scenario):
        body += _draw_scenario(list(block))
    return f'<section id="objectives"><h2>Objectives without reward</h2><p>{escape(EQUAL_NOTE)}</p>{body}</section>'


def _scenario(group: Mapping[str, Any]) -> tuple[Any, ...]:
    return group["domain"], group["novelty"], group["settings"], group["red_light"]


def _draw_scenario(groups: Sequence[dict[str, Any]]) -> str:
    agents = list(dict.fromkeys(group["agent"] for group in groups))
    title = title_group(groups[0]).partition(", ")[2]
    left_out = f"<p>Plots show {MAX_AGENTS} of {len(agents)} agents.</p>" if len(agents) > MAX_AGENTS else ""
    plots = "".join(_draw_plot(name, words, groups, agents[:MAX_AGENTS]) for name, words in PLOTTED.items())
    tables = "".join(_draw_agent([group for group in groups if group["agent"] == agent]) for agent in agents)
    key = _draw_key(agents[:MAX_AGENTS])
    return f'<h3>{escape(title)}</h3>{key}{left_out}<div class="panels">{plots}</div>{tables}'


def _draw_key(agents: Sequence[str]) -> str:
    items = (
        f'<li><svg viewBox="0 0 30 10"><circle cx="15" cy="5" r="4" fill="{colour}"/></svg>{escape(agent)}</li>'
        for agent, colour in zip(agents, COLOURS, strict=False)
    )
    return f'<ul class="key">{"".join(items)}</ul>'


def _draw_agent(stages: Sequence[dict[str, Any]]) -> str:
    head = "<td></td>" + "".join(f"<th scope=col>{escape(LABELS[stage['stage']])}</th>" for stage in stages)
    rows = (
        f"<th scope=row>{'&emsp;' if title[0] == ' ' else ''}{escape(title.strip())}</th>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        for title, *cells in table_rows(stages)
    )
    said = [f"{stage['stage']}: {stage['saturation']}" for stage in stages if stage["saturation"]]
    notes = "".join(f"<li>{escape(line)}</li>" for line in (*said, *explain_missing(stages)))
    agent = escape(stages[0]["agent"])
    below = f"<ul>{notes}</ul>" if notes else ""
    return f"<details open><summary><b>{agent}</b>, stage by stage</summary>{draw_table(head, rows)}{below}</details>"


def _draw_plot(name: str, words: str, groups: Sequence[dict[str, Any]], agents: Sequence[str]) -> str:
    marks = [mark for group in groups if group["agent"] in agents for mark in find_marks(name, group)]
    if not marks:
        return ""
    equal = next((group["equal"] for group in groups if group["equal"]), None)
    by = "at equal numbers of transitions" if equal and name != "empowerment" else "of all transitions"
    unit = next(group["units"].get(name) for group in groups)
    caption = f"<b>{escape(words)}</b><small>{escape(f'in {unit}, {by}' if unit else by)}</small>"
    return f"<figure><figcaption>{caption}</figcaption>{_draw_marks(words, marks, agents)}</figure>"


def find_marks(name: str, group: Mapping[str, Any]) -> Iterator[Mark]:
    """Yield the value of an objective, if there is one: at equal numbers of transitions where these are known."""
    value, interval, band = group["values"].get(name), group["intervals"].get(name), None
    if name == "empowerment" and group["empowerment"]:
        band = group["empowerment"]["null_band"]
    elif group["equal"] and name in group["equal"]["values"]:
        value, interval = group["equal"]["values"][name], None
    if value is not None:
        yield Mark(group["stage"], group["agent"], value, interval, band)


def _draw_marks(title: str, marks: Sequence[Mark], agents: Sequence[str]) -> str:
    ends = [end for mark in marks for end in (mark.value, *(mark.interval or ()), *(mark.band or ()))]
    high = max(ends) * 1.08 or 1.0
    stages = [stage for stage in STAGES if any(mark.stage == stage for mark in marks)]
    inner, floor = (WIDTH - LEFT - RIGHT) / len(stages), HEIGHT - BOTTOM

    def across(mark: Mark) -> float:
        start = LEFT + inner * stages.index(mark.stage)
        return start + inner * (agents.index(mark.agent) + 1) / (len(agents) + 1)

    def up(value: float) -> float:
        return floor - (floor - TOP) * max(0.0, value) / high

    parts = [f'<path class="g" d="M{LEFT} {up(high * part):.1f}H{WIDTH - RIGHT}"/>' for part in (0, 0.5, 1)]
    parts += [
        f'<text class="e" x="{LEFT - 5}" y="{up(high * part) + 4:.1f}">{high * part:.3g}</text>' for part in (0, 0.5, 1)
    ]
    for number, stage in enumerate(stages):
        middle = LEFT + inner * (number + 0.5)
        parts.append(f'<text class="m" x="{middle:.1f}" y="{HEIGHT - 8}">{LABELS[stage]}</text>')
        if number:
            edge = LEFT + inner * number
            parts.append(f'<path class="{"o" if stage == "after" else "g"}" d="M{edge:.1f} {TOP}V{floor}"/>')
    for mark in marks:
        parts += _draw_mark(mark, across(mark), up, COLOURS[agents.index(mark.agent)])
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>{"".join(parts)}</svg>'


def _draw_mark(mark: Mark, x: float, up: Any, colour: str) -> Iterator[str]:
    """Yield a dot with a line for its interval, over a grey bar for the band of its null."""
    if mark.band:
        low, high = (up(end) for end in mark.band)
        tall = max(low - high, 2.0)
        yield (
            f'<rect x="{x - 8:.1f}" y="{high:.1f}" width="16" height="{tall:.1f}" fill="currentColor" '
            'fill-opacity=".28"/>'
        )
    if mark.interval:
        low, high = (up(end) for end in mark.interval)
        yield f'<path d="M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}" stroke-width="1.5"/>'
    told = escape(f"{mark.agent}, {LABELS[mark.stage]}: {mark.value:.4g}")
    yield f'<circle cx="{x:.1f}" cy="{up(mark.value):.1f}" r="4" fill="{colour}"><title>{told}</title></circle>'
