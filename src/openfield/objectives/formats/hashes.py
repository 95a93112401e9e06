"""Which file it was: hashes of content, for reports and for what studies keep between runs.

Beside `parquet`, whose tables may have a code book in a file of its own.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from openfield.errors import InvalidInput


def file_hash(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        InvalidInput: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}.") from None


def content_hash(path: Path) -> str:
    """One hash for a table: that of its file, or of its file's hash and that of the code book beside it."""
    beside = path.with_name(f"{path.name.removesuffix('.parquet')}.codes.parquet")
    if path.suffix != ".parquet" or not beside.exists():
        return file_hash(path)
    return hashlib.sha256(f"{file_hash(path)} {file_hash(beside)}".encode()).hexdigest()
