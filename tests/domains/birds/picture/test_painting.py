"""Pictures show what there is, where the ground truth has it, in colours that people expect."""

import math

import msgspec
import numpy as np
import pytest

from openfield.domains.birds import DOMAIN
from openfield.domains.birds.actions import Shot
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Camera, Level, LevelObject
from openfield.domains.birds.game.scene import Scene, Viewport, bounds, see, zoomed_out
from openfield.domains.birds.level_in_play import LevelInPlay
from openfield.domains.birds.picture.creatures import egg_sprite
from openfield.domains.birds.picture.painting import pixels
from openfield.domains.birds.picture.thumbnail import thumbnail
from openfield.domains.birds.settings import BirdsSettings
from support.birds.worlds import begin, world


def changed(scene: Scene, **changes):
    return msgspec.structs.replace(scene, **changes)


def bare(scene):
    return pixels(changed(scene, items=()))


def test_a_picture_has_the_size_that_agents_know(scene):
    picture = pixels(scene)
    assert (picture.shape, picture.dtype) == ((480, 640, 3), np.uint8)
    assert (pixels(scene) == picture).all()
    assert (pixels(changed(scene, storm=True))[5, 5] != picture[5, 5]).any()


def test_every_object_is_where_its_contour_is(scene):
    """An object changes pixels inside its contour, and none more than a few pixels away from it."""
    empty = bare(scene)
    for item in scene.items:
        if item.turn == 0:
            continue  # the sling is drawn around it
        alone = pixels(changed(scene, items=(item,)))
        rows, columns = np.nonzero((alone != empty).any(axis=2))
        left, top, right, bottom = bounds(item.ring)
        tuft = 5 if item.rank in ("bird", "pig") else 1
        assert left - tuft <= columns.min() <= left + 3
        assert right - 3 <= columns.max() <= right + tuft
        assert top - 2 * tuft <= rows.min() <= top + 3
        assert bottom - 3 <= rows.max() <= bottom + tuft


