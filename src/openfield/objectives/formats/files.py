"""Tables written to files in the form their name asks for, and thresholds read back from them.

The rim of `episodes`; `convert` is its counterpart for tables that are files already.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.formats.convert import convert
from openfield.objectives.formats.load import is_parquet
from openfield.objectives.formats.parquet import read_header
from openfield.objectives.formats.table_builder import write_table
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.table import Table


def save_table(table: Table, path: str | Path) -> None:
    """Write a table as `.parquet`, or as a `.pkl` that the published scripts can read."""
    path = Path(path)
    if path.suffix == ".parquet":
        write_table(table, path)
        return
    with tempfile.TemporaryDirectory(prefix="openfield-") as folder:
        between = Path(folder) / "table.parquet"
        write_table(table, between)
        convert(between, path)


def read_thresholds(path: str | Path) -> Array:
    """The thresholds a table was made with.

    Raises:
        InvalidInput: The file does not have them.
    """
    path = Path(path)
    header = read_header(path) if is_parquet(path) else None
    if header is None or header.meta.bins is None:
        raise InvalidInput(f"{path}: no thresholds in it; only Parquet tables made from frames keep them.")
    return np.array(header.meta.bins, np.float64)
