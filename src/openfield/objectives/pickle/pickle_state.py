"""What the opcodes of a pickle work on: stack, memo, and the entries gathered so far."""

from __future__ import annotations

from typing import Any

from openfield.objectives.pickle.memo import Memo
from openfield.objectives.pickle.numpy_scalars import Refused, shown

ACTION = 1
"""The part of a key that may be a truth value: the action of an agent that has two."""
MARK, BATCH = object(), object()
"""A mark on the stack, and one that opened a batch of which entries were taken: only SETITEMS may end it."""


class Mapping:
    """A dictionary of the file. It knows what kind of entries it holds, not the entries."""

    __slots__ = ("kind", "open")

    def __init__(self) -> None:
        self.kind = ""
        self.open = True
        """False once a Counter was made of it, which holds what it held then."""

    def __repr__(self) -> str:
        return "a mapping"


class PickleState:
    """Stack, memo, and the entries gathered since they were last taken."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.objects: dict[int, Any] = {}
        """What is in the memo beside numbers."""
        self.numbers: dict[bytes, float] = {}
        """NumPy numbers by how they refer to the memo, whose entries never change."""
        self.memo = Memo()
        self.protocol = 0
        """The protocol that the file declares; protocols 0 and 1 declare nothing."""
        self.old_numpy = False
        """True if NumPy numbers are announced in a protocol that has no bytes to hold them."""
        self.last_put: Any = None
        self.unsaved = False
        """True if a NumPy number was made that is not in the memo yet."""
        self.mappings: list[Mapping] = []
        self.keys: list[Any] = []
        self.counts: list[Any] = []
        self.codes: list[Any] = []
        self.indices: list[Any] = []
        self.names = 0
        """How many names and dtypes were spelled out."""
        self.short = 0
        """How many batches of a few entries came since entries were last read by templates."""

    @property
    def gathered(self) -> int:
        """How many entries wait to be taken."""
        return len(self.keys) + len(self.codes)

    def take_rows(self) -> tuple[list[tuple[int, ...]], list[Any]]:
        """Check the gathered entries of the table and return them: three parts of the keys, and the counts."""
        keys, counts = self.keys, self.counts
        self.keys, self.counts = [], []
        if set(map(type, keys)) != {tuple} or set(map(len, keys)) != {3}:
            raise _wrong_key(keys)
        parts = list(zip(*keys, strict=True))
        if bool in set(map(type, parts[ACTION])):
            parts[ACTION] = tuple(int(part) if type(part) is bool else part for part in parts[ACTION])
        if any(set(map(type, part)) != {int} for part in parts):
            raise _wrong_key(keys)
        if not set(map(type, counts)) <= {int, float}:
            key, count = next(pair for pair in zip(keys, counts, strict=True) if type(pair[1]) not in (int, float))
            raise Refused(f"the count of key {key} is {shown(count)}, not a number")
        return parts, counts

    def take_codes(self) -> tuple[list[int], list[int]]:
        """Check the gathered entries of the code book and return them."""
        codes, indices = self.codes, self.indices
        self.codes, self.indices = [], []
        if {*map(type, codes), *map(type, indices)} != {int}:
            pairs = zip(codes, indices, strict=True)
            code, index = next(pair for pair in pairs if type(pair[0]) is not int or type(pair[1]) is not int)
            raise Refused(f"code {shown(code)} with index {shown(index)}; both must be integers")
        return codes, indices


def _wrong_key(keys: list[Any]) -> Refused:
    for key in keys:
        if type(key) is not tuple or len(key) != 3 or any(type(part) is not int for part in key):
            return Refused(f"key {shown(key)} is not a tuple of three integers")
    return Refused("keys that are not tuples of three integers")
