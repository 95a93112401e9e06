"""Records of bytes with the templates they have: one that most of them have, and others.

Under `template_records`. What is in the same place in most is read there first, in all of them; then the others are
read in their own places. So a column costs little where there is one template, and not much more where there are a few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from openfield.objectives.pickle.number_forms import FRACTION, WHOLE, Flags, Ints
from openfield.objectives.pickle.scalars import Scalars
from openfield.objectives.pickle.templates import Field, Records, Template


class Group(NamedTuple):
    """Those records that have one template."""

    template: Template
    at: Ints
    """Which ones, rising."""
    records: Records

    def only(self, kept: Flags) -> Group:
        """Those that are kept."""
        mine = kept[self.at]
        return self if mine.all() else Group(self.template, self.at[mine], self.records[mine])


class Shaped(NamedTuple):
    """Records, the template that most of them have, and those that have another."""

    records: Records
    usual: Template
    others: list[Group]

    @property
    def templates(self) -> list[Template]:
        """All of them."""
        return [self.usual, *(group.template for group in self.others)]

    def before(self, size: int) -> Shaped:
        """The first so many."""
        cut = []
        for template, at, records in self.others:
            end = int(np.searchsorted(at, size))
            if end:
                cut.append(Group(template, at[:end], records[:end]))
        return Shaped(self.records[:size], self.usual, cut)

    def only(self, kept: Flags) -> Shaped:
        """Those that are kept, numbered anew."""
        left_out = (~kept).nonzero()[0]
        groups = (group.only(kept) for group in self.others)
        others = [
            group._replace(at=group.at - np.searchsorted(left_out, group.at)) for group in groups if len(group.at)
        ]
        return Shaped(self.records[kept], self.usual, others)

    def behind(self, places: Ints) -> Ints:
        """Where the records end that begin at these places."""
        found = places + self.usual.length
        for template, at, _ in self.others:
            found[at] += template.length - self.usual.length
        return found

    def fields(self, choose: Callable[[Template], Any], kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """One field of each record."""
        column = np.empty(len(self.records), kind)
        self.fill(column, choose)
        return column

    def fill(self, column: np.ndarray[Any, Any], choose: Callable[[Template], Any]) -> None:
        """Fill a column with one field of each record."""
        if not len(self.records):
            return
        usual: Field = choose(self.usual)
        column[:] = usual.of(self.records)
        for template, at, records in self.others:
            field = choose(template)
            if field != usual:
                column[at] = field.of(records)

    def values(self, number: int, kind: np.dtype[Any] | None = None) -> np.ndarray[Any, Any]:
        """One of the numbers of each record, in a kind that has room for all of them unless it is given."""
        kind = kind or np.result_type(*(template.numbers[number].column for template in self.templates))
        if kind.kind != "f":
            return self.fields(lambda template: template.numbers[number], kind)
        with np.errstate(invalid="ignore"):  # a NaN that signals is a NaN all the same
            return self.fields(lambda template: template.numbers[number], kind)

    def put_numbers(self, put: int) -> Ints:
        """The memo number under which each record puts one of the things it puts."""
        return self.fields(_put_key(put), np.dtype(np.int64))

    def sure(self) -> int:
        """How many there are before one that has other habits than most, or a number of more than 63 bits."""
        size = len(self.records)
        for template, at, _ in self.others:
            size = size if template.habit == self.usual.habit else min(size, int(at[0]))
        for number in range(len(self.usual.numbers)):
            if any(template.numbers[number].unsigned for template in self.templates):
                large = self.values(number) < 0
                size = min(size, int(large.argmax())) if large.any() else size
        return size

    def by_use(self, templates: list[Template]) -> list[Template]:
        """The templates with those first that are used most here: they are the first to be tried next time."""
        if not self.others:
            return templates
        uses = {id(template): len(at) for template, at, _ in self.others}
        uses[id(self.usual)] = len(self.records) - sum(uses.values())
        return sorted(templates, key=lambda template: -uses.get(id(template), 0))


def _put_key(put: int) -> Callable[[Template], Field | None]:
    return lambda template: template.puts[put].key


def sort_out(records: Records, templates: list[Template]) -> tuple[Shaped, Flags]:
    """The records by their templates, and which have one."""
    if not len(records):
        return Shaped(records, templates[0], []), np.empty(0, bool)
    known = templates[0].fits(records)
    others: list[Group] = []
    left = np.empty(0, np.int64) if known.all() else (~known).nonzero()[0]
    for template in templates[1:]:
        if not len(left):
            break
        rest = records[left]
        fits = template.fits(rest)
        if fits.any():
            mine = left[fits]
            others.append(Group(template, mine, rest[fits]))
            known[mine] = True
            left = left[~fits]
    return Shaped(records, templates[0], others), known


def number_puts(parts: list[Shaped], puts: int) -> Ints:
    """The memo numbers of what each entry puts, one row each; `puts` is how many there were before."""
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


def keep_numbers(parts: list[Shaped], numbers: Ints, scalars: Scalars) -> None:
    """Let the memo have the NumPy numbers that are put into it, under the memo numbers of each entry."""
    places, values, forms, place = [], [], [], 0
    for part in parts:
        for _, kept, fraction in part.usual.habit:
            if kept is not None:
                places.append(place)
                values.append(part.values(kept, np.dtype(np.float64 if fraction else np.int64)).view(np.int64))
                forms.append(FRACTION if fraction else WHOLE)
            place += 1
    if places:
        kinds = np.tile(np.array(forms, np.int8), len(numbers)) if any(forms) else None
        scalars.extend(numbers[:, places].reshape(-1), np.stack(values, axis=1).reshape(-1), kinds)
