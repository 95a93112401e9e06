"""What is in the world at a tick, read off what the engine shows.

Between engine and feature vectors: rules and features look at scenes, never at the engine.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable

import msgspec

from openfield.domains.doom.sight import Facts, Sight

KINDS = {"FieldHealth": "health", "FieldAmmo": "ammo", "FieldTrap": "trap", "FieldPillar": "obstacle"}
ITEMS = ("health", "ammo", "trap", "obstacle")
Known = tuple[str, int, int]
"""What is remembered of a thing: its kind, its small id, its tag if it is an enemy."""
_ENEMY = re.compile(r"FieldEnemy\d+$")
_BOLT = re.compile(r"FieldBolt\d+$")


class Body(msgspec.Struct, gc=False):
    """Something somewhere."""

    id: int
    x: float
    y: float
    z: float
    angle: float
    health: float = 0.0
    tag: int = 0
    """How many enemies stand before it in the map: how orders call it."""


class Scene(msgspec.Struct, gc=False):
    """Everything at a tick."""

    player: Body
    ammo: float
    enemies: list[Body]
    """Only those alive."""
    items: dict[str, list[Body]]
    bolts: list[Body]


class Reader:
    """Reads the ticks of one episode: gives small ids by first appearance and tells enemies apart."""

    def __init__(self, drifting: bool = False) -> None:
        """Starts with the first tick of an episode.

        Args:
            drifting: Whether items may move; items at rest are read once.
        """
        self._drifting = drifting
        self._known: dict[int, Known] = {}
        self._count = 0
        self._enemies = 0
        self.returning: list[int] = []
        """The tags of enemies that were told to come back and are not seen yet, in that order."""
        self._present: list[int] = []
        self._start = self._end = 0
        """Where the items are in the engine's list, if they need no second look."""
        self._items: dict[str, list[Body]] = {kind: [] for kind in ITEMS}

    def read(self, sight: Sight) -> Scene:
        """The scene that is seen now."""
        start, end = self._start, self._end
        health, ammo, count, *items = sight.signs(start, end)
        if items and items == self._present and end <= count:
            seen = sight.facts(0, start) if end == count else [*sight.facts(0, start), *sight.facts(end, count)]
        else:
            self._look_around(sight, count)
            seen = sight.facts(0, count)
        known, player, enemies, bolts = self._known, None, [], []
        for facts in seen:
            if facts[0] not in known:
                self._meet(sight, count)
            kind, number, tag = known[facts[0]]
            if kind == "enemy":
                if facts[6] == b"F":  # the dead are called Dead...
                    enemies.append(_body(facts, number, tag))
            elif kind == "player":
                player = _body(facts, number, tag)
                player.health = float(health)
            elif kind == "bolt":
                bolts.append(_body(facts, number, tag))
        if player is None:
            raise LookupError("the engine shows no player")
        if len(enemies) > 1:
            enemies.sort(key=_by_id)
        if len(bolts) > 1:
            bolts.sort(key=_by_id)
        return Scene(player, float(ammo), enemies, self._items, bolts)

    def _look_around(self, sight: Sight, count: int) -> None:
        """Takes note of the items and of where they are in the list, if they rest and are side by side."""
        self._meet(sight, count)
        numbers = list(sight.signs(0, count)[3:])
        present = [number for number in numbers if self._known[number][0] in ITEMS]
        if present != self._present or self._drifting:
            self._arrange(present, sight.facts(0, count))
        at_rest = bool(present) and not self._drifting
        self._start = numbers.index(present[0]) if at_rest else 0
        side_by_side = numbers[self._start : self._start + len(present)] == present
        self._end = self._start + len(present) if at_rest and side_by_side else 0

    def _meet(self, sight: Sight, count: int) -> None:
        """Takes note of what is new. The engine numbers things from the last of a map to its first: the player is 0."""
        numbers = sight.signs(0, count)[3:]
        new = [(_kind(sight.name(index)), number) for index, number in enumerate(numbers) if number not in self._known]
        for kind, number in sorted(new, key=lambda thing: (_rank(thing[0]), -thing[1])):
            small = self._free_bolt(numbers) if kind == "bolt" else None
            if small is None:
                small = self._count
                self._count += bool(kind)
            self._known[number] = (kind, small, self._free_tag() if kind == "enemy" else 0)

    def _free_bolt(self, present: Iterable[float]) -> int | None:
        """The id of a projectile that is gone, for another one: in a long duel there are more of them than ids."""
        gone = self._known.keys() - set(present)
        bolts = [(self._known[number][1], number) for number in gone if self._known[number][0] == "bolt"]
        free = min(bolts, default=None)
        if free is None:
            return None
        del self._known[free[1]]
        return free[0]

    def _free_tag(self) -> int:
        """The place of a new enemy: at the start one after the other, later that of the one it stands in for."""
        if self.returning:
            return self.returning.pop(0)
        self._enemies += 1
        return self._enemies - 1

    def _arrange(self, present: list[int], seen: Iterable[Facts]) -> None:
        """Reads the items anew: one was taken, or the wind moves them."""
        self._present = present
        self._items = {kind: [] for kind in ITEMS}
        facts = {thing[0]: thing for thing in seen}
        for number in sorted(present, key=lambda number: self._known[number][1]):
            kind, small, tag = self._known[number]
            self._items[kind].append(_body(facts[number], small, tag))


_by_id = operator.attrgetter("id")


def _body(facts: Facts, number: int, tag: int) -> Body:
    return Body(number, facts[1], facts[2], facts[3], facts[4], (facts[5] + 0.5) // 1, tag)


def _kind(name: str) -> str:
    if _ENEMY.match(name.removeprefix("Dead")):
        return "enemy"
    if _BOLT.match(name):
        return "bolt"
    return "player" if name == "FieldMarine" else KINDS.get(name, "")


def _rank(kind: str) -> int:
    return ("player", "enemy", *ITEMS, "bolt", "").index(kind)
