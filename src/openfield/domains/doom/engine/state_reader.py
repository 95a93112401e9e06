"""Identify the entities in the numbers of each tick, throughout one episode.

The order of the engine's list hardly changes from tick to tick. Where it has not changed, nothing is identified again.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from openfield.domains.doom.engine.game_state import ITEMS, Entity, EntityIndex, Roster, Snapshot, index_at, read_entity
from openfield.domains.doom.engine.state_source import ENTITY_FIELDS, HEADER_FIELDS, RawState, StateSource, read_format

KINDS = {"FieldHealth": "health", "FieldAmmo": "ammo", "FieldTrap": "trap", "FieldPillar": "obstacle"}
RANKS = ("player", "enemy", *ITEMS, "bolt", "")
"""All kinds, in the order in which entities that appear together get their ids."""
Known = tuple[str, int, int]
"""A known entity: its kind, its small id, and its tag if it is an enemy."""
MAX_ROSTERS = 256
"""Rosters that are remembered. The engine's list has hardly more orders until an entity comes or goes."""
_ENEMY = re.compile(r"FieldEnemy\d+$")
_BOLT = re.compile(r"FieldBolt\d+$")


class StateReader:
    """Reads the ticks of one episode: gives small ids by first appearance and distinguishes enemies."""

    def __init__(self) -> None:
        """Start before the first tick of an episode; items are read once, because they do not move."""
        self._known: dict[int, Known] = {}
        self._count = 0
        self._enemies = 0
        self.returning: list[int] = []
        """The tags of enemies that must return and have not appeared yet, in that order."""
        self._present: tuple[int, ...] = ()
        """The engine's numbers of the items, in the engine's order."""
        self._items: dict[str, list[Entity]] = {kind: [] for kind in ITEMS}
        self._format = read_format(0)
        """The format while no entity comes or goes: items that do not move are not read again."""
        self._resting = slice(0)
        """Where in a raw state the numbers of those items are."""
        self._others: Sequence[int] = ()
        """Where every other entity begins."""
        self._signature: Callable[[RawState], Any] = operator.itemgetter(HEADER_FIELDS - 1)
        """Returns what must be unchanged for the roster to be unchanged."""
        self._rosters: dict[Any, Roster] = {}

    def read(self, source: StateSource) -> Snapshot:
        """Read the current tick."""
        raw = source.read(self._format)
        roster = self._rosters.get(self._signature(raw))
        if roster is None:
            raw, roster = self._identify(raw, source)
        return Snapshot(raw, roster, self._items)

    def _identify(self, raw: RawState, source: StateSource) -> tuple[RawState, Roster]:
        """Find the roster of a raw state with a new signature; return the raw state it belongs to."""
        if not self._all_known(raw):
            raw = self._read_all(source)
        roster = self._roster(raw)
        if len(self._rosters) >= MAX_ROSTERS:
            self._rosters.clear()
        self._rosters[self._signature(raw)] = roster
        return raw, roster

    def _all_known(self, raw: RawState) -> bool:
        """Check whether entities only changed their order, as enemies often do; items must be where they were."""
        if raw[HEADER_FIELDS - 1] != self._format.entities or raw[self._resting] != self._present:
            return False
        known = self._known
        return all(raw[at] in known and known[raw[at]][0] not in ITEMS for at in self._others)

    def _read_all(self, source: StateSource) -> RawState:
        """Read every entity, and prepare a shorter format for as long as none comes or goes."""
        raw = source.read(read_format(source.read(read_format(0))[-1]))
        starts = dict(
            zip(raw[HEADER_FIELDS::ENTITY_FIELDS], range(HEADER_FIELDS, len(raw), ENTITY_FIELDS), strict=True)
        )
        numbers = tuple(starts)
        self._add_new(source, numbers)
        present = tuple(number for number in numbers if self._known[number][0] in ITEMS)
        if present != self._present:
            self._read_items(present, raw, starts)
        self._shorten_format(numbers)
        return source.read(self._format)

    def _shorten_format(self, numbers: tuple[int, ...]) -> None:
        """Read only the numbers of items, if they are side by side, and note where all other entities begin."""
        count, rest = len(numbers), len(self._present)
        start = numbers.index(self._present[0]) if rest else 0
        end = start + rest if numbers[start : start + rest] == self._present else start
        if self._format == read_format(count, start, end):
            return
        self._format, self._rosters = read_format(count, start, end), {}
        before = HEADER_FIELDS + ENTITY_FIELDS * start
        behind = before + end - start
        self._resting = slice(before, behind)
        last = behind + ENTITY_FIELDS * (count - end)
        self._others = at = (*range(HEADER_FIELDS, before, ENTITY_FIELDS), *range(behind, last, ENTITY_FIELDS))
        letters = (first + ENTITY_FIELDS - 1 for first in at)
        self._signature = operator.itemgetter(HEADER_FIELDS - 1, *range(before, behind), *at, *letters)

    def _roster(self, raw: RawState) -> Roster:
        """Return the player, the living enemies and the projectiles, sorted by their ids."""
        found: dict[str, list[EntityIndex]] = {"player": [], "enemy": [], "bolt": []}
        for at in self._others:
            kind, small, tag = self._known[raw[at]]
            if kind in found and (kind != "enemy" or raw[at + ENTITY_FIELDS - 1] == b"F"):  # else Dead...
                found[kind].append(index_at(at, small, tag))
        if not found["player"]:
            raise LookupError("the engine shows no player")
        by_id = operator.attrgetter("id")
        return Roster(found["player"][0], sorted(found["enemy"], key=by_id), sorted(found["bolt"], key=by_id))

    def _add_new(self, source: StateSource, numbers: Sequence[int]) -> None:
        """Give ids to new entities. The engine numbers them from the last of a map to its first: the player is 0."""
        new = [(_kind(source.name(index)), number) for index, number in enumerate(numbers) if number not in self._known]
        for kind, number in sorted(new, key=lambda entity: (RANKS.index(entity[0]), -entity[1])):
            small = self._free_bolt(numbers) if kind == "bolt" else None
            if small is None:
                small = self._count
                self._count += bool(kind)
            self._known[number] = (kind, small, self._free_tag() if kind == "enemy" else 0)
            self._rosters.clear()  # a number may be that of an entity that is gone

    def _free_bolt(self, present: Iterable[float]) -> int | None:
        """Return the id of a projectile that is gone, to use it again: a long duel has more projectiles than ids."""
        gone = self._known.keys() - set(present)
        bolts = [(self._known[number][1], number) for number in gone if self._known[number][0] == "bolt"]
        free = min(bolts, default=None)
        if free is None:
            return None
        del self._known[free[1]]
        return free[0]

    def _free_tag(self) -> int:
        """Return the tag of a new enemy: counted at the start, later the tag of the enemy that returns."""
        if self.returning:
            return self.returning.pop(0)
        self._enemies += 1
        return self._enemies - 1

    def _read_items(self, present: tuple[int, ...], raw: RawState, starts: dict[int, int]) -> None:
        """Read the items again: one was taken."""
        self._present = present
        self._items = {kind: [] for kind in ITEMS}
        for number in sorted(present, key=lambda number: self._known[number][1]):
            kind, small, tag = self._known[number]
            self._items[kind].append(read_entity(raw, index_at(starts[number], small, tag)))


def _kind(name: str) -> str:
    if _ENEMY.match(name.removeprefix("Dead")):
        return "enemy"
    if _BOLT.match(name):
        return "bolt"
    return "player" if name == "FieldMarine" else KINDS.get(name.rstrip("0123456789"), "")
