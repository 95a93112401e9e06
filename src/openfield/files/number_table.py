"""Read tables of numbers that others made, from CSV and Parquet files: named columns, all of the same length."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.errors import InvalidInput
from openfield.files.csv_files import read_csv
from openfield.files.database import Database, reading
from openfield.files.large import ALLOW_LARGE, check_size

Columns = dict[str, NDArray[np.float64]]
PARQUET_KINDS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|BOOLEAN|DECIMAL\(\d+,\d+\)")
"""Types of columns that hold numbers."""


def read_number_table(path: Path) -> Columns:
    """Return the columns of a file that hold numbers; those that begin with something else are left out.

    Raises:
        InvalidInput: It is neither CSV nor Parquet, is damaged or too large, or has no number.
    """
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidInput(f"{path}: a table of numbers is a .csv or a .parquet file.")
    found = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    for name, column in found.items():
        if not np.isfinite(column).all():
            place = int(np.flatnonzero(~np.isfinite(column))[0])
            raise InvalidInput(f"{path}: column {name} has no number in row {place}; rows count from 0.")
    if not found or not len(next(iter(found.values()))):
        raise InvalidInput(f"{path} has no column of numbers.")
    return found


def _read_csv(path: Path) -> Columns:
    rows = [row for _, row in read_csv(path)]
    if not rows:
        raise InvalidInput(f"{path} is empty.")
    has_names = not all(map(_is_number, rows[0]))
    names = [name.strip() for name in rows[0]] if has_names else [str(place) for place in range(len(rows[0]))]
    if len(set(names)) < len(names):
        raise InvalidInput(f"{path}: two columns have the same name.")
    body = rows[1:] if has_names else rows
    return {
        name: _read_column(path, name, [row[place : place + 1] for row in body])
        for place, name in enumerate(names)
        if body and place < len(body[0]) and _is_number(body[0][place])
    }


def _read_column(path: Path, name: str, cells: Sequence[list[str]]) -> NDArray[np.float64]:
    try:
        return np.array([float(cell[0]) for cell in cells])
    except (ValueError, IndexError):
        wrong = next(row for row, cell in enumerate(cells) if not cell or not _is_number(cell[0]))
        raise InvalidInput(f"{path}: column {name} has no number in row {wrong}; rows count from 0.") from None


def _read_parquet(path: Path) -> Columns:
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    with Database(path) as base, reading(path, "it cannot be read as Parquet"):
        file = base.name_of(path)
        kinds = dict(row[:2] for row in base.rows("DESCRIBE SELECT * FROM read_parquet(?)", file))
        (rows,) = base.row("SELECT num_rows FROM parquet_file_metadata(?)", file)
        named = [name for name, kind in kinds.items() if PARQUET_KINDS.fullmatch(kind)]
        check_size(path, path.stat().st_size, int(rows) * 8 * max(1, len(named)), ALLOW_LARGE)
        if not named:
            return {}
        chosen = ", ".join(f"{_quote(name)}::DOUBLE AS c{number}" for number, name in enumerate(named))
        found = base.columns(f"SELECT {chosen} FROM read_parquet(?)", file)
    return {name: _fill(found[f"c{number}"]) for number, name in enumerate(named)}


def _fill(column: Any) -> NDArray[np.float64]:
    return np.ma.filled(np.ma.asarray(column, dtype=float), math.nan)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
