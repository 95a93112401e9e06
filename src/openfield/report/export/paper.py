"""Write tables for a paper or a notebook in Markdown, LaTeX or HTML, and results as such tables: one per scenario.

Stands at the end of plan -> rollout -> journal -> metrics -> report, beside the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from openfield.files.atomic import replacing
from openfield.metrics.scenario import Scenario
from openfield.metrics.selection import pick_numbers
from openfield.metrics.summary import AgentResults, Summary
from openfield.parameters import shorten_agents
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
Escape = Callable[[str], str]


def escape_markdown(text: str) -> str:
    """Return text with the signs plain that Markdown would take for its own."""
    return MARKDOWN.sub(r"\\\1", text)


def escape_latex(text: str) -> str:
    """Return text with the signs that LaTeX obeys as plain signs."""
    return "".join(LATEX.get(sign, sign) for sign in text)


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
        named = shorten_agents(group.agent for group in groups)
        terms = filter(None, (words.describe_terms(scenario), words.describe_onset(groups)))
        self.title = words.title_domain(scenario, domains)
        self.caption = "; ".join((words.describe_novelty(scenario, domains), *terms))
        self.agents = [named[group.agent] for group in groups]
        self.rows = [["Trials", *(words.format_trials(group) for group in groups)]]
        if any(group.versions for group in groups):
            self.rows.append(["Version", *(group.versions or "the same" for group in groups)])
        estimates, completed = [group.estimates for group in groups], [group.completed for group in groups]
        for number in pick_numbers(summary, groups):
            title = words.name_number(number, scenario)[0]
            for name, found in ((title, estimates), (f"{title}, completed trials", completed)):
                if any(number.name in each for each in found):
                    pairs = zip(found, groups, strict=True)
                    self.rows.append([name, *(words.format_estimate(e.get(number.name), number, g) for e, g in pairs)])


def _list_tables(summary: Summary, domains: Domains) -> Iterator[_Table]:
    for scenario, members in words.group_scenarios(summary):
        agents, _ = words.split_controls(members)
        if agents:
            yield _Table(scenario, words.rank_agents(agents, summary.comparisons), summary, domains)


def write_markdown(head: Sequence[str], rows: Iterable[Sequence[str]], escape: Escape = escape_markdown) -> str:
    """Return a table in Markdown; numbers stand at the right.

    Args:
        head: The titles of the columns.
        rows: The cells of each row, as text.
        escape: Makes the signs of a cell plain that Markdown would take for its own.
    """
    lines = [head, *rows]
    drawn = [f"| {' | '.join(map(escape, line))} |" for line in lines]
    return "\n".join([drawn[0], f"|---|{'---:|' * (len(head) - 1)}", *drawn[1:]])


def write_latex(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str, escape: Escape = escape_latex) -> str:
    """Return a table in LaTeX, which needs the package booktabs.

    Args:
        head: The titles of the columns.
        rows: The cells of each row, as text.
        caption: The caption.
        escape: Makes the signs of a cell plain that LaTeX obeys.
    """
    first, *others = [rf"    {' & '.join(map(escape, line))} \\" for line in (head, *rows)]
    return "\n".join(
        (
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{escape_latex(caption)}}}",
            rf"  \begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            r"    \toprule",
            first,
            r"    \midrule",
            *others,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        )
    )


def _draw_markdown(table: _Table, reading: str) -> str:
    head = f"**{escape_markdown(table.title)}**: {escape_markdown(table.caption)}"
    return f"{head}\n\n{write_markdown(['', *table.agents], table.rows)}\n\n{reading}\n"


def _draw_latex(table: _Table, reading: str) -> str:
    caption = f"{table.title}: {table.caption}. {reading}"
    return write_latex(["", *table.agents], table.rows, caption) + "\n"


def _draw_html(table: _Table, reading: str) -> str:
    """Draw a bare table, which a notebook or a site gives its own style."""
    from openfield.report.render import render

    return render("table.html", {"table": table, "reading": reading})


_WRITERS = {"markdown": _draw_markdown, "latex": _draw_latex, "html": _draw_html}
FORMS = tuple(_WRITERS)
"""The forms of a table."""
