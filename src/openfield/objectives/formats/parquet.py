"""Our own form of a table at rest: sorted Parquet, four bytes a row, with what is known about it in the file.

Beside `pickles`; the only place that touches pyarrow (extra `data`). A code book lies beside its table as
`NAME.codes.parquet`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import numpy as np

from openfield.atomic import replacing
from openfield.errors import InvalidInput, MissingExtra
from openfield.objectives.tables.checks import LARGEST
from openfield.objectives.tables.codes import CodeBook
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Columns, Rows
from openfield.objectives.tables.sortedness import Order
from openfield.objectives.tables.table import Meta, Table, make_table

KEY = b"openfield"
ROW_GROUP = 1 << 20
BATCH = 1 << 16
BUFFER = 1 << 20
"""Bytes read at once; by default whole columns would be held, 400 MB for 10^8 rows."""
SCHEMA = 1
"""Raised when older versions can no longer read what newer ones write."""
FIELDS = ("obs", "next_obs", "action", "count")


class Header(msgspec.Struct, frozen=True):
    """What a file of ours says about itself."""

    schema: int = SCHEMA
    ordered: bool = True
    meta: Meta = Meta()
    num_inputs: int | None = None
    """Distinct inputs; None where nobody counted."""
    zeros: int = 0
    notes: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None
    """The ids behind the numbers in the file, in digits, where they are beyond 64 bits."""


class TableWriter:
    """A Parquet table under way: it appears under its name when it is complete, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._place = replacing(path)
        self._writer: Any = None

    def __enter__(self) -> TableWriter:
        self._draft = self._place.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._writer is not None:
            self._writer.close()
        self._place.__exit__(kind, error, trace)

    def add(self, rows: Columns) -> None:
        """Append rows; they follow all rows before them in order."""
        arrow, parquet = _arrow()
        arrays = dict(zip(FIELDS, rows, strict=True))
        table = arrow.table({name: arrow.array(_wide(array)) for name, array in arrays.items()})
        if self._writer is None:
            self._writer = parquet.ParquetWriter(
                self._draft,
                table.schema,
                compression="zstd",
                use_dictionary=["action", "count"],
                column_encoding={"obs": "DELTA_BINARY_PACKED", "next_obs": "DELTA_BINARY_PACKED"},
                write_page_checksum=True,
            )
        self._writer.write_table(table, row_group_size=ROW_GROUP)

    def finish(self, header: Header, book: Iterable[CodeBook] = ()) -> None:
        """Write what is known about the table, and its code book, in parts by rising code; it appears at the end."""
        if self._writer is None:
            self.add(Columns(*(np.empty(0, np.int64) for _ in FIELDS)))
        self._writer.add_key_value_metadata({KEY: msgspec.json.encode(header)})
        self._writer.close()
        if not write_book(book, book_path(self.path)):
            book_path(self.path).unlink(missing_ok=True)  # that of a table this one replaces


def write_table(table: Table, path: str | Path) -> None:
    """Write a table in memory as sorted Parquet."""
    path = Path(path)
    order = np.lexsort((table.action, table.next_obs, table.obs))
    columns = Columns(table.obs[order], table.next_obs[order], table.action[order], table.count[order])
    header = Header(
        meta=table.meta,
        num_inputs=table.num_inputs,
        zeros=table.zeros,
        notes=table.notes,
        ids=None if table.ids is None else tuple(map(str, table.ids)),
    )
    with TableWriter(path) as writer:
        for at in range(0, len(order), ROW_GROUP):
            writer.add(columns.part(at, at + ROW_GROUP))
        writer.finish(header, [] if table.book is None else [table.book])


def read_header(path: Path) -> Header | None:
    """What the file says about itself; None if it is not of our making."""
    with _open(path) as file:
        return _header_in(file, path)


def _header_in(file: Any, path: Path) -> Header | None:
    text = (file.schema_arrow.metadata or {}).get(KEY) or (file.metadata.metadata or {}).get(KEY)
    try:
        header = msgspec.json.decode(text, type=Header) if text else None
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{path}: the description in the file cannot be read ({error}).") from None
    if header is not None and header.schema > SCHEMA:
        raise InvalidInput(f"{path}: written by a later version of openfield (form {header.schema}).")
    if header is not None and min(header.zeros, header.num_inputs or 0) < 0:
        raise InvalidInput(f"{path}: the description in the file counts less than nothing.")
    return header


def read_table(path: Path) -> Table:
    """A Parquet table in memory: ours, or any with the columns obs, action, next_obs and count."""
    header = read_header(path) or Header(ordered=False)
    pieces = [Rows(part.obs, part.action, part.next_obs, part.counts) for part in read_columns(path)]
    table = make_table(pieces, name=str(path), meta=header.meta, single=header.ordered, ordered=header.ordered)
    book = read_book(path)
    return msgspec.structs.replace(
        table,
        book=book,
        zeros=table.zeros + header.zeros,
        notes=header.notes or table.notes,
        ids=table.ids if header.ids is None else _ids(header.ids, table, book, path),
    )


def _ids(words: Sequence[str], table: Table, book: CodeBook | None, path: Path) -> tuple[int, ...]:
    columns = [column for column in (table.obs, table.next_obs, book.indices if book else table.obs) if len(column)]
    try:
        ids = tuple(int(word) for word in words)
    except ValueError:
        ids = ()
    if any(int(column.min()) < 0 or int(column.max()) >= len(ids) for column in columns):
        raise InvalidInput(f"{path}: the ids in its description are not those of its rows.")
    return ids


