"""Table entries of a pickle read by templates: bytes that are fixed are compared, numbers are taken from their places.

The fastest lane of `pickles`, before `records`. Like there, a guess says where entries end; it counts only where each
entry begins where the one before it ended, so this is a parse and not a search. What fits no template is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.forms import FRACTION, WHOLE, Bytes, Flags, Ints, narrow
from openfield.objectives.records import MARK, SETITEMS, STARTS_NEXT, TUPLE3, Rows, Stretch
from openfield.objectives.scalars import Scalars
from openfield.objectives.templates import LONGEST, WORD, Field, Records, Template, learn_key, learn_tail

MOST_KEYS, MOST_TAILS = 32, 16
"""Templates of a file; those it has beyond them are left to `records`."""
NEXT_BATCH = SETITEMS | MARK << 8


class _Group(NamedTuple):
    """Those records that have one shape."""

    template: Template
    at: Ints
    """Which ones, rising."""
    records: Records


class _Shaped(NamedTuple):
    """Records with their templates: one that most of them have, and those that have another."""

    records: Records
    usual: Template
    others: list[_Group]

    def before(self, size: int) -> _Shaped:
        """The first so many."""
        ends = (np.searchsorted(group.at, size) for group in self.others)
        cut = [
            _Group(group.template, group.at[:end], group.records[:end])
            for group, end in zip(self.others, ends, strict=True)
            if end
        ]
        return _Shaped(self.records[:size], self.usual, cut)

    @property
    def templates(self) -> list[Template]:
        """All of them."""
        return [self.usual, *(group.template for group in self.others)]

    def numbers(self, choose: Callable[[Template], Field], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """One number of each record; what is in the same place in most is read there first, in all of them."""
        usual = choose(self.usual)
        column = usual.of(self.records).astype(kind)
        for template, at, records in self.others:
            if choose(template) != usual:
                column[at] = choose(template).of(records)
        return column

    def same_habit(self) -> int:
        """How many records there are before one that puts something else into the memo than most do."""
        odd = [int(group.at[0]) for group in self.others if group.template.habit != self.usual.habit]
        return min(odd, default=len(self.records))


class _Entries(NamedTuple):
    """Entries that hang together."""

    keys: _Shaped
    tails: _Shaped
    ends: Ints

    def before(self, size: int) -> _Entries:
        """The first so many."""
        if size == len(self.ends):
            return self
        return _Entries(self.keys.before(size), self.tails.before(size), self.ends[:size])


class TemplateReader:
    """Reads the entries of one file and learns their templates as it goes."""

    def __init__(self) -> None:
        self._keys: list[Template] = []
        self._tails: list[Template] = []
        self._spare = LONGEST
        """Bytes after the last entry looked at: no record goes further."""

    def read(self, view: Bytes, at: int, scalars: Scalars) -> Stretch | None:
        """As `records.read_records`."""
        while True:
            entries = self._match(view, at) if self._keys else None
            stop = int(entries.ends[-1]) if entries else at
            if stop + self._spare >= len(view) or not self._learn(view, stop, scalars):
                break
        if entries is None:
            return None
        self._keys, self._tails = _by_use(self._keys, entries.keys), _by_use(self._tails, entries.tails)
        entries = entries.before(_sure(entries))
        entries = entries.before(_follow_puts(entries, scalars))
        if not len(entries.ends):
            return None
        return Stretch(_rows(entries), int(entries.ends[-1]))

    def _learn(self, view: Bytes, at: int, scalars: Scalars) -> bool:
        """Learn from the entry that begins here what is not known yet; says whether there was anything."""
        data = view[at : at + 2 * LONGEST].tobytes()
        key = learn_key(data, scalars)
        tail = key and learn_tail(data[key.length + 1 :], scalars)
        if key is None or tail is None:
            return False
        new_key, new_tail = key not in self._keys, tail not in self._tails
        if (new_key and len(self._keys) == MOST_KEYS) or (new_tail and len(self._tails) == MOST_TAILS):
            return False
        self._keys += [key] * new_key
        self._tails += [tail] * new_tail
        self._spare = _room(self._keys) + _room(self._tails) + LONGEST
        return new_key or new_tail

    def _match(self, view: Bytes, at: int) -> _Entries | None:
        """The entries from `at` on that follow each other and have known shapes."""
        tuples = self._guess(view, at)
        while len(tuples):
            tails, fits = _sort_out(_records(view, tuples + 1, _room(self._tails)), self._tails)
            if fits.all():
                return self._chain(view, at, tuples, tails)
            tuples = tuples[fits]
        return None

    def _chain(self, view: Bytes, at: int, tuples: Ints, tails: _Shaped) -> _Entries | None:
        ends = _ends(tuples, tails)
        starts = np.concatenate(([at], ends[:-1]))[: len(ends)]
        keys, fits = _sort_out(_records(view, starts, _room(self._keys)), self._keys, tuples - starts)
        size = len(fits) if fits.all() else int(fits.argmin())
        if size and not STARTS_NEXT[view[ends[size - 1]]] and view[ends[size - 1] - 1] != MARK:
            size -= 1
        return _Entries(keys, tails, ends).before(size) if size else None

    def _guess(self, view: Bytes, at: int) -> Ints:
        """Every tuple opcode after which there is the first byte of a known tail."""
        end = max(len(view) - self._spare, at)
        after = view[at + 1 : end + 1]
        found = np.zeros(end - at, bool)
        for first in {tail.first for tail in self._tails}:
            found |= after == first
        found &= view[at:end] == TUPLE3
        return np.flatnonzero(found) + at


def _room(templates: list[Template]) -> int:
    """Bytes of a record: the longest template, what may follow it, and all of a word that begins in it."""
    return (max(template.length for template in templates) + 2 * WORD - 1) // WORD * WORD


def _records(view: Bytes, places: Ints, size: int) -> Records:
    """So many bytes from each place on, as one thing, which costs no more than a single word."""
    every: Records = np.ndarray((max(len(view) - size + 1, 0),), f"V{size}", view, 0, (1,))
    return every[places]


def _sort_out(records: Records, templates: list[Template], lengths: Ints | None = None) -> tuple[_Shaped, Flags]:
    """The records by their templates, and which have one; `lengths` is what those of the templates must be."""
    fits = known = _fits(templates[0], records, lengths)
    others: list[_Group] = []
    left = np.flatnonzero(~fits)
    for template in templates[1:]:
        if not len(left):
            break
        rest = records[left]
        fits = _fits(template, rest, None if lengths is None else lengths[left])
        mine = np.flatnonzero(fits)
        if len(mine):
            others.append(_Group(template, left[mine], rest[mine]))
            left = left[~fits]
    known = np.ones(len(records), bool)
    known[left] = False
    return _Shaped(records, templates[0], others), known


def _fits(template: Template, records: Records, lengths: Ints | None) -> Flags:
    fits = template.fits(records)
    return fits if lengths is None else np.logical_and(fits, lengths == template.length, out=fits)


def _ends(tuples: Ints, tails: _Shaped) -> Ints:
    """Where the entries end, or the next batch begins if one does."""
    ends = tuples + (1 + tails.usual.length)
    for template, at, _ in tails.others:
        ends[at] += template.length - tails.usual.length
    ends[tails.numbers(_after, np.dtype("u2")) == NEXT_BATCH] += 2
    return ends


def _after(template: Template) -> Field:
    return Field(template.length, np.dtype("<u2"))


def _by_use(templates: list[Template], shaped: _Shaped) -> list[Template]:
    """Those used most in this stretch first: they are the first to be tried in the next one."""
    if not shaped.others:
        return templates
    uses = {id(group.template): len(group.at) for group in shaped.others}
    uses[id(shaped.usual)] = len(shaped.records) - sum(uses.values())
    return sorted(templates, key=lambda template: -uses.get(id(template), 0))


def _sure(entries: _Entries) -> int:
    """How many entries there are before one of which this module does not know what it means."""
    size = min(entries.keys.same_habit(), entries.tails.same_habit())
    for shaped, parts in ((entries.keys, range(3)), (entries.tails, range(1))):
        for part in parts:
            if any(template.parts[part].unsigned for template in shaped.templates):
                large = shaped.numbers(lambda template, part=part: template.parts[part], np.dtype(np.int64)) < 0
                size = min(size, int(large.argmax())) if large.any() else size
    return size


def _follow_puts(entries: _Entries, scalars: Scalars) -> int:
    """How many entries can be followed whose memo numbers rise; the numbers they put are kept.

    As `memo.follow_memo`, for entries that refer to nothing but the function and kind of NumPy numbers.
    """
    size, habits = len(entries.ends), (*entries.keys.usual.habit, *entries.tails.usual.habit)
    if not size or not habits:
        return size
    numbers = np.arange(scalars.puts, scalars.puts + size * len(habits)).reshape(size, -1)
    place = 0
    for shaped in (entries.keys, entries.tails):
        for put, (implicit, _, _) in enumerate(shaped.usual.habit):
            if not implicit:
                numbers[:, place] = shaped.numbers(lambda template, put=put: template.puts[put].key, numbers.dtype)
            place += 1
    size = _rising(numbers.reshape(-1), scalars.top) // len(habits)
    if size:
        _keep(entries.before(size), numbers[:size], scalars)
        scalars.puts, scalars.top = scalars.puts + size * len(habits), int(numbers[size - 1, -1])
    return size


def _rising(numbers: Ints, top: int) -> int:
    """How many there are before one that does not rise."""
    if numbers[0] <= top:
        return 0
    rises = numbers[1:] > numbers[:-1]
    return len(numbers) if rises.all() else int(rises.argmin()) + 1


def _keep(entries: _Entries, numbers: Ints, scalars: Scalars) -> None:
    """Let the memo have the NumPy numbers that are put into it."""
    places, values, forms, place = [], [], [], 0
    for shaped in (entries.keys, entries.tails):
        for _, part, fraction in shaped.usual.habit:
            if part is not None:
                places.append(place)
                kind = np.dtype(np.float64 if fraction else np.int64)
                values.append(shaped.numbers(lambda template, part=part: template.parts[part], kind).view(np.int64))
                forms.append(FRACTION if fraction else WHOLE)
            place += 1
    if places:
        kinds = np.tile(np.array(forms, np.int8), len(numbers)) if any(forms) else None
        scalars.extend(numbers[:, places].reshape(-1), np.stack(values, axis=1).reshape(-1), kinds)


def _rows(entries: _Entries) -> Rows:
    obs, action, next_obs = (_column(entries.keys, part) for part in range(3))
    return Rows(obs, action, next_obs, _column(entries.tails, 0))


def _column(shaped: _Shaped, part: int) -> np.ndarray[Any, Any]:
    kind = np.result_type(*(template.parts[part].column for template in shaped.templates))
    with np.errstate(invalid="ignore"):  # a NaN that signals is a NaN all the same
        column = shaped.numbers(lambda template: template.parts[part], kind)
    return narrow(column) if kind == np.int64 else column
