"""Find a control by its name and the number behind it: `counter`, `counter:12`, `doubter:0.3`."""

from __future__ import annotations

import math
from typing import Any

from openfield.agents.controls.control import Alarmist, Control, Counter, Doubter, Quitter, Sleeper
from openfield.agents.controls.enumerator import Enumerator
from openfield.agents.controls.peeker import Peeker
from openfield.core import Agent, AgentFactory, Spec
from openfield.domain import Domain
from openfield.errors import InvalidInput, UnknownName

KINDS: dict[str, type[Control]] = {
    kind.__name__.lower(): kind for kind in (Counter, Alarmist, Doubter, Quitter, Sleeper, Peeker, Enumerator)
}


def find_control(text: str, domain: Domain[Any]) -> AgentFactory:
    """Return the factory of the control that `NAME` or `NAME:NUMBER` stands for.

    Raises:
        UnknownName: There is no control of this name.
        InvalidInput: The number is missing or out of its range, or the control takes none.
    """
    name, colon, given = text.partition(":")
    if name not in KINDS:
        raise UnknownName("control", name, list(KINDS), label="Known")
    kind, number = KINDS[name], _read_number(text, KINDS[name], given) if colon else None

    def make(spec: Spec, seed: int) -> Agent:
        return kind(domain, spec, seed, number)

    return make


def _read_number(text: str, kind: type[Control], given: str) -> float:
    name = kind.__name__.lower()
    if kind.bounds is None:
        raise InvalidInput(f"'{text}': the control '{name}' takes no number. Write {name}.")
    low, high = kind.bounds
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    whole = isinstance(kind.usual, int)
    if not low <= number <= high or (whole and number != int(number)):
        range_ = f"a whole number, {low:g} or more" if whole else f"a number from {low:g} to {high:g}"
        raise InvalidInput(f"'{text}': the control '{name}' takes {range_}, for instance {name}:{kind.usual}.")
    return number
