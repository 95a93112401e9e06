"""What is in the world at a tick, read off the engine's state.

Between engine and feature vectors: rules and features look at scenes, never at the engine.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

KINDS = {"FieldHealth": "health", "FieldAmmo": "ammo", "FieldTrap": "trap", "FieldPillar": "obstacle"}
ITEMS = ("health", "ammo", "trap", "obstacle")
Facts = tuple[Any, ...]
"""A thing as the engine's package writes it down: id, sector, x, y, z, angle, pitch, roll, velocities, name, category.

One call instead of one for each attribute: a scene is read in two thirds of the time.
"""
_ID, _NAME = 0, 11
_ENEMY = re.compile(r"FieldEnemy\d+$")
_BOLT = re.compile(r"FieldBolt\d+$")


class Body(msgspec.Struct, gc=False):
    """Something somewhere; numbers rounded to four decimals, as feature vectors carry them."""

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
    """Reads the states of one episode: gives small ids by first appearance and tells enemies apart."""

    def __init__(self, drifting: bool = False) -> None:
        """Starts with the first state of an episode.

        Args:
            drifting: Whether items may move; items at rest are read once.
        """
        self._drifting = drifting
        self._kinds: dict[int, str] = {}
        self._ids: dict[int, int] = {}
        self._tags: dict[int, int] = {}
        self.returning: list[int] = []
        """The tags of enemies that were told to come back and are not seen yet, in that order."""
        self._present: list[int] = []
        self._start = self._end = 0
        """Where the items are in the engine's list, if they need no second look."""
        self._items: dict[str, list[Body]] = {kind: [] for kind in ITEMS}

    def read(self, state: Any) -> Scene:
        """The scene of a state."""
        objects = state.objects
        kinds, enemies, bolts, present = self._kinds, [], [], []
        player: Body | None = None
        skipped = self._as_before(objects)
        for thing in objects[: self._start] + objects[self._end :] if skipped else objects:
            facts = thing.__getstate__()
            number = facts[_ID]
            kind = kinds.get(number)
            if kind is None:
                self._meet(objects)
                kind = kinds[number]
            if kind == "item":
                present.append(number)
            elif kind == "enemy":
                if facts[_NAME][0] == "F":  # the dead are called Dead...
                    enemies.append(self._body(facts))
            elif kind == "player":
                player = self._body(facts)
            elif kind == "bolt":
                bolts.append(self._body(facts))
        if not skipped:
            if present != self._present or self._drifting:
                self._arrange(present, objects)
            self._locate(present, objects)
        if player is None:
            raise LookupError("the engine's state has no player")
        if len(enemies) > 1:
            enemies.sort(key=_by_id)
        if len(bolts) > 1:
            bolts.sort(key=_by_id)
        health, ammo = state.game_variables.tolist()
        player.health = health
        return Scene(player, ammo, enemies, self._items, bolts)

    def _as_before(self, objects: list[Any]) -> bool:
        """Whether the items are where they were in the engine's list.

        It lists them side by side, and what is new before or behind them: if the first and the last are where they
        were, so are all between them.
        """
        start, end = self._start, self._end
        return (
            start < end <= len(objects)
            and objects[start].id == self._present[0]
            and objects[end - 1].id == self._present[-1]
        )

    def _locate(self, present: list[int], objects: list[Any]) -> None:
        """Takes note of where the items are, if they rest and are side by side."""
        numbers = [thing.id for thing in objects] if present and not self._drifting else []
        self._start = numbers.index(present[0]) if numbers else 0
        side_by_side = numbers[self._start : self._start + len(present)] == present
        self._end = self._start + len(present) if side_by_side else 0

    def _meet(self, objects: list[Any]) -> None:
        """Takes note of what is new. The engine numbers things from the last of a map to its first: the player is 0."""
        new = [thing for thing in objects if thing.id not in self._kinds]
        order = sorted(new, key=lambda thing: (_rank(_kind(thing.name)), -thing.id))
        for thing in order:
            kind = _kind(thing.name)
            self._kinds[thing.id] = "item" if kind in ITEMS else kind
            if kind:
                self._ids[thing.id] = len(self._ids)
            if kind == "enemy":
                self._tags[thing.id] = self._free_tag()

    def _free_tag(self) -> int:
        """The place of a new enemy: at the start one after the other, later that of the one it stands in for."""
        return self.returning.pop(0) if self.returning else len(self._tags)

    def _body(self, facts: Facts) -> Body:
        """A body, its numbers rounded as `round(value, 4)` would, which costs four times as much."""
        number, _, x, y, z, angle, _, roll, *_ = facts
        return Body(
            self._ids[number],
            (x * 1e4 + 0.5) // 1 / 1e4,
            (y * 1e4 + 0.5) // 1 / 1e4,
            (z * 1e4 + 0.5) // 1 / 1e4,
            (angle * 1e4 + 0.5) // 1 / 1e4 % 360.0,
            (roll + 0.5) // 1,
            self._tags.get(number, 0),
        )

    def _arrange(self, present: list[int], objects: list[Any]) -> None:
        """Reads the items anew: one was taken, or the wind moves them."""
        self._present = present
        self._items = {kind: [] for kind in ITEMS}
        things = {thing.id: thing for thing in objects}
        for number in sorted(present, key=self._ids.__getitem__):
            self._items[KINDS[things[number].name]].append(self._body(things[number].__getstate__()))


def _by_id(body: Body) -> int:
    return body.id


def _kind(name: str) -> str:
    if _ENEMY.match(name.removeprefix("Dead")):
        return "enemy"
    if _BOLT.match(name):
        return "bolt"
    return "player" if name == "FieldMarine" else KINDS.get(name, "")


def _rank(kind: str) -> int:
    return ("player", "enemy", *ITEMS, "bolt", "").index(kind)
