"""Pictures show what there is, where the ground truth has it, in colours that people expect."""

import msgspec
import numpy as np

from openfield.domains.birds.game.scene import Scene, bounds
from openfield.domains.birds.picture.creatures import egg_sprite
from openfield.domains.birds.picture.painting import pixels
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
