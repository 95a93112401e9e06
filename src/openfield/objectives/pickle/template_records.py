"""Records of bytes sorted by their templates: one that most of them have, and others.

A value is first read in the place where most records have it, in all of them; then the others are read in their own
places. So a column costs little with one template, and not much more with a few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.pickle.memo import FRACTION, WHOLE, Ints, Memo
from openfield.objectives.pickle.templates import EntryTemplate, Flags, NumberField, Records


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
            size = size if template.habit == self.usual.habit else min(size, int(at[0]))
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
    return lambda template: template.puts[put].key


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
        for put, (implicit, _, _) in enumerate(part.usual.habit):
            if not implicit:
                part.fill(numbers[:, place], _put_key(put))
            place += 1
    return numbers


def keep_numbers(parts: list[TemplateRecords], numbers: Ints, memo: Memo) -> None:
    """Add the NumPy numbers of the entries to the memo, under their memo numbers."""
    places, values, forms, place = [], [], [], 0
    for part in parts:
        for _, kept, fraction in part.usual.habit:
            if kept is not None:
                places.append(place)
                values.append(part.values(kept, np.dtype(np.float64 if fraction else np.int64)).view(np.int64))
                forms.append(FRACTION if fraction else WHOLE)
            place += 1
    if places:
        kinds = np.tile(np.array(forms, np.uint8), len(numbers)) if any(forms) else WHOLE
        memo.extend(numbers[:, places].reshape(-1), np.stack(values, axis=1).reshape(-1), kinds)
