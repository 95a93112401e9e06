"""The eight novelties of the published test bed, one per level of its hierarchy, each a change of a level.

Trials name them, worlds apply them to the levels from the onset on, and the shipped novel levels are made by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from openfield.domains.birds.game.bodies import GROUND
from openfield.domains.birds.game.forces import MAGNET_REACH, WINDS
from openfield.domains.birds.game.level import Level, LevelObject
from openfield.domains.birds.settings import BirdsSettings
from openfield.errors import UnknownName
from openfield.novelty import Novelty

FOLDER_OF_LEVEL = "novelty_level_"
PINK_BLOCKS = ("Circle", "RectFat", "SquareHole")
PINK_PIGS = {
    "BasicSmall": "PinkPig",
    "BasicMedium": "PinkMediumPig",
    "BasicBig": "PinkBigPig",
    "BasicBigTwoShots": "PinkBigPigTwoShots",
    "BasicBigFourShots": "PinkBigPigFourShots",
}
"""The published levels have the first three; without the others some normal levels could not be coloured at all."""
MIRROR_HEIGHT = 3.4
"""Mirroring here puts what was the ground at 10.3."""
WIND_SCALE = (7.0, 10.0)
MAGNET_GAP, MAGNET_STAND, MAGNET_HEIGHT = 5.5, 0.696, 3.696
"""Units: left of everything, above the middle of what it stands on, and above the middle of the world, or higher."""
SPARE = 0.1
"""Units between the reach of a magnet and the nearest block: nothing but birds is to come within."""


def change_level(level: Level, names: Iterable[str]) -> Level:
    """The level after some changes, in order."""
    for name in names:
        if name not in CHANGES:
            raise UnknownName("change of levels", name, CHANGES, label="Known")
        level = CHANGES[name](level)
    return level


def recolour(level: Level) -> Level:
    """Pigs and some blocks get a colour never seen; nothing else changes."""
    return replace(level, objects=tuple(_pink(thing) for thing in level.objects))


def add_fan(level: Level) -> Level:
    """A fan behind the first pig pushes birds back."""
    pig = _pigs(level)[0]
    return _with(level, LevelObject(kind="Novelty", type="Fan", x=round(pig.x + 1.1, 4), y=round(pig.y + 1.0, 4)))


def strengthen_wind(level: Level) -> Level:
    """The wind lifts more than twice as much as it did, or there is one where there was none."""
    return _wind(level, "NovelAirTurbulence")


def add_magnet(level: Level) -> Level:
    """Something like a wooden ball, high on the way, pulls birds to it."""
    x = max(min(thing.x for thing in level.objects) - MAGNET_GAP, level.sling[0] + 4.0)
    y = max(MAGNET_HEIGHT, *(_above(thing, x) for thing in level.objects))
    stand = LevelObject(kind="Platform", type="Platform", x=round(x, 4), y=round(y - MAGNET_STAND, 4))
    ball = LevelObject(kind="Novelty", type="Magnet", material="wood", x=round(x, 4), y=round(y, 4))
    return _with(level, stand, ball)


def turn_around(level: Level) -> Level:
    """The slingshot stands on the other side, and everything else where it was."""
    return replace(level, sling=(-level.sling[0], level.sling[1]))


def turn_over(level: Level) -> Level:
    """Gravity points upwards, and everything hangs below a ceiling."""
    things = (
        replace(thing, y=round(2 * MIRROR_HEIGHT - thing.y, 5), rotation=(180 - thing.rotation) % 360)
        for thing in level.objects
    )
    wide, ceiling = 17.5 * level.width / 0.64, 2 * MIRROR_HEIGHT - GROUND + 0.32
    roof = LevelObject(kind="Platform", type="Platform", x=0.0, y=round(ceiling, 4), scale_x=wide)
    return _with(
        replace(level, objects=tuple(things)), roof, LevelObject(kind="Novelty", type="InverseGravity", x=0.0, y=0.0)
    )


def invert_wind(level: Level) -> Level:
    """The wind presses down hard where it used to lift."""
    return _wind(level, "InverseAirTurbulence")


def add_storm(level: Level) -> Level:
    """Once the first bird is gone a storm blows to the right."""
    return _with(level, LevelObject(kind="Novelty", type="Storm", x=0.0, y=3.5))


CHANGES: dict[str, Callable[[Level], Level]] = {
    "colour": recolour,
    "fan": add_fan,
    "wind": strengthen_wind,
    "magnet": add_magnet,
    "sling": turn_around,
    "gravity": turn_over,
    "downdraft": invert_wind,
    "storm": add_storm,
}
"""In the order of the hierarchy: the first is of level 1."""
KINDS = ("objects", "agents", "actions", "interactions", "relations", "environments", "goals", "events")


SIGNS = {
    "Fan": "fan",
    "NovelAirTurbulence": "wind",
    "Magnet": "magnet",
    "InverseGravity": "gravity",
    "InverseAirTurbulence": "downdraft",
    "Storm": "storm",
}
"""Things that are in a level only if it was changed so; what is pink has a new colour."""


def changes_in(level: Level) -> list[str]:
    """The changes that a level shows, whoever made them, in the order of the hierarchy."""
    found = {SIGNS.get(thing.type, "colour" if thing.type.startswith("Pink") else "") for thing in level.objects}
    if level.sling[0] > 0:
        found.add("sling")
    return [name for name in CHANGES if name in found]


def describe_changes(level: Level) -> str:
    """What is novel about a level, in words; nothing if nothing is."""
    notes = {novelty.name: f"{novelty.kind}: {novelty.note}" for novelty in NOVELTIES}
    return "; ".join(notes[name] for name in changes_in(level))


def describe_folders(names: Iterable[str]) -> list[str]:
    """What is novel about the levels of folders such as `novelty_level_2/type010203`, each novelty level once."""
    types: dict[int, list[str]] = {}
    for name in names:
        level, _, type_ = name.removeprefix(FOLDER_OF_LEVEL).partition("/type")
        types.setdefault(int(level), []).extend([type_] if type_ else [])
    return [
        f"novelty level {level}"
        + (f" ({KINDS[level - 1]})" if level <= len(KINDS) else "")
        + (f", type {' and '.join(found)}" if found else "")
        for level, found in sorted(types.items())
    ]


def family_of(changes: Sequence[str]) -> int:
    """The novelty level whose templates suit the first of some changes; 0 if there is none."""
    return list(CHANGES).index(changes[0]) + 1 if changes else 0


def _novelty(number: int, name: str) -> Novelty[BirdsSettings]:
    def change(settings: BirdsSettings) -> BirdsSettings:
        return replace(settings, changes=(*settings.changes, name))

    note = (CHANGES[name].__doc__ or "").rstrip(".")
    return Novelty(name, number, KINDS[number - 1], note[0].lower() + note[1:], change)


NOVELTIES = tuple(_novelty(number, name) for number, name in enumerate(CHANGES, start=1))


def _pigs(level: Level) -> list[LevelObject]:
    return sorted((thing for thing in level.objects if thing.kind == "Pig"), key=lambda pig: pig.x)


def _with(level: Level, *things: LevelObject) -> Level:
    return replace(level, objects=(*level.objects, *things))


def _pink(thing: LevelObject) -> LevelObject:
    if thing.kind == "Pig" and thing.type in PINK_PIGS:
        return replace(thing, type=PINK_PIGS[thing.type])
    if thing.kind == "Block" and thing.type in PINK_BLOCKS:
        return replace(thing, kind="Novelty", type=f"Pink{thing.type}")
    return thing


def _above(thing: LevelObject, x: float) -> float:
    """How high a magnet there must be to leave a thing alone; those that are no blocks it always does."""
    aside, reach = abs(thing.x - x), MAGNET_REACH + SPARE
    pulled = thing.kind == "Block" or thing.type.startswith("Pink")
    return thing.y + math.sqrt(reach**2 - aside**2) if pulled and aside < reach else -math.inf


def _wind(level: Level, type_: str) -> Level:
    if any(thing.type in WINDS for thing in level.objects):
        return replace(
            level,
            objects=tuple(replace(thing, type=type_) if thing.type in WINDS else thing for thing in level.objects),
        )
    x = round((level.sling[0] + _pigs(level)[0].x) / 2, 4)
    return _with(
        level, LevelObject(kind="Novelty", type=type_, x=x, y=1.0, scale_x=WIND_SCALE[0], scale_y=WIND_SCALE[1])
    )
