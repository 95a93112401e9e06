"""Feature vectors carry numbers as the published ones do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.domains.doom.engine.game_state import ITEMS, Entity, GameState
from openfield.domains.doom.features import arena_features, duel_features

FRACTION = 1 << 16
"""The engine keeps places in this many parts of a unit."""
PLACES = st.integers(-(1 << 31), (1 << 31) - 1).map(lambda parts: parts / FRACTION)
KEYS = ("x_position", "y_position", "z_position")


def shown(x: float, y: float = 0.0, z: float = 0.0, angle: float = 0.0) -> list[dict[str, Any]]:
    """A body as all vectors show it: as player, as enemy, as projectile."""
    body = Entity(1, x, y, z, angle, 100.0)
    state = GameState(body, 8.0, [body], {kind: [] for kind in ITEMS}, [body])
    arena, duel = arena_features(state, 0.0, {}), duel_features(state, 0.0, body)
    return [arena["player"], *arena["enemies"], duel["player"], duel["enemy"], *duel["enemies"], *duel["projectiles"]]


@given(x=PLACES, y=PLACES, z=PLACES)
def test_places_are_rounded_to_four_decimals(x: float, y: float, z: float) -> None:
    for features in shown(x, y, z):
        assert [features[key] for key in KEYS] == [round(x, 4), round(y, 4), round(z, 4)]


@pytest.mark.parametrize(("angle", "rounded"), [(44.99996, 45.0), (359.99999, 0.0), (22.5, 22.5), (11.25004, 11.25)])
def test_angles_stay_below_a_full_turn(angle: float, rounded: float) -> None:
    assert [features["angle"] for features in shown(0.0, angle=angle) if "angle" in features] == [rounded] * 2


def test_a_place_half_way_goes_to_the_even_one() -> None:
    assert {features["x_position"] for features in shown(0.03125)} == {0.0312}
