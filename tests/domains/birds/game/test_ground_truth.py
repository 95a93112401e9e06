"""What agents see: ground truth in the types public clients need, its noise, colours, pictures."""

import random

import msgspec
import numpy as np
import pytest

from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.ground_truth import Noise, classify, compact, ground_truth
from openfield.domains.birds.game.scene import RANKS, load_palette, see, zoomed_out
from support.birds.worlds import LEVEL


def features(scene, **options):
    (collection,) = ground_truth(scene, **options)
    return collection["features"]


def test_types_are_what_public_clients_die_without(scene):
    for feature in features(scene):
        assert isinstance(feature["properties"]["id"], str)
        for entry in feature["properties"]["colormap"]:
            assert type(entry["color"]) is int
            assert type(entry["percent"]) is float
        for ring in feature["geometry"].get("coordinates", []):
            assert all(type(number) is int for point in ring for number in point)
    assert b'"percent":1,' not in msgspec.json.encode(features(scene))


def test_names_are_hidden_and_the_order_is_fixed(scene):
    labels = [feature["properties"]["label"] for feature in features(scene)]
    assert labels[:2] == ["Ground", "Slingshot"]
    assert set(labels[2:]) == {"Object"}
    named = [feature["properties"]["label"] for feature in features(scene, dev=True)][2:]
    assert named == [
        *("pig_basic_small_1", "bird_red_1", "bird_blue_1"),
        *("ice_square_hole_1", "wood_rect_big_1", "TNT", "Platform"),
    ]
    assert [item.rank for item in scene.items] == sorted((item.rank for item in scene.items), key=RANKS.index)
    assert all("currentLife" in feature["properties"] for feature in features(scene, dev=True)[2:])


def sizes_of(scene):
    sizes = {}
    for item in scene.items:
        xs, ys = [x for x, _ in item.ring], [y for _, y in item.ring]
        sizes[item.sprite] = max(xs) - min(xs), max(ys) - min(ys)
    return sizes


def test_of_boxes_the_picture_is_reported_in_both_profiles(scene):
    other = sizes_of(see(Game(LEVEL, "phyq"), zoomed_out(LEVEL.camera)))
    for sprite in ("wood_rect_big_1", "TNT"):
        assert other[sprite] == sizes_of(scene)[sprite], "although what collides is smaller"
    assert other["ice_square_hole_1"] < sizes_of(scene)["ice_square_hole_1"], "of others it is what collides"


def test_sizes_are_those_of_the_recorded_game(scene):
    sizes = sizes_of(scene)
    expected = {"wood_rect_big_1": (44, 5), "ice_square_hole_1": (18, 18), "TNT": (14, 14), "bird_red_1": (9, 9)}
    expected["pig_basic_small_1"] = (10, 8)
    for sprite, size in expected.items():
        assert sizes[sprite] == pytest.approx(size, abs=1), sprite
    xs, ys = [x for x, _ in scene.sling], [y for _, y in scene.sling]
    assert (max(xs) - min(xs), max(ys) - min(ys)) == pytest.approx((15, 43), abs=1)


def test_a_hollow_block_has_a_hole(scene):
    hollow = next(f for f in features(scene, dev=True) if f["properties"]["label"].startswith("ice"))
    assert len(hollow["geometry"]["coordinates"]) == 2


def test_noise_moves_whole_objects_a_little_and_keeps_shares_a_whole(scene):
    exact = features(scene)
    for disc, most in ((False, 1), (True, 2)):
        noisy = features(scene, noise=Noise(random.Random(1), disc))
        shifts = set()
        for before, after in zip(exact[2:], noisy[2:], strict=True):
            rings = zip(before["geometry"]["coordinates"][0], after["geometry"]["coordinates"][0], strict=True)
            moved = {(b[0] - a[0], b[1] - a[1]) for a, b in rings}
            assert len(moved) == 1
            shifts |= moved
            shares = [entry["percent"] for entry in after["properties"]["colormap"]]
            assert sum(shares) == pytest.approx(1.0)
        assert len(shifts) > 1
        assert max(abs(number) for shift in shifts for number in shift) <= most
        assert noisy[:2] == exact[:2]


