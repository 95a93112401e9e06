"""Read a pickle of any writer in a child process that may take little memory and time.

The child runs `unpickle`. As it works on a foreign file, what it answers is not trusted either: it is numbers in files
of checked lengths, and never unpickled.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.pickle import unpickle
from openfield.objectives.tables.rows import Array, Codes, Rows

BASE_MEMORY, MEMORY_PER_BYTE, MAX_MEMORY = 1 << 28, 64, 1 << 32
"""Bytes that the child may take: at least, for each byte of the file, and at most. A table takes 15 to 40 per byte."""
BASE_SECONDS, BYTES_PER_SECOND = 1, 1_000_000
"""Processor seconds that the child may take, and the bytes that earn it a further one. A table has 12,000,000."""
PATIENCE = 20
"""How many times as long it may take by the clock."""
MAX_UNLIMITED = 1 << 26
"""Bytes of a file where the system cannot limit the memory of a process, as on macOS and Windows."""
MAX_LINE = 10_000
"""Bytes of the line that lists the columns, or says why the file is refused."""
AGAIN = "Write it again with pickle.dump(table, file, 4), with plain integers."
TABLE, BOOK = ("obs", "action", "next_obs", "counts"), ("codes", "indices")


class Refused(InvalidInput):
    """A pickle that holds anything but a transition table."""


class _Answer(msgspec.Struct):
    """The first line that the child writes."""

    columns: dict[str, dict[str, list[int]]] = {}
    """The form of each column, and the bytes of its parts."""
    refused: str = ""


def read_in_child(path: Path) -> list[Rows | Codes]:
    """Return the entries of a pickled table and of its code book.

    Raises:
        Refused: The file is damaged, holds something that no table holds, or takes more memory or time than a table.
    """
    size = path.stat().st_size
    if sys.platform in ("win32", "darwin") and size > MAX_UNLIMITED:
        raise Refused(f"{path}: this system cannot limit the memory of a pickle of {size:,} bytes. {AGAIN}")
    memory = min(BASE_MEMORY + MEMORY_PER_BYTE * size, MAX_MEMORY)
    seconds = BASE_SECONDS + size // BYTES_PER_SECOND
    command = [sys.executable, "-I", "-S", unpickle.__file__, str(path.resolve()), *map(str, (memory, seconds, memory))]
    with tempfile.TemporaryFile(prefix="openfield-") as file:
        try:
            options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            ended = subprocess.run(  # noqa: S603 - our own program
                command, stdout=file, timeout=PATIENCE * seconds, check=False, **options
            )
        except subprocess.TimeoutExpired:
            raise Refused(f"{path}: took longer than any table of its size. {AGAIN}") from None
        file.seek(0)
        return _read_answer(file, ended.returncode, path)


def _read_answer(file: BinaryIO, code: int, path: Path) -> list[Rows | Codes]:
    """Check what the child wrote, and return it."""
    if code == unpickle.NO_MEMORY:
        raise Refused(f"{path}: takes more memory than a table of its size may. {AGAIN}")
    try:
        answer = msgspec.json.decode(file.readline(MAX_LINE), type=_Answer)
    except msgspec.DecodeError:
        raise Refused(f"{path}: takes longer than a table, or ends its reader ({code}). {AGAIN}") from None
    if answer.refused or code:
        words = "".join(letter if letter.isprintable() else "?" for letter in answer.refused)
        raise Refused(f"{path}: {words}.")
    try:
        columns = {name: _read_column(file, form) for name, form in answer.columns.items()}
        pieces: list[Rows | Codes] = [Rows(*(columns[name] for name in TABLE))]
        pieces += [Codes(*(columns[name] for name in BOOK))] if BOOK[0] in columns else []
    except (KeyError, ValueError) as error:
        raise Refused(f"{path}: its reader answered something else ({error}).") from None
    if any(len({len(column) for column in piece}) > 1 for piece in pieces):
        raise Refused(f"{path}: its reader answered columns of different lengths.")
    return pieces


def _read_column(file: BinaryIO, form: dict[str, list[int]]) -> Array:
    """Read a column, whose bytes must be there."""
    ((kind, lengths),) = form.items()
    parts = [file.read(max(length, 0)) for length in lengths]
    if [len(part) for part in parts] != lengths:
        raise ValueError("too few bytes")
    if kind in ("int64", "float64"):
        (raw,) = parts
        return np.frombuffer(raw, kind)
    sizes, raw = parts
    ends = np.cumsum(np.frombuffer(sizes, np.uint8)).tolist()
    edges = zip([0, *ends], ends, strict=False)
    return np.array([int.from_bytes(raw[start:end], "little", signed=True) for start, end in edges], object)