def read_columns(path: Path) -> Iterator[Columns]:
    """The rows of a Parquet table, a batch at a time.

    Raises:
        InvalidInput: The file has no such rows, or says that they are in order and they are not.
    """
    with _open(path) as file:
        missing = [name for name in FIELDS if name not in file.schema_arrow.names]
        if missing:
            raise InvalidInput(f"{path}: no column {missing[0]}; a table has {', '.join(FIELDS)}.")
        header = _header_in(file, path)
        order = Order(str(path), header.ids) if header is not None and header.ordered else None
        for batch in _batches(file, FIELDS, path):
            part = Columns(*(_column(batch.column(name), name, path) for name in FIELDS))
            if order is not None:
                order.check(part)
            yield part


def count_rows(path: Path) -> int:
    """How many rows the file has."""
    with _open(path) as file:
        return int(file.metadata.num_rows)


def book_path(path: Path) -> Path:
    """Where the code book of a table lies."""
    return path.with_name(f"{path.name.removesuffix('.parquet')}.codes.parquet")


def write_book(parts: Iterable[CodeBook], path: Path) -> bool:
    """Write a code book that comes in parts by rising code; says whether there is any part."""
    _, parquet = _arrow()
    tables = map(_book_table, parts)
    first = next(tables, None)
    if first is None:
        return False
    settings = {"compression": "zstd", "write_page_checksum": True}
    with replacing(path) as draft, parquet.ParquetWriter(draft, first.schema, **settings) as writer:
        for table in chain([first], tables):
            writer.write_table(table)
    return True


def _book_table(book: CodeBook) -> Any:
    """Codes as bytes of one width, the most significant first, so that they sort as numbers."""
    arrow, _ = _arrow()
    raw = np.ascontiguousarray(book.words[:, ::-1].astype(">u8")).view(np.uint8)
    order = np.lexsort(book.words.T)
    width = 8 * book.words.shape[1]
    codes = arrow.FixedSizeBinaryArray.from_buffers(
        arrow.binary(width), len(order), [None, arrow.py_buffer(np.ascontiguousarray(raw[order]))]
    )
    places = np.arange(len(order)) if book.places is None else book.places
    return arrow.table(
        {"code": codes, "index": arrow.array(book.indices[order]), "place": arrow.array(places[order].astype(np.int64))}
    )


def read_book(path: Path) -> CodeBook | None:
    """The code book beside a table, if there is one, in the order of the book it was made from."""
    parts = list(read_codes(path))
    if not parts:
        return None
    words, indices = (np.concatenate([getattr(part, name) for part in parts]) for name in ("words", "indices"))
    places = [part.places for part in parts[1:] if part.places is not None]
    order = np.argsort(np.concatenate(places), kind="stable") if places else slice(None)
    return CodeBook(words[order], indices[order])


def read_codes(path: Path) -> Iterator[CodeBook]:
    """The code book beside a table, a batch at a time, one at least; nothing if there is none.

    Raises:
        InvalidInput: It is something else.
    """
    beside = book_path(path)
    if not beside.exists():
        return
    with _open(beside) as file:
        _check_book(file.schema_arrow, beside)
        width = file.schema_arrow.field("code").type.byte_width
        yield CodeBook(np.empty((0, width // 8), np.uint64), np.empty(0, np.int64))
        names = [name for name in ("code", "index", "place") if name in file.schema_arrow.names]
        for batch in _batches(file, names, beside):
            codes = batch.column("code")
            start = codes.offset * width
            raw = np.frombuffer(codes.buffers()[1], np.uint8)[start : start + len(codes) * width]
            words = raw.reshape(len(codes), width).view(">u8")[:, ::-1].astype(np.uint64)
            index, *place = (_column(batch.column(name), name, beside).astype(np.int64) for name in names[1:])
            yield CodeBook(words, index, *place)


def _check_book(schema: Any, path: Path) -> None:
    arrow, _ = _arrow()
    fields = dict(zip(schema.names, schema.types, strict=True))
    code = fields.get("code")
    if code is None or "index" not in fields or not arrow.types.is_fixed_size_binary(code) or code.byte_width % 8:
        raise InvalidInput(f"{path}: no code book; it has columns code, of whole 64-bit words, and index.")


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("data", "Reading and writing Parquet") from None
    return pyarrow, pyarrow.parquet


def _open(path: Path) -> Any:
    arrow, parquet = _arrow()
    try:
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]}).") from None


def _batches(file: Any, columns: Sequence[str], path: Path) -> Iterator[Any]:
    arrow, _ = _arrow()
    try:
        yield from file.iter_batches(BATCH, columns=list(columns), use_threads=False)
    except (arrow.ArrowException, OSError) as error:
        raise InvalidInput(f"{path}: the file is damaged ({str(error).splitlines()[0]}).") from None


def _wide(array: Array) -> Array:
    """Columns have one type in all row groups: 64 bits, which cost nothing once encoded."""
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64, copy=False)


def _column(column: Any, name: str, path: Path) -> Array:
    array: Array = column.to_numpy(zero_copy_only=False)
    if column.null_count or array.dtype.kind not in ("iuf" if name == "count" else "iu"):
        raise InvalidInput(f"{path}: column {name} holds {column.type} or gaps; whole numbers are needed.")
    # Beyond 63 bits numbers become Python's, as they do from pickles; whoever gets them numbers them anew.
    if array.dtype == np.uint64:  # the rest are brought to one type with a sign: NumPy mixes the two as fractions
        return array.astype(object if len(array) and array.max() > LARGEST else np.int64)
    return array
