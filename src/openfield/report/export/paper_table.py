"""Write the numbers of agents as tables for a paper or a notebook, in Markdown, LaTeX or HTML.

Stands at the end of plan -> rollout -> journal -> metrics -> report, beside the page. Agents stand below each other;
across are the numbers of one scenario, or one number in all novelties or domains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, get_args

import msgspec

from openfield.errors import InvalidInput, UnknownName
from openfield.files.atomic import replacing
from openfield.metrics.metric import Number
from openfield.metrics.selection import pick_numbers
from openfield.metrics.stats import Estimate, format_units
from openfield.metrics.summary import AgentResults, Summary
from openfield.parameters import shorten_agents
from openfield.report import words
from openfield.report.findings import find_best
from openfield.report.matrix import Across, Matrix, MatrixRow, make_matrix, pick_across
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
Columns = Across | Literal["numbers", "tasks"]
"""What stands across: domains, novelties, or the numbers of one scenario; or agents, for each task of a curriculum."""
COLUMNS: tuple[Columns, ...] = (*get_args(Across), "numbers", "tasks")
MAX_LETTERS = 70
"""Letters that fit across a page of one column; a wider table is turned if that helps, and else written small."""
SMALL = 0.7
"""The size of an interval beside that of its value."""
BEST = "Bold: performs better than every other agent (p < 0.05, corrected by Holm's rule)."
NONE_BEST = "No agent performs better than every other one (p < 0.05, corrected by Holm's rule)."


class TableCell(msgspec.Struct, frozen=True):
    """A number in a table."""

    value: str
    rest: str = ""
    """What follows it: its interval, or why it has none, its p-value and its own number of trials."""
    best: bool = False
    """Whether its agent is better than every other one there."""

    @property
    def letters(self) -> float:
        """How wide it is."""
        return len(self.value) + SMALL * len(self.rest)

    def write(self, escape: Escape, bold: str, small: str = "") -> str:
        """Return it as text.

        Args:
            escape: Makes its signs plain.
            bold: How the best value is written, with `{}` for the value.
            small: How what belongs to it is written; as it is without one.
        """
        value = escape(self.value)
        value = bold.replace("{}", value, 1) if self.best else value
        if not small or not self.rest:
            return value + escape(self.rest)
        return f"{value} {small.replace('{}', escape(self.rest.lstrip(', ')), 1)}"


class PaperTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of a paper."""

    label: str
    caption: str
    """What it shows, in a sentence or two."""
    columns: list[str]
    rows: list[tuple[str, list[TableCell]]]
    notes: list[str]
    """What else a reader must know, in sentences."""

    @property
    def head(self) -> list[str]:
        """The titles of the columns, that of the names first."""
        return ["", *self.columns]

    @property
    def letters(self) -> float:
        """How wide it is."""
        names: int = max((len(name) for name, _ in self.rows), default=0)
        columns = ([cells[at].letters for _, cells in self.rows] for at in range(len(self.columns)))
        return names + sum(max([len(title), *column]) + 2 for title, column in zip(self.columns, columns, strict=True))

    def turn(self) -> PaperTable:
        """Return the table with its columns below each other."""
        cells = [[row[at] for _, row in self.rows] for at in range(len(self.columns))]
        rows = list(zip(self.columns, cells, strict=True))
        return msgspec.structs.replace(self, columns=[name for name, _ in self.rows], rows=rows)


def escape_markdown(text: str) -> str:
    """Return text with the signs plain that Markdown would take for its own."""
    return MARKDOWN.sub(r"\\\1", text)


def escape_latex(text: str) -> str:
    """Return text with the signs that LaTeX obeys as plain signs."""
    return "".join(LATEX.get(sign, sign) for sign in text)


def write_tables(path: Path, summary: Summary, domains: Domains, form: str, across: Columns | None = None) -> int:
    """Write the numbers of all agents, controls left out, and return the number of tables.

    Args:
        path: The file to write.
        summary: The numbers.
        domains: The domains, for titles.
        form: `markdown`, `html`, or `latex`, which needs the package booktabs.
        across: What stands across, see `list_tables`.
    """
    tables = draw_tables(summary, domains, form, across)
    with replacing(path) as draft:
        draft.write_text("\n".join(tables), encoding="utf-8")
    return len(tables)


