"""Builds levels of our own: five scenarios with free dimensions, drawn within what a template allows.

Stands before the pool: template and seed -> level. `templates.py` keeps only levels that stand and can be solved.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import msgspec

from openfield.domains.birds.game.level import Level, LevelObject

PIG_REST = 0.32 + 0.209
"""From the middle of a platform to the middle of a small pig on it."""
Range = tuple[float, float]


class LevelTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a level of a template may look like."""

    scenario: str
    x: Range
    """Where the pig stands."""
    y: Range
    """How high the middle of its platform is."""
    birds: tuple[str, ...] = ("BirdRed",)
    pigs: int = 1
    roof: bool = False
    """Whether something keeps off high shots."""
    wall: bool = False
    """Whether something keeps off low shots."""
    slope: Range = (18.0, 26.0)
    length: Range = (4.0, 6.0)
    material: str = "stone"
    shape: str = "Circle"
    wind: bool = False
    """Whether a mild wind lifts birds on their way."""


def build(template: LevelTemplate, rng: random.Random) -> Level:
    """A level of a template; whether it stands and can be solved is for others to find out."""
    things = SCENARIOS[template.scenario](template, rng)
    if template.wind:
        x = round(rng.uniform(-8.0, -6.0), 3)
        things.append(LevelObject(kind="Novelty", type="NonNovelAirTurbulence", x=x, y=1.0, scale_x=7.0, scale_y=10.0))
    return Level(birds=template.birds, objects=tuple(things))


def single(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """A pig in the open: one push will do."""
    x, y = _draw(rng, template.x), _draw(rng, template.y)
    things = [_platform(x, y, 3.0), _pig(x, y + PIG_REST)]
    if template.roof:
        things.append(_platform(x, y + rng.uniform(1.8, 2.4), 5.0))
    if template.wall:
        things.append(_platform(x - rng.uniform(1.9, 2.4), y + 0.2, 0.6, rng.uniform(1.6, 2.4)))
    return things


def multiple(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """Several pigs apart, or one that takes several hits: one push will not do."""
    x, y = _draw(rng, template.x), _draw(rng, template.y)
    if template.pigs == 1:
        return [_platform(x, y, 4.0), _pig(x, y + 0.32 + 0.486, "BasicBigTwoShots")]
    things: list[LevelObject] = []
    for number in range(template.pigs):
        at, height = x + number * rng.uniform(2.6, 3.4), y + number * rng.uniform(-0.6, 0.9)
        things += [_platform(at, height, 2.4), _pig(at, height + PIG_REST)]
    return things


def rolling(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """A ball on a ledge above a slope that ends at the pig."""
    x, y = _draw(rng, template.x), _draw(rng, template.y)
    angle, length = math.radians(_draw(rng, template.slope)), _draw(rng, template.length)
    run, drop = length * math.cos(angle), length * math.sin(angle)
    foot = x - 0.9  # where the slope meets the pig's platform
    slope = _platform(foot - run / 2, y + drop / 2, length / 0.64 + 0.3)
    slope = msgspec.structs.replace(slope, rotation=round(360 - math.degrees(angle), 3))
    ledge = foot - run - 0.75
    ball = LevelObject(
        kind="Block",
        type=template.shape,
        material=template.material,
        x=round(ledge, 4),
        y=round(y + drop + 0.32 + (0.376 if template.shape == "Circle" else 0.211), 4),
    )
    things = [_platform(x, y, 2.6), _pig(x + 0.1, y + PIG_REST), slope, _platform(ledge, y + drop, 2.2), ball]
    if template.roof:
        things.append(_platform(x - run / 2, y + drop + rng.uniform(2.0, 2.6), (run + 2.5) / 0.64))
    return things


def falling(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """A pig in a pit, and something heavy on the ledge beside it."""
    x, y, deep = _draw(rng, template.x), _draw(rng, template.y), rng.uniform(2.4, 3.2)
    half = rng.uniform(0.95, 1.15)
    top = y + deep
    weight = LevelObject(
        kind="Block",
        type=template.shape,
        material=template.material,
        x=round(x - half - 0.55, 4),
        y=round(top + 0.537, 4),
    )
    if template.shape == "SquareHole":
        weight = msgspec.structs.replace(weight, y=round(top + 0.742, 4))
    things = [
        _platform(x, y, 2 * half / 0.64 + 1.4),
        _pig(x, y + PIG_REST),
        _platform(x - half - 0.33, y + deep / 2 - 0.01, 1.0, deep / 0.64 - 1.0),
        _platform(x - half - 0.6, top, 2.0),
        _platform(x + half + 0.33, y + deep / 2 + 0.5, 1.0, deep / 0.64 + 1.0),
    ]
    return [*things, weight]


def sliding(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """A smooth block at one end of a shelf, the pig at the other, a roof over both."""
    x, y, length = _draw(rng, template.x), _draw(rng, template.y), _draw(rng, template.length)
    high = 0.32 + (0.216 if template.shape == "RectFat" else 0.421)
    block = LevelObject(
        kind="Block", type=template.shape, material=template.material, x=round(x - length, 4), y=round(y + high, 4)
    )
    things = [_platform(x - length / 2, y, (length + 2.2) / 0.64), _pig(x, y + PIG_REST), block]
    if template.roof:
        things.append(_platform(x - length / 2 + 0.6, y + rng.uniform(1.9, 2.3), (length + 1.6) / 0.64))
    return things


SCENARIOS: dict[str, Callable[[LevelTemplate, random.Random], list[LevelObject]]] = {
    "single": single,
    "multiple": multiple,
    "rolling": rolling,
    "falling": falling,
    "sliding": sliding,
}
"""In their published order: single force, multiple forces, rolling, falling, sliding."""


def _draw(rng: random.Random, between: Range) -> float:
    return round(rng.uniform(*between), 3)


def _platform(x: float, y: float, wide: float, high: float = 1.0) -> LevelObject:
    size = round(wide, 4), round(high, 4)
    return LevelObject(kind="Platform", type="Platform", x=round(x, 4), y=round(y, 4), scale_x=size[0], scale_y=size[1])


def _pig(x: float, y: float, type_: str = "BasicSmall") -> LevelObject:
    return LevelObject(kind="Pig", type=type_, x=round(x, 4), y=round(y, 4))
