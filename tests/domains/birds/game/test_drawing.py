"""Pictures show the objects in the colours of their ground truth."""

import msgspec

from openfield.domains.birds.game.drawing import pixels
from openfield.domains.birds.game.scene import load_palette


def test_pictures_are_painted_in_the_colours_of_the_ground_truth():
    for name, look in load_palette().items():
        for colour in (look.fill, look.edge):
            red, green, blue = bytes.fromhex(colour[1:])
            assert (red >> 5) << 5 | (green >> 5) << 2 | blue >> 6 in look.colours, (name, colour)


def test_pictures_show_what_there_is(scene):
    picture = pixels(scene)
    assert picture.shape == (480, 640, 3)
    pig = next(item for item in scene.items if item.rank == "pig")
    x, y = pig.ring[0]
    bare = pixels(msgspec.structs.replace(scene, items=()))
    assert (picture[y - 12 : y + 12, x - 12 : x + 12] != bare[y - 12 : y + 12, x - 12 : x + 12]).any()
    assert (pixels(msgspec.structs.replace(scene, storm=True))[5, 5] != pixels(scene)[5, 5]).any()