def draw_tables(summary: Summary, domains: Domains, form: str, across: Columns | None = None) -> list[str]:
    """Return the tables of a summary in one of the forms; `across` is as for `list_tables`."""
    draw = _WRITERS[form]
    return [draw(table) for table in list_tables(summary, domains, across)]


def list_tables(summary: Summary, domains: Domains, across: Columns | None = None) -> list[PaperTable]:
    """Return a table for each scenario, or for each number.

    Args:
        summary: The numbers.
        domains: The domains, for titles.
        across: What stands across: `numbers` of each scenario, or each number in all `novelties` or `domains`. By
            default domains if there are several, novelties of one domain, or numbers if there is only one scenario.
            `tasks` has a table for each number of a task, with tasks below each other and agents across.

    Raises:
        UnknownName: There is no such kind of columns.
        InvalidInput: Nothing is a curriculum of several tasks, and tasks are wanted.
    """
    if across is not None and across not in COLUMNS:
        raise UnknownName("kind of columns", across, COLUMNS, label="Known")
    scenarios = {group.scenario for group in words.split_controls(summary.groups)[0]}
    chosen: Columns = across or (pick_across(summary) if len(scenarios) > 1 else "numbers")
    if chosen == "tasks":
        if not (made := list(_list_tasks(summary, domains))):
            raise InvalidInput("There is no curriculum of several tasks to make tables of tasks.")
        return _tell_once(made)
    make = _list_scenarios(summary, domains) if chosen == "numbers" else _list_matrices(summary, domains, chosen)
    return _tell_once([_fit(table) for table in make])


def _tell_once(tables: Sequence[PaperTable]) -> list[PaperTable]:
    """Return tables of which only the last one with a note has it."""
    noted: set[str] = set()
    found: list[PaperTable] = []
    for table in reversed(tables):
        found.insert(0, msgspec.structs.replace(table, notes=[note for note in table.notes if note not in noted]))
        noted |= {*table.notes}
    return found


def _fit(table: PaperTable) -> PaperTable:
    """Return a table, turned if it is too wide and narrower then."""
    return min((table, table.turn()), key=lambda each: each.letters) if table.letters > MAX_LETTERS else table


def _list_scenarios(summary: Summary, domains: Domains) -> Iterator[PaperTable]:
    """Yield a table for each scenario: agents, and their numbers across."""
    from openfield.report.render import brief

    for scenario, members in words.group_scenarios(summary):
        groups = words.rank_agents(words.split_controls(members)[0], summary.comparisons)
        if not groups:
            continue
        numbers, names = pick_numbers(summary, groups), shorten_agents(group.agent for group in groups)
        compared = "after" if scenario.novelty else "before"
        best = find_best(
            [group.agent for group in groups], [one for one in summary.comparisons if one.scenario == scenario]
        )
        rows = []
        for group in groups:
            cells = [_make_cell(group, number, best == group.agent and number.name == compared) for number in numbers]
            rows.append((names[group.agent], cells))
            if any(number.name in group.completed for number in numbers):
                left = [_fill(group.completed.get(number.name), number, group) for number in numbers]
                rows.append((f"{names[group.agent]}, completed trials", left))
        what = f"{words.title_domain(scenario, domains)}: {words.describe_novelty(scenario, domains)}"
        is_compared = len(groups) > 1 and any(number.name == compared for number in numbers)
        yield PaperTable(
            label="-".join(("tab", scenario.domain, *scenario.novelty)),
            caption=_write_caption(what, summary, groups, best is not None if is_compared else None),
            columns=[brief(words.name_number(number, scenario)[0]) for number in numbers],
            rows=rows,
            notes=_list_notes(summary, groups),
        )


