"""The eight novelties of the published test bed, one per level of its hierarchy; each is a change of a level.

Trials name them, the world applies them to the levels from the onset on, and the shipped novel levels are made by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from msgspec.structs import replace

from openfield.domains.birds.game.bodies import GROUND
from openfield.domains.birds.game.early_novelties import EarlyNovelty, load_registry
from openfield.domains.birds.game.forces import MAGNET_REACH, WINDS
from openfield.domains.birds.game.level import Laws, Level, LevelObject
from openfield.domains.birds.settings import BirdsSettings
from openfield.errors import UnknownName
from openfield.novelty import Novelty, SettingNovelties

FOLDER_OF_LEVEL = "novelty_level_"
PINK_BLOCKS = ("Circle", "RectFat", "SquareHole")
PINK_PIGS = {
    "BasicSmall": "PinkPig",
    "BasicMedium": "PinkMediumPig",
    "BasicBig": "PinkBigPig",
    "BasicBigTwoShots": "PinkBigPigTwoShots",
    "BasicBigFourShots": "PinkBigPigFourShots",
}
"""The published levels have only the first three; the others let every normal level be coloured."""
MIRROR_HEIGHT = 3.4
"""Mirroring at this height puts the ground at 10.3."""
WIND_SCALE = (7.0, 10.0)
MAGNET_GAP, MAGNET_STAND, MAGNET_HEIGHT = 5.5, 0.696, 3.696
"""World units: left of all objects, above the centre of its platform, and above the world's centre at least."""
SPARE = 0.1
"""World units between the reach of a magnet and the nearest block, so that it pulls only birds."""


def change_level(level: Level, names: Iterable[str]) -> Level:
    """Apply some changes to a level, in order. One such as `gravity=1.5` sets a law of nature."""
    for name in names:
        law, sign, value = name.partition("=")
        if sign:
            level = replace(level, laws=replace(level.laws, **{law: float(value)}))
            continue
        if name not in CHANGES:
            raise UnknownName("change of levels", name, CHANGES, label="Known")
        level = CHANGES[name](level)
    return level


def recolour(level: Level) -> Level:
    """Give pigs and some blocks a new colour."""
    return replace(level, objects=tuple(_pink(placed) for placed in level.objects))


def add_fan(level: Level) -> Level:
    """Place a fan behind the first pig that pushes birds back."""
    pig = _pigs(level)[0]
    return _with(level, LevelObject(kind="Novelty", type="Fan", x=round(pig.x + 1.1, 4), y=round(pig.y + 1.0, 4)))


def set_wind(level: Level, type_: str) -> Level:
    """Change the winds of a level to another type, or add one if there is none."""
    if not any(placed.type in WINDS for placed in level.objects):
        x = round((level.sling[0] + _pigs(level)[0].x) / 2, 4)
        wide, high = WIND_SCALE
        return _with(level, LevelObject(kind="Novelty", type=type_, x=x, y=1.0, scale_x=wide, scale_y=high))
    winds = (replace(placed, type=type_) if placed.type in WINDS else placed for placed in level.objects)
    return replace(level, objects=tuple(winds))


def add_magnet(level: Level) -> Level:
    """Place a magnet that looks like a wooden ball high on the way of the birds."""
    x = max(min(placed.x for placed in level.objects) - MAGNET_GAP, level.sling[0] + 4.0)
    y = max(MAGNET_HEIGHT, *(_above(placed, x) for placed in level.objects))
    stand = LevelObject(kind="Platform", type="Platform", x=round(x, 4), y=round(y - MAGNET_STAND, 4))
    ball = LevelObject(kind="Novelty", type="Magnet", material="wood", x=round(x, 4), y=round(y, 4))
    return _with(level, stand, ball)


def change_early(level: Level, early: EarlyNovelty) -> Level:
    """Put the novel objects of an early novelty in the place of the usual ones they are like."""
    objects, birds = level.objects, level.birds
    for name, known in early.objects.items():
        birds = tuple(name if bird == known.base else bird for bird in birds)
        objects = tuple(
            replace(placed, type=name, material="")
            if (placed.type, placed.material) == (known.base, known.material)
            else placed
            for placed in objects
        )
    return replace(level, objects=objects, birds=birds, early=early)


def turn_around(level: Level) -> Level:
    """Place the slingshot on the other side."""
    return replace(level, sling=(-level.sling[0], level.sling[1]))


def turn_over(level: Level) -> Level:
    """Turn gravity upwards and hang everything below a ceiling."""
    objects = (
        replace(placed, y=round(2 * MIRROR_HEIGHT - placed.y, 5), rotation=(180 - placed.rotation) % 360)
        for placed in level.objects
    )
    wide, ceiling = 17.5 * level.width / 0.64, 2 * MIRROR_HEIGHT - GROUND + 0.32
    roof = LevelObject(kind="Platform", type="Platform", x=0.0, y=round(ceiling, 4), scale_x=wide)
    return _with(
        replace(level, objects=tuple(objects)), roof, LevelObject(kind="Novelty", type="InverseGravity", x=0.0, y=0.0)
    )


