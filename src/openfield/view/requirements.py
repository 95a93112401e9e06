"""What the viewer needs: the extra `view`. This module imports none of it."""

from __future__ import annotations

from importlib.util import find_spec

from openfield.errors import MissingExtra

PARTS = ("starlette", "uvicorn", "websockets", "PIL")


def has_view() -> bool:
    """Return whether the parts of the viewer are installed."""
    return all(find_spec(part) is not None for part in PARTS)


def check_view() -> None:
    """Refuse to go on where the parts of the viewer are not installed.

    Raises:
        MissingExtra: They are not.
    """
    if not has_view():
        raise MissingExtra("view", "The viewer")