def _list_matrices(summary: Summary, domains: Domains, across: Across) -> Iterator[PaperTable]:
    """Yield a table for each number: agents, and all domains or novelties across."""
    for number in pick_numbers(summary, words.split_controls(summary.groups)[0]):
        matrix = make_matrix(summary, domains, across, number.name)
        if matrix is None:
            continue
        groups = [group for row in matrix.rows for group in row.cells if group is not None]
        names = sorted({group.scenario.domain for group in groups})
        of = f" of {names[0]}" if len(names) == 1 else ""
        what = f"{matrix.columns[0].number.title} in each {'domain' if across == 'domains' else f'novelty{of}'}"
        is_compared = number.name in ("after", "before") and len(matrix.rows) > 1
        marked = any(any(row.best) for row in matrix.rows)
        has_mean = across == "domains" and matrix.has_mean
        means = [[TableCell(words.format_number(row.mean))] if has_mean else [] for row in matrix.rows]
        yield PaperTable(
            label=f"tab-{number.name}-{across}",
            caption=_write_caption(what, summary, groups, marked if is_compared else None),
            columns=[*(column.title for column in matrix.columns), *(["mean"] if has_mean else [])],
            rows=[(row.name, [*_list_cells(matrix, row), *mean]) for row, mean in zip(matrix.rows, means, strict=True)],
            notes=[matrix.order, *_list_notes(summary, groups)],
        )


def _list_tasks(summary: Summary, domains: Domains) -> Iterator[PaperTable]:
    """Yield a table for each number of the tasks of a scenario: its tasks, and agents across."""
    for scenario, members in words.group_scenarios(summary):
        found = {each.agent: each for each in summary.curricula if each.scenario == scenario}
        known = [group for group in words.split_controls(members)[0] if group.agent in found]
        groups = words.rank_agents(known, summary.comparisons)
        names = shorten_agents(group.agent for group in groups)
        tasks = [{task.task: task for task in found[group.agent].tasks} for group in groups]
        for name, title in words.OF_TASK.items():
            columns = [{task: getattr(each, name) for task, each in column.items()} for column in tasks]
            if not any(estimate is not None for column in columns for estimate in column.values()):
                continue
            what = f"{title}; {words.title_domain(scenario, domains)}: {words.describe_novelty(scenario, domains)}"
            yield PaperTable(
                label="-".join(("tab", name, scenario.domain, *scenario.novelty)),
                caption=_write_caption(what, summary, groups, None),
                columns=[names[group.agent] for group in groups],
                rows=[
                    (task, [_show(column.get(task)) for column in columns]) for task in dict.fromkeys(chain(*columns))
                ],
                notes=_list_notes(summary, groups),
            )


def _show(estimate: Estimate | None) -> TableCell:
    """Return an estimate as a cell, or the sign for a missing one."""
    if estimate is None or estimate.mean is None:
        return TableCell(words.NONE if estimate is None else str(estimate))
    return TableCell(estimate.figure, str(estimate).removeprefix(estimate.figure))


def _list_cells(matrix: Matrix, row: MatrixRow) -> Iterator[TableCell]:
    for at, (column, group) in enumerate(zip(matrix.columns, row.cells, strict=True)):
        found = TableCell(words.NONE) if group is None else _make_cell(group, column.number, row.best[at])
        lack = row.lacks[at] if group is not None else ""
        yield msgspec.structs.replace(found, rest=f"{found.rest}, {lack}") if lack else found


def _write_caption(what: str, summary: Summary, groups: Sequence[AgentResults], marked: bool | None) -> str:
    """Return what a table shows, in two sentences.

    Args:
        what: The first words.
        summary: The numbers.
        groups: Those of the agents that it shows.
        marked: Whether a best agent is marked; None where agents are not compared.
    """
    said = f"{what}; {_count_trials(groups)}, {summary.intervals} 95 % intervals."
    return said if marked is None else f"{said} {BEST if marked else NONE_BEST}"


def _make_cell(group: AgentResults, number: Number, best: bool) -> TableCell:
    return msgspec.structs.replace(_fill(group.estimates.get(number.name), number, group), best=best)


def _fill(estimate: Estimate | None, number: Number, group: AgentResults) -> TableCell:
    """Return an estimate as a cell: its value, and apart from it what belongs to the value."""
    text = words.format_estimate(estimate, number, group)
    value = text if estimate is None or estimate.mean is None else estimate.figure
    return TableCell(value, text.removeprefix(value))


