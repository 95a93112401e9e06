"""Read table entries of a pickle by templates: compare the fixed bytes, take the values from their places.

A guess says where entries end. It counts only if each entry, read from the end of the one before it, arrives exactly
there. So this is a parse and not a search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.pickle.templates import (
    MARK,
    MAX_TEMPLATE,
    SETITEMS,
    STARTS_NEXT,
    TUPLE3,
    WORD,
    Bytes,
    EntryTemplate,
    Flags,
    Memo,
    NumberField,
    Records,
    hits_border,
    learn,
    learn_tail,
)
from openfield.objectives.tables.rows import Rows, narrow

Ints = np.ndarray[Any, np.dtype[np.int64]]
MAX_TEMPLATES = 16
"""Templates of each part of an entry; what fits none of them is read alone."""
MAX_GUESSES = 3
"""How often wrong guesses are left out before the next entry is read alone."""
INPUT, REST, TAIL = PARTS = range(3)
"""The parts of an entry: input; action and next input; put and count. Fewer would have more templates each."""
MIN_ENTRY = 9
"""Bytes of an entry at least; where there are more guesses than could be right, nothing is tried."""
NEXT_BATCH = SETITEMS | MARK << 8


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

    def read(self, view: Bytes, at: int, memo: Memo, borders: list[int]) -> Stretch | None:
        """Read the entries from `at` on that follow each other without a break.

        Args:
            view: The bytes at hand.
            at: Where an entry begins.
            memo: The memo, which counts its entries.
            borders: Where frame marks were taken out.
        """
        end = len(view) - self._spare - MAX_TEMPLATE
        entries = self._follow(view, at, memo, borders) if at <= end else None
        size = 0 if entries is None else len(entries.ends)
        stop = int(entries.ends[-1]) if entries and size else at
        return Stretch(_rows(*entries.parts), stop) if entries and size else None

    def _follow(self, view: Bytes, at: int, memo: Memo, borders: list[int]) -> _Entries | None:
        """Return the entries from `at` on that can be read, and learn the new parts of the first of them."""
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
        if size and not STARTS_NEXT[view[ends[size - 1]]] and view[ends[size - 1] - 1] != MARK:
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
    if not all(template.puts and template.puts[0] for template in tails.templates):
        return True
    further = tails.put_numbers(0) - (top + 1)
    return further.view(np.uint64) < most


def _unbroken(view: Bytes, at: int, ends: Ints, borders: list[int]) -> int:
    """Count the entries before one that has a border in the middle of an opcode."""
    for border in borders:
        entry = int(np.searchsorted(ends, border, side="right"))
        if entry == len(ends):
            break
        if not hits_border(view, int(ends[entry - 1]) if entry else at, border):
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
    """Count the entries whose memo numbers rise, and add their puts to the memo."""
    size, each = len(entries.ends), sum(len(part.usual.puts) for part in entries.parts)
    if not size or not each:
        return size
    numbers = number_puts(entries.parts, memo.puts)
    size = _rising(numbers.reshape(-1), memo.top) // each
    if size:
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


class TemplateGroup(NamedTuple):
    """The records that have one template."""

    template: EntryTemplate
    at: Ints
    """Their places among all records, rising."""
    records: Records

    def only(self, kept: Flags) -> TemplateGroup:
        """Return the group with only the records that are kept."""
        mine = kept[self.at]
        return self if mine.all() else TemplateGroup(self.template, self.at[mine], self.records[mine])


class TemplateRecords(NamedTuple):
    """Records, the template that most of them have, and those that have another."""

    records: Records
    usual: EntryTemplate
    others: list[TemplateGroup]

    @property
    def templates(self) -> list[EntryTemplate]:
        """All of them."""
        return [self.usual, *(group.template for group in self.others)]

    def before(self, size: int) -> TemplateRecords:
        """Return the first records."""
        cut = []
        for template, at, records in self.others:
            end = int(np.searchsorted(at, size))
            if end:
                cut.append(TemplateGroup(template, at[:end], records[:end]))
        return TemplateRecords(self.records[:size], self.usual, cut)

    def only(self, kept: Flags) -> TemplateRecords:
        """Return only the records that are kept, numbered anew."""
        left_out = (~kept).nonzero()[0]
        groups = (group.only(kept) for group in self.others)
        others = [
            group._replace(at=group.at - np.searchsorted(left_out, group.at)) for group in groups if len(group.at)
        ]
        return TemplateRecords(self.records[kept], self.usual, others)

    def behind(self, places: Ints) -> Ints:
        """Return where the records end that begin at these places."""
        found = places + self.usual.length
        for template, at, _ in self.others:
            found[at] += template.length - self.usual.length
        return found

    def fields(self, choose: Callable[[EntryTemplate], Any], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return one field of each record."""
        column = np.empty(len(self.records), kind)
        self.fill(column, choose)
        return column

    def fill(self, column: np.ndarray[Any, Any], choose: Callable[[EntryTemplate], Any]) -> None:
        """Fill a column with one field of each record."""
        if not len(self.records):
            return
        usual: NumberField = choose(self.usual)
        column[:] = usual.of(self.records)
        for template, at, records in self.others:
            field = choose(template)
            if field != usual:
                column[at] = field.of(records)

    def values(self, number: int, kind: np.dtype[Any] | None = None) -> np.ndarray[Any, Any]:
        """Return one of the numbers of each record, by default in a dtype that has room for all of them."""
        kind = kind or np.result_type(*(template.numbers[number].column for template in self.templates))
        if kind.kind != "f":
            return self.fields(lambda template: template.numbers[number], kind)
        with np.errstate(invalid="ignore"):  # a NaN that signals is a NaN all the same
            return self.fields(lambda template: template.numbers[number], kind)

    def put_numbers(self, put: int) -> Ints:
        """Return the memo number of one of the puts of each record."""
        return self.fields(_put_key(put), np.dtype(np.int64))

    def sure(self) -> int:
        """Count the records before one with other puts than most, or with a number of more than 63 bits."""
        size = len(self.records)
        for template, at, _ in self.others:
            size = size if template.implicit == self.usual.implicit else min(size, int(at[0]))
        for number in range(len(self.usual.numbers)):
            if any(template.numbers[number].unsigned for template in self.templates):
                large = self.values(number) < 0
                size = min(size, int(large.argmax())) if large.any() else size
        return size

    def by_use(self, templates: list[EntryTemplate]) -> list[EntryTemplate]:
        """Return the templates with those first that are used most here, which are tried first next time."""
        if not self.others:
            return templates
        uses = {id(template): len(at) for template, at, _ in self.others}
        uses[id(self.usual)] = len(self.records) - sum(uses.values())
        return sorted(templates, key=lambda template: -uses.get(id(template), 0))


