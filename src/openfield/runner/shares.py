"""Share out a plan: disjoint parts that machines play into files of their own, to be merged.

Trials that come after another one need what its agent learned. Their share takes the other one along, unless the
sharing is done in two stages: first the trials that others come after, then the rest, on top of the merged first stage.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from openfield.cell import Cell
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.runner.plan import Plan
from openfield.runner.scheduler import rank_cells

Stage = Literal["all", "first", "rest"]
"""Which cells are shared out: all, those that others come after, or the others."""
FACT = "share "
"""How the keys of facts begin that say which share of a plan a run file holds; their values are `_Extent` as text."""
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
    extent = _Extent(len(own), len(order), len(plan.cells))
    return replace(plan, cells=cells, facts={**plan.facts, f"{FACT}{share}": str(extent)})


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


def find_missing(parts: Sequence[str | Path]) -> list[str]:
    """Return the shares that no part holds, of plans that no part holds as a whole."""
    held = [each for path in parts for each in _list_held(Path(path))]
    missing = []
    for count, stage in sorted({(each.share.of, each.share.stage) for each in held}):
        group = [each for each in held if each.share[1:] == (count, stage)]
        filled = min(count, max(each.extent.shared for each in group))
        numbers = sorted({*range(filled)} - {each.share.number for each in group})
        if numbers and not _is_covered(group, parts):
            missing += [str(Share(number, count, stage)) for number in numbers]
    return missing


class _Held(NamedTuple):
    """A share that a file holds."""

    share: Share
    extent: _Extent
    path: Path


def _list_held(path: Path) -> list[_Held]:
    with Run(path) as run:
        shares = {parse_share(key.removeprefix(FACT)): text for key, text in run.facts.items() if key.startswith(FACT)}
    return [_Held(share, _read_extent(text), path) for share, text in shares.items()]


def _is_covered(group: Sequence[_Held], parts: Sequence[str | Path]) -> bool:
    """Return whether a part has all cells of the files that hold these shares, and as many as were planned."""
    planned = max(each.extent.planned for each in group)
    for path in parts:
        with Run(path) as run:
            cells = set(run.cell_ids()) if run.counts().planned >= planned else set()
        if cells and all(_has_cells(cells, each.path) for each in group):
            return True
    return False


def _has_cells(cells: Collection[str], path: Path) -> bool:
    with Run(path) as run:
        return all(cell in cells for cell in run.cell_ids())


class _Extent(NamedTuple):
    """How large a share is, and what it is a part of, in cells."""

    own: int
    shared: int
    """Of its stage."""
    planned: int

    def __str__(self) -> str:
        return f"{self.own} of {self.shared} in {self.planned}"


def _read_extent(text: str) -> _Extent:
    """Read the fact about a share. Earlier files tell its own cells only: any number may have been planned."""
    found = re.fullmatch(r"(\d{1,9}) of (\d{1,9}) in (\d{1,9})", text)
    return _Extent(0, MAX_SHARES, 10**9) if found is None else _Extent(int(found[1]), int(found[2]), int(found[3]))
