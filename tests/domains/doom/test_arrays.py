"""Scenes as numbers: everything in its place, zeros for what is absent, and no array that changes later."""

from __future__ import annotations

import pytest

from openfield.domains.doom.arrays import ARRAY_SIZES, ArenaArray, DuelArray
from openfield.domains.doom.engine.game_state import ITEMS, Entity, GameState, make_snapshot
from openfield.domains.doom.maps.arena import MAPS


def bodies(count: int, start: int = 1) -> list[Entity]:
    return [
        Entity(id=start + number, x=10.0 * number, y=1.0, z=2.0, angle=3.0, health=4.0 + number)
        for number in range(count)
    ]


def state(enemies: int = 0, bolts: int = 0, **items: int) -> GameState:
    player = Entity(id=0, x=-1.5, y=-2.5, z=-3.5, angle=45.0, health=80.0)
    lying = {kind: bodies(items.get(kind, 0), 20) for kind in ITEMS}
    return GameState(player, 12.0, bodies(enemies), lying, bodies(bolts, 90))


def test_a_duel_is_time_player_enemies_and_projectiles() -> None:
    array = DuelArray().show(make_snapshot(state(enemies=2, bolts=1)), 7)
    expected = [7, -1.5, -2.5, -3.5, 80, 1, 0, 1, 2, 4, 1, 10, 1, 2, 5, *[0] * 10, 1, 0, 1, 2, *[0] * 12, *[0] * 16]
    assert array.tolist() == expected
    assert len(expected) == ARRAY_SIZES["duel"]


@pytest.mark.parametrize(("name", "walls"), [("own", 20), ("published", 36)])
def test_an_arena_is_time_player_enemies_items_and_walls(name: str, walls: int) -> None:
    array = ArenaArray(MAPS[name].walls()).show(make_snapshot(state(enemies=1, ammo=2, obstacle=1)), 7)
    head = [7, -1.5, -2.5, 45, 80, 12, 1, 0, 1, 3, 4, *[0] * 15]
    items = [*[0] * 24, 1, 0, 1, 1, 10, 1, *[0] * 18, *[0] * 24, 1, 0, 1, *[0] * 21]
    assert array[: -4 * walls].tolist() == [*head, *items]
    assert len(array) == ARRAY_SIZES[name]


def test_what_is_gone_is_zero_again() -> None:
    arena, duel = ArenaArray(), DuelArray()
    arena.show(make_snapshot(state(enemies=4, health=8, obstacle=8)), 7)
    duel.show(make_snapshot(state(enemies=4, bolts=4)), 7)
    for later in (state(enemies=2, health=8, obstacle=8), state(enemies=2, health=1), state(bolts=1), state()):
        assert arena.show(make_snapshot(later), 6).tolist() == ArenaArray().show(make_snapshot(later), 6).tolist()
        assert duel.show(make_snapshot(later), 6).tolist() == DuelArray().show(make_snapshot(later), 6).tolist()


def test_more_than_have_a_place_are_left_out() -> None:
    many, fit = state(enemies=6, bolts=6, trap=12), state(enemies=4, bolts=4, trap=8)
    assert ArenaArray().show(make_snapshot(many), 7).tolist() == ArenaArray().show(make_snapshot(fit), 7).tolist()
    assert DuelArray().show(make_snapshot(many), 7).tolist() == DuelArray().show(make_snapshot(fit), 7).tolist()


def test_arrays_are_the_agents_own() -> None:
    """Whoever changes one, or keeps it, neither sees nor does harm."""
    for view in (ArenaArray(), DuelArray()):
        here = make_snapshot(state(enemies=2, trap=1))
        first = view.show(here, 7)
        kept = first.tolist()
        view.show(make_snapshot(state(enemies=1)), 6)
        assert first.tolist() == kept
        first[:] = -1.0
        assert view.show(here, 7).tolist() == kept
