"""Our own form of a table on disk: sorted Parquet, four bytes a row, with a description of the table in the file.

The code book of a table lies beside it as `NAME.codes.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.files.database import Database, quoted, reading
from openfield.files.large import ALLOW_LARGE, check_size
from openfield.objectives.tables.checks import BEYOND_64_BITS, FRACTIONS, MAX_INT64, wrong_count
from openfield.objectives.tables.codes import CodeBook
from openfield.objectives.tables.rows import Array, Rows
from openfield.objectives.tables.table import Meta, Table, make_table

KEY = "openfield"
SCHEMA = 1
"""Raised when older versions can no longer read what newer ones write."""
FIELDS = ("obs", "next_obs", "action", "count")
WHOLE = {f"{sign}{size}" for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")}
ALSO = {"count": {"FLOAT", "DOUBLE"}, "action": {"BOOLEAN"}}
"""What columns may hold beside whole numbers."""
ROW_BYTES = 32
"""Bytes of a row in memory, or in the temporary files of a table that must be sorted: four numbers."""
MAX_CODE_BYTES = 256
"""Bytes of an image code: 16 x 16 pixels in 256 levels."""
UNREADABLE, DAMAGED = "cannot be read as Parquet", "the file is damaged"


class HugeIds(Exception):
    """A table with ids beyond 64 bits. It is small enough for memory."""


class Header(msgspec.Struct, frozen=True):
    """The description in a file of ours."""

    schema: int = SCHEMA
    ordered: bool = True
    meta: Meta = Meta()
    num_inputs: int | None = None
    """Distinct inputs; None if they were not counted."""
    zeros: int = 0
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None
    """The ids behind the numbers in the file, in digits, if they are beyond 64 bits."""
    sums: tuple[str, ...] | None = None
    """The sums of the columns with whole numbers, in digits, by which damage is seen; None if not written."""


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """Open a session that may read a table and the code book beside it.

    Raises:
        InvalidInput: The file is not Parquet.
    """
    with Database(path, book_path(path)) as base:
        with reading(path, UNREADABLE):
            check_row_count(base, path, ROW_BYTES)
        with reading(path, DAMAGED):
            yield base


def check_row_count(base: Database, path: Path, row: int) -> None:
    """Refuse a file that has far more rows than its size can earn; each takes `row` bytes in memory or on disk.

    Raises:
        InvalidInput: It is refused.
    """
    (rows,) = base.row("SELECT num_rows FROM parquet_file_metadata(?)", base.name_of(path))
    check_size(path, path.stat().st_size, int(rows) * row, ALLOW_LARGE)


def read_header(path: Path) -> Header | None:
    """Return the description in a file, or None if openfield did not write it."""
    with opened(path) as base:
        return header_in(base, path)


def header_in(base: Database, path: Path) -> Header | None:
    """Return the description in a file, in a session that may read it."""
    found = dict(base.rows("SELECT key, value FROM parquet_kv_metadata(?)", base.name_of(path)))
    text = found.get(KEY.encode())
    try:
        header = msgspec.json.decode(text, type=Header) if text else None
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{path}: the description in the file cannot be read ({error}).") from None
    if header is not None and header.schema > SCHEMA:
        raise InvalidInput(f"{path}: written by a later version of openfield (form {header.schema}).")
    if header is not None and min(header.zeros, header.num_inputs or 0) < 0:
        raise InvalidInput(f"{path}: the description in the file counts less than nothing.")
    return header


def rows_in(base: Database, path: Path) -> str:
    """Check that a file has the columns of a table, and return a query for them.

    Raises:
        InvalidInput: A column is missing or is not of numbers.
    """
    kinds = dict(row[:2] for row in base.rows("DESCRIBE SELECT * FROM read_parquet(?)", base.name_of(path)))
    for name in FIELDS:
        if name not in kinds:
            raise InvalidInput(f"{path}: no column {name}; a table has {', '.join(FIELDS)}.")
        if kinds[name] not in WHOLE | ALSO.get(name, set()):
            raise wrong_column(path, name, kinds[name].lower())
    fields = (f"{name}::TINYINT AS {name}" if kinds[name] == "BOOLEAN" else name for name in FIELDS)
    return f"SELECT {', '.join(fields)} FROM read_parquet({quoted(base.name_of(path))})"


def wrong_column(path: Path, name: str, kind: str) -> InvalidInput:
    """Return the error for a column that does not hold whole numbers."""
    return InvalidInput(f"{path}: column {name} holds {kind} or gaps; whole numbers are needed.")


class RowFacts(NamedTuple):
    """The known facts about the rows of a table."""

    header: Header
    rows: int
    zeros: int
    notes: tuple[str, ...]
    """A caution about the counts; they are fractions if it is not empty."""
    huge: bool
    """True if ids are beyond 64 bits."""


def open_rows(base: Database, number: int, table: Path, name: Path) -> RowFacts:
    """Make the view `all1` or `all2` of the rows of a table, once they are checked.

    Args:
        base: The session, which may read the file.
        number: Which of two tables it is.
        table: The file with the rows.
        name: The file that messages speak of.

    Raises:
        InvalidInput: A count is not a number from 0 on, or rows are not in the order the file says they are.
    """
    check_row_count(base, table, ROW_BYTES)
    header = header_in(base, table) or Header(ordered=False)
    base.run(f"CREATE VIEW all{number} AS {rows_in(base, table)}")
    fractions = base.row(f"SELECT any_value(typeof(count)) FROM all{number}")[0] in ("DOUBLE", "FLOAT")
    size, zeros, *facts = base.row(
        f"SELECT count(*), count(*) FILTER (count = 0), {_each('count(*) - count({})')}, {_each('max({})')}, "
        f"{_each('sum({})')} FROM all{number}"
    )
    gaps, tops, (*whole, total) = facts[:4], facts[4:8], facts[8:]
    for field, gap in zip(FIELDS, gaps, strict=True):
        if gap:
            raise wrong_column(name, field, "numbers")
    bad = "count < 0 OR NOT isfinite(count)" if fractions else "count < 0"
    wrong = base.row(f"SELECT obs, action, next_obs, count FROM all{number} WHERE {bad} LIMIT 1")
    if wrong is not None:
        raise wrong_count(wrong[:3], wrong[3], str(name))
    check_sums(header, [int(value or 0) for value in (whole if fractions else (*whole, total))], name)
    if header.ordered:
        _check_rows_follow(base, number, name, header)
    notes = (FRACTIONS,) if fractions else (BEYOND_64_BITS,) if (total or 0) > MAX_INT64 else ()
    huge = header.ids is not None or any((top or 0) > MAX_INT64 for top in tops[:3])
    return RowFacts(header, size, zeros, notes, huge)


def _each(form: str) -> str:
    return ", ".join(form.format(name) for name in FIELDS)


def _check_rows_follow(base: Database, number: int, name: Path, header: Header) -> None:
    """Compare every row with the one before it."""
    before = ", ".join(f"lag({field}) OVER () AS {field}_before" for field in FIELDS[:3])
    behind = """obs < obs_before OR (obs = obs_before AND (next_obs < next_obs_before
        OR (next_obs = next_obs_before AND action <= action_before)))"""
    found = base.row(
        f"SELECT obs, action, next_obs, obs = obs_before AND next_obs = next_obs_before AND action = action_before "
        f"FROM (SELECT obs, next_obs, action, {before} FROM all{number}) WHERE {behind} LIMIT 1"
    )
    if found is not None and not found[3]:
        raise InvalidInput(f"{name}: the rows are not in the order the file says they are.")
    if found is not None:
        raise repeated_key(found[:3], str(name), header.ids)


def read_parquet(path: Path) -> Table:
    """Read a Parquet table into memory: ours, or any with the columns obs, action, next_obs and count."""
    with opened(path) as base:
        header = open_rows(base, 1, path, path).header
        found = base.columns("SELECT obs, action, next_obs, count FROM all1")
        rows = Rows(*map(_signed, found.values()))
        book = read_book(base, path)
    table = make_table([rows], name=str(path), meta=header.meta, single=header.ordered, ordered=header.ordered)
    check_inputs(header, table.num_inputs, path)
    return msgspec.structs.replace(
        table,
        book=book,
        zeros=table.zeros + header.zeros,
        notes=header.notes or table.notes,
        ids=table.ids if header.ids is None else _ids(header.ids, table, book, path),
    )


def count_rows(path: Path) -> int:
    """Return how many rows a file has."""
    with opened(path) as base:
        return int(base.row("SELECT num_rows FROM parquet_file_metadata(?)", base.name_of(path))[0])


def count_inputs(base: Database, path: Path) -> int:
    """Count the distinct inputs of a file that does not say how many it has."""
    rows = rows_in(base, path)
    both = " UNION ".join(f"SELECT {end} FROM ({rows}) WHERE count > 0" for end in ("obs", "next_obs"))
    return int(base.row(f"SELECT count(*) FROM ({both})")[0])


def repeated_key(key: tuple[int, int, int], name: str, ids: Sequence[str] | None = None) -> InvalidInput:
    """Return the error for a key that occurs twice, with the ids the description of the file gives to inputs."""

    def id_of(number: int) -> int:
        word = ids[number] if ids is not None and 0 <= number < len(ids) else ""
        return int(word) if word.removeprefix("-").isdecimal() else int(number)

    obs, action, next_obs = key
    return InvalidInput(f"{name}: key {(id_of(obs), int(action), id_of(next_obs))} occurs more than once.")


def check_sums(header: Header, sums: Sequence[int | None], path: Path) -> None:
    """Compare the sums of columns with those in the description of the file.

    Raises:
        InvalidInput: They differ, so the file is damaged.
    """
    for name, said, found in zip(FIELDS, header.sums or (), sums, strict=False):
        if found is not None and said != str(found):
            raise InvalidInput(f"{path}: {DAMAGED} (column {name} adds up to {found}, not to {said}).")


def check_inputs(header: Header, inputs: int, path: Path) -> None:
    """Check that the description of a file counts the inputs that its rows have.

    Raises:
        InvalidInput: It counts fewer.
    """
    if header.num_inputs is not None and header.num_inputs < inputs:
        raise InvalidInput(f"{path}: its description speaks of {header.num_inputs} inputs, its rows have {inputs}.")


def book_path(path: Path) -> Path:
    """Return where the code book of a table lies."""
    return path.with_name(f"{path.name.removesuffix('.parquet')}.codes.parquet")


def read_book(base: Database, path: Path) -> CodeBook | None:
    """Read the code book beside a table, if there is one, in the order of the book it was made from."""
    if not book_path(path).exists():
        return None
    beside = book_path(path)
    with reading(beside, UNREADABLE):
        found = base.columns(codes_in(base, beside))
    raw = b"".join(found["code"])
    width = len(raw) // max(len(found["code"]), 1) or 16
    words = np.frombuffer(raw, ">u8").reshape(-1, width // 8)[:, ::-1].astype(np.uint64)
    return CodeBook(words, np.asarray(found["index"]).astype(np.int64))


def codes_in(base: Database, path: Path) -> str:
    """Check that a file is a code book, and return a query for its codes in the order of the book it was made from.

    Raises:
        InvalidInput: It is something else.
    """
    kinds = dict(row[:2] for row in base.rows("DESCRIBE SELECT * FROM read_parquet(?)", base.name_of(path)))
    if kinds.get("code") == "BLOB" and kinds.get("index") in WHOLE:
        low, high, gaps = base.row(
            "SELECT min(octet_length(code)), max(octet_length(code)), "
            'count(*) FILTER (code IS NULL OR "index" IS NULL) FROM read_parquet(?)',
            base.name_of(path),
        )
        if not gaps and low == high and (low or 8) % 8 == 0 and (low or 8) <= MAX_CODE_BYTES:
            check_row_count(base, path, MAX_CODE_BYTES)
            order = " ORDER BY place" if "place" in kinds else ""
            return f'SELECT code, "index" FROM read_parquet({quoted(base.name_of(path))}){order}'
    raise InvalidInput(f"{path}: no code book; it has columns code, of whole 64-bit words, and index.")


def _ids(words: Sequence[str], table: Table, book: CodeBook | None, path: Path) -> tuple[int, ...]:
    columns = [column for column in (table.obs, table.next_obs, book.indices if book else table.obs) if len(column)]
    try:
        ids = tuple(int(word) for word in words)
    except ValueError:
        ids = ()
    if any(int(column.min()) < 0 or int(column.max()) >= len(ids) for column in columns):
        raise InvalidInput(f"{path}: the ids in its description are not those of its rows.")
    return ids


def _signed(array: Any) -> Array:
    """Return a column with a sign, and with numbers beyond 63 bits as Python's integers, as pickles give them."""
    column: Array = np.asarray(array)
    if column.dtype == np.uint64:  # NumPy mixes numbers with and without a sign as fractions
        return column.astype(object if len(column) and column.max() > MAX_INT64 else np.int64)
    return column
