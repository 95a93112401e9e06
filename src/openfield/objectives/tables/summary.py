"""The summary of a table: its histograms and sizes, which is all that the five objectives need."""

from __future__ import annotations

import msgspec

from openfield.objectives.tables.counts import Counts
from openfield.objectives.tables.table import Meta, Table


class TableSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The histograms of a table and what is known about it."""

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


def summarise(table: Table) -> TableSummary:
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
