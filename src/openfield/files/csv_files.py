"""Write CSV files that people open in spreadsheets: text that looks like a formula stays text."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What text begins with that a spreadsheet takes for a formula and runs."""


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
