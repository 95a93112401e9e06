"""Write tables in memory to files."""

from pathlib import Path

from openfield.objectives.formats.convert import convert_table
from openfield.objectives.formats.table_builder import write_table


def save_table(table, path):
    """Write a table as `.parquet`, or as a `.pkl` that the published scripts can read."""
    path = Path(path)
    parquet = path if path.suffix == ".parquet" else path.with_name(f"{path.name}.between.parquet")
    write_table(table, parquet)
    if parquet != path:
        convert_table(parquet, path)