def _put_key(put: int) -> Callable[[EntryTemplate], NumberField | None]:
    return lambda template: template.puts[put]


def sort_out(records: Records, templates: list[EntryTemplate]) -> tuple[TemplateRecords, Flags]:
    """Sort records by their templates. Return them and a flag for each that has one."""
    if not len(records):
        return TemplateRecords(records, templates[0], []), np.empty(0, bool)
    known = templates[0].fits(records)
    others: list[TemplateGroup] = []
    left = np.empty(0, np.int64) if known.all() else (~known).nonzero()[0]
    for template in templates[1:]:
        if not len(left):
            break
        rest = records[left]
        fits = template.fits(rest)
        if fits.any():
            mine = left[fits]
            others.append(TemplateGroup(template, mine, rest[fits]))
            known[mine] = True
            left = left[~fits]
    return TemplateRecords(records, templates[0], others), known


def number_puts(parts: list[TemplateRecords], puts: int) -> Ints:
    """Return the memo numbers of what each entry puts, one row each; `puts` is how many there were before."""
    each = sum(len(part.usual.puts) for part in parts)
    size = len(parts[0].records)
    numbers = np.arange(puts, puts + size * each).reshape(size, each)
    place = 0
    for part in parts:
        for put, implicit in enumerate(part.usual.implicit):
            if not implicit:
                part.fill(numbers[:, place], _put_key(put))
            place += 1
    return numbers
