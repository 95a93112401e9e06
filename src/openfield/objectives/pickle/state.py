"""What a pickle's opcodes work on, and the entries they have gathered, checked when they are taken.

Between `opcodes` and `pickles`.
"""

from __future__ import annotations

from typing import Any

from openfield.objectives.pickle.scalars import Refused, Scalars, shown

MARK = object()


class Mapping:
    """A dictionary of the file: it remembers what kind of entries it holds, not the entries."""

    __slots__ = ("kind",)

    def __init__(self) -> None:
        self.kind = ""

    def __repr__(self) -> str:
        return "a mapping"


class State:
    """What the steps work on: stack, memo, and the entries gathered since they were last handed on."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.protocol = 0
        """What the file says; protocols 0 and 1 say nothing."""
        self.old_numpy = False
        """Whether NumPy numbers are announced in a protocol that has no bytes to hold them."""
        self.last_put: Any = None
        self.unsaved = False
        """Whether a NumPy number was made that is not in the memo yet."""
        self.scalars = Scalars()
        self.mappings: list[Mapping] = []
        self.keys: list[Any] = []
        self.counts: list[Any] = []
        self.codes: list[Any] = []
        self.indices: list[Any] = []
        self.names = 0
        """How many names and kinds of numbers were spelled out."""
        self.short = 0
        """How many batches of a few entries came since entries were last read in bulk."""

    @property
    def gathered(self) -> int:
        """How many entries wait to be taken."""
        return len(self.keys) + len(self.codes)


def take_rows(state: State) -> tuple[list[tuple[int, ...]], list[Any]]:
    """The entries of the table gathered so far, as three parts of the keys and the counts."""
    keys, counts = state.keys, state.counts
    state.keys, state.counts = [], []
    if set(map(type, keys)) != {tuple} or set(map(len, keys)) != {3}:
        raise _wrong_key(keys)
    parts = list(zip(*keys, strict=True))
    if any(set(map(type, part)) != {int} for part in parts):
        raise _wrong_key(keys)
    if not set(map(type, counts)) <= {int, float}:
        key, count = next(pair for pair in zip(keys, counts, strict=True) if type(pair[1]) not in (int, float))
        raise Refused(f"the count of key {key} is {shown(count)}, not a number")
    return parts, counts


def take_codes(state: State) -> tuple[list[int], list[int]]:
    """The entries of the code book gathered so far."""
    codes, indices = state.codes, state.indices
    state.codes, state.indices = [], []
    for code, index in zip(codes, indices, strict=True):
        if type(code) is not int or type(index) is not int:
            raise Refused(f"code {shown(code)} with index {shown(index)}; both must be integers")
    return codes, indices


def _wrong_key(keys: list[Any]) -> Refused:
    for key in keys:
        if type(key) is not tuple or len(key) != 3 or any(type(part) is not int for part in key):
            return Refused(f"key {shown(key)} is not a tuple of three integers")
    return Refused("keys that are not tuples of three integers")
