"""Share out a plan: disjoint parts that machines play into files of their own, to be merged.

Trials that come after another one need the state of its agent. Their share takes the other one along, unless the
sharing is done in two stages: first the trials that others come after, then the rest, on top of the merged first stage.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from openfield.cell import Cell
from openfield.console import say_count
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.runner.plan import Plan

Stage = Literal["all", "first", "rest"]
"""Which cells are shared out: all, those that others come after, or the others."""
FACT = "share "
"""How the keys of facts begin that say which share of which plan a run file holds; their values are an `_Extent`."""
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
    known = {cell.id: cell for cell in plan.cells}
    shared = choose_stage(plan.cells, share.stage)
    own = set(_deal(shared, share))
    before = {earlier for cell in own for earlier in _list_before(known[cell], known)}
    if not own:
        raise InvalidInput(f"The share {share} is empty: the plan has {say_count(len(shared), 'cell')} to share out.")
    cells = tuple(cell for cell in plan.cells if cell.id in own | before)
    extent = _Extent(len(shared), len(plan.cells), sorted({cell.agent for cell in plan.cells}))
    fact = {f"{FACT}{share} of {_name_plan(known)}": msgspec.json.encode(extent).decode()}
    return replace(plan, cells=cells, facts={**plan.facts, **fact})


def _deal(cells: Sequence[Cell], share: Share) -> Iterable[str]:
    """Yield the ids of a share's own cells.

    Cells are dealt out agent by agent, and scenario by scenario within, so that each share gets its part of both,
    however many there are. Where all agents would begin at the same share, each begins one further: the agents of a
    trial are spread too.
    """
    order = sorted(cells, key=_name_stratum)
    agents = len({cell.agent for cell in order})
    lap = math.lcm(len(order) // max(agents, 1), share.of)  # after these cells agents begin where others began
    return (cell.id for at, cell in enumerate(order) if (at + at // lap) % share.of == share.number)


def _name_stratum(cell: Cell) -> tuple[str, str, tuple[str, ...], bool]:
    return cell.agent, cell.trial.domain, cell.trial.novelty, cell.trial.is_unchanged_twin


def _name_plan(cells: Iterable[str]) -> str:
    """Return the name of a plan from the ids of its cells, the same on every machine."""
    return hashlib.sha256("".join(sorted(cells)).encode()).hexdigest()[:12]


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


class MissingShares(NamedTuple):
    """The shares of a plan that no part holds."""

    plan: str
    cells: int
    part: str
    """A file that holds another share of the plan."""
    shares: list[str]

    def __str__(self) -> str:
        return f"{', '.join(self.shares)} of the plan of {self.part} ({say_count(self.cells, 'cell')})"


def find_missing(parts: Sequence[str | Path]) -> list[MissingShares]:
    """Return the shares that no part holds, for each plan that no part holds as a whole.

    Raises:
        InvalidInput: A part holds a share of an earlier version, which shared out otherwise.
    """
    groups: dict[tuple[str, Stage], list[_Held]] = {}
    for each in (each for path in parts for each in _list_held(Path(path))):
        groups.setdefault((each.plan, each.share.stage), []).append(each)
    found = []
    for (plan, _), group in groups.items():
        missing = [_list_missing(group, count) for count in sorted({each.share.of for each in group})]
        if all(missing) and not _is_covered(group[0], parts):
            names = [str(share) for shares in missing for share in shares]
            found.append(MissingShares(plan, group[0].extent.planned, str(group[0].path), names))
    return found


class _Extent(msgspec.Struct, frozen=True):
    """How large a plan is that is shared out, and whose cells it has."""

    shared: int
    """Cells of the stage."""
    planned: int
    agents: list[str]


class _Held(NamedTuple):
    """A share that a file holds."""

    share: Share
    plan: str
    extent: _Extent
    path: Path


def _list_held(path: Path) -> list[_Held]:
    with Run(path) as run:
        facts = {key.removeprefix(FACT): text for key, text in run.facts.items() if key.startswith(FACT)}
    held = []
    for key, text in facts.items():
        share, _, plan = key.partition(" of ")
        try:
            held.append(_Held(parse_share(share), plan, msgspec.json.decode(text, type=_Extent), path))
        except msgspec.DecodeError:
            raise InvalidInput(
                f"{path} holds the share {key} of another version of openfield, which shared out otherwise. "
                "Play the shares again."
            ) from None
    return held


def _list_missing(group: Sequence[_Held], count: int) -> list[Share]:
    """Return the missing shares of a plan. Where there are more shares than cells the last are empty."""
    there = {each.share.number for each in group if each.share.of == count}
    filled = min(count, group[0].extent.shared)
    return [Share(number, count, group[0].share.stage) for number in range(filled) if number not in there]


def _is_covered(held: _Held, parts: Sequence[str | Path]) -> bool:
    """Return whether a part has all cells of a plan, and no others of its agents."""
    for path in parts:
        with Run(path) as run:
            cells = run.planned() if run.counts().planned >= held.extent.planned else {}
        if _name_plan(cell for cell, (agent, _, _) in cells.items() if agent in held.extent.agents) == held.plan:
            return True
    return False
