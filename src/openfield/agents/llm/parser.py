"""Read the object in what a model wrote: JSON with talk around it, in a code block, or not quite JSON."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from typing import Any

MAX_ANSWER = 50_000
"""Characters of an answer that are looked at."""
MAX_TRIES = 50
"""Places of an answer at which an object may begin."""
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",\s*([}\]])")


def read_answer(text: str, keys: Collection[str]) -> dict[str, Any]:
    """Return the last object in an answer that has one of some keys, with its keys in small letters.

    Args:
        text: What the model wrote.
        keys: The keys that are asked for.

    Raises:
        ValueError: There is no such object.
    """
    cleaned = _THINKING.sub("", text[:MAX_ANSWER]) if "<" in text else text[:MAX_ANSWER]
    found: dict[str, Any] | None = None
    for value in _objects(cleaned):
        named = {str(key).strip().casefold(): one for key, one in value.items()}
        if any(key in named for key in keys):
            found = named
    if found is None:
        raise ValueError(f"there is no JSON object with {' or '.join(keys)} in it")
    return found


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects in a text, outermost first: the whole text, or what begins with a curly bracket."""
    at, tries = text.find("{"), 0
    while at >= 0 and tries < MAX_TRIES:
        tries += 1
        end = _find_end(text, at)
        value = None if end is None else _read_object(text[at:end])
        if value is not None:
            yield value
        at = text.find("{", end if value is not None and end is not None else at + 1)


def _find_end(text: str, start: int) -> int | None:
    """Return where the bracket at a place is closed; brackets in quotes do not count."""
    depth, quoted, at = 0, False, start
    while at < len(text):
        sign = text[at]
        if sign == "\\" and quoted:
            at += 1
        elif sign == '"':
            quoted = not quoted
        elif not quoted and sign in "{}":
            depth += 1 if sign == "{" else -1
            if not depth:
                return at + 1
        at += 1
    return None


def _read_object(text: str) -> dict[str, Any] | None:
    for read in (json.loads, _read_loosely, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, dict):
            return value
    return None


def _read_loosely(text: str) -> Any:
    """Read JSON with commas before closing brackets and line ends in texts."""
    return json.loads(_TRAILING_COMMA.sub(r"\1", text), strict=False)
