"""Share out a plan: disjoint parts that machines play into files of their own, to be merged.

Trials that come after another one need what its agent learned. Their share takes the other one along, unless the
sharing is done in two stages: first the trials that others come after, then the rest, on top of the merged first stage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

from openfield.cell import Cell
from openfield.errors import InvalidInput
from openfield.runner.plan import Plan
from openfield.runner.scheduler import rank_cells

Stage = Literal["all", "first", "rest"]
"""Which cells are shared out: all, those that others come after, or the others."""
FACT = "share "
"""How the keys of facts begin that say which share of a plan a run file holds."""
MAX_SHARES = 1_000_000


class Share(NamedTuple):
    """One part of a plan that is shared out."""

    number: int
    """Counted from 0."""
    of: int
    stage: Stage = "all"

    def __str__(self) -> str:
        return f"{self.number}/{self.of}" + ("" if self.stage == "all" else f":{self.stage}")


def parse_share(text: str) -> Share:
    """Read a share: `3/100`, `3/100:first` or `3/100:rest`."""
    found = re.fullmatch(r"(\d{1,7})/(\d{1,7})(?::(\w+))?", text)
    stage = "all" if found is None or found[3] is None else found[3]
    if found is None or stage not in get_args(Stage) or not int(found[1]) < int(found[2]) <= MAX_SHARES:
        raise InvalidInput(f"A share is NUMBER/OF, counted from 0, such as 3/100 or 3/100:first, not '{text}'.")
    return Share(int(found[1]), int(found[2]), stage)  # type: ignore[arg-type]


def share_plan(plan: Plan, share: Share) -> Plan:
    """Return the part of a plan that a share has to play, with the cells that it comes after."""
    ranks, known = rank_cells(plan.cells), {cell.id: cell for cell in plan.cells}
    wanted = {cell.id for cell in choose_stage(plan.cells, share.stage)}
    order = sorted(wanted, key=ranks.__getitem__)
    own = set(order[share.number :: share.of])
    before = {earlier for cell in own for earlier in _list_before(known[cell], known)}
    if not own:
        raise InvalidInput(f"The share {share} is empty: there are {len(order)} cells to share out.")
    cells = tuple(cell for cell in plan.cells if cell.id in own | before)
    return replace(plan, cells=cells, facts={**plan.facts, f"{FACT}{share}": str(len(own))})


def choose_stage(cells: Iterable[Cell], stage: Stage) -> list[Cell]:
    """Return the cells of a stage."""
    planned = list(cells)
    first = {cell.after for cell in planned if cell.after is not None}
    return [cell for cell in planned if stage == "all" or (cell.id in first) is (stage == "first")]


def _list_before(cell: Cell, known: Mapping[str, Cell]) -> Iterable[str]:
    """Yield the ids of the cells that a cell comes after, one after the other."""
    while cell.after is not None:
        yield cell.after
        cell = known[cell.after]


def find_missing(facts: Iterable[str]) -> list[str]:
    """Return the shares that are missing between those that the facts of merged files name."""
    shares = [parse_share(key.removeprefix(FACT)) for key in facts if key.startswith(FACT)]
    groups = {(share.of, share.stage) for share in shares}
    return [
        str(share)
        for of, stage in sorted(groups)
        for share in (Share(number, of, stage) for number in range(of))
        if share not in shares
    ]
