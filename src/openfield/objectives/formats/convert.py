"""Tables from one form into another: published pickles to sorted Parquet and back, in bounded memory.

Beside `tables`; used by `openfield objectives convert`.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from msgspec.structs import replace

from openfield.atomic import replacing
from openfield.errors import InvalidInput
from openfield.objectives.formats.load import check_form, is_parquet, load_table
from openfield.objectives.formats.parquet import Header, HugeIds, book_path, codes_in, open_rows, opened, read_header
from openfield.objectives.formats.table_builder import TableBuilder, write_table
from openfield.objectives.pickle.reader import read_pickle
from openfield.objectives.tables.checks import check_counts, check_rows
from openfield.objectives.tables.codes import make_book
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Codes, Rows, as_column
from openfield.objectives.tables.table import Table, meta_of_name

CHUNK = 1 << 20
"""Rows or codes written at once."""
BATCH = 1000
"""Entries between two SETITEMS, as picklers write them."""


class Conversion(NamedTuple):
    """What came of a conversion."""

    rows: int
    notes: tuple[str, ...]
    """What a reader should know."""


def convert(source: str | Path, target: str | Path) -> Conversion:
    """Write a table in the form the target's name asks for.

    Raises:
        InvalidInput: The source is no table, or the target is neither `.parquet` nor `.pkl`, or its folder is missing.
    """
    source, target = Path(source), Path(target)
    if source.resolve() == target.resolve():
        raise InvalidInput(f"{source}: source and target are the same file.")
    check_target(target)
    return _to_parquet(source, target) if target.suffix == ".parquet" else _to_pickle(source, target)


def check_target(target: Path) -> None:
    """A table can be written there.

    Raises:
        InvalidInput: The name has another ending, or the folder does not exist.
    """
    if target.suffix not in (".parquet", ".pkl", ".pickle"):
        raise InvalidInput(f"{target}: the target must end in .parquet or .pkl.")
    if not target.parent.is_dir():
        raise InvalidInput(f"{target}: the folder {target.parent} does not exist.")


def _to_parquet(source: Path, target: Path) -> Conversion:
    """Convert through the disk, unless ids are too large for columns: such tables are small enough for memory."""
    check_form(source)
    try:
        with TableBuilder(target, source) as builder:
            found = _add_parquet(builder, source) if is_parquet(source) else _add_pickle(builder, source)
            written = builder.write(found, single=not is_parquet(source))
            return Conversion(builder.rows, written.notes)
    except HugeIds:
        return _through_memory(source, target)


def _add_parquet(builder: TableBuilder, source: Path) -> Header:
    """Add a Parquet table, and return its description."""
    header, _, _, notes, _ = builder.add_parquet(source)
    header = header if header.ordered else replace(header, meta=meta_of_name(source.name), ordered=True)
    return replace(header, notes=header.notes or notes, num_inputs=None)


def _add_pickle(builder: TableBuilder, source: Path) -> Header:
    """Add a pickled table, and return its description."""
    notes = dict[str, None]()
    for piece in read_pickle(source):
        if isinstance(piece, Codes):
            builder.add_codes(make_book(piece.codes, piece.indices, str(source)))
        elif any(column.dtype == object for column in piece):
            raise HugeIds
        else:
            rows, remarks = check_counts(piece, str(source))
            notes |= dict.fromkeys(remarks)
            builder.add(rows)
    return Header(meta=meta_of_name(source.name), notes=tuple(notes))


def _through_memory(source: Path, target: Path) -> Conversion:
    table = load_table(source)
    if not is_parquet(source):
        _ = table.counts  # which sees that every key is there once
    write_table(table, target)
    return Conversion(len(table.obs), table.notes)


@contextmanager
def in_order(source: Path) -> Iterator[Path]:
    """The table as our sorted Parquet, with every key and code once; one in another form is converted for the time."""
    header = read_header(source) if is_parquet(source) else None
    if header is not None and header.ordered:
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="openfield-") as folder:
        place = Path(folder) / "table.parquet"
        _to_parquet(source, place)
        yield place


def _to_pickle(source: Path, target: Path) -> Conversion:
    """A pickle of plain integers that the published scripts can read, written without building the mapping."""
    rows, has_book = 0, False
    with in_order(source) as table, replacing(target) as draft, draft.open("wb") as file:
        before, notes = (read_header(table) or Header()).notes, dict[str, None]()
        file.write(b"\x80\x02}")
        for piece in _pieces(table):
            if isinstance(piece, Codes):
                _write_codes(file, piece, begins=not has_book)
                has_book = True
                continue
            checked, _, remarks = check_rows(piece, str(source))
            for entries in _entries(checked):
                file.write(b"(" + entries + b"u")
            rows, notes = rows + len(checked.obs), notes | dict.fromkeys(remarks)
        file.write(b"\x86." if has_book else b".")
    return Conversion(rows, before or tuple(notes))


def _pieces(path: Path) -> Iterator[Rows | Codes]:
    """Yield the rows and codes of a sorted Parquet table with the ids the file means, many at a time."""
    with opened(path) as base:
        if open_rows(base, 1, path, path).huge:
            yield from _pieces_in_memory(load_table(path))
            return
        for found in base.chunks("SELECT obs, action, next_obs, count AS counts FROM all1", CHUNK):
            yield Rows(**found)
        if book_path(path).exists():
            yield Codes(as_column([]), as_column([]))
            for found in base.chunks(codes_in(base, book_path(path)), CHUNK):
                codes = [int.from_bytes(code, "big") for code in found["code"]]
                yield Codes(as_column(codes), found["index"])


def _pieces_in_memory(table: Table) -> Iterator[Rows | Codes]:
    ids = np.array([*(table.ids or ()), None], object)[:-1]  # with None among them NumPy leaves integers alone
    yield Rows(ids[table.obs], table.action, ids[table.next_obs], table.count)
    if table.book is not None:
        yield Codes(as_column(table.book.codes), ids[table.book.indices])


def _entries(rows: Rows) -> Iterator[bytes]:
    """The opcodes that push entries, a batch at a time."""
    if all(column.dtype != object for column in rows):
        record = _record(rows)
        yield from (record[at : at + BATCH].tobytes() for at in range(0, len(record), BATCH))
        return
    for at in range(0, len(rows.obs), BATCH):
        batch = zip(*(column[at : at + BATCH].tolist() for column in rows), strict=True)
        yield b"".join(b"".join(map(_long, key)) + b"\x87" + _number(count) for *key, count in batch)


def _record(rows: Rows) -> Array:
    """Every entry as the opcodes that push it: three integers, tuple, count."""
    fields: list[tuple[str, Array]] = []
    for column in rows[:3]:
        fields += _integers(column)
    fields.append(("u1", np.full(len(rows.obs), 0x87)))
    if rows.counts.dtype.kind == "f":
        fields += [("u1", np.full(len(rows.obs), ord("G"))), (">f8", rows.counts)]
    else:
        fields += _integers(rows.counts)
    record = np.empty(len(rows.obs), [(f"f{number}", kind) for number, (kind, _) in enumerate(fields)])
    for number, (_, values) in enumerate(fields):
        record[f"f{number}"] = values
    return record


def _integers(column: Array) -> list[tuple[str, Array]]:
    """Four bytes after BININT, or eight after LONG1 where they are needed."""
    if len(column) and (int(column.max()) >= 2**31 or int(column.min()) < -(2**31)):
        return [("u1", np.full(len(column), 0x8A)), ("u1", np.full(len(column), 8)), ("<i8", column)]
    return [("u1", np.full(len(column), ord("J"))), ("<i4", column)]


def _write_codes(file: BinaryIO, book: Codes, begins: bool) -> None:
    """A stretch of the second mapping, which comes after all rows."""
    file.write(b"}" if begins else b"")
    for at in range(0, len(book.codes), BATCH):
        pairs = zip(*(column[at : at + BATCH].tolist() for column in book), strict=True)
        file.write(b"(" + b"".join(_long(code) + _long(index) for code, index in pairs) + b"u")


def _long(value: int) -> bytes:
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return bytes((0x8A, len(raw))) + raw


def _number(count: float) -> bytes:
    return b"G" + struct.pack(">d", count) if isinstance(count, float) else _long(count)
