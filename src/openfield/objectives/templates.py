"""What entries of a pickled table look like: which of their bytes are always the same, and where their numbers are.

Under `template_records`. A template is learned by walking through one entry, opcode by opcode; whatever else has the
same bytes in the fixed places would be walked through in the same way, so it is the same entry with other numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.forms import Flags
from openfield.objectives.records import (
    BYTES1,
    FLOAT,
    GET1,
    GET4,
    INT1,
    INT2,
    INT4,
    LONG1,
    PUT1,
    PUT4,
    PUT_NEXT,
    REDUCE,
    TUPLE2,
    TUPLE3,
)
from openfield.objectives.scalars import Scalars

LONGEST = 128
"""Bytes that are enough for a key of three NumPy numbers: each has 37 at most."""
WORD = 8
_PLAIN = {INT1: np.dtype("u1"), INT2: np.dtype("<u2"), INT4: np.dtype("<i4")}
_PUTS = {PUT1: np.dtype("u1"), PUT4: np.dtype("<u4"), PUT_NEXT: None}
_SMALL = tuple(np.dtype(kind) for kind in ("u1", "u2", "i2", "i4", ">u2", ">i2", ">i4"))

Records = np.ndarray[Any, np.dtype[np.void]]
"""So many bytes from each of many places on."""


class Field(NamedTuple):
    """A number within a template."""

    offset: int
    kind: np.dtype[Any]
    unused: int = 0
    """How many of its bits, the highest, belong to what comes after it."""

    def of(self, records: Records) -> np.ndarray[Any, Any]:
        """The number of each record."""
        found: np.ndarray[Any, Any] = np.ndarray(records.shape, self.kind, records, self.offset, records.strides)
        return (found << self.unused) >> self.unused if self.unused else found

    @property
    def column(self) -> np.dtype[Any]:
        """The kind of a column that holds all such numbers; those beyond 63 bits come out as negative ones."""
        if self.kind.kind == "f":
            return np.dtype(np.float64)
        return np.dtype(np.int32 if self.kind in _SMALL else np.int64)

    @property
    def unsigned(self) -> bool:
        """Whether a column of 64 bits with a sign may be too narrow."""
        return self.kind.kind == "u" and self.kind.itemsize == WORD


class Put(NamedTuple):
    """Something that is put into the memo."""

    key: Field | None
    """Under which number; None if it is the next one."""
    part: int | None = None
    """Which number of the template it is, or None if it is something that nobody may ask for."""


class Template(NamedTuple):
    """The shape of a key, or of what follows the opcode that makes a tuple of it: its put and its count."""

    length: int
    words: tuple[tuple[int, np.uint64, np.uint64], ...]
    """Those in which something is fixed: which word of a record, the mask, and what is to be found under it."""
    parts: tuple[Field, ...]
    puts: tuple[Put, ...]
    habit: tuple[tuple[bool, int | None, bool], ...]
    """What is put, in order: whether under the next number, which part it is, and whether that is a fraction."""

    @property
    def first(self) -> int:
        """The first byte, which is fixed."""
        return int(self.words[0][2]) & 255

    def fits(self, records: Records) -> Flags:
        """Which of the records have this shape."""
        found: Flags | None = None
        for number, mask, pattern in self.words:
            words = np.ndarray(records.shape, "<u8", records, number * WORD, records.strides)
            here = (words & mask) == pattern
            found = here if found is None else np.logical_and(found, here, out=found)
        return np.ones(len(records), bool) if found is None else found


def learn_key(data: bytes, scalars: Scalars) -> Template | None:
    """The template of the key that begins with the first byte, if it is one of three integers."""
    walk = _Walk(data, scalars)
    whole = all(walk.number() and walk.parts[-1].kind.kind != "f" for _ in range(3))
    return walk.template() if whole and walk.code == TUPLE3 else None


def learn_tail(data: bytes, scalars: Scalars) -> Template | None:
    """The template of what follows a key's last opcode: a put, if there is one, and a count."""
    walk = _Walk(data, scalars)
    walk.put()
    return walk.template() if walk.number() else None


class _Walk:
    """A walk through an entry, which notes what is fixed, where numbers are, and what is put."""

    def __init__(self, data: bytes, scalars: Scalars) -> None:
        self.data, self.scalars, self.at = data.ljust(2 * LONGEST, b"\0"), scalars, 0
        self.parts: list[Field] = []
        self._puts: list[Put] = []
        self._mask = bytearray(2 * LONGEST)

    @property
    def code(self) -> int:
        return self.data[self.at]

    def number(self) -> bool:
        """Pass over a number; says whether there was one."""
        code = self.code
        if code in _PLAIN:
            self._fix(1)
            return self._field(_PLAIN[code])
        if code == FLOAT:
            self._fix(1)
            return self._field(np.dtype(">f8"))
        size = self.data[self.at + 1]
        if code == LONG1 and 1 <= size <= WORD:
            self._fix(2)
            self.parts.append(Field(self.at, np.dtype("<i8"), 64 - 8 * size))
            self.at += size
            return True
        return code in (GET1, GET4) and self._spelled()

    def put(self, part: int | None = None) -> None:
        """Pass over a put, if there is one."""
        if self.code in _PUTS:
            kind = _PUTS[self.code]
            self._fix(1)
            self._puts.append(Put(None if kind is None else Field(self.at, kind), part))
            self.at += 0 if kind is None else kind.itemsize

    def template(self) -> Template:
        mask = np.frombuffer(self._mask, "<u8")
        words = np.frombuffer(self.data[: len(self._mask)], "<u8") & mask
        fixed = tuple((number, mask[number], words[number]) for number in np.flatnonzero(mask).tolist())
        habit = tuple((put.key is None, put.part, self._is_fraction(put.part)) for put in self._puts)
        return Template(self.at, fixed, tuple(self.parts), tuple(self._puts), habit)

    def _is_fraction(self, part: int | None) -> bool:
        return part is not None and self.parts[part].kind.kind == "f"

    def _spelled(self) -> bool:
        """A NumPy number: get function, get kind, its bytes, pair, call. Single bytes go through the memo."""
        if self._get() != self.scalars.function:
            return False
        kind = self.scalars.kind_of(self._get())
        if kind is None or kind.itemsize == 1 or self.data[self.at : self.at + 2] != bytes((BYTES1, kind.itemsize)):
            return False
        self._fix(2)
        self._field(kind)
        for code in (TUPLE2, REDUCE):
            self.put()
            if self.code != code:
                return False
            self._fix(1)
        self.put(len(self.parts) - 1)
        return True

    def _get(self) -> int | None:
        size = {GET1: 1, GET4: 4}.get(self.code)
        if size is None:
            return None
        self._fix(1 + size)
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def _fix(self, size: int) -> None:
        self._mask[self.at : self.at + size] = b"\xff" * size
        self.at += size

    def _field(self, kind: np.dtype[Any]) -> bool:
        self.parts.append(Field(self.at, kind))
        self.at += kind.itemsize
        return True