def test_red_birds_are_red_pigs_are_green_and_eggs_are_eggs(scene):
    for item in scene.items:
        left, top, right, bottom = bounds(item.ring)
        patch = pixels(changed(scene, items=(msgspec.structs.replace(item, turn=-1),)))[top:bottom, left:right]
        patch = patch.reshape(-1, 3).astype(int)
        red, green, blue = (patch[:, channel] for channel in range(3))
        if item.look == "bird_red":
            assert ((red > 150) & (green < 90) & (blue < 90)).mean() > 0.2
        if item.look == "bird_blue":
            assert ((blue > red + 60) & (blue > 130)).mean() > 0.2
        if item.look == "pig":
            assert ((green > red + 40) & (green > blue + 60)).mean() > 0.3
    egg = np.asarray(egg_sprite((0.15, 0.2), (0.0, 0.0)).image).astype(int)
    shell, widths = egg[egg[..., 3] > 0][:, :3], (egg[..., 3] > 0).sum(axis=1)
    assert shell.min() > 100  # it has no face
    assert widths[: len(widths) // 2].sum() < 0.9 * widths[len(widths) // 2 :].sum()  # and is narrower at its top


def test_damage_shows_in_stages(scene):
    block = next(item for item in scene.items if item.look == "wood")
    shown = [pixels(changed(scene, items=(msgspec.structs.replace(block, stage=stage),))) for stage in (1, 2, 3, 4)]
    assert len({picture.tobytes() for picture in shown}) == 4


def test_motion_is_finer_than_pixels(scene):
    pig = next(item for item in scene.items if item.rank == "pig")
    x, y = pig.place
    moved = msgspec.structs.replace(pig, place=(x + 0.01, y))  # a fifth of a pixel
    assert (pixels(changed(scene, items=(moved,))) != pixels(changed(scene, items=(pig,)))).any()


def test_the_hole_of_a_hollow_block_is_seen_through(scene):
    hollow = next(item for item in scene.items if item.hollow)
    left, top, right, bottom = bounds(hollow.hole)
    x, y = (left + right) // 2, (top + bottom) // 2
    assert (pixels(changed(scene, items=(hollow,)))[y, x] == bare(scene)[y, x]).all()


def test_agents_are_shown_pictures():
    shown = world(observe="image")
    assert (begin(shown).observation == pixels(shown.in_play._initial)).all()


def painted(item):
    """The pixels of a level with one object, without everything else."""
    level = Level(birds=("BirdRed",), objects=(item, FAR))
    scene = see(Game(level), Viewport(8.0, item.x, item.y))
    alone = msgspec.structs.replace(scene, items=tuple(each for each in scene.items if each.rank != "bird"))
    return (pixels(alone) != bare(alone)).any(axis=2)


FAR = LevelObject(kind="Pig", type="BasicSmall", x=15.0, y=-3.29)


def test_a_ball_is_round_although_its_contour_is_flat():
    marked = painted(LevelObject(kind="Block", type="Circle", material="stone", x=0.0, y=-3.125))
    rows, columns = np.nonzero(marked)
    height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
    assert marked.sum() / (height * width) == pytest.approx(math.pi / 4, abs=0.03)
    assert marked[rows.max() - 1].sum() < 0.35 * width, "it stands on a point, not on a flat base"


def test_a_fan_has_a_round_cage_with_blades_and_wind_is_drawn_as_gusts():
    fan = painted(LevelObject(kind="Novelty", type="Fan", x=0.0, y=0.0))
    rows, columns = np.nonzero(fan)
    top = fan[rows.min() : rows.min() + 3].sum(axis=1).max()
    assert top < 0.6 * (np.ptp(columns) + 1), "no box"
    wind = LevelObject(kind="Novelty", type="NovelAirTurbulence", x=0.0, y=0.0, scale_x=7.0, scale_y=10.0)
    level = Level(birds=("BirdRed",), objects=(wind, FAR))
    picture = pixels(see(Game(level), Viewport(8.0, 0.0, 0.0))).astype(int)
    white = (picture[100:380, 200:440] > 245).all(axis=2)
    assert 0.02 < white.mean() < 0.25, "lines on a pale field"
    assert white.any(axis=1).mean() < 0.9, "with air between them"


def test_there_is_little_soil():
    level = Level(birds=("BirdRed",), objects=(FAR,))
    picture = pixels(see(Game(level), zoomed_out(level.camera))).astype(int)
    red, green, blue = (picture[..., channel] for channel in range(3))
    soil = (red > green) & (green > blue) & (red < 180)
    assert soil.mean() < 0.1


def test_the_screen_of_phyq_is_wider_and_ground_truth_and_shots_are_in_its_pixels():
    trial = DOMAIN.trials(1, screen="840x480", observe="image", scenario="single", unchanged=0)[0]
    assert DOMAIN.spec(trial).observations.shape == (480, 840, 3)
    level = Level(birds=("BirdRed",), objects=(FAR,))
    opened = LevelInPlay(level, BirdsSettings(screen="840x480"), 1)
    assert opened.picture().shape == (480, 840, 3)
    (pig,) = (item for item in opened._scene().items if item.rank == "pig")
    assert bounds(pig.ring)[0] == pytest.approx(420 + 24 * (15.0 - 0.23), abs=1)
    x, y = opened.rest
    assert (x, y) == pytest.approx((420 + 24 * -12.15, 240 - 24 * (-1.7 + 1)), abs=0.01)
    opened.shoot(Shot(round(x) - 240, round(y)))
    assert opened.game.trajectory[3][0] > -10, "it flew to the right"


def test_a_small_picture_is_painted_directly_and_shows_every_object():
    trial = DOMAIN.trials(1, observe="thumbnail", scenario="single", unchanged=0)[0]
    assert DOMAIN.spec(trial).observations.shape == (84, 84, 3)
    pig = LevelObject(kind="Pig", type="BasicBig", x=0.0, y=-3.0)
    scenes = [see(Game(Level(birds=("BirdRed",), objects=(each,))), zoomed_out(Camera())) for each in (pig, FAR)]
    first, second = map(thumbnail, scenes)
    assert first.shape == (84, 84, 3)
    rows, columns = np.nonzero((first != second).any(axis=2))
    assert {40, 41, 42} & set(columns.tolist())
    assert 45 < rows.min() <= rows.max() < 55