def add_storm(level: Level) -> Level:
    """Add a storm that blows to the right once the first bird is gone."""
    return _with(level, LevelObject(kind="Novelty", type="Storm", x=0.0, y=3.5))


DOWNDRAFT = "the wind presses down hard where it used to lift"
STRONG_WIND = "the wind lifts more than twice as much as it did, or there is one where there was none"
_HIERARCHY: tuple[tuple[str, str, Callable[[Level], Level], str], ...] = (
    ("colour", "objects", recolour, "pigs and some blocks get a colour never seen; nothing else changes"),
    ("fan", "agents", add_fan, "a fan behind the first pig pushes birds back"),
    ("wind", "actions", partial(set_wind, type_="NovelAirTurbulence"), STRONG_WIND),
    ("magnet", "interactions", add_magnet, "something like a wooden ball, high on the way, pulls birds to it"),
    ("sling", "relations", turn_around, "the slingshot stands on the other side, and everything else where it was"),
    ("gravity", "environments", turn_over, "gravity points upwards, and everything hangs below a ceiling"),
    ("downdraft", "goals", partial(set_wind, type_="InverseAirTurbulence"), DOWNDRAFT),
    ("storm", "events", add_storm, "once the first bird is gone a storm blows to the right"),
)
"""Name, kind, change and note of each novelty, from level 1 on."""
CHANGES = {name: change for name, _, change, _ in _HIERARCHY}
SIGNS = {
    "Fan": "fan",
    "NovelAirTurbulence": "wind",
    "Magnet": "magnet",
    "InverseGravity": "gravity",
    "InverseAirTurbulence": "downdraft",
    "Storm": "storm",
}
"""Object types that only a changed level has; types that begin with `Pink` are of the changed colour."""


def describe_changes(level: Level) -> str:
    """Describe the novelties of a level; empty for a normal level."""
    found = {SIGNS.get(placed.type, "colour" if placed.type.startswith("Pink") else "") for placed in level.objects}
    if level.sling[0] > 0:
        found.add("sling")
    notes = [f"{novelty.kind}: {novelty.note}" for novelty in NOVELTIES if novelty.name in found]
    return "; ".join([*notes, level.early.note] if level.early.note else notes)


def describe_folders(names: Iterable[str]) -> list[str]:
    """Describe folders of levels such as `novelty_level_2/type010203`, each novelty level once."""
    types: dict[int, list[str]] = {}
    early: list[str] = []
    for name in names:
        level, _, type_ = name.removeprefix(FOLDER_OF_LEVEL).partition("/type")
        if known := load_registry().get(f"{level}.{type_}"):
            early.append(f"novelty level {level}, type {type_} ({known.note})")
        else:
            types.setdefault(int(level), []).extend([type_] if type_ else [])
    return early + [
        f"novelty level {level}"
        + (f" ({NOVELTIES[level - 1].kind})" if 0 < level <= len(NOVELTIES) else "")
        + (f", type {' and '.join(found)}" if found else "")
        for level, found in sorted(types.items())
    ]


def family_of(changes: Sequence[str]) -> int:
    """Return the novelty level whose templates suit the first of some changes; 0 if there is no change."""
    return list(CHANGES).index(changes[0]) + 1 if changes else 0


def _novelty(level: int, name: str, kind: str, note: str) -> Novelty[BirdsSettings]:
    def change(settings: BirdsSettings) -> BirdsSettings:
        return replace(settings, changes=(*settings.changes, name))

    return Novelty(name, level, kind, note, change)


def mark_changes(usual: BirdsSettings, settings: BirdsSettings) -> str:
    """Return the changes of a level as they stand behind its name, joined by `+`; empty for a normal one."""
    laws = [
        f"{name}={value!r}".replace("e+", "e") for name, value in settings.laws.items() if value != usual.laws[name]
    ]
    return "+".join([*settings.changes, *laws])


_PUBLISHED = tuple(_novelty(level, name, kind, note) for level, (name, kind, _, note) in enumerate(_HIERARCHY, 1))
NOVELTIES = SettingNovelties.of(_PUBLISHED, BirdsSettings, Laws.__struct_fields__)
"""The published eight; `gravity=2` is a novelty too."""


def _pigs(level: Level) -> list[LevelObject]:
    return sorted((placed for placed in level.objects if placed.kind == "Pig"), key=lambda pig: pig.x)


def _with(level: Level, *objects: LevelObject) -> Level:
    return replace(level, objects=(*level.objects, *objects))


def _pink(placed: LevelObject) -> LevelObject:
    if placed.kind == "Pig" and placed.type in PINK_PIGS:
        return replace(placed, type=PINK_PIGS[placed.type])
    if placed.kind == "Block" and placed.type in PINK_BLOCKS:
        return replace(placed, kind="Novelty", type=f"Pink{placed.type}")
    return placed


def _above(placed: LevelObject, x: float) -> float:
    """Return the lowest height at which a magnet at `x` does not pull an object; it pulls only blocks."""
    aside, reach = abs(placed.x - x), MAGNET_REACH + SPARE
    pulled = placed.kind == "Block" or placed.type.startswith("Pink")
    return placed.y + math.sqrt(reach**2 - aside**2) if pulled and aside < reach else -math.inf
