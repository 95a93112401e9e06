"""Build a Parquet table from rows and codes in any order and of any number.

They wait in a DuckDB session, which sorts them beyond memory and writes the files.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.files.database import Database, reading
from openfield.objectives.formats.parquet import (
    FIELDS,
    KEY,
    Header,
    HugeIds,
    RowFacts,
    book_path,
    codes_in,
    open_rows,
    repeated_key,
)
from openfield.objectives.tables.codes import CodeBook, as_bytes
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.table import Table

FAILED = "the table cannot be made"


class TableBuilder:
    """A table in the making. Its files appear under their names when it is written, or not at all."""

    def __init__(self, target: Path, source: Path | None = None) -> None:
        """Begin a table.

        Args:
            target: The Parquet file to write.
            source: The file that rows come from, of which messages speak.
        """
        self._target, self._source = target, source or target
        self._stack = ExitStack()
        self.has_book, self._codes, self._fractions = False, 0, False

    def __enter__(self) -> Self:
        self._draft = self._stack.enter_context(replacing(self._target))
        self._book_draft = self._draft.with_name(f"{self._draft.name}.codes")
        self._stack.callback(self._book_draft.unlink, missing_ok=True)
        self.base = self._stack.enter_context(
            Database(self._draft, self._book_draft, self._source, book_path(self._source))
        )
        self._stack.enter_context(reading(self._source, FAILED))
        self.base.run("CREATE TABLE rows (obs BIGINT, next_obs BIGINT, action BIGINT, count BIGINT)")
        self.base.run('CREATE TABLE codes (code BLOB, "index" BIGINT, place BIGINT)')
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def add(self, rows: Rows) -> None:
        """Add rows with checked counts; a count may be zero."""
        if rows.counts.dtype.kind == "f":
            self._take_fractions()
        columns = map(np.ascontiguousarray, (rows.obs, rows.next_obs, rows.action, rows.counts))
        self.base.insert("rows", dict(zip(FIELDS, columns, strict=True)))

    def add_parquet(self, path: Path) -> RowFacts:
        """Add the rows and codes of a Parquet table.

        Raises:
            HugeIds: Its ids are beyond 64 bits.
        """
        facts = open_rows(self.base, 0, path, path)
        if facts.huge:
            raise HugeIds
        if facts.notes:
            self._take_fractions()
        self.base.run("INSERT INTO rows SELECT obs, next_obs, action, count FROM all0")
        if book_path(path).exists():
            self.has_book = True
            query = codes_in(self.base, book_path(path))
            self.base.run(f"INSERT INTO codes SELECT *, row_number() OVER () - 1 FROM ({query})")
        return facts

    def _take_fractions(self) -> None:
        if not self._fractions:
            self.base.run("ALTER TABLE rows ALTER count TYPE DOUBLE")
            self._fractions = True

    def add_codes(self, book: CodeBook) -> None:
        """Add codes, which follow those before them in the order of the book."""
        self.has_book = True
        size = len(book.indices)
        places = np.arange(self._codes, self._codes + size)
        self._codes += size
        self.base.insert("codes", {"code": as_bytes(book.words), "index": book.indices, "place": places})

    def write(self, header: Header, *, single: bool) -> Header:
        """Sort the rows and write the table and its code book.

        Args:
            header: The known facts about the table. The number of inputs, of zero counts and the sums are filled in.
            single: Whether a key that occurs twice is a mistake; otherwise its counts are added.

        Raises:
            InvalidInput: A key or a code occurs twice.
        """
        self._add_up(single)
        (zeros,) = self.base.row("SELECT count(*) FROM summed WHERE count = 0")
        self.base.run("DELETE FROM summed WHERE count = 0")
        inputs = header.num_inputs
        if inputs is None:
            (inputs,) = self.base.row("SELECT count(*) FROM (SELECT obs FROM summed UNION SELECT next_obs FROM summed)")
        sums = self.base.row("SELECT sum(obs), sum(next_obs), sum(action), sum(count) FROM summed")
        header = msgspec.structs.replace(
            header,
            num_inputs=inputs,
            zeros=header.zeros + zeros,
            sums=tuple(str(int(value or 0)) for value in sums[: 3 if self._fractions else 4]),
        )
        select = "SELECT obs, next_obs, action, count FROM summed ORDER BY obs, next_obs, action"
        self.base.write_parquet(select, self._draft, {KEY: msgspec.json.encode(header).decode()})
        self._write_book()
        return header

    @property
    def rows(self) -> int:
        """How many rows were written."""
        return int(self.base.row("SELECT count(*) FROM summed")[0])

    def _add_up(self, single: bool) -> None:
        """Make the table `summed`, in which every key is there once."""
        total = "sum(count)" if self._fractions else "sum(count)::BIGINT"
        self.base.run(
            f"CREATE TABLE summed AS SELECT obs, next_obs, action, {total} AS count, count(*) AS times "
            "FROM rows GROUP BY obs, next_obs, action"
        )
        self.base.run("DROP TABLE rows")
        again = "SELECT obs, action, next_obs FROM summed WHERE times > 1 ORDER BY obs, next_obs, action LIMIT 1"
        if single and (key := self.base.row(again)) is not None:
            raise repeated_key(key, str(self._source))

    def _write_book(self) -> None:
        if not self.has_book:
            book_path(self._target).unlink(missing_ok=True)  # that of a table this one replaces
            return
        (width,) = self.base.row("SELECT coalesce(max(octet_length(code)), 16) FROM codes")
        padded = f"repeat('\\x00'::BLOB, {width} - octet_length(code)) || code"
        self.base.run(f"UPDATE codes SET code = {padded} WHERE octet_length(code) < {width}")
        again = self.base.row("SELECT code FROM codes GROUP BY code HAVING count(*) > 1 ORDER BY code LIMIT 1")
        if again is not None:
            code = int.from_bytes(again[0], "big")
            raise InvalidInput(f"{self._source}: code {code} occurs more than once in the code book.")
        with replacing(book_path(self._target)) as draft:
            self.base.write_parquet('SELECT code, "index", place FROM codes ORDER BY code', self._book_draft)
            self._book_draft.replace(draft)


def write_table(table: Table, path: str | Path) -> None:
    """Write a table in memory as sorted Parquet."""
    header = Header(
        meta=table.meta,
        num_inputs=table.num_inputs,
        zeros=table.zeros,
        notes=table.notes,
        ids=None if table.ids is None else tuple(map(str, table.ids)),
    )
    with TableBuilder(Path(path)) as builder:
        builder.add(Rows(table.obs, table.action, table.next_obs, table.count))
        if table.book is not None:
            builder.add_codes(table.book)
        builder.write(header, single=False)
