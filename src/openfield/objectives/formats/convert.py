"""Convert published pickles to sorted Parquet and back, in bounded memory."""

from __future__ import annotations

import io
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.objectives.formats.load import check_form, is_parquet, load_table
from openfield.objectives.formats.parquet import Header, HugeIds, book_path, codes_in, open_rows, opened, read_header
from openfield.objectives.formats.table_builder import TableBuilder, write_table
from openfield.objectives.pickle.reader import read_published
from openfield.objectives.pickle.source import OddPickle
from openfield.objectives.tables.checks import check_counts, check_rows
from openfield.objectives.tables.codes import make_book
from openfield.objectives.tables.rows import Array, Codes, Rows, as_column
from openfield.objectives.tables.table import Table, meta_of_name

CHUNK = 1 << 17
"""Rows or codes written at once."""
EMPTY_MAPPING = b"\x80\x02}"
"""How a pickle of a mapping begins; the last byte puts the mapping on the stack."""


class Conversion(NamedTuple):
    """How many rows were converted, with cautions."""

    rows: int
    notes: tuple[str, ...]
    """Cautions for a reader."""


def convert_table(source: str | Path, target: str | Path) -> Conversion:
    """Write a table in the form the target's name asks for.

    Raises:
        InvalidInput: The source is not a table, or the target is neither `.parquet` nor `.pkl`, or its folder is
            missing.
    """
    source, target = Path(source), Path(target)
    if source.resolve() == target.resolve():
        raise InvalidInput(f"{source}: source and target are the same file.")
    check_target(target)
    return _to_parquet(source, target) if target.suffix == ".parquet" else _to_pickle(source, target)


def check_target(target: Path) -> None:
    """Check that a table can be written to a file.

    Raises:
        InvalidInput: The name has another ending, or the folder does not exist.
    """
    if target.suffix not in (".parquet", ".pkl", ".pickle"):
        raise InvalidInput(f"{target}: the target must end in .parquet or .pkl.")
    if not target.parent.is_dir():
        raise InvalidInput(f"{target}: the folder {target.parent} does not exist.")


def _to_parquet(source: Path, target: Path) -> Conversion:
    """Convert through the disk. Tables with ids too large for columns, and odd pickles, go through memory."""
    check_form(source)
    try:
        with TableBuilder(target, source) as builder:
            found = _add_parquet(builder, source) if is_parquet(source) else _add_pickle(builder, source)
            written = builder.write(found, single=not is_parquet(source))
            return Conversion(builder.rows, written.notes)
    except (HugeIds, OddPickle):
        return _through_memory(source, target)


def _add_parquet(builder: TableBuilder, source: Path) -> Header:
    """Add a Parquet table, and return its description."""
    header, _, _, notes, _ = builder.add_parquet(source)
    header = header if header.ordered else replace(header, meta=meta_of_name(source.name), ordered=True)
    return replace(header, notes=header.notes or notes, num_inputs=None)


def _add_pickle(builder: TableBuilder, source: Path) -> Header:
    """Add a pickled table, and return its description."""
    notes = dict[str, None]()
    for piece in read_published(source):
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
    """Yield a file with the table as sorted Parquet of ours. A table in another form is converted for the time."""
    header = read_header(source) if is_parquet(source) else None
    if header is not None and header.ordered:
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="openfield-") as folder:
        place = Path(folder) / "table.parquet"
        _to_parquet(source, place)
        yield place


def _to_pickle(source: Path, target: Path) -> Conversion:
    """Write a pickle of plain integers that the published scripts can read, a part of the mapping at a time."""
    rows, has_book = 0, False
    with in_order(source) as table, replacing(target) as draft, draft.open("wb") as file:
        before, notes = (read_header(table) or Header()).notes, dict[str, None]()
        file.write(EMPTY_MAPPING)
        for piece in _pieces(table):
            if isinstance(piece, Codes):
                file.write(b"" if has_book else EMPTY_MAPPING[-1:])
                file.write(_entries(dict(zip(*(column.tolist() for column in piece), strict=True))))
                has_book = True
                continue
            checked, _, remarks = check_rows(piece, str(source))
            *keys, counts = (column.tolist() for column in checked)
            file.write(_entries(dict(zip(zip(*keys, strict=True), counts, strict=True))))
            rows, notes = rows + len(counts), notes | dict.fromkeys(remarks)
        file.write(b"\x86." if has_book else b".")
    return Conversion(rows, before or tuple(notes))


def _entries(mapping: dict[Any, Any]) -> bytes:
    """Return the opcodes that put entries into the mapping on the stack."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 2)
    pickler.fast = True  # without a memo, so that parts fit together
    pickler.dump(mapping)
    return file.getvalue()[len(EMPTY_MAPPING) : -1]


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


def read_thresholds(path: str | Path) -> Array:
    """Return the thresholds a table was made with.

    Raises:
        InvalidInput: The file does not have them.
    """
    path = Path(path)
    header = read_header(path) if is_parquet(path) else None
    if header is None or header.meta.bins is None:
        raise InvalidInput(f"{path}: no thresholds in it; only Parquet tables made from frames keep them.")
    return np.array(header.meta.bins, np.float64)
