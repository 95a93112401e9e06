"""Values of a record as a page shows them: observations, actions and notes come from anywhere and may be huge.

What is cut leaves a mark, an object with the key `CUT` that says how much is missing. The JSON of a page stays small
enough for a browser whatever a run file holds.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec

CUT = "…"
"""The key of the mark that stands for what was cut."""
MAX_DEPTH = 24
MAX_ITEMS = 1_000
"""Items of a list or mapping."""
MAX_VALUES = 20_000
"""Values of an observation or of a reply, all levels together."""
MAX_TEXT = 100_000
"""Characters of all texts in one value: a transcript of a language model fits."""
MAX_EXACT = 1 << 53
"""Whole numbers from here on lose digits in a browser, so they are sent as text."""
KEPT_ARRAY = {"array", "shape", "dtype", "data"}
"""The keys of a recorded array whose bytes are kept: a picture is shown as one, not as its bytes."""
PRINTED = range(32, 127)
"""The codes of letters that can be seen; a space is shown as a mark."""
MAX_LINE = 200
"""Characters of a value in one line."""


class Shortener:
    """Cuts one value after the other, within limits for all of them together."""

    def __init__(self, values: int = MAX_VALUES, text: int = MAX_TEXT) -> None:
        """Take the limits."""
        self._values, self._text = values, text

    def shorten(self, value: Any, depth: int = 0) -> Any:
        """Return a value as it can be sent, with marks for what was cut."""
        self._values -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if abs(value) < MAX_EXACT else str(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, str):
            return self._cut_text(value)
        if isinstance(value, bytes):
            return {"bytes": len(value), "base64": self._cut_text(base64.b64encode(value[:MAX_TEXT]).decode())}
        if isinstance(value, Mapping):
            kept = value.keys() == KEPT_ARRAY
            return self._cut_mapping({name: value[name] for name in ("shape", "dtype")} if kept else value, depth)
        if isinstance(value, list | tuple):
            return self._cut_list(value, depth)
        return self._cut_text(str(value))

    def _cut_text(self, text: str) -> Any:
        room = max(self._text, 0)
        self._text -= min(len(text), room)
        return text if len(text) <= room else f"{text[:room]}{CUT} ({len(text) - room:,} characters more)"

    def _cut_list(self, values: list[Any] | tuple[Any, ...], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            return {CUT: f"{len(values):,} values"}
        kept: list[Any] = []
        for value in islice(values, MAX_ITEMS):
            if self._values <= 0:
                break
            kept.append(self.shorten(value, depth + 1))
        return kept if len(kept) == len(values) else [*kept, {CUT: f"{len(values) - len(kept):,} more"}]

    def _cut_mapping(self, values: Mapping[Any, Any], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            return {CUT: f"{len(values):,} values"}
        kept: dict[str, Any] = {}
        for key, value in islice(values.items(), MAX_ITEMS):
            if self._values <= 0:
                break
            kept[str(self._cut_text(str(key)))] = self.shorten(value, depth + 1)
        return kept if len(kept) == len(values) else {**kept, CUT: f"{len(values) - len(kept):,} more"}


def format_answer(value: Any, letters: bool, limit: int = MAX_LINE) -> str:
    """Return what was seen or answered in one line, or nothing for None.

    Args:
        value: The value.
        letters: Whether whole numbers are letters, which are shown with their codes.
        limit: How many characters it may have.
    """
    if value is None:
        return ""
    known = letters and type(value) is int and value in PRINTED
    return f"{'␣' if value == ord(' ') else chr(value)} ({value})" if known else format_value(value, limit)


def format_value(value: Any, limit: int = MAX_LINE) -> str:
    """Return a value in one line of text, cut to a length."""
    small = Shortener(limit, limit).shorten(value)
    text = small if isinstance(small, str) else msgspec.json.encode(small).decode()
    return text if len(text) <= limit else f"{text[: limit - 1]}{CUT}"
