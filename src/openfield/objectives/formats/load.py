"""Load a transition table from a file, a published pickle or Parquet, and identify files by their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from openfield.errors import InvalidInput
from openfield.files.near import suggest_file
from openfield.objectives.formats.parquet import book_path, read_parquet
from openfield.objectives.pickle.reader import read_pickled_table
from openfield.objectives.tables.rows import Codes, Rows
from openfield.objectives.tables.table import Table, make_table, meta_of_name


def load_table(path: str | Path) -> Table:
    """Load the table of a file: a published pickle of either form, or Parquet.

    Raises:
        InvalidInput: The file is something else, or a count is not a positive number; the message names the key.
    """
    path = Path(path)
    check_form(path)
    try:
        return read_parquet(path) if is_parquet(path) else _load_pickle(path)
    except MemoryError:
        raise InvalidInput(f"{path}: too large for memory. Sorted, it is streamed: {_CONVERT}") from None


_CONVERT = "openfield objectives convert TABLE sorted.parquet"


def check_form(path: Path) -> None:
    """Check that a file begins as a table does.

    Raises:
        InvalidInput: It is something else; the message says what to do with it.
    """
    start = _first_bytes(path)
    if start != b"PAR1" and start[:1] not in (b"\x80", b"(", b"}", b"c"):
        raise InvalidInput(
            f"{path}: neither a pickled transition table nor a Parquet file. {_what_else(start, path)}".rstrip()
        )


def is_parquet(path: Path) -> bool:
    """Return True if a file begins as Parquet files do."""
    return _first_bytes(path) == b"PAR1"


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        near = suggest_file(path) if isinstance(error, FileNotFoundError) else ""
        raise InvalidInput(f"{path}: {error.strerror or error}.{near}") from None


def _what_else(start: bytes, path: Path) -> str:
    if not path.is_file():
        return "A pipe cannot be read twice, as tables are: write it to a file first."
    if start == b"SQLi":
        return "For runs: openfield objectives RUN.sqlite"
    if start[:2] == b"PK":
        return "For NPZ episodes: openfield objectives frames FILE.npz -o table.parquet"
    return "The file is empty." if not start else ""


def _load_pickle(path: Path) -> Table:
    rows: list[Rows] = []
    codes: list[Codes] = []
    for piece in read_pickled_table(path):
        codes.append(piece) if isinstance(piece, Codes) else rows.append(piece)
    return make_table(rows, codes, name=str(path), meta=meta_of_name(path.name))


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        InvalidInput: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}.") from None


def content_hash(path: Path) -> str:
    """Return one hash for a table: that of its file, or of the hashes of its file and of the code book beside it."""
    beside = book_path(path)
    if path.suffix != ".parquet" or not beside.exists():
        return file_hash(path)
    return hashlib.sha256(f"{file_hash(path)} {file_hash(beside)}".encode()).hexdigest()
