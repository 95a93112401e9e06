"""What requests bring along, read and checked: texts, numbers of rounds, objects and lists, in whatever form they came.

Under `wire.py`; what cannot be used is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from openfield.domains.ond.server.errors import Refusal

Parameters = Mapping[str, Any]


def read_round(value: Any) -> int:
    """A round's number, given as a number or as its digits."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 12:
        return int(value)
    raise Refusal("BadRequest", "round_id must be a whole number from 0 on.")


def need(given: Parameters, *names: str) -> list[Any]:
    """Parameters that must be there."""
    missing = [name for name in names if given.get(name) in (None, "")]
    if missing:
        raise Refusal("MissingParamsError", f"Missing: {', '.join(missing)}.")
    return [given[name] for name in names]


def need_texts(given: Parameters, *names: str) -> list[str]:
    """Parameters that must be there and be text."""
    found = need(given, *names)
    wrong = [name for name, value in zip(names, found, strict=True) if not isinstance(value, str)]
    if wrong:
        raise Refusal("BadRequest", f"{', '.join(wrong)} must be text.")
    return found


def read_identification(given: Parameters) -> dict[str, Any]:
    """What posted results are about."""
    need(given, "test_identification")
    asked = read_object(given["test_identification"], "test_identification")
    need(asked, "session_id", "test_id", "round_id", "result_types")
    return asked | {key: str(asked[key]) for key in ("session_id", "test_id")}


def read_object(value: Any, name: str) -> dict[str, Any]:
    """A JSON object, given as text or already read."""
    try:
        found = msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError):
        raise Refusal("BadRequest", f"{name} is no JSON.") from None
    if not isinstance(found, dict):
        raise Refusal("BadRequest", f"{name} must be a JSON object.")
    return found


def split_list(value: Any) -> Any:
    """A list that came as text: JSON, or joined by bars."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value.split("|")


def read_list(value: Any, name: str) -> list[Any]:
    """A list that came as one."""
    if not isinstance(value, list):
        raise Refusal("BadRequest", f"{name} must be a list.")
    return value
