"""The state of a game at one tick: the numbers the engine shows, and the entities made from them.

Rules, features and agents read a `GameState`; arrays are filled from a `Snapshot`, which is cheaper.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from openfield.domains.doom.engine.state_source import RawState

ITEMS = ("health", "ammo", "trap", "obstacle")


class Entity(msgspec.Struct, gc=False):
    """A player, enemy, item or projectile."""

    id: int
    x: float
    y: float
    z: float
    angle: float
    health: float = 0.0
    tag: int = 0
    """How many enemies stand before it in the map. Orders to scripts use it."""


class GameState(msgspec.Struct, gc=False):
    """All entities at one tick."""

    player: Entity
    ammo: float
    enemies: list[Entity]
    """The living ones only."""
    items: dict[str, list[Entity]]
    bolts: list[Entity]


class EntityIndex(NamedTuple):
    """The positions of an entity's numbers in a `RawState`, and its id and tag."""

    x: int
    y: int
    z: int
    angle: int
    roll: int
    """Health: an angle that is not quite whole."""
    id: int
    tag: int


class Roster(NamedTuple):
    """The player, enemies and projectiles in a `RawState`."""

    player: EntityIndex
    enemies: list[EntityIndex]
    bolts: list[EntityIndex]


class Snapshot(msgspec.Struct, gc=False):
    """The raw numbers of one tick with their roster. Entities are made only on request."""

    raw: RawState
    roster: Roster
    items: dict[str, list[Entity]]

    def state(self) -> GameState:
        """Make the entities."""
        raw, (player, enemies, bolts) = self.raw, self.roster
        mine = read_entity(raw, player)
        mine.health = float(raw[0])
        return GameState(
            mine,
            float(raw[1]),
            [read_entity(raw, index) for index in enemies],
            self.items,
            [read_entity(raw, index) for index in bolts],
        )


def make_snapshot(state: GameState) -> Snapshot:
    """Make the snapshot that would show this state."""
    raw: list[Any] = [state.player.health, state.ammo, 0]
    indexes = []
    for entity in (state.player, *state.enemies, *state.bolts):
        indexes.append(index_at(len(raw), entity.id, entity.tag))
        raw += (0, entity.x, entity.y, entity.z, entity.angle, entity.health, b"")
    bolts = len(indexes) - len(state.bolts)
    return Snapshot(tuple(raw), Roster(indexes[0], indexes[1:bolts], indexes[bolts:]), state.items)


def index_at(start: int, number: int, tag: int) -> EntityIndex:
    """Return the index of an entity whose numbers begin at `start`."""
    return EntityIndex(start + 1, start + 2, start + 3, start + 4, start + 5, number, tag)


def read_entity(raw: RawState, index: EntityIndex) -> Entity:
    """Read one entity."""
    x, y, z, angle, roll, number, tag = index
    return Entity(number, raw[x], raw[y], raw[z], raw[angle], (raw[roll] + 0.5) // 1, tag)
