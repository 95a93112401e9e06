"""Tables from one form into another: published pickles to sorted Parquet and back, in bounded memory.

Beside `tables`; used by `openfield objectives convert`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from msgspec.structs import replace

from openfield.errors import InvalidInput
from openfield.objectives.codes import CodeBook, make_book
from openfield.objectives.histograms import Array
from openfield.objectives.parquet import Header, TableWriter, read_book, read_columns, read_header, write_table
from openfield.objectives.pickles import Codes, read_pickle
from openfield.objectives.records import Rows
from openfield.objectives.spill import Spill
from openfield.objectives.stream import Seen
from openfield.objectives.tables import check_rows, is_parquet, load_table, meta_of_name
from openfield.report.files import replacing

RENUMBERED = "ids beyond 64 bits were numbered anew"
BATCH = 1000
"""Entries between two SETITEMS, as picklers write them."""


def convert(source: str | Path, target: str | Path) -> int:
    """Write a table in the form the target's name asks for; returns the number of rows.

    Raises:
        InvalidInput: The source is no table, or the target is neither `.parquet` nor `.pkl`.
    """
    source, target = Path(source), Path(target)
    if source.resolve() == target.resolve():
        raise InvalidInput(f"{source}: source and target are the same file.")
    if target.suffix == ".parquet":
        return _to_parquet(source, target)
    if target.suffix in (".pkl", ".pickle"):
        return _to_pickle(source, target)
    raise InvalidInput(f"{target}: the target must end in .parquet or .pkl.")


def _to_parquet(source: Path, target: Path) -> int:
    """Through the disk, unless ids are too large for columns: such tables are small enough for memory."""
    codes: list[int] = []
    indices: list[int] = []
    before = (read_header(source) if is_parquet(source) else None) or Header(meta=meta_of_name(source.name))
    zeros, notes = before.zeros, dict.fromkeys(before.notes)
    with Spill() as spill:
        for piece in _pieces(source):
            if isinstance(piece, Codes):
                codes += piece.codes
                indices += piece.indices
            elif any(column.dtype == object for column in piece):
                table = load_table(source)
                write_table(replace(table, notes=(*table.notes, RENUMBERED)) if table.ids else table, target)
                return len(table.obs)
            else:
                rows, dropped, remarks = check_rows(piece, str(source))
                zeros, notes = zeros + dropped, notes | dict.fromkeys(remarks)
                spill.add(rows)
        header = Header(meta=before.meta, zeros=zeros, notes=tuple(notes))
        book = make_book(codes, indices, str(source)) if codes else None
        return _write_in_order(spill, target, header, book, source)


def _write_in_order(spill: Spill, target: Path, header: Header, book: CodeBook | None, source: Path) -> int:
    seen, written = Seen(), 0
    with TableWriter(target) as writer:
        for part in spill.in_order():
            seen.add(part.obs, part.next_obs)
            written += len(part.obs)
            writer.add(part)
        if written != spill.rows and not is_parquet(source):
            raise InvalidInput(f"{source}: a key occurs more than once.")
        writer.finish(replace(header, num_inputs=seen.count), book)
    return written


def _pieces(source: Path) -> Iterator[Rows | Codes]:
    if not is_parquet(source):
        yield from read_pickle(source)
        return
    for part in read_columns(source):
        yield Rows(part.obs, part.action, part.next_obs, part.counts)
    book = read_book(source)
    if book is not None:
        yield Codes(book.codes, book.indices.tolist())


def _to_pickle(source: Path, target: Path) -> int:
    """A pickle of plain integers that the published scripts can read, written without building the mapping."""
    codes: list[Codes] = []
    rows = 0
    with replacing(target) as draft, draft.open("wb") as file:
        file.write(b"\x80\x02}")
        for piece in _pieces(source):
            if isinstance(piece, Codes):
                codes.append(piece)
            else:
                checked, _, _ = check_rows(piece, str(source))
                _write_entries(file, _record(checked))
                rows += len(checked.obs)
        _write_books(file, codes)
        file.write(b".")
    return rows


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
    if column.dtype == object:
        raise InvalidInput("Ids or counts beyond 64 bits cannot be written as a pickle.")
    if len(column) and (int(column.max()) >= 2**31 or int(column.min()) < -(2**31)):
        return [("u1", np.full(len(column), 0x8A)), ("u1", np.full(len(column), 8)), ("<i8", column)]
    return [("u1", np.full(len(column), ord("J"))), ("<i4", column)]


def _write_entries(file: BinaryIO, record: Array) -> None:
    for at in range(0, len(record), BATCH):
        file.write(b"(" + record[at : at + BATCH].tobytes() + b"u")


def _write_books(file: BinaryIO, books: list[Codes]) -> None:
    """A second mapping and the pair of both, if there is a code book."""
    if not books:
        return
    file.write(b"}")
    for book in books:
        for at in range(0, len(book.codes), BATCH):
            pairs = zip(book.codes[at : at + BATCH], book.indices[at : at + BATCH], strict=True)
            file.write(b"(" + b"".join(_long(code) + _long(index) for code, index in pairs) + b"u")
    file.write(b"\x86")


def _long(value: int) -> bytes:
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return bytes((0x8A, len(raw))) + raw
