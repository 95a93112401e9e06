"""Refuse files whose content is far larger than they are, unless the user allows it.

The size that a file states is checked before the first byte is unpacked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from openfield.errors import InvalidInput

MAX_UNPACKED = 1 << 29
"""Bytes that a file may unpack to if it is packed unusually tight; anything larger must earn its size."""
TIGHTEST = 100
"""How many times smaller than its content a large file may be; recorded frames reach about 20."""
ALLOW_LARGE = " If you trust the file, --allow-large reads it."
_LARGE_ALLOWED = ContextVar("large_allowed", default=False)


@contextmanager
def allowing_large(allowed: bool) -> Iterator[None]:
    """Read files within the block however large their content is, if that is allowed."""
    before = _LARGE_ALLOWED.set(allowed)
    try:
        yield
    finally:
        _LARGE_ALLOWED.reset(before)


def check_size(path: Path, packed: int, unpacked: int, advice: str = "") -> None:
    """Refuse a file whose content is large and far larger than the file, unless `allowing_large` allows it.

    Raises:
        InvalidInput: It is refused.
    """
    if unpacked > MAX_UNPACKED and unpacked > TIGHTEST * max(packed, 1) and not _LARGE_ALLOWED.get():
        raise InvalidInput(f"{path} would unpack {packed:,} bytes to {unpacked:,}; refused.{advice}")