def _count_trials(groups: Sequence[AgentResults]) -> str:
    """Return over how many trials the numbers of agents are, without unchanged twins, or people."""
    people = [group.people for group in groups if group.people]
    counts = [group.trials - group.unchanged or group.trials for group in groups if not group.people]
    said = [_say_range(counts)] if counts else []
    said += [_say_range(people, people=True)] if people else []
    return " and ".join(said)


def _say_range(counts: Sequence[int], people: bool = False) -> str:
    low, high = min(counts), max(counts)
    return format_units(high, people) if low == high else f"{low} to {format_units(high, people)}"


def _list_notes(summary: Summary, groups: Sequence[AgentResults]) -> list[str]:
    """Return the terms of the scenarios, versions of agents that are not the latest, and how numbers are read."""
    terms: dict[str, None] = {}
    for group in groups:
        scenario = group.scenario
        if group in summary.totals:  # how many scenarios it is over is no setting
            scenario = msgspec.structs.replace(scenario, settings="")
        terms |= dict.fromkeys(filter(None, (words.describe_terms(scenario), group.note)))
    versions = dict.fromkeys(f"version of {group.agent}: {group.versions}" for group in groups if group.versions)
    return [*map(words.format_sentence, (*versions, *terms)), words.explain_reading(summary)]


def write_markdown(head: Sequence[str], rows: Iterable[Sequence[str]], escape: Escape = escape_markdown) -> str:
    """Return a table in Markdown; numbers stand at the right.

    Args:
        head: The titles of the columns.
        rows: The cells of each row, as text.
        escape: Makes the signs of a cell plain that Markdown would take for its own.
    """
    drawn = [f"| {' | '.join(map(escape, line))} |" for line in (head, *rows)]
    return "\n".join([drawn[0], f"|---|{'---:|' * (len(head) - 1)}", *drawn[1:]])


def write_latex(
    head: Sequence[str], rows: Iterable[Sequence[str]], caption: str, escape: Escape = escape_latex, label: str = ""
) -> str:
    """Return a table in LaTeX, which needs the package booktabs.

    Args:
        head: The titles of the columns.
        rows: The cells of each row, as text.
        caption: The caption.
        escape: Makes the signs of a cell plain that LaTeX obeys.
        label: What the paper calls it; none without one.
    """
    first, *others = [rf"    {' & '.join(map(escape, line))} \\" for line in (head, *rows)]
    name = re.sub(r"[^\w:.-]+", "-", label)
    return "\n".join(
        (
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{escape_latex(caption)}}}",
            *([rf"  \label{{{name}}}"] if name else []),
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


def _write_cells(table: PaperTable, escape: Escape, bold: str, small: str = "") -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table as text whose signs are plain."""
    rows = [[escape(name), *(cell.write(escape, bold, small) for cell in cells)] for name, cells in table.rows]
    return [*map(escape, table.head)], rows


def _draw_markdown(table: PaperTable) -> str:
    drawn = write_markdown(*_write_cells(table, escape_markdown, "**{}**"), str)
    parts = escape_markdown(table.caption), drawn, " ".join(map(escape_markdown, table.notes))
    return "\n\n".join(filter(None, parts)) + "\n"


def _draw_latex(table: PaperTable) -> str:
    """Draw a table whose notes are comments: what of them belongs into the text is the author's choice."""
    head, rows = _write_cells(table, escape_latex, r"\textbf{{}}", r"{\scriptsize {}}")
    notes = "".join(f"% {' '.join(note.split())}\n" for note in table.notes)
    drawn = write_latex(head, rows, table.caption, str, table.label)
    if table.letters > MAX_LETTERS:
        drawn = drawn.replace(r"\centering", r"\centering\footnotesize", 1)
    return f"{notes}{drawn}\n"


def _draw_html(table: PaperTable) -> str:
    """Draw a bare table, which a notebook or a site gives its own style."""
    from openfield.report.render import render

    return render("table.html", table)


_WRITERS = {"markdown": _draw_markdown, "latex": _draw_latex, "html": _draw_html}
FORMS = tuple(_WRITERS)
"""The forms of a table."""
