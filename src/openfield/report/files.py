"""Files that appear whole or not at all.

Stands at the rim of report: pages and exports are written through it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from openfield.errors import InvalidInput


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside the wanted one, which takes its place when the block ends well."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise InvalidInput(f"Cannot write {path}: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            draft.unlink()
