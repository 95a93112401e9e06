"""Print tables and JSON for commands: those of the command line and those a domain brings.

A table fits a terminal of any width: columns are folded between words, and a column without room goes below its row.
Text from run files, agents and wires may hold control codes: they are printed as escapes.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.table import Table

GAP = 2
"""Blanks between columns."""
MAX_WORD = 16
"""Characters of a word that is kept in one piece where there is little room."""
INDENT = 4
"""Blanks before a column that goes below its row."""
MAX_WIDTH = 10_000
"""Columns that any table fits in."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal obeys, or that change the direction of writing. Tabs and line ends stay."""


def escape_controls(text: str) -> str:
    """Return the text with control characters as Python writes them, so that a terminal does not obey them."""
    if text.isprintable():  # which takes a tenth of the time, and most text is
        return text
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, which shows HTML and pictures."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def is_interactive() -> bool:
    """Return whether a person sees the output as it comes: on a terminal or in a notebook."""
    return is_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def say_count(value: int, word: str) -> str:
    """Return a count with its word, in the plural if need be."""
    return f"{value:,} {word}{'' if value == 1 else 's'}"


class Escaped:
    """What rich prints, with the control characters of its text escaped."""

    def __init__(self, content: RenderableType) -> None:
        self._content = content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts of the content; those that move the cursor are rich's own."""
        for part in console.render(self._content, options):
            yield part if part.control else part._replace(text=escape_controls(part.text))


def print_json(value: Any) -> None:
    """Print one JSON document. Control characters are escaped in the way of JSON."""
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    print(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_rows(titles: Sequence[str], rows: Iterable[Sequence[object]], as_json: bool) -> None:
    """Print rows as JSON objects with the titles as keys, or as a table."""
    if as_json:
        print_json([dict(zip(titles, row, strict=True)) for row in rows])
    else:
        print_table(titles, rows)


def make_console() -> Console:
    """Return a console for standard output; in a pipe or a file every row of a table is one line, for `grep`."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=MAX_WIDTH)


def print_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; its last column goes below the rows if the columns do not fit side by side."""
    cells = [list(titles), *([escape_controls(str(value)) for value in row] for row in rows)]
    console = make_console()
    if console.width == MAX_WIDTH:
        _print_lines(cells)
        return
    least = [min(MAX_WORD, max(_longest(text.split()) for text in column)) for column in zip(*cells, strict=True)]
    below = sum(least) + GAP * len(least) > console.width
    for part in _lay_out(cells, least, console.width, below):
        console.print(part)


def _print_lines(cells: Sequence[Sequence[str]]) -> None:
    """Print every row as one line. Rich would take 0.3 ms for each, and a run may have a million."""
    widths = [_longest(column) + GAP for column in zip(*cells, strict=True)]
    form = "".join(f"%-{width}s" for width in widths)
    for row in cells:
        line = form % tuple(row)
        if not line.isascii():  # some characters take two columns
            line = "".join(text + " " * (width - _measure(text)) for text, width in zip(row, widths, strict=True))
        print(line.replace("\n", " ").rstrip())


def _lay_out(cells: list[list[str]], least: list[int], room: int, below: bool) -> Iterable[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    beside = [row[:-1] for row in cells] if below else cells
    widths = _fit(beside, least, room)
    table = _begin(widths)
    for number, (row, whole) in enumerate(zip(beside, cells, strict=True)):
        style = "bold" if not number else ""
        table.add_row(*(Text(text, style=style) for text in row))
        if below and whole[-1]:
            yield table
            yield Padding(Text(whole[-1], style=style), (0, 0, 0, INDENT))
            table = _begin(widths)
    if table.row_count:
        yield table


def _begin(widths: Sequence[int]) -> Table:
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, GAP, 0, 0))
    for width in widths:
        table.add_column(width=width, overflow="fold")
    return table


def _fit(cells: Sequence[Sequence[str]], least: Sequence[int], room: int) -> list[int]:
    """Return the width of every column; the widest give way if there is not enough room for all."""
    columns = list(zip(*cells, strict=True))
    left = max(len(columns), room - GAP * len(columns))
    widths = [min(left, max(_longest(text.splitlines()) for text in column)) for column in columns]
    while sum(widths) > left:
        spare = [index for index in range(len(widths)) if widths[index] > least[index]] or range(len(widths))
        widths[max(spare, key=widths.__getitem__)] -= 1
    return widths


def _longest(texts: Sequence[str]) -> int:
    return max(map(len if all(map(str.isascii, texts)) else _measure, texts), default=0)


def _measure(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
