"""Coarse observations for measures that count."""

from __future__ import annotations

from typing import Any

import msgspec

from openfield.domains.doom.arrays import ArenaArray, DuelArray
from openfield.domains.doom.domain import ARENA, DUEL
from openfield.domains.doom.engine.game_state import ITEMS, Entity, GameState, make_snapshot
from openfield.domains.doom.features import arena_features, duel_features, show_state
from openfield.domains.doom.maps.arena import MAPS
from openfield.domains.doom.settings import DuelSettings


def state(**changes: Any) -> GameState:
    player = Entity(**{"id": 0, "x": 10.0, "y": -30.0, "z": 0.0, "angle": 90.0, "health": 100.0} | changes)
    enemy = Entity(id=1, x=200.0, y=5.0, z=0.0, angle=0.0, health=10.0)
    return GameState(player, 20.0, [enemy], {kind: [] for kind in ITEMS}, [])


def test_places_are_counted_in_squares_whatever_the_time() -> None:
    here = state()
    first = DUEL.encode(duel_features(here, 1.0, here.enemies[0]))
    assert first == ((0, -1, 0, 4), ((1, 0, 0, 1),), 0)
    assert DUEL.encode(duel_features(state(x=100.0), 2.0, here.enemies[0])) == first
    assert DUEL.encode(duel_features(state(x=130.0), 1.0, here.enemies[0])) != first


def test_the_arena_also_counts_where_the_player_looks() -> None:
    looks = [ARENA.encode(arena_features(state(angle=angle), 1.0, {})) for angle in (90.0, 100.0, 135.0)]
    assert looks[0] == looks[1] != looks[2]


def test_arrays_are_counted_like_features_of_the_same_scene() -> None:
    bolt = Entity(id=7, x=3.0, y=4.0, z=5.0, angle=0.0, health=1.0)
    for bolts, counted in ((1, 1), (8, 4)):  # an array shows four
        here = msgspec.structs.replace(state(), bolts=[bolt] * bolts)
        features = DUEL.encode(duel_features(here, 1.0, here.enemies[0]))
        array = DuelArray().show(make_snapshot(here), 7.0)
        assert DUEL.encode(array) == DUEL.encode(array.tolist()) == features
        assert features[2] == counted
    for angle in (90.0, 134.0, 359.0):
        turned = state(angle=angle)
        array = ArenaArray(MAPS["own"].walls()).show(make_snapshot(turned), 7.0)
        assert ARENA.encode(array) == ARENA.encode(arena_features(turned, 1.0, {}))
    assert ARENA.encode(None) == b"null"


def test_fog_and_buckets_compose() -> None:
    here = state(x=-380.0, y=0.0)
    foggy = show_state(here, DuelSettings(fog=100.0)).enemies[0]
    assert foggy.x == -280.0037
    both = show_state(here, DuelSettings(fog=100.0, buckets=30))
    assert both == show_state(show_state(here, DuelSettings(fog=100.0)), DuelSettings(buckets=30))
    assert both.enemies[0].x != show_state(here, DuelSettings(buckets=30)).enemies[0].x
