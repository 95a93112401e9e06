"""Who is who in the engine's list, whatever its order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from openfield.domains.doom.engine import state_reader as reader_module
from openfield.domains.doom.engine.scene import Scene
from openfield.domains.doom.engine.snapshot import Gaze, Look
from openfield.domains.doom.engine.state_reader import Reader

MARINE, TRAP, HEALTH = (40, "FieldMarine"), (20, "FieldTrap"), (21, "FieldHealth")
ENEMIES = [(30, "FieldEnemy0"), (31, "FieldEnemy1"), (32, "FieldEnemy2")]


@dataclass
class List:
    """What an engine shows: numbers and names in some order; a thing's number is also where it is."""

    things: list[tuple[int, str]]
    looked: int = field(default=0)

    def look(self, gaze: Gaze) -> Look:
        self.looked += 1
        facts = [(number, number + 0.5, 1.0, 2.0, 3.0, 9.99, name[:1].encode()) for number, name in self.things]
        facts += [(0,) * 7] * (gaze.things - len(facts))
        before, after = facts[: gaze.start], facts[gaze.end : gaze.things]
        numbers = [fact[0] for fact in facts[gaze.start : gaze.end]]
        return 100, 50, len(self.things), *itertools.chain(*before), *numbers, *itertools.chain(*after)

    def name(self, index: int) -> str:
        return self.things[index][1]


def read(reader: Reader, sight: List, things: list[tuple[int, str]]) -> Scene:
    sight.things = things
    return reader.read(sight).scene()


@pytest.fixture
def sight() -> List:
    return List([])


def test_any_order_of_the_same_is_read_alike(sight: List, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MOST_CASTS", 5)
    reader = Reader()
    first = read(reader, sight, [MARINE, *ENEMIES, TRAP, HEALTH])
    found = [(body.id, body.x, body.health) for body in first.enemies]
    assert found == [(1, 32.5, 10.0), (2, 31.5, 10.0), (3, 30.5, 10.0)]
    for front in (0, 2, 4):
        read(reader, sight, [*ENEMIES[:front], TRAP, HEALTH, *ENEMIES[front:], MARINE])
        for order in itertools.permutations([MARINE, *ENEMIES]):
            things = [*order[:front], TRAP, HEALTH, *order[front:]]
            assert read(reader, sight, things) == read(reader, sight, things) == first
            assert len(reader._casts) <= 5


def test_an_order_not_seen_before_needs_no_second_look(sight: List) -> None:
    reader = Reader()
    read(reader, sight, [MARINE, *ENEMIES, TRAP, HEALTH])
    before = sight.looked
    orders = list(itertools.permutations([MARINE, *ENEMIES]))
    for order in orders:
        read(reader, sight, [*order, TRAP, HEALTH])
    assert sight.looked == before + len(orders)


def test_an_item_in_the_place_of_another_is_seen(sight: List) -> None:
    reader = Reader()
    read(reader, sight, [MARINE, *ENEMIES, TRAP, HEALTH])
    later = read(reader, sight, [*ENEMIES, MARINE, TRAP, (22, "FieldAmmo")])
    assert [len(found) for found in later.items.values()] == [0, 1, 1, 0]


def test_the_dead_are_no_enemies_until_they_are_back(sight: List) -> None:
    reader = Reader()
    alive = read(reader, sight, [MARINE, *ENEMIES, TRAP])
    dead = read(reader, sight, [(30, "DeadFieldEnemy0"), MARINE, *ENEMIES[1:], TRAP])
    assert [body.id for body in dead.enemies] == [1, 2]
    assert read(reader, sight, [*ENEMIES, MARINE, TRAP]) == alive


def test_an_item_that_is_taken_while_something_else_comes_is_missed(sight: List) -> None:
    """There are as many things as before: their numbers tell."""
    reader = Reader()
    read(reader, sight, [MARINE, *ENEMIES, TRAP, HEALTH])
    later = read(reader, sight, [(50, "FieldBolt0"), MARINE, *ENEMIES, HEALTH])
    assert [len(found) for found in later.items.values()] == [1, 0, 0, 0]
    assert [body.id for body in later.bolts] == [6]
    back = read(reader, sight, [MARINE, TRAP, *ENEMIES, HEALTH])
    assert [len(found) for found in back.items.values()] == [1, 0, 1, 0]
    assert not back.bolts


def test_somebody_new_among_as_many_is_met(sight: List) -> None:
    reader = Reader()
    read(reader, sight, [MARINE, *ENEMIES, TRAP])
    reader.returning.append(0)
    later = read(reader, sight, [MARINE, *ENEMIES[1:], (60, "FieldEnemy0"), TRAP])
    assert [(body.id, body.tag) for body in later.enemies] == [(1, 0), (2, 1), (5, 0)]


def test_items_that_drift_are_read_at_every_tick(sight: List) -> None:
    reader = Reader(drifting=True)
    first = read(reader, sight, [MARINE, *ENEMIES, TRAP])
    seen = reader.read(sight)
    assert seen.scene() == first
    assert reader.read(sight).items is not seen.items
