"""Transition tables: how often an input, an action and a next input followed each other.

What every objective starts from; made from files, mappings or columns, checked here once and for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.checks import (
    check_rows,
    check_single,
    find_repeated,
    plain_count,
    plain_integers,
    plain_key,
    rank_ids,
)
from openfield.objectives.tables.codes import CodeBook, check_codes, make_book
from openfield.objectives.tables.counts import Counts, count_columns
from openfield.objectives.tables.histograms import Array, sorted_distinct
from openfield.objectives.tables.rows import Codes, Columns, Rows, as_column

FEW_IDS = 1 << 31
"""Distinct inputs are counted in a bitmap up to this range of ids (32 MB for the largest published environment)."""


SEEN_AT_ONCE = 1 << 15
"""Rows whose inputs are marked at once."""


class Meta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The known facts about a table beside its rows."""

    environment: str | None = None
    agent: str | None = None
    reward: bool | None = None
    """Whether the agent was given the task's reward; None where the name does not say."""
    levels: str | None = None
    """Whose frames set the thresholds: `human` or `shared`."""
    thresholds: str | None = None
    """Hash of the thresholds; tables to be compared must agree."""
    bins: list[list[list[float]]] | None = None
    """The thresholds themselves, where this table's frames were discretised by us."""
    num_obs: int | None = None
    """Distinct inputs of the environment, over all agents."""
    num_actions: int | None = None
    alignment: str | None = None
    """`action_leads_to_next` or `action_led_here`."""
    episodes: int | None = None


class Table(msgspec.Struct, frozen=True, eq=False, kw_only=True, dict=True):
    """`count` times `action` led from `obs` to `next_obs`; all counts are positive."""

    obs: Array
    action: Array
    next_obs: Array
    count: Array
    name: str = "table"
    """The file, for messages."""
    book: CodeBook | None = None
    meta: Meta = Meta()
    ordered: bool = False
    """Whether rows come in the order (obs, next_obs, action)."""
    single: bool = False
    """Whether a key that occurs twice is a mistake; otherwise its counts are added."""
    zeros: int = 0
    """How many entries with a count of zero were left out."""
    notes: tuple[str, ...] = ()
    ids: tuple[int, ...] | None = None
    """The ids behind the numbers in `obs` and `next_obs`, where they were too large to be used themselves."""

    @cached_property
    def counts(self) -> Counts:
        """The histograms all objectives of this table are computed from.

        Raises:
            InvalidInput: There is no positive count, or a key occurs twice.
        """
        if not len(self.obs):
            raise InvalidInput(f"{self.name}: no positive counts.")
        counts = count_columns(self.columns, ordered=self.ordered)
        if self.single and counts.triples.size != len(self.obs):
            source, action, then = find_repeated(self.obs, self.action, self.next_obs) or (0, 0, 0)
            key = self.id_of(source), action, self.id_of(then)
            raise InvalidInput(f"{self.name}: key {key} occurs more than once.")
        return counts

    @property
    def columns(self) -> Columns:
        """The rows in the order of parts that counting sorts by."""
        return Columns(self.obs, self.next_obs, self.action, self.count)

    @cached_property
    def num_inputs(self) -> int:
        """Distinct inputs, as source or as successor."""
        return distinct(self.obs, self.next_obs)

    @cached_property
    def num_actions(self) -> int:
        """Distinct actions."""
        return distinct(self.action)

    def id_of(self, number: int) -> int:
        """Return the id the file gives to an input."""
        return self.ids[number] if self.ids else number


TableLike: TypeAlias = Table | Mapping[tuple[int, int, int], float] | tuple[Mapping[Any, float], Mapping[int, int]]


def as_table(source: TableLike) -> Table:
    """Return a table as it is, or make one of a mapping of keys to counts, alone or in a pair with its code book."""
    if isinstance(source, Table):
        return source
    mapping, book = source if isinstance(source, tuple) else (source, None)
    if not isinstance(mapping, Mapping):
        raise InvalidInput(f"A transition table maps (input, action, next input) to a count; this is {type(source)}.")
    keys = [plain_key(key) for key in mapping]
    counts = as_column([plain_count(key, value) for key, value in mapping.items()])
    obs, action, next_obs = (as_column([key[part] for key in keys]) for part in range(3))
    codes = [] if book is None else [Codes(*(as_column(plain_integers(column)) for column in (book, book.values())))]
    return make_table([Rows(obs, action, next_obs, counts)], codes)


