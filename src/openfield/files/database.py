"""A DuckDB session that may touch only the files it is given.

It sorts and joins tables beyond memory and reads and writes Parquet (extra `data`). It installs and loads no
extensions, and its temporary files are gone when it is closed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from openfield.errors import MORE_MEMORY, InvalidInput
from openfield.lazy import import_extra

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

MAX_MEMORY = "1GB"
"""Memory of a session; what needs more goes through temporary files."""
THREADS = 2


class Database:
    """Tables in memory or in temporary files, and SQL over them and over the files given."""

    def __init__(self, *files: Path) -> None:
        duckdb = _duckdb()
        self._folder = tempfile.TemporaryDirectory(prefix="openfield-")
        settings = {
            "memory_limit": MAX_MEMORY,
            "threads": THREADS,
            "temp_directory": self._folder.name,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
        }
        try:
            self._connection = duckdb.connect(":memory:", config=settings)
            allowed = ", ".join(quoted(name) for path in files for name in {str(path.absolute()), self.name_of(path)})
            self._connection.execute(f"SET allowed_paths = [{allowed}]; SET enable_external_access = false")
            self._connection.execute("SET enable_progress_bar = false; SET lock_configuration = true")
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._folder.cleanup()

    def name_of(self, path: Path) -> str:
        """Return the name by which the session reads a file: its path, or a link to it if that reads as a pattern."""
        if not set("*?[") & set(str(path.absolute())):
            return str(path.absolute())
        link = Path(self._folder.name) / hashlib.sha256(bytes(path.absolute())).hexdigest()
        if not link.is_symlink():
            link.symlink_to(path.absolute())
        return str(link)

    def run(self, sql: str, *values: Any) -> None:
        """Run a statement."""
        self._connection.execute(sql, values)

    def row(self, sql: str, *values: Any) -> Any:
        """Return the first row of a result as a tuple, or None."""
        return self._connection.execute(sql, values).fetchone()

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """Return all rows of a result as tuples."""
        found: list[Any] = self._connection.execute(sql, values).fetchall()
        return found

    def columns(self, sql: str, *values: Any) -> dict[str, Array]:
        """Return the columns of a result as arrays; those with gaps are masked."""
        found: dict[str, Array] = self._connection.execute(sql, values).fetchnumpy()
        return found

    def chunks(self, select: str, size: int) -> Iterator[dict[str, Array]]:
        """Yield the columns of a result in its order, some rows at a time."""
        self.run(f"CREATE TABLE chunked AS {select}")
        (rows,) = self.row("SELECT count(*) FROM chunked")
        for at in range(0, rows, size):
            yield self.columns("SELECT * FROM chunked WHERE rowid >= ? AND rowid < ?", at, at + size)
        self.run("DROP TABLE chunked")

    def insert(self, table: str, columns: dict[str, Array]) -> None:
        """Append columns to a table, whose columns have the same order."""
        if not all(map(len, columns.values())):
            return
        self._connection.register("given", columns)
        try:
            self._connection.execute(f"INSERT INTO {table} SELECT * FROM given")
        finally:
            self._connection.unregister("given")

    def write_parquet(self, select: str, path: Path, metadata: dict[str, str] | None = None) -> None:
        """Write the result of a query to a Parquet file, with texts in its metadata."""
        options = "FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE 1048576"
        if metadata:
            pairs = ", ".join(f"{key}: {quoted(text)}" for key, text in metadata.items())
            options += f", KV_METADATA {{{pairs}}}"
        self._connection.execute(f"COPY ({select}) TO {quoted(str(path.absolute()))} ({options})")


def quoted(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def reading(path: Path, trouble: str) -> Iterator[None]:
    """Say of errors within the block that a file has this trouble.

    Raises:
        InvalidInput: The file cannot be read, or there is no room for temporary files.
    """
    duckdb = _duckdb()
    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError) as error:
        if any(word in str(error) for word in ("offload", "max_temp_directory_size")):
            raise InvalidInput(f"{path}: no room for temporary files; TMPDIR may name a larger disk.") from None
        raise InvalidInput(f"{path}: not enough memory to read it. {MORE_MEMORY}") from None
    except duckdb.Error as error:
        reason = str(error).split("\n")[0].strip() or type(error).__name__
        raise InvalidInput(f"{path}: {trouble} ({reason}).") from None


def _duckdb() -> Any:
    return import_extra("duckdb", "data", "Reading and writing Parquet")
