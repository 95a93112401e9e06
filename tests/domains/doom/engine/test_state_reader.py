"""Who is who in the engine's list, whatever its order."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest

from openfield.domains.doom.engine import state_reader as reader_module
from openfield.domains.doom.engine.game_state import GameState
from openfield.domains.doom.engine.state_reader import StateReader
from openfield.domains.doom.engine.state_source import RawState, ReadFormat

MARINE, TRAP, HEALTH = (40, "FieldMarine"), (20, "FieldTrap"), (21, "FieldHealth")
ENEMIES = [(30, "FieldEnemy0"), (31, "FieldEnemy1"), (32, "FieldEnemy2")]


@dataclass
class FakeSource:
    """What an engine shows: numbers and names in some order; a thing's number is also where it is."""

    things: list[tuple[int, str]]
    reads: int = field(default=0)

    def read(self, wanted: ReadFormat) -> RawState:
        self.reads += 1
        facts = [(number, number + 0.5, 1.0, 2.0, 3.0, 9.99, name[:1].encode()) for number, name in self.things]
        facts += [(0,) * 7] * (wanted.entities - len(facts))
        before, after = facts[: wanted.start], facts[wanted.end : wanted.entities]
        numbers = [fact[0] for fact in facts[wanted.start : wanted.end]]
        return 100, 50, len(self.things), *itertools.chain(*before), *numbers, *itertools.chain(*after)

    def name(self, index: int) -> str:
        return self.things[index][1]


def read(reader: StateReader, source: FakeSource, things: list[tuple[int, str]]) -> GameState:
    source.things = things
    return reader.read(source).state()


@pytest.fixture
def source() -> FakeSource:
    return FakeSource([])


def test_any_order_of_the_same_is_read_alike(source: FakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "MAX_ROSTERS", 5)
    reader = StateReader()
    first = read(reader, source, [MARINE, *ENEMIES, TRAP, HEALTH])
    found = [(entity.id, entity.x, entity.health) for entity in first.enemies]
    assert found == [(1, 32.5, 10.0), (2, 31.5, 10.0), (3, 30.5, 10.0)]
    for front in (0, 2, 4):
        read(reader, source, [*ENEMIES[:front], TRAP, HEALTH, *ENEMIES[front:], MARINE])
        for order in itertools.permutations([MARINE, *ENEMIES]):
            things = [*order[:front], TRAP, HEALTH, *order[front:]]
            assert read(reader, source, things) == read(reader, source, things) == first
            assert len(reader._rosters) <= 5


def test_an_order_not_seen_before_needs_no_second_read(source: FakeSource) -> None:
    reader = StateReader()
    read(reader, source, [MARINE, *ENEMIES, TRAP, HEALTH])
    before = source.reads
    orders = list(itertools.permutations([MARINE, *ENEMIES]))
    for order in orders:
        read(reader, source, [*order, TRAP, HEALTH])
    assert source.reads == before + len(orders)


def test_an_item_in_the_place_of_another_is_seen(source: FakeSource) -> None:
    reader = StateReader()
    read(reader, source, [MARINE, *ENEMIES, TRAP, HEALTH])
    later = read(reader, source, [*ENEMIES, MARINE, TRAP, (22, "FieldAmmo")])
    assert [len(found) for found in later.items.values()] == [0, 1, 1, 0]


def test_the_dead_are_no_enemies_until_they_are_back(source: FakeSource) -> None:
    reader = StateReader()
    alive = read(reader, source, [MARINE, *ENEMIES, TRAP])
    dead = read(reader, source, [(30, "DeadFieldEnemy0"), MARINE, *ENEMIES[1:], TRAP])
    assert [entity.id for entity in dead.enemies] == [1, 2]
    assert read(reader, source, [*ENEMIES, MARINE, TRAP]) == alive


def test_an_item_that_is_taken_while_something_else_comes_is_missed(source: FakeSource) -> None:
    """There are as many things as before: their numbers tell."""
    reader = StateReader()
    read(reader, source, [MARINE, *ENEMIES, TRAP, HEALTH])
    later = read(reader, source, [(50, "FieldBolt0"), MARINE, *ENEMIES, HEALTH])
    assert [len(found) for found in later.items.values()] == [1, 0, 0, 0]
    assert [entity.id for entity in later.bolts] == [6]
    back = read(reader, source, [MARINE, TRAP, *ENEMIES, HEALTH])
    assert [len(found) for found in back.items.values()] == [1, 0, 1, 0]
    assert not back.bolts


def test_somebody_new_among_as_many_is_met(source: FakeSource) -> None:
    reader = StateReader()
    read(reader, source, [MARINE, *ENEMIES, TRAP])
    reader.returning.append(0)
    later = read(reader, source, [MARINE, *ENEMIES[1:], (60, "FieldEnemy0"), TRAP])
    assert [(entity.id, entity.tag) for entity in later.enemies] == [(1, 0), (2, 1), (5, 0)]