def make_table(
    pieces: Iterable[Rows],
    codes: Iterable[Codes] = (),
    *,
    name: str = "table",
    meta: Meta | None = None,
    single: bool = True,
    ordered: bool = False,
) -> Table:
    """Make a checked table from pieces of rows.

    Raises:
        InvalidInput: A count is negative or not a number; the message names the key.
    """
    books = list(codes)
    whole = _joined(list(pieces))
    rows, zeros, notes = check_rows(whole, name)
    if zeros and single:
        check_single(whole, name)
    obs, next_obs, ids = rank_ids(rows.obs, rows.next_obs, (index for part in books for index in part.indices.tolist()))
    action, _, actions = rank_ids(rows.action, rows.action)
    notes += ("actions beyond 64 bits were numbered anew",) if actions else ()
    return Table(
        obs=obs,
        action=action,
        next_obs=next_obs,
        count=rows.counts,
        name=name,
        book=_book(books, ids, name),
        meta=meta or Meta(),
        ordered=ordered,
        single=single,
        zeros=zeros,
        notes=notes,
        ids=ids,
    )


def distinct(*columns: Array) -> int:
    """Count the different numbers in all columns together."""
    if not len(columns[0]):
        return 0
    low, high = min(int(column.min()) for column in columns), max(int(column.max()) for column in columns)
    if high - low >= min(FEW_IDS, 64 * len(columns[0]) + 2**20):
        return len(sorted_distinct(np.concatenate(columns)))
    seen = np.zeros(high - low + 1, bool)
    for column in columns:
        for at in range(0, len(column), SEEN_AT_ONCE):  # a column of 64-bit places as long as the table would cost more
            seen[column[at : at + SEEN_AT_ONCE].astype(np.int64) - low] = True
    return int(np.count_nonzero(seen))


def meta_of_name(name: str) -> Meta:
    """Return the meaning of a published file name: `{env}_{agent}[_{reward|noreward}]_{human|shared}_disc`."""
    parts = name.split(".")[0].split("_")
    if len(parts) < 4 or parts[-1] != "disc" or parts[-2] not in ("human", "shared"):
        return Meta()
    *words, levels, _ = parts
    reward = {"reward": True, "noreward": False}.get(words[-1])
    if reward is not None:
        words = words[:-1]
    if len(words) < 2:
        return Meta(levels=levels)
    return Meta(environment="_".join(words[:-1]), agent=words[-1], reward=reward, levels=levels)


def _joined(pieces: list[Rows]) -> Rows:
    if not pieces:
        return Rows(*(np.empty(0, np.int64) for _ in range(4)))
    if len(pieces) == 1:
        return pieces[0]
    return Rows(*(_end_to_end(columns) for columns in zip(*pieces, strict=True)))


def _end_to_end(columns: Sequence[Array]) -> Array:
    """Join columns, as Python's integers if one has them."""
    kinds = {column.dtype for column in columns}
    return np.concatenate(columns, dtype=object if np.dtype(object) in kinds else None)


def _book(codes: list[Codes], ids: tuple[int, ...] | None, name: str) -> CodeBook | None:
    if not codes:
        return None
    images, indices = map(np.concatenate, zip(*codes, strict=True))
    if ids is not None:
        ranks = {value: number for number, value in enumerate(ids)}
        indices = np.array([ranks[index] for index in indices.tolist()], np.int64)
    book = make_book(images, indices, name)
    check_codes(book, name)
    return book


class TableSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The histograms of a table and the known facts about it."""

    name: str
    counts: Counts
    rows: int
    num_inputs: int
    """Distinct inputs seen."""
    num_actions: int
    """Distinct actions seen."""
    meta: Meta = Meta()
    zeros: int = 0
    notes: tuple[str, ...] = ()


def summarise_table(table: Table) -> TableSummary:
    """Return the summary of a table in memory."""
    return TableSummary(
        name=table.name,
        counts=table.counts,
        rows=len(table.obs),
        num_inputs=table.num_inputs,
        num_actions=table.num_actions,
        meta=table.meta,
        zeros=table.zeros,
        notes=table.notes,
    )
