"""Templates of the entries of a pickled table: which bytes are the same in all of them, and where the values are.

A template is learned by walking through numbers, opcode by opcode. Bytes that agree in the fixed places would be walked
through in the same way, so they are the same opcodes with other values.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.pickle.source import OddPickle

TUPLE3, TUPLE2, REDUCE, SETITEMS, MARK = 0x87, 0x86, 0x52, 0x75, 0x28
INT1, INT2, INT4, LONG1, GET1, GET4, BYTES1, FLOAT = 0x4B, 0x4D, 0x4A, 0x8A, 0x68, 0x6A, 0x43, 0x47
PUT1, PUT4, PUT_NEXT = 0x71, 0x72, 0x94
MAX_TEMPLATE = 80
"""Bytes that are enough for a template: 37 for each of two NumPy numbers."""
NEAR = 6_000
"""A border further than this from the entry it lies in is in none."""
STARTS_NEXT = np.isin(np.arange(256), (INT1, INT2, INT4, LONG1, GET1, GET4, SETITEMS))
"""For every byte: may the next entry, or the end of a batch, begin with it."""
_LENGTHS = {
    **{TUPLE3: 1, TUPLE2: 1, REDUCE: 1, SETITEMS: 1, MARK: 1, PUT_NEXT: 1},
    **{INT1: 2, INT2: 3, INT4: 5, LONG1: 2, BYTES1: 2, GET1: 2, GET4: 5, PUT1: 2, PUT4: 5, FLOAT: 9},
}
"""Bytes of every opcode in entries; LONG1 and BYTES1 are followed by as many as they say."""
WORD = 8
_PLAIN: dict[int, np.dtype[Any]] = {
    INT1: np.dtype("u1"),
    INT2: np.dtype("<u2"),
    INT4: np.dtype("<i4"),
    FLOAT: np.dtype(">f8"),
}
_PUTS: dict[int, np.dtype[Any] | None] = {PUT1: np.dtype("u1"), PUT4: np.dtype("<u4"), PUT_NEXT: None}
_GETS = {GET1: 1, GET4: 4}
_SHORTER = tuple(np.dtype(kind) for kind in ("u1", "u2", "i2", "i4", ">u2", ">i2", ">i4"))
_SHORT, _WHOLE, _FRACTION = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float64)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
Records = np.ndarray[Any, np.dtype[np.void]]
"""Bytes of one length from many places."""


class NumberField(NamedTuple):
    """A number within a template."""

    offset: int
    kind: np.dtype[Any]
    unused: int = 0
    """How many of its highest bits belong to what follows it."""

    def of(self, records: Records) -> np.ndarray[Any, Any]:
        """Return the number of each record."""
        found: np.ndarray[Any, Any] = np.ndarray(records.shape, self.kind, records, self.offset, records.strides)
        return (found << self.unused) >> self.unused if self.unused else found

    @property
    def column(self) -> np.dtype[Any]:
        """The kind of a column that holds all such numbers; those beyond 63 bits come out as negative ones."""
        return _FRACTION if self.kind.kind == "f" else _SHORT if self.kind in _SHORTER else _WHOLE

    @property
    def unsigned(self) -> bool:
        """True if the column is too narrow for some of the numbers."""
        return self.kind.kind == "u" and self.kind.itemsize == WORD


class Memo:
    """The memo of a pickle, as far as entries refer to it: to the names and types of NumPy numbers."""

    def __init__(self) -> None:
        self.puts = 0
        """How many memo entries there are."""
        self.top = -1
        """The memo number put last. Writers count upwards, so no entry can replace another."""
        self.labels: dict[int, str] = {}
        """The names and texts that were spelled out."""
        self.kinds: dict[int, np.dtype[Any]] = {}
        """The types of NumPy numbers."""

    def add(self, put: bytes) -> int:
        """Note the opcode of a put, and return its memo number.

        Raises:
            OddPickle: The number is not higher than those before it.
        """
        key = self.puts if put[0] == PUT_NEXT else int.from_bytes(put[1:], "little")
        if key <= self.top:
            raise OddPickle
        self.puts, self.top = self.puts + 1, key
        return key


class EntryTemplate(NamedTuple):
    """The form of one or two numbers that follow each other, or of a count and the put before it."""

    length: int
    words: tuple[tuple[int, np.uint64, np.uint64], ...]
    """The words with fixed bytes: their number in the record, the mask, and the value under the mask."""
    numbers: tuple[NumberField, ...]
    puts: tuple[NumberField | None, ...]
    """For each put the memo number; None if it is the next one."""

    @property
    def room(self) -> int:
        """Bytes that are looked at: two more, which may end a batch, and all of a word that begins here."""
        return max(self.length + 2, *(field.offset + WORD for field in self.numbers if field.unused), 0)

    @property
    def implicit(self) -> tuple[bool, ...]:
        """A flag for each put: it is under the next number."""
        return tuple(put is None for put in self.puts)

    @property
    def first(self) -> int:
        """The first byte, which is fixed."""
        return int(self.words[0][2]) & 255

    def fits(self, records: Records) -> Flags:
        """Return a flag for each of one or more records: does it have this form."""
        found: Flags | None = None
        for number, mask, pattern in self.words:
            words = np.ndarray(records.shape, "<u8", records, number * WORD, records.strides)
            here = (words & mask) == pattern
            found = here if found is None else np.logical_and(found, here, out=found)
        return np.ones(len(records), bool) if found is None else found


def learn(data: bytes, numbers: int, memo: Memo) -> EntryTemplate | None:
    """Return the template of a number of integers from the first byte on, if they have one."""
    walk = _Walk(data, memo)
    whole = all(walk.number() and not walk.fraction for _ in range(numbers))
    return walk.template() if whole else None


def learn_tail(data: bytes, memo: Memo) -> EntryTemplate | None:
    """Return the template of what follows the last opcode of a key: its put, if there is one, and a count."""
    walk = _Walk(data, memo)
    walk.put()
    return walk.template() if walk.number() else None


class _Walk:
    """A walk through numbers that notes the fixed bytes, the places of values, and the puts."""

    def __init__(self, data: bytes, memo: Memo) -> None:
        self._data, self._memo, self._at = data[:MAX_TEMPLATE].ljust(2 * MAX_TEMPLATE, b"\0"), memo, 0
        self._mask = bytearray(len(self._data))
        self._numbers: list[NumberField] = []
        self._puts: list[NumberField | None] = []

    @property
    def _code(self) -> int:
        return self._data[self._at]

    @property
    def fraction(self) -> bool:
        """True if the last number is one."""
        return self._numbers[-1].column == _FRACTION

    def number(self) -> bool:
        """Pass over a number. Return False if something else follows."""
        code, size = self._code, self._data[self._at + 1]
        if code in _PLAIN:
            self._fix(1)
            self._value(_PLAIN[code])
            return True
        if code == LONG1 and 1 <= size <= WORD:
            self._fix(2)
            self._numbers.append(NumberField(self._at, _WHOLE, 64 - 8 * size))
            self._at += size
            return True
        return code in _GETS and self._spelled()

    def put(self) -> None:
        """Pass over a put, if there is one."""
        if self._code in _PUTS:
            kind = _PUTS[self._code]
            self._fix(1)
            self._puts.append(None if kind is None else NumberField(self._at, kind))
            self._at += 0 if kind is None else kind.itemsize

    def template(self) -> EntryTemplate:
        """Return the template of the entry that was read."""
        mask = np.frombuffer(self._mask, "<u8")
        words = np.frombuffer(self._data, "<u8") & mask
        fixed = tuple((number, mask[number], words[number]) for number in np.flatnonzero(mask).tolist())
        return EntryTemplate(self._at, fixed, tuple(self._numbers), tuple(self._puts))

    def _spelled(self) -> bool:
        """Pass over a NumPy number: get function, get dtype, bytes, pair, call. Single bytes go through the memo."""
        if self._memo.labels.get(self._get()) != "scalar":
            return False
        kind = self._memo.kinds.get(self._get())
        if kind is None or kind.itemsize == 1 or self._data[self._at : self._at + 2] != bytes((BYTES1, kind.itemsize)):
            return False
        self._fix(2)
        self._value(kind)
        for code in (TUPLE2, REDUCE):
            self.put()
            if self._code != code:
                return False
            self._fix(1)
        self.put()
        return True

    def _get(self) -> int:
        """Pass over a reference to the memo and return its number; -1 if something else follows."""
        size = _GETS.get(self._code)
        if size is None:
            return -1
        self._fix(1 + size)
        return int.from_bytes(self._data[self._at - size : self._at], "little")

    def _fix(self, size: int) -> None:
        self._mask[self._at : self._at + size] = b"\xff" * size
        self._at += size

    def _value(self, kind: np.dtype[Any]) -> None:
        self._numbers.append(NumberField(self._at, kind))
        self._at += kind.itemsize


def hits_border(view: Bytes, at: int, border: int) -> bool:
    """Return True if an opcode begins at the border, which lies near after the entry at `at`."""
    if border - at > NEAR:
        return False
    data = view[at : border + 1].tobytes()
    border, at = border - at, 0
    while at < border:
        length = _LENGTHS.get(data[at], 0)
        if not length:
            return False
        at += length + (data[at + 1] if data[at] in (LONG1, BYTES1) else 0)
    return at == border
