"""Parameters of requests: declared by the signature of a handler, and checked.

Between `app.py`, which reads them, and the handlers in `routes.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Meta

from openfield.domains.ond.errors import Refusal

Parameters = Mapping[str, Any]
Name = Annotated[str, Meta(min_length=1)]
"""A text that must be there."""
Round = Annotated[int, Meta(ge=0, le=10**9)]
"""The number of a round, also as digits."""
Object = Annotated[dict[str, Any], Meta(extra_json_schema={"type": "string"})]
"""A JSON object, also as text."""
Text = Annotated[Any, Meta(extra_json_schema={"type": "string"})]
"""A value as it came: a text from forms and queries, any JSON from a JSON body."""


class Operation:
    """A request of the protocol: its handler, and the parameters in the handler's signature."""

    def __init__(self, handler: Callable[..., Awaitable[Any]]) -> None:
        """Read the signature of a handler."""
        hints = get_type_hints(handler, include_extras=True)
        _, *parameters = inspect.signature(handler).parameters.values()
        named = [one for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD]
        self.handler = handler
        self.types = {one.name: hints[one.name] for one in named}
        self.required = [one.name for one in named if one.default is inspect.Parameter.empty]
        self.takes_files = len(named) < len(parameters)
        self._names = [name for name in self.required if self.types[name] == Name]

    def bind(self, given: Parameters) -> dict[str, Any]:
        """Return the arguments of the handler; refuse if one is missing or cannot be read."""
        need(given, *self._names)
        if wrong := [name for name in self._names if not isinstance(given[name], str)]:
            raise Refusal("BadRequest", f"{', '.join(wrong)} must be text.")
        found = {name: given[name] for name in self.types if given.get(name) is not None}
        for name in self.required:
            if self.types[name] != Name:
                (value,) = need(given, name)
                found[name] = read_round(value) if self.types[name] == Round else read_object(value, name)
        if self.takes_files:
            found |= {name: value for name, value in given.items() if name.endswith("_file")}
        return found


def read_round(value: Any) -> int:
    """Return the number of a round, given as a number or as its digits."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 12:
        return int(value)
    raise Refusal("BadRequest", "round_id must be a whole number from 0 on.")


def need(given: Parameters, *names: str) -> list[Any]:
    """Return parameters that must be there."""
    if missing := [name for name in names if given.get(name) in (None, "")]:
        raise Refusal("MissingParamsError", f"Missing: {', '.join(missing)}.")
    return [given[name] for name in names]


def read_object(value: Any, name: str) -> dict[str, Any]:
    """Return a JSON object, given as text, as bytes or already read."""
    try:
        found = msgspec.json.decode(value) if isinstance(value, str | bytes) else value
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Refusal("BadRequest", f"{name} is no JSON.") from None
    if not isinstance(found, dict):
        raise Refusal("BadRequest", f"{name} must be a JSON object.")
    return found
