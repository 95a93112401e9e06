"""Read table entries of a pickle by templates: compare the fixed bytes, take the values from their places.

A guess says where entries end. It counts only if each entry, read from the end of the one before it, arrives exactly
there. So this is a parse and not a search.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.pickle.memo import Ints, Memo
from openfield.objectives.pickle.template_records import TemplateRecords, keep_numbers, number_puts, sort_out
from openfield.objectives.pickle.templates import (
    BYTES1,
    FLOAT,
    GET1,
    GET4,
    INT1,
    INT2,
    INT4,
    LONG1,
    MARK,
    MAX_TEMPLATE,
    PUT1,
    PUT4,
    PUT_NEXT,
    REDUCE,
    SETITEMS,
    TUPLE2,
    TUPLE3,
    WORD,
    EntryTemplate,
    Flags,
    NumberField,
    Records,
    learn,
    learn_tail,
)
from openfield.objectives.tables.rows import Rows, narrow

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

MAX_TEMPLATES = 16
"""Templates of each part of an entry; what fits none of them is read opcode by opcode."""
MAX_GUESSES = 3
"""How often wrong guesses are left out before the rest is read opcode by opcode."""
ENOUGH, MAX_FAILURES, MAX_PAUSE = 512, 4, 63
"""Entries that are worth a try; tries that may find fewer before the next ones are put off, and by how many."""
INPUT, REST, TAIL = PARTS = range(3)
"""The parts of an entry: input; action and next input; put and count. Fewer would have more templates each."""
MIN_ENTRY = 9
"""Bytes of an entry at least; where there are more guesses than could be right, nothing is tried."""
NEXT_BATCH = SETITEMS | MARK << 8
NEAR = 6_000
"""A border further than this from the entry it lies in is in none."""
_STARTS_NEXT = np.isin(np.arange(256), (INT1, INT2, INT4, LONG1, GET1, GET4, 0x49, 0x4C, SETITEMS))
"""For every byte: may the next entry, or the end of a batch, begin with it. The two numbers are integers in digits."""
_LENGTHS = {
    **{TUPLE3: 1, TUPLE2: 1, REDUCE: 1, SETITEMS: 1, MARK: 1, PUT_NEXT: 1},
    **{INT1: 2, INT2: 3, INT4: 5, LONG1: 2, BYTES1: 2, GET1: 2, GET4: 5, PUT1: 2, PUT4: 5, FLOAT: 9},
}
"""Bytes of every opcode in entries; LONG1 and BYTES1 are followed by as many as they say."""


class Stretch(NamedTuple):
    """Rows that were read at once, and where reading goes on."""

    rows: Rows
    end: int


class _Entries(NamedTuple):
    """Entries that follow each other: their parts, and where each ends."""

    parts: list[TemplateRecords]
    ends: Ints

    def before(self, size: int) -> _Entries:
        """Return the first entries."""
        if size == len(self.ends):
            return self
        return _Entries([part.before(size) for part in self.parts], self.ends[:size])


class TemplateReader:
    """Reads the entries of one file and learns their templates as it goes."""

    def __init__(self) -> None:
        self._known: list[list[EntryTemplate]] = [[] for _ in PARTS]
        """The templates of each part; those used most come first."""
        self._rooms = [WORD] * len(PARTS)
        self._begins = np.zeros(256, bool)
        """For every byte: do tails begin with it."""
        self._found = np.empty(0, bool)
        """A buffer that is used again, for new memory is slow."""
        self._wait = self._pause = self._tries = 0
        """How many reads to skip from now on, how many were skipped after the last failure, failures so far."""

    def read(self, view: Bytes, at: int, memo: Memo, borders: list[int]) -> Stretch | None:
        """Read the entries from `at` on that follow each other without a break.

        Args:
            view: The bytes at hand.
            at: Where an entry begins.
            memo: The memo, which gets the NumPy numbers that are read.
            borders: Where frame marks were taken out.
        """
        if self._wait:
            self._wait -= 1
            return None
        end = len(view) - self._spare - MAX_TEMPLATE
        entries = self._follow(view, at, memo, borders) if at <= end else None
        size = 0 if entries is None else len(entries.ends)
        stop = int(entries.ends[-1]) if entries and size else at
        self._learn_to_wait(size, short=stop <= end)
        return Stretch(_rows(*entries.parts), stop) if entries and size else None

    def _learn_to_wait(self, size: int, *, short: bool) -> None:
        """Put the next try off further and further after tries that found few entries."""
        if size >= ENOUGH:
            self._pause = 0
        elif short:
            self._tries += 1
            self._pause = min(2 * self._pause + 1, MAX_PAUSE) if self._tries > MAX_FAILURES else 0
        self._wait = self._pause

    def _follow(self, view: Bytes, at: int, memo: Memo, borders: list[int]) -> _Entries | None:
        """Return the entries from `at` on that can be read, and learn what is new in the first of them."""
        entries = self._match(view, at, memo.top) if self._known[TAIL] else None
        if entries is None and self._learn(view, at, memo):
            entries = self._match(view, at, memo.top)
        if entries is None:
            return None
        self._known = [part.by_use(known) for part, known in zip(entries.parts, self._known, strict=True)]
        entries = entries.before(min(part.sure() for part in entries.parts))
        entries = entries.before(_unbroken(view, at, entries.ends, borders))
        return entries.before(_follow_puts(entries, memo))

    @property
    def _spare(self) -> int:
        """Bytes after the last entry looked at: no record goes further."""
        return sum(self._rooms) + WORD

    def _learn(self, view: Bytes, at: int, memo: Memo) -> bool:
        """Learn the templates of the entry that begins here. Return False if they are known already."""
        found = _learn_entry(view[at : at + len(PARTS) * MAX_TEMPLATE].tobytes(), memo)
        if found is None:
            return False
        new = [(known, template) for known, template in zip(self._known, found, strict=True) if template not in known]
        if any(len(known) == MAX_TEMPLATES for known, _ in new):
            return False
        for known, template in new:
            known.append(template)
        self._rooms = [-(-max(template.room for template in known) // WORD) * WORD for known in self._known]
        self._begins[[tail.first for tail in self._known[TAIL]]] = True
        self._tries -= bool(new)
        return bool(new)

    def _match(self, view: Bytes, at: int, top: int) -> _Entries | None:
        """Return the entries from `at` on that follow each other and have known templates."""
        tuples = self._guess(view, at)
        tails, fits = self._sort_out(TAIL, view, tuples + 1)
        fits &= _plausible(tails, top, len(view))
        best = _Entries([], tuples[:0])
        for _ in range(MAX_GUESSES):
            if not fits.all():
                tuples, tails = tuples[fits], tails.only(fits)
            if not 0 < MIN_ENTRY * len(tuples) <= len(view) - at:
                break
            entries, fits = self._chain(view, at, tuples, tails)
            best = max(best, entries, key=lambda found: len(found.ends))
            if fits.all():
                break
            fits[1:] |= ~fits[:-1]  # after a wrong guess, the next one was tried from a wrong place
        return best if len(best.ends) else None

    def _guess(self, view: Bytes, at: int) -> Ints:
        """Return every tuple opcode that is followed by the first byte of a known tail."""
        end = max(len(view) - self._spare, at)
        if len(self._found) < end - at:
            self._found = np.empty(end - at, bool)
        tuples: Ints = np.equal(view[at:end], TUPLE3, out=self._found[: end - at]).nonzero()[0]
        tuples += at
        return tuples[self._begins[view[tuples + 1]]]

    def _chain(self, view: Bytes, at: int, tuples: Ints, tails: TemplateRecords) -> tuple[_Entries, Flags]:
        """Return the entries that each begin where the one before ended, and a flag for every guess that does."""
        ends = _ends(tuples, tails)
        places = np.concatenate(([at], ends[:-1]))
        parts, arrived = [], np.ones(len(ends), bool)
        for part in (INPUT, REST):
            shaped, fits = self._sort_out(part, view, places)
            parts.append(shaped)
            arrived &= fits
            places = shaped.behind(places)
        arrived &= places == tuples
        size = len(arrived) if arrived.all() else int(arrived.argmin())
        if size and not _STARTS_NEXT[view[ends[size - 1]]] and view[ends[size - 1] - 1] != MARK:
            size -= 1  # the last one may be part of something else, unless a batch ends behind it
        return _Entries([*parts, tails], ends).before(size), arrived

    def _sort_out(self, part: int, view: Bytes, places: Ints) -> tuple[TemplateRecords, Flags]:
        size = self._rooms[part]
        every: Records = np.ndarray((max(len(view) - size + 1, 0),), f"V{size}", view, 0, (1,))
        return sort_out(every[places], self._known[part])  # one thing each, which costs no more than a single word


def _learn_entry(data: bytes, memo: Memo) -> tuple[EntryTemplate, EntryTemplate, EntryTemplate] | None:
    """Return the templates of the parts of the entry that begins with the first byte."""
    data = data.ljust(len(PARTS) * MAX_TEMPLATE, b"\0")
    first = learn(data, 1, memo)
    rest = first and learn(data[first.length :], 2, memo)
    if first is None or rest is None or data[first.length + rest.length] != TUPLE3:
        return None
    tail = learn_tail(data[first.length + rest.length + 1 :], memo)
    return None if tail is None else (first, rest, tail)


def _plausible(tails: TemplateRecords, top: int, most: int) -> Flags | bool:
    """Guess which keys are put under memo numbers that a writer may have reached here."""
    if not all(template.puts and template.puts[0].key for template in tails.templates):
        return True
    further = tails.put_numbers(0) - (top + 1)
    return further.view(np.uint64) < most


def _unbroken(view: Bytes, at: int, ends: Ints, borders: list[int]) -> int:
    """Count the entries before one that has a border in the middle of an opcode."""
    for border in borders:
        entry = int(np.searchsorted(ends, border, side="right"))
        if entry == len(ends):
            break
        if not _hits_border(view, int(ends[entry - 1]) if entry else at, border):
            return entry
    return len(ends)


def _ends(tuples: Ints, tails: TemplateRecords) -> Ints:
    """Return where the entries end, or where the next batch begins."""
    ends = tails.behind(tuples + 1)
    ends[tails.fields(_after, np.dtype("u2")) == NEXT_BATCH] += 2
    return ends


def _after(template: EntryTemplate) -> NumberField:
    return NumberField(template.length, np.dtype("<u2"))


def _follow_puts(entries: _Entries, memo: Memo) -> int:
    """Count the entries whose memo numbers rise, and keep the NumPy numbers they put."""
    size, each = len(entries.ends), sum(len(part.usual.puts) for part in entries.parts)
    if not size or not each:
        return size
    numbers = number_puts(entries.parts, memo.puts)
    size = _rising(numbers.reshape(-1), memo.top) // each
    if size:
        keep_numbers(entries.before(size).parts, numbers[:size], memo)
        memo.puts, memo.top = memo.puts + size * each, int(numbers[size - 1, -1])
    return size


def _rising(numbers: Ints, top: int) -> int:
    """Count the numbers before one that does not rise."""
    if numbers[0] <= top:
        return 0
    rises = numbers[1:] > numbers[:-1]
    return len(numbers) if rises.all() else int(rises.argmin()) + 1


def _rows(first: TemplateRecords, rest: TemplateRecords, tail: TemplateRecords) -> Rows:
    columns = (first.values(0), rest.values(0), rest.values(1), tail.values(0))
    return Rows(*(narrow(column) if column.dtype == np.int64 else column for column in columns))


def _hits_border(view: Bytes, at: int, border: int) -> bool:
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
