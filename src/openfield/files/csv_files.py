"""Read CSV files of others, and write ones that people open in spreadsheets: what looks like a formula stays text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from openfield.errors import InvalidInput
from openfield.files.data import read_bounded

MAX_CSV = 1 << 28
"""Bytes of a CSV file that is read."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What text begins with that a spreadsheet takes for a formula and runs."""


def read_csv(path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows of a file that are not empty, each with the number of its line.

    Raises:
        InvalidInput: It cannot be read, is too large or malformed.
    """
    return parse_csv(read_bounded(path, MAX_CSV), path)


def parse_csv(content: bytes, path: Path) -> list[tuple[int, list[str]]]:
    """Return the rows in the content of a file, as `read_csv` does."""
    lines = csv.reader(io.StringIO(content.decode("utf-8-sig", "replace"), newline=""))  # rows end as csv writes them
    try:
        return [(lines.line_num, row) for row in lines if any(row)]
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {lines.line_num}: {error}.") from None


def write_csv(path: Path, columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a header and rows. An apostrophe goes before text that a spreadsheet would run."""
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows([_plain(value) for value in row] for row in rows)


def _plain(value: Any) -> Any:
    """Return what looks like a formula as text; numbers stay numbers, also where they are text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    """Return whether a text is a number, or several with blanks between them, as a list of ids."""
    try:
        list(map(float, text.split(" ")))
    except ValueError:
        return False
    return True
