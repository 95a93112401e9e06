"""Scenes carry numbers as the published vectors do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.domains.doom.scene import _body

FRACTION = 1 << 16
"""The engine keeps places in so many parts of a unit."""
PLACES = st.integers(-(1 << 31), (1 << 31) - 1).map(lambda parts: parts / FRACTION)


@given(x=PLACES, y=PLACES, z=PLACES)
def test_places_are_rounded_to_four_decimals(x: float, y: float, z: float) -> None:
    body = _body((3, x, y, z, 45.0, 10.0, b"F"), 1, 2)
    assert (body.x, body.y, body.z) == (round(x, 4), round(y, 4), round(z, 4))


@pytest.mark.parametrize(("angle", "shown"), [(44.99996, 45.0), (359.99999, 0.0), (22.5, 22.5), (11.25004, 11.25)])
def test_angles_stay_below_a_full_turn(angle: float, shown: float) -> None:
    assert _body((3, 0.0, 0.0, 0.0, angle, 9.6, b"F"), 1, 2).angle == shown


def test_a_place_half_way_goes_to_the_even_one() -> None:
    assert _body((3, 0.03125, -0.03125, 0.09375, 0.0, 9.6, b"F"), 1, 2).x == 0.0312
