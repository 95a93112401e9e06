"""The tables of the report page: outcomes, results, comparisons.

Stands in report: summary -> tables -> page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Literal, Protocol

from openfield.journal.reader import SCORED, CellRecord
from openfield.metrics.comparison import Comparison
from openfield.metrics.metric import Number
from openfield.metrics.stats import Bounds, Estimate, say_units, two_sided
from openfield.metrics.summary import AgentResults, Summary, count_outcomes
from openfield.report.chart import draw_interval
from openfield.report.words import (
    MAX_COMMANDS,
    OUTCOMES,
    POLICIES,
    count_failed,
    count_trials,
    describe_basis,
    describe_provenance,
    name_number,
    say_corrected,
    say_outcomes,
    say_trials,
    shorten_note,
)
from openfield.runner.provenance import Provenance

MAX_NOTES = 12
Drawn = Literal["number", "plot", "line"]
"""What can lead to the cells it was made of: a number in words, a whole plot, or the line of one cell in a plot."""


class Link(Protocol):
    """Makes of something drawn, and of the cells it was made of, what stands on a page."""

    def __call__(self, drawing: str, cells: Sequence[CellRecord], kind: Drawn = "number") -> str:
        """Return the drawing as it is, or in a link to the cells."""
        ...


def keep_plain(drawing: str, cells: Sequence[CellRecord], kind: Drawn = "number") -> str:
    """Return a drawing as it is: the report is one file that leads nowhere else."""
    return drawing


def draw_outcomes(summary: Summary, cells: Sequence[CellRecord]) -> str:
    """Draw how cells ended, by agent, and the notes of those that failed."""
    agents = sorted({cell.agent for cell in cells})
    ended = {agent: count_outcomes(cell for cell in cells if cell.agent == agent) for agent in agents}
    rows = (
        f"<th scope=row>{escape(outcome)}<small>{escape(OUTCOMES.get(outcome, ''))}</small></th>"
        + "".join(f'<td class="num">{ended[agent].get(outcome, 0) or "·"}</td>' for agent in agents)
        + f'<td class="num"><b>{count}</b></td>'
        for outcome, count in summary.outcomes.items()
    )
    failed, total = count_failed(summary.outcomes), len(cells)
    return (
        f'<section class="alert"><h2>{failed} of {total} cells were not played to their end</h2>'
        f"<p>{escape(POLICIES[summary.policy])}</p>"
        f"{draw_table(draw_head(['Outcome', *agents, 'All']), rows)}{_draw_notes(cells)}</section>"
    )


def draw_results(
    numbers: Iterable[Number], groups: Sequence[AgentResults], title: str = "Results", reading: str = ""
) -> str:
    """Draw numbers down and agents across, each with its interval in figures and as a line.

    Args:
        numbers: The numbers, as far as a group has them.
        groups: The agents; nothing is drawn if there are none.
        title: The heading of the table.
        reading: How to read it, if that must be said.
    """
    if not groups:
        return ""
    shown = [number for number in numbers if any(number.name in group.estimates for group in groups)]
    played = "".join(
        f"<td>{say_trials(group)}<small>{escape(say_outcomes(group.outcomes))}</small></td>" for group in groups
    )
    note = "of the test performance, after the onset where there is one: the mean of the middle half of the trials"
    rows = [
        f"<th scope=row>Trials<small>scored; below, how the cells ended</small></th>{played}",
        *_draw_versions(groups),
        *(_draw_number(number, groups) for number in shown),
    ]
    if any(group.iqm for group in groups):
        rows.append(
            f'<th scope=row>Interquartile mean <span class="better">↑</span><small>{note}</small></th>'
            + "".join(_draw_cell(group, group.iqm, None) for group in groups)
        )
    head = f"<h3>{escape(title)}</h3>{f'<p>{escape(reading)}</p>' if reading else ''}"
    return head + draw_table(draw_head(["", *(group.agent for group in groups)]), rows, "wide results")


def draw_provenance(told: Sequence[Provenance]) -> str:
    """Draw how the cells were made, command by command."""
    if not told:
        return ""
    known = [describe_provenance(each) for each in told[-MAX_COMMANDS:]]
    titles = [title for title in known[-1] if title != "Command"]
    rows = (
        f"<th scope=row><code>{escape(each['Command'])}</code></th>"
        + "".join(f'<td class="text">{escape(each.get(title, ""))}</td>' for title in titles)
        for each in known
    )
    more = f"<p>And {len(told) - MAX_COMMANDS} earlier ones.</p>" if len(told) > MAX_COMMANDS else ""
    table = draw_table(draw_head(["Command", *titles]), rows)
    return f'<section id="made"><h2>How it was made</h2>{table}{more}</section>'


def draw_comparisons(comparisons: Sequence[Comparison], note: str) -> str:
    """Draw agents compared two by two; the note says what was left out."""
    if not comparisons:
        return ""
    rows = (
        f'<th scope=row>{escape(one.first)} <span class="better">against</span> {escape(one.second)}</th>'
        f"<td>{draw_estimate(one.difference, (-1.0, 1.0))}</td><td>{draw_estimate(one.improvement, (0.0, 1.0))}</td>"
        f'<td class="num">{escape(say_corrected(one))}</td><td class="text">{escape(describe_basis(one))}</td>'
        for one in comparisons
    )
    titles = ["", "Difference in performance", "Probability of doing better", "p, corrected", "Compared over"]
    return f"<h3>Agents compared</h3>{draw_table(draw_head(titles), rows)}<p>{escape(note)}</p>"


def draw_table(head: str, rows: Iterable[str], kind: str = "wide") -> str:
    """Draw a table from the cells of its head and of its rows; one that is too wide is scrolled, also by keys."""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="{kind}" tabindex="0" role="group" aria-label="Table">{table}</div>'


def draw_head(titles: Iterable[str]) -> str:
    """Draw the cells of a table's head."""
    return "".join(f"<th scope=col>{escape(title)}</th>" if title else "<td></td>" for title in titles)


