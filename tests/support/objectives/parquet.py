"""Write Parquet files as other programs do, and read any."""

import duckdb

NAMES = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR", bytes: "BLOB"}


def write_parquet(path, columns, *, kind=None, header=None):
    """Write columns of lists; `kind` is the SQL type of all of them, `header` a text in the metadata of the file."""
    kinds = {
        name: kind or max((NAMES[type(value)] for value in values), default="BIGINT")
        for name, values in columns.items()
    }
    select = ", ".join(f'unnest(?::{kinds[name]}[]) AS "{name}"' for name in columns)
    metadata = f", KV_METADATA {{openfield: '{header}'}}" if header else ""
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {select}) TO '{path}' (FORMAT parquet{metadata})", list(columns.values()))


def read_parquet(path):
    """Return the rows of a file as dictionaries."""
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT * FROM '{path}'")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
