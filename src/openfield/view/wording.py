"""How pages write numbers, times and names: the filters of the templates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from openfield.console import escape_controls


def say_number(value: float | None, digits: int = 2) -> str:
    """Return a number with its decimals and a proper minus sign; a dash if there is none."""
    return "–" if value is None else f"{value:z,.{digits}f}".replace("-", "−")


def say_count(value: int, word: str) -> str:
    """Return a count with its word, in the plural if need be."""
    return f"{value:,} {word}{'' if value == 1 else 's'}"


def say_time(moment: str) -> str:
    """Return a moment of a record as a reader wants it: the day, and the time for a recent one."""
    for form in ("%Y-%m-%d %H:%M:%S UTC", "%Y-%m-%d %H:%M UTC"):
        try:
            then = datetime.strptime(moment, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        return f"{then:%d %b %Y, %H:%M}".lstrip("0")
    return moment


def say_seconds(seconds: float | None) -> str:
    """Return a time span in words."""
    if seconds is None:
        return "–"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


FILTERS: dict[str, Any] = {
    "number": say_number,
    "count": say_count,
    "moment": say_time,
    "span": say_seconds,
    "plain": escape_controls,
}
