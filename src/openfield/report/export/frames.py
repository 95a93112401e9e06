"""Make episodes, the numbers of every cell, or their estimates, tables of pandas or polars.

Stands at the end of plan -> rollout -> journal -> metrics -> report, beside the files that `rows` writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from openfield.errors import OpenfieldError
from openfield.installation import name_program

if TYPE_CHECKING:
    import pandas
    import polars

RowKind = Literal["estimates", "cells", "episodes"]
"""What a row is: a number of an agent in a scenario, a cell with its numbers, or an episode."""
POLARS = {str: "String", int: "Int64", float: "Float64", bool: "Boolean"}
PANDAS = {str: None, int: "int64", float: "float64", bool: "bool"}


def to_pandas(kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> pandas.DataFrame:
    """Return rows as a table of pandas, with a column for each field."""
    library, columns = _import("pandas"), _list_columns(kind, rows)
    series = {name: library.Series(values, dtype=_name_dtype(known)) for name, (known, values) in columns.items()}
    table: pandas.DataFrame = library.DataFrame(series)
    return table


def to_polars(kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> polars.DataFrame:
    """Return rows as a table of polars, with a column for each field."""
    library, columns = _import("polars"), _list_columns(kind, rows)
    types = {name: getattr(library, POLARS[known[0]]) for name, (known, _) in columns.items()}
    table: polars.DataFrame = library.DataFrame({name: found for name, (_, found) in columns.items()}, schema=types)
    return table


def _list_columns(
    kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]
) -> dict[str, tuple[tuple[type, ...], list[Any]]]:
    """Return the values of each field, with its types: one, and that of None if values may be missing."""
    fields, found = msgspec.structs.fields(kind), list(rows)
    return {f.name: (get_args(f.type) or (f.type,), [getattr(row, f.name) for row in found]) for f in fields}


def _name_dtype(types: tuple[type, ...]) -> str | None:
    """Return the type of a column in pandas; text has the one that pandas chooses."""
    return "Int64" if types[0] is int and len(types) > 1 else PANDAS[types[0]]


def _import(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        install = f"{name_program('pip')} install {package}"
        raise OpenfieldError(f"to_{package} needs {package}, which is not installed. Install it: {install}") from None
