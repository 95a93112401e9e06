"""Small trials and worlds of birds, and a level with one object of every kind."""

from openfield.core import Ask, Reply
from openfield.domains.birds import DOMAIN
from openfield.domains.birds.game.level import Camera, Level, LevelObject

OBJECTS = (
    LevelObject(kind="Platform", type="Platform", x=0.0, y=-1.0, scale_x=12.0),
    LevelObject(kind="Pig", type="BasicSmall", x=-2.0, y=-0.47),
    LevelObject(kind="Block", type="RectBig", material="wood", x=0.0, y=-0.57),
    LevelObject(kind="Block", type="SquareHole", material="ice", x=2.0, y=-0.26),
    LevelObject(kind="TNT", x=3.2, y=-0.35),
)
LEVEL = Level(birds=("BirdRed", "BirdBlue"), objects=OBJECTS, camera=Camera(0, -1, 25, 30))
SMALL = {"before": 2, "after": 2}


def trial(**settings):
    return DOMAIN.trials(1, **{**SMALL, **settings}, unchanged=0)[0]


def world(**settings):
    return DOMAIN.world(trial(**settings))


def begin(opened):
    """Return the first turn of the first level."""
    turn = opened.reset()
    while turn.ask is Ask.READY:
        turn = opened.step(Reply())
    return turn
