"""Write the numbers of detectors as tables: for a terminal, in Markdown, in LaTeX (booktabs), or as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from openfield.metrics.ood.benchmark import AVERAGES, LOWER_IS_BETTER, MEASURES, OWN, Benchmark
from openfield.metrics.ood.catalogue import DETECTORS
from openfield.metrics.ood.resampling import DetectorComparison, PairedDifference
from openfield.metrics.stats import format_p
from openfield.report.export.paper_table import escape_latex, write_latex, write_markdown

Cells = list[list[str]]
CONVENTIONS = (
    "Higher confidence means known. AUROC: chance that an unknown sample has the lower confidence. FPR95: errors at "
    "the first threshold that finds 95 % of the positives. AUPR: trapezoids. FPR95 and CCR set their threshold on the "
    "test samples, as they are defined; no detector sees a test label."
)


def title_of(name: str) -> str:
    """Return the name of a detector in tables, with its parameters."""
    plain, bracket, rest = name.partition("(")
    if name == OWN:
        return "your conf"
    return f"{DETECTORS[plain].title}{bracket}{rest}" if plain in DETECTORS else name


def tabulate_measure(table: Benchmark, measure: str, digits: int, bold: Callable[[str], str] = str) -> Cells:
    """Return the table of a measure: detectors x sets, with averages over near and far sets; the best are bold."""
    best = {column: _best(table, measure, column, digits) for column in table.columns}
    rows = [["detector", *table.columns]]
    for name, values in table.rows.items():
        texts = {column: write_number(values[column][measure], digits) for column in table.columns}
        rows.append([title_of(name), *(bold(text) if text == best[column] else text for column, text in texts.items())])
    return rows


def write_number(value: float | None, digits: int) -> str:
    """Return a number with its decimals, or `-` for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def comparison_cells(
    comparison: DetectorComparison, columns: Sequence[str], measures: Sequence[str], digits: int
) -> Cells:
    """Return the table of differences from the reference, with intervals and p-values.

    Args:
        comparison: The differences.
        columns: The sets and averages; only averages are shown if there are any.
        measures: The measures that are shown.
        digits: Decimals of numbers.
    """
    averages = [name for name in columns if name in AVERAGES.values()] or list(columns)
    rows = [["detector", "measure", "set", "difference", "95 % interval", "p, corrected"]]
    for name, values in comparison.differences.items():
        for column in averages:
            for measure in measures:
                one = values[column][measure]
                interval = f"[{one.low:+.{digits}f}, {one.high:+.{digits}f}]"
                title = MEASURES[measure].partition(" ")[0]
                rows.append([title_of(name), title, column, f"{one.value:+.{digits}f}", interval, _format_p(one)])
    return rows


def interval_cells(comparison: DetectorComparison, columns: Sequence[str], measure: str, digits: int) -> Cells:
    """Return the table of the intervals of a measure: detectors x sets.

    Args:
        comparison: The intervals.
        columns: The sets and averages.
        measure: The measure.
        digits: Decimals of numbers.
    """
    rows = [["detector", *columns]]
    for name, values in comparison.intervals.items():
        found = (values[column][measure] for column in columns)
        rows.append([title_of(name), *(f"[{one.low:.{digits}f}, {one.high:.{digits}f}]" for one in found)])
    return rows


def _format_p(one: PairedDifference) -> str:
    """Return a corrected p-value; one that more resamplings could make smaller is at most this."""
    return format_p(one.p_holm).replace("p=", "p<=") if one.floored and one.p_holm < 1 else format_p(one.p_holm)


def write_cells(cells: Cells, form: str, caption: str) -> str:
    """Return cells as a table for a paper. Cells that are bold already are taken as they are.

    Args:
        cells: The rows, the titles of the columns first.
        form: `markdown` or `latex`.
        caption: What the table shows.
    """
    head, *rows = cells
    if form == "markdown":
        return write_markdown(head, rows, lambda text: text.replace("|", r"\|"))
    return write_latex(head, rows, caption, lambda text: text if text.startswith("\\textbf{") else escape_latex(text))


def bold_markdown(text: str) -> str:
    """Return text that Markdown shows bold."""
    return f"**{text}**"


def bold_latex(text: str) -> str:
    """Return text that LaTeX shows bold."""
    return rf"\textbf{{{text}}}"


def list_remarks(table: Benchmark, comparison: DetectorComparison | None) -> Iterator[str]:
    """Yield the lines below the tables: the sets scored and left out, and the meaning of the numbers."""
    counts = ", ".join(f"{name} {count:,}" for name, count in table.samples.items())
    yield f"Samples: {counts}. In-distribution: {table.id}" + (
        "." if table.accuracy is None else f", of which {100 * table.accuracy:.2f} % are classified rightly."
    )
    for name, needs in table.missing.items():
        yield f"Not scored: {title_of(name)} needs {', '.join(needs)}."
    if comparison is not None:
        yield (
            f"Differences from {title_of(comparison.reference)} on the same {comparison.resamples} resamplings of "
            "samples; intervals are their middle 95 %. P-values are corrected over the detectors (Holm); p<= is the "
            "least that this number of resamplings can show."
        )
    yield CONVENTIONS


def as_values(table: Benchmark, comparison: DetectorComparison | None) -> dict[str, Any]:
    """Return everything as plain values for JSON, with all digits."""
    found: dict[str, Any] = msgspec.to_builtins(table) | {"lower_is_better": sorted(LOWER_IS_BETTER)}
    return found | {"comparison": msgspec.to_builtins(comparison)}


def _best(table: Benchmark, measure: str, column: str, digits: int) -> str:
    values = [row[column][measure] for row in table.rows.values()]
    present = [value for value in values if value is not None]
    if len(present) < 2:
        return ""
    return write_number(min(present) if measure in LOWER_IS_BETTER else max(present), digits)
