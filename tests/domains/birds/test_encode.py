"""Coarse observations and actions, as counting measures see them."""

import random

import msgspec

from openfield.domains.birds.actions import Shot
from openfield.domains.birds.domain import DOMAIN
from openfield.domains.birds.encode import coarse_truth
from openfield.domains.birds.game.ground_truth import Noise, compact, ground_truth
from openfield.domains.birds.picture.painting import pixels
from openfield.record import is_picture


def test_measures_that_count_see_classes_in_squares(scene):
    seen = coarse_truth(ground_truth(scene))
    assert {name for name, _, _ in seen} == {"sling", "pig", "bird_red", "bird_blue", "ice", "wood", "tnt", "platform"}
    noisy = ground_truth(scene, noise=Noise(random.Random(4)))
    assert noisy != ground_truth(scene)
    assert DOMAIN.encode(noisy) == DOMAIN.encode(ground_truth(scene)) == seen
    assert DOMAIN.encode(None) == b"null"


def test_the_table_for_learners_is_counted_in_the_same_squares(scene):
    exact, tabled = set(coarse_truth(ground_truth(scene))), set(DOMAIN.encode(compact(scene)))
    assert {name for name, _, _ in tabled} == {name for name, _, _ in exact}
    assert len(tabled & exact) > len(exact) / 2  # the middle of a box and of an outline may fall into two squares
    assert is_picture(DOMAIN.encode(pixels(scene)))


def test_shots_are_counted_by_direction_and_tap():
    aimed = [
        DOMAIN.encode_action(msgspec.to_builtins(Shot(x, 300.0, tap))) for x, tap in ((101, 0), (119, 0), (119, 9))
    ]
    assert aimed[0] == aimed[1] != aimed[2]
    assert DOMAIN.encode_action([0.5, 0.5, -1.0]) == DOMAIN.encode_action([0.51, 0.49, -0.5]) == ("launch", 4, 3, False)
    assert DOMAIN.encode_action({"do": "load", "level": 3}) != DOMAIN.encode_action({"do": "load", "level": 4})
