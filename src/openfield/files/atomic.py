"""Write files that appear whole or not at all.

Pages, exports and tables are written through this.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from openfield.errors import InvalidInput


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside the wanted one, which takes its place when the block ends well.

    A run file is never replaced: a record cannot be made again. A device or a pipe is written to instead.
    """
    draft = path.parent / f".{path.name}.{os.getpid()}.part"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if streams := _check_place(path):
            handle, name = tempfile.mkstemp(prefix=draft.name)  # others can make files of any known name there
            os.close(handle)
            draft = Path(name)
        yield draft
        if streams:
            path.write_bytes(draft.read_bytes())
        else:
            _put(draft, path)
    except OSError as error:
        raise InvalidInput(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            draft.unlink()


def _check_place(path: Path) -> bool:
    """Refuse a folder and a run file. Return whether the path is not a file but something like `/dev/stdout`."""
    if path.is_dir():
        raise InvalidInput(f"Cannot write {path}: Is a directory.")
    if path.is_file() and _is_database(path):
        raise InvalidInput(f"{path} is the record of a run and is not written over. Name another file.")
    return path.exists() and not path.is_file()


def _is_database(path: Path) -> bool:
    """Return whether a file is an SQLite database, as run files are."""
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _put(draft: Path, path: Path) -> None:
    """Put a file into the place of another one, once it is on the disk."""
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
    draft.replace(path)
