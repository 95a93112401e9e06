"""Levels without colours, and levels turned by 180 degrees: what is seen, and what is done."""

import msgspec
import numpy as np
import pytest

from openfield.domains.birds.actions import Shot, SlingshotLaunch
from openfield.domains.birds.game.representation import grey_code
from openfield.domains.birds.level_in_play import LevelInPlay
from openfield.domains.birds.settings import BirdsSettings


def opened(pool, type_, number=0, **settings):
    level = pool.level(pool.names(3 if type_ in ("6", "7") else 0, type_)[number])
    return LevelInPlay(level, BirdsSettings(**settings), 1)


def features(in_play):
    return in_play.ground_truth(False)[0]["features"]


def test_everything_is_turned_about_the_middle_of_the_screen(pool):
    usual, turned = features(opened(pool, "2")), features(opened(pool, "7"))
    assert turned[0]["properties"]["yindex"] == 480 - usual[0]["properties"]["yindex"]
    for before, after in zip(usual[1:], turned[1:], strict=True):
        for ring, other in zip(before["geometry"]["coordinates"], after["geometry"]["coordinates"], strict=True):
            assert other == [[640 - x, 480 - y] for x, y in ring]
        assert before["properties"]["colormap"] == after["properties"]["colormap"]
    pictures = [opened(pool, type_).picture() for type_ in ("2", "7")]
    assert (pictures[0][::-1, ::-1] == pictures[1]).all()
    first, second = (opened(pool, type_, observe="features").observation() for type_ in ("2", "7"))
    assert np.allclose(first[0, 1:3], 1 - second[0, 3:5])


@pytest.mark.parametrize("action", [Shot(30, 300), SlingshotLaunch(0.9, 0.4)])
def test_shots_are_expected_in_turned_coordinates(pool, action):
    usual, turned = opened(pool, "2"), opened(pool, "7")
    assert turned.rest == (640 - usual.rest[0], 480 - usual.rest[1])
    if isinstance(action, Shot):
        opposite = Shot(640 - action.x, 480 - action.y)
    else:
        opposite = SlingshotLaunch(-action.dx, -action.dy)
    assert usual.shoot(action)
    assert turned.shoot(opposite)
    places = [[body.place for body in each.game.bodies] for each in (usual, turned)]
    assert places[0] == places[1]


def test_there_are_only_shades_of_grey(pool):
    grey = opened(pool, "6")
    picture = grey.picture()
    assert (picture[..., :1] == picture).all()
    colours = opened(pool, "2").picture()
    assert np.allclose(picture[..., 0], colours @ np.array((0.2126, 0.7152, 0.0722)), atol=1)
    shades = {grey_code(code) for code in range(256)}
    for before, after in zip(features(opened(pool, "2")), features(grey), strict=True):
        assert before["geometry"] == after["geometry"]
        shares = after["properties"]["colormap"]
        assert {entry["color"] for entry in shares} <= shades
        assert all(type(entry["color"]) is int and type(entry["percent"]) is float for entry in shares)
        assert not shares or sum(entry["percent"] for entry in shares) == pytest.approx(1.0)
    assert len(shades) == 8
    assert b'"percent":1,' not in msgspec.json.encode(features(grey))