def test_the_trajectory_of_the_last_flight_is_shown():
    game = Game(LEVEL)
    game.shoot(0.7, 0.7)
    game.run(1.0)
    dots = features(see(game, zoomed_out(LEVEL.camera)))[2]
    assert dots["properties"] == {"id": "2147483647", "label": "Trajectory", "colormap": []}
    assert len(dots["geometry"]["coordinates"]) == 10


def test_a_waiting_bird_stays_where_it_is_until_it_is_its_turn():
    game = Game(msgspec.structs.replace(LEVEL, birds=("BirdRed", "BirdBlue", "BirdRed")))
    view = zoomed_out(LEVEL.camera)

    def birds():
        return {item.id: item.ring for item in see(game, view).items if item.rank == "bird"}

    first, second, third = (name for _, name in game.queue)
    before = birds()
    game.shoot(0.7, 0.7)
    game.run(0.5)
    flying = birds()
    assert [flying[name] == before[name] for name in (first, second, third)] == [False, True, True]
    game.settle()
    assert birds()[second] != before[second], "it is on the sling now"


def test_the_dots_of_a_flight_stay_until_the_next_bird_has_touched_something():
    game = Game(msgspec.structs.replace(LEVEL, birds=("BirdRed", "BirdRed")))
    game.shoot(0.7, 0.7)
    game.settle()
    first = list(game.trajectory)
    game.shoot(0.6, 0.8)
    game.run(0.5)
    assert game.trajectory[: len(first)] == first
    assert len(game.trajectory) == len(first) + 5
    game.settle()
    assert first[0] not in game.trajectory


VERIFIED = {
    "bird_red": {0: 0.34, 250: 0.33, 244: 0.2, 240: 0.13},
    "bird_blue": {119: 0.55, 0: 0.3, 82: 0.08, 41: 0.07},
    "bird_yellow": {248: 0.75, 36: 0.12, 212: 0.07, 180: 0.06},
    "bird_black": {73: 0.75, 36: 0.14, 0: 0.11},
    "bird_white": {36: 0.38, 255: 0.27, 21: 0.2, 254: 0.15},
    "pig": {125: 0.6, 84: 0.2, 121: 0.12, 88: 0.08},
    "wood": {136: 0.35, 240: 0.35, 172: 0.18, 204: 0.12},
    "ice": {87: 0.33, 123: 0.33, 19: 0.25, 255: 0.09},
    "stone": {146: 0.4, 182: 0.35, 219: 0.15, 109: 0.1},
    "platform": {36: 0.58, 68: 0.36, 32: 0.06},
    "tnt": {205: 0.35, 68: 0.28, 172: 0.2, 209: 0.17},
}
"""The shares that the public colour classifier reads correctly."""


def vector(shares):
    """A colormap as the public classifier takes it: 256 shares."""
    row = np.zeros(256)
    for code, share in shares.items():
        row[code] = share
    return row


def test_colours_are_those_the_public_classifier_reads_correctly():
    palette = load_palette()
    assert {name: palette[name].colours for name in VERIFIED} == VERIFIED
    known = {code for shares in VERIFIED.values() for code in shares}
    assert not known & palette["novel"].colours.keys(), "a colour never seen is one"


def test_a_linear_classifier_of_colours_tells_the_classes_apart_even_with_noise():
    weights = np.linalg.pinv(np.stack([vector(shares) for shares in VERIFIED.values()]))
    for number, shares in enumerate(VERIFIED.values()):
        for disc in (False, True):
            noise = Noise(random.Random(number), disc)
            for _ in range(100):
                scores = vector(noise.blur(shares)) @ weights
                assert scores.argmax() == number
                assert np.sort(scores)[-1] - np.sort(scores)[-2] > 0.5


def test_every_class_is_told_apart_by_its_colours_even_with_noise():
    for name, look in load_palette().items():
        blurred = Noise(random.Random(3)).blur(look.colours)
        assert classify([{"color": code, "percent": share} for code, share in blurred.items()]) == name


def test_the_table_for_learners_is_within_its_bounds(scene):
    table = compact(scene)
    assert table.dtype == np.float32
    assert (table >= 0).all()
    assert (table <= 1).all()
    assert np.count_nonzero(table[:, 0]) == 1 + len(scene.items)
