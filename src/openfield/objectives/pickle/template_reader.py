"""Table entries of a pickle read by templates: bytes that are fixed are compared, values are taken from their places.

The fastest lane of `pickles`, before `records`. Like there, a guess says where entries end; it counts only where each
entry, read from the end of the one before it, arrives exactly there. So this is a parse and not a search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from openfield.objectives.pickle.bulk_reader import MARK, SETITEMS, STARTS_NEXT, TUPLE3, Rows, Stretch
from openfield.objectives.pickle.number_forms import Bytes, Flags, Ints, narrow
from openfield.objectives.pickle.scalars import Scalars
from openfield.objectives.pickle.source import hits_border
from openfield.objectives.pickle.template_groups import Shaped, keep_numbers, number_puts, sort_out
from openfield.objectives.pickle.templates import LONGEST, WORD, Field, Records, Template, learn, learn_tail

MOST = 16
"""Templates of each part of an entry; what fits none of them is left to `records`."""
CHANCES = 3
"""How often wrong guesses are left out before the rest is left to others."""
FEW, MOST_TRIES, LONGEST_PAUSE = 512, 4, 63
"""Entries that are worth a try, and how many tries may come to less without anything being learned by them."""
INPUT, REST, TAIL = PARTS = range(3)
"""The parts of an entry: input; action and next input; put and count. Fewer would have more templates each."""
SHORTEST = 9
"""Bytes of an entry at least; where there are more guesses than could be right, nothing is tried."""
NEXT_BATCH = SETITEMS | MARK << 8


class _Entries(NamedTuple):
    """Entries that hang together: their parts, and where each ends."""

    parts: list[Shaped]
    ends: Ints

    def before(self, size: int) -> _Entries:
        """The first so many."""
        if size == len(self.ends):
            return self
        return _Entries([part.before(size) for part in self.parts], self.ends[:size])


class TemplateReader:
    """Reads the entries of one file and learns their templates as it goes."""

    def __init__(self) -> None:
        self._known: list[list[Template]] = [[] for _ in PARTS]
        """Those of each part; those used most come first."""
        self._rooms = [WORD] * len(PARTS)
        self._begins = np.zeros(256, bool)
        """Of every byte whether tails begin with it."""
        self._found = np.empty(0, bool)
        """Room that is used again: memory that is new is slow."""
        self._wait = self._pause = self._tries = 0
        """How often nothing is tried from now on, and was not after the last failure; failures so far."""

    def read(self, view: Bytes, at: int, scalars: Scalars, borders: list[int]) -> Stretch | None:
        """As `records.read_records`, also across borders at which frame marks were taken out."""
        if self._wait:
            self._wait -= 1
            return None
        end = len(view) - self._spare - LONGEST
        entries = self._follow(view, at, scalars, borders) if at <= end else None
        size = 0 if entries is None else len(entries.ends)
        stop = int(entries.ends[-1]) if entries and size else at
        self._learn_to_wait(size, short=stop <= end)
        return Stretch(_rows(*entries.parts), stop) if entries and size else None

    def _learn_to_wait(self, size: int, *, short: bool) -> None:
        """After a number of tries that came to little, each that does so makes the next one later."""
        if size >= FEW:
            self._pause = 0
        elif short:
            self._tries += 1
            self._pause = min(2 * self._pause + 1, LONGEST_PAUSE) if self._tries > MOST_TRIES else 0
        self._wait = self._pause

    def _follow(self, view: Bytes, at: int, scalars: Scalars, borders: list[int]) -> _Entries | None:
        """The entries from `at` on that can be read; what is new in the first of them is learned."""
        entries = self._match(view, at, scalars.top) if self._known[TAIL] else None
        if entries is None and self._learn(view, at, scalars):
            entries = self._match(view, at, scalars.top)
        if entries is None:
            return None
        self._known = [part.by_use(known) for part, known in zip(entries.parts, self._known, strict=True)]
        entries = entries.before(min(part.sure() for part in entries.parts))
        entries = entries.before(_unbroken(view, at, entries.ends, borders))
        return entries.before(_follow_puts(entries, scalars))

    @property
    def _spare(self) -> int:
        """Bytes after the last entry looked at: no record goes further."""
        return sum(self._rooms) + WORD

    def _learn(self, view: Bytes, at: int, scalars: Scalars) -> bool:
        """Learn from the entry that begins here what is not known yet; says whether there was anything."""
        found = _learn_entry(view[at : at + len(PARTS) * LONGEST].tobytes(), scalars)
        if found is None:
            return False
        new = [(known, template) for known, template in zip(self._known, found, strict=True) if template not in known]
        if any(len(known) == MOST for known, _ in new):
            return False
        for known, template in new:
            known.append(template)
        self._rooms = [-(-max(template.room for template in known) // WORD) * WORD for known in self._known]
        self._begins[[tail.first for tail in self._known[TAIL]]] = True
        self._tries -= bool(new)
        return bool(new)

    def _match(self, view: Bytes, at: int, top: int) -> _Entries | None:
        """The entries from `at` on that follow each other and are of known templates."""
        tuples = self._guess(view, at)
        tails, fits = self._sort_out(TAIL, view, tuples + 1)
        fits &= _plausible(tails, top, len(view))
        best = _Entries([], tuples[:0])
        for _ in range(CHANCES):
            if not fits.all():
                tuples, tails = tuples[fits], tails.only(fits)
            if not 0 < SHORTEST * len(tuples) <= len(view) - at:
                break
            entries, fits = self._chain(view, at, tuples, tails)
            best = max(best, entries, key=lambda found: len(found.ends))
            if fits.all():
                break
            fits[1:] |= ~fits[:-1]  # after a wrong guess, the next one was tried from a wrong place
        return best if len(best.ends) else None

    def _guess(self, view: Bytes, at: int) -> Ints:
        """Every tuple opcode after which there is the first byte of a known tail."""
        end = max(len(view) - self._spare, at)
        if len(self._found) < end - at:
            self._found = np.empty(end - at, bool)
        tuples: Ints = np.equal(view[at:end], TUPLE3, out=self._found[: end - at]).nonzero()[0]
        tuples += at
        return tuples[self._begins[view[tuples + 1]]]

    def _chain(self, view: Bytes, at: int, tuples: Ints, tails: Shaped) -> tuple[_Entries, Flags]:
        """The entries that begin where the one before them ended, from the first on; and which of all do."""
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

    def _sort_out(self, part: int, view: Bytes, places: Ints) -> tuple[Shaped, Flags]:
        size = self._rooms[part]
        every: Records = np.ndarray((max(len(view) - size + 1, 0),), f"V{size}", view, 0, (1,))
        return sort_out(every[places], self._known[part])  # one thing each, which costs no more than a single word


def _learn_entry(data: bytes, scalars: Scalars) -> tuple[Template, Template, Template] | None:
    """The templates of the parts of the entry that begins with the first byte."""
    data = data.ljust(len(PARTS) * LONGEST, b"\0")
    first = learn(data, 1, scalars)
    rest = first and learn(data[first.length :], 2, scalars)
    if first is None or rest is None or data[first.length + rest.length] != TUPLE3:
        return None
    tail = learn_tail(data[first.length + rest.length + 1 :], scalars)
    return None if tail is None else (first, rest, tail)


def _plausible(tails: Shaped, top: int, most: int) -> Flags | bool:
    """Whether keys are put under numbers that writers may have reached here, which is no more than a hint."""
    if not all(template.puts and template.puts[0].key for template in tails.templates):
        return True
    further = tails.put_numbers(0) - (top + 1)
    return further.view(np.uint64) < most


def _unbroken(view: Bytes, at: int, ends: Ints, borders: list[int]) -> int:
    """How many entries there are before one within which there is a border in the middle of an opcode."""
    for border in borders:
        entry = int(np.searchsorted(ends, border, side="right"))
        if entry == len(ends):
            break
        if not hits_border(view, int(ends[entry - 1]) if entry else at, border):
            return entry
    return len(ends)


def _ends(tuples: Ints, tails: Shaped) -> Ints:
    """Where the entries end, or the next batch begins if one does."""
    ends = tails.behind(tuples + 1)
    ends[tails.fields(_after, np.dtype("u2")) == NEXT_BATCH] += 2
    return ends


def _after(template: Template) -> Field:
    return Field(template.length, np.dtype("<u2"))


def _follow_puts(entries: _Entries, scalars: Scalars) -> int:
    """How many entries can be followed whose memo numbers rise; the numbers they put are kept.

    As `memo.follow_memo`, for entries that refer to nothing but the function and kind of NumPy numbers.
    """
    size, each = len(entries.ends), sum(len(part.usual.puts) for part in entries.parts)
    if not size or not each:
        return size
    numbers = number_puts(entries.parts, scalars.puts)
    size = _rising(numbers.reshape(-1), scalars.top) // each
    if size:
        keep_numbers(entries.before(size).parts, numbers[:size], scalars)
        scalars.puts, scalars.top = scalars.puts + size * each, int(numbers[size - 1, -1])
    return size


def _rising(numbers: Ints, top: int) -> int:
    """How many there are before one that does not rise."""
    if numbers[0] <= top:
        return 0
    rises = numbers[1:] > numbers[:-1]
    return len(numbers) if rises.all() else int(rises.argmin()) + 1


def _rows(first: Shaped, rest: Shaped, tail: Shaped) -> Rows:
    columns = (first.values(0), rest.values(0), rest.values(1), tail.values(0))
    return Rows(*(narrow(column) if column.dtype == np.int64 else column for column in columns))
