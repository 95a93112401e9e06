"""Import optional parts of openfield late, and name the line that installs one where it is missing."""

from __future__ import annotations

import importlib
from typing import Any

from openfield.errors import MissingExtra


def import_extra(module: str, extra: str, need: str) -> Any:
    """Import and return a module of an optional part; `need` says what needs it.

    Raises:
        MissingExtra: The part is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(extra, need) from None