def _draw_notes(cells: Iterable[CellRecord]) -> str:
    """Draw the notes of the failed cells."""
    failed = [cell for cell in cells if cell.outcome not in SCORED and cell.note]
    items = "".join(
        f"<li><b>{escape(cell.agent)}</b>, cell <code>{escape(cell.id)}</code>, "
        f"{escape(cell.outcome or 'unfinished')}: {escape(shorten_note(cell.note))}</li>"
        for cell in failed[:MAX_NOTES]
    )
    more = f"<p>And {len(failed) - MAX_NOTES} more.</p>" if len(failed) > MAX_NOTES else ""
    return f"<details><summary>What they said</summary><ul>{items}</ul>{more}</details>" if failed else ""


def _draw_versions(groups: Sequence[AgentResults]) -> Iterator[str]:
    """Draw which cells the latest version of an agent did not play, if there are any."""
    if any(group.versions for group in groups):
        cells = "".join(
            f'<td class="text">{escape(group.versions or "the same in all cells")}</td>' for group in groups
        )
        yield f"<th scope=row>Version<small>of the agent: its files, package or program</small></th>{cells}"


def _draw_number(number: Number, groups: Sequence[AgentResults]) -> str:
    sign = {"higher": "↑", "lower": "↓", "": ""}[number.better]
    better = f' <span class="better" title="{number.better} is better">{sign}</span>' if sign else ""
    title, note = name_number(number, groups[0].scenario)
    cells = (
        _draw_cell(group, group.estimates.get(number.name), number, group.completed.get(number.name))
        for group in groups
    )
    return f"<th scope=row>{escape(title)}{better}<small>{escape(note)}</small></th>{''.join(cells)}"


def _draw_cell(
    group: AgentResults, estimate: Estimate | None, number: Number | None, completed: Estimate | None = None
) -> str:
    """Draw an estimate, of the interquartile mean if no number is given, with its own number of trials if needed."""
    if estimate is None:
        return '<td class="soft">–</td>'
    n = count_trials(estimate, number, group)
    trials = "" if n is None else f"<small>in {say_units(n, estimate.people)}</small>"
    trials += "" if completed is None else f"<small>of completed trials {escape(str(completed))}</small>"
    return f"<td>{draw_estimate(estimate, two_sided(number.bounds) if number else (0.0, 1.0))}{trials}</td>"


def draw_estimate(estimate: Estimate, bounds: Bounds | None) -> str:
    """Draw the figures, and the interval as a line if the number has a range."""
    if estimate.mean is None:
        return f'<span class="soft">{escape(str(estimate))}</span>'
    figure = estimate.figure
    rest = str(estimate).removeprefix(figure)  # an interval, or the number of trials
    figure, rest = (part.replace("-", "−") for part in (figure, rest))
    text = f'<b>{figure}</b><span class="ci">{escape(rest)}</span>'
    if bounds is None or estimate.low is None or estimate.high is None:
        return text
    return text + draw_interval(estimate.low, estimate.mean, estimate.high, bounds)
