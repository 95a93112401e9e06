"""Write results as tables for a paper or a notebook: Markdown, LaTeX or HTML, one table for each scenario.

Stands at the end of plan -> rollout -> journal -> metrics -> report, beside the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from openfield.files.atomic import replacing
from openfield.metrics.scenario import Scenario
from openfield.metrics.summary import AgentResults, Summary
from openfield.report import words
from openfield.report.words import Domains

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "−": "$-$",
} | {sign: f"\\{sign}" for sign in "&%$#_{}"}
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#])")
"""Signs that Markdown would take for its own."""


def write_tables(path: Path, summary: Summary, domains: Domains, form: str) -> int:
    """Write the numbers of all agents, controls left out, and return the number of tables.

    Args:
        path: The file to write.
        summary: The numbers.
        domains: The domains, for titles.
        form: `markdown`, `html`, or `latex`, which needs the package booktabs.
    """
    tables = draw_tables(summary, domains, form)
    with replacing(path) as draft:
        draft.write_text("\n".join(tables), encoding="utf-8")
    return len(tables)


def draw_tables(summary: Summary, domains: Domains, form: str) -> list[str]:
    """Return the table of each scenario, in one of the forms."""
    draw, reading = _WRITERS[form], words.explain_reading(summary)
    return [draw(table, reading) for table in _list_tables(summary, domains)]


class _Table:
    """The numbers of a scenario: a row for each number, a column for each agent."""

    def __init__(self, scenario: Scenario, groups: Sequence[AgentResults], summary: Summary, domains: Domains) -> None:
        named = words.shorten_agents(group.agent for group in groups)
        terms = filter(None, (words.describe_terms(scenario), words.describe_onset(groups)))
        self.title = words.title_domain(scenario, domains)
        self.caption = "; ".join((words.describe_novelty(scenario, domains), *terms))
        self.agents = [named[group.agent] for group in groups]
        self.rows = [("Trials", [words.say_trials(group) for group in groups])]
        if any(group.versions for group in groups):
            self.rows.append(("Version", [group.versions or "the same" for group in groups]))
        estimates, completed = [group.estimates for group in groups], [group.completed for group in groups]
        for number in summary.numbers:
            title = words.name_number(number, scenario)[0]
            for name, found in ((title, estimates), (f"{title}, completed trials", completed)):
                if any(number.name in each for each in found):
                    pairs = zip(found, groups, strict=True)
                    self.rows.append((name, [words.say_estimate(e.get(number.name), number, g) for e, g in pairs]))


def _list_tables(summary: Summary, domains: Domains) -> Iterator[_Table]:
    for scenario, members in groupby(summary.groups, key=lambda group: group.scenario):
        agents, _ = words.split_controls(members)
        if agents:
            yield _Table(scenario, words.rank_agents(agents, summary.comparisons), summary, domains)


def _draw_markdown(table: _Table, reading: str) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(map(_escape_markdown, cells))} |"

    lines = [line(["", *table.agents]), f"|---|{'---:|' * len(table.agents)}"]
    lines += [line([title, *cells]) for title, cells in table.rows]
    head = f"**{_escape_markdown(table.title)}**: {_escape_markdown(table.caption)}"
    return "\n".join((head, "", *lines, "", reading, ""))


def _draw_latex(table: _Table, reading: str) -> str:
    def line(cells: Sequence[str]) -> str:
        return rf"    {' & '.join(map(_escape_latex, cells))} \\"

    return "\n".join(
        (
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{_escape_latex(f'{table.title}: {table.caption}. {reading}')}}}",
            rf"  \begin{{tabular}}{{l{'r' * len(table.agents)}}}",
            r"    \toprule",
            line(["", *table.agents]),
            r"    \midrule",
            *(line([title, *cells]) for title, cells in table.rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        )
    )


def _draw_html(table: _Table, reading: str) -> str:
    """Draw a bare table, which a notebook or a site gives its own style."""
    rows = (
        f"<tr><th scope=row>{escape(title)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for title, cells in table.rows
    )
    head = "".join(f"<th scope=col>{escape(agent)}</th>" for agent in table.agents)
    return "\n".join(
        (
            f"<p><b>{escape(table.title)}</b>: {escape(table.caption)}</p>",
            f"<table><thead><tr><td></td>{head}</tr></thead>",
            f"<tbody>{''.join(rows)}</tbody></table>",
            f"<p><small>{escape(reading)}</small></p>",
            "",
        )
    )


def _escape_markdown(text: str) -> str:
    return MARKDOWN.sub(r"\\\1", text)


def _escape_latex(text: str) -> str:
    return "".join(LATEX.get(sign, sign) for sign in text)


_WRITERS = {"markdown": _draw_markdown, "latex": _draw_latex, "html": _draw_html}
FORMS = tuple(_WRITERS)
"""The forms of a table."""
