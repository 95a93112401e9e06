"""Level templates: draw levels of the five published scenarios, keep those that can be played, and write a pool.

A level is kept only if nothing in it moves before the first shot, and if some shots pass it, both as it is and with the
novelty of its family.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from openfield.domains.birds.files.pool import FOLDER
from openfield.domains.birds.game.bodies import GROUND, INTANGIBLE
from openfield.domains.birds.game.early_novelties import load_registry
from openfield.domains.birds.game.game import Game, solve
from openfield.domains.birds.game.level import Camera, Level, LevelObject, write_level
from openfield.domains.birds.novelty import CHANGES, change_early, change_level
from openfield.errors import OpenfieldError
from openfield.files.atomic import replacing
from openfield.files.data import read_data
from openfield.trial import derive

PIG_REST = 0.32 + 0.209
"""Height of a small pig's centre above the centre of its platform."""
Range = tuple[float, float]
MAX_TRIES = 60
MAX_MOVE = 0.3
"""World units. A level in which an object moves farther while it comes to rest is not stable."""
MIXED_TYPE = "1"
"""The type with levels of all scenarios and the first novelty, which the sample configurations use."""
EARLY_TYPE = "2"
"""The type of the normal levels that those of the early novelties are made from."""
EARLY_BIRDS = ("BirdRed",) * 3


class LevelTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The ranges from which a level of one scenario is drawn."""

    scenario: str
    x: Range
    """Position of the pig."""
    y: Range
    """Height of the centre of its platform."""
    birds: tuple[str, ...] = ("BirdRed",)
    pigs: int = 1
    roof: bool = False
    """Block high shots."""
    wall: bool = False
    """Block low shots."""
    slope: Range = (18.0, 26.0)
    length: Range = (4.0, 6.0)
    material: str = "stone"
    shape: str = "Circle"
    wind: bool = False
    """Let a mild wind lift birds on their way."""


@cache
def load_templates() -> dict[str, LevelTemplate]:
    """Return all templates by their type."""
    return read_data("openfield.domains.birds", "templates.toml", dict[str, LevelTemplate])


def make_pair(type_: str, number: int, seed: int = 0) -> tuple[Level, Level]:
    """Draw a normal level of a template and its novel twin, both stable and solvable."""
    change = list(CHANGES)[int(type_[2:4]) - 1]
    for attempt in range(MAX_TRIES):
        rng = random.Random(derive(seed, "level", type_, number, attempt))
        normal = build(load_templates()[type_], rng)
        novel = change_level(normal, [change])
        stable = all(moved(level) < MAX_MOVE for level in (normal, novel))
        if stable and solve(normal, "sailon") and solve(novel, "sailon"):
            return normal, novel
    raise OpenfieldError(f"Template {type_} gave no stable and solvable level in {MAX_TRIES} tries.")


def make_early(number: int, seed: int = 0) -> dict[str, Level]:
    """Draw a normal level, under the key `0.2`, and one for each early novelty; all are stable and solvable."""
    for attempt in range(MAX_TRIES):
        rng = random.Random(derive(seed, "level", "early", number, attempt))
        normal = Level(birds=EARLY_BIRDS, objects=tuple(hut(rng)), camera=Camera(widest=30.0))
        made = {key: change_early(normal, early) for key, early in load_registry().items()}
        played = [normal, *(level for level in made.values() if level.early.acts)]  # the others are the normal one
        if all(moved(level) < MAX_MOVE and solve(level, "sailon") for level in played):
            return {f"0.{EARLY_TYPE}": normal, **made}
    raise OpenfieldError(f"There was no stable and solvable level for the early novelties in {MAX_TRIES} tries.")


def moved(level: Level) -> float:
    """Return how far any object moves while the level comes to rest; infinite if one is lost."""
    game = Game(level, "sailon")
    placed = [each for each in level.objects if each.type not in INTANGIBLE]
    if len(game.bodies) != len(placed):
        return math.inf
    pairs = zip(game.bodies, placed, strict=True)
    return max((math.dist(body.place, (each.x, each.y)) for body, each in pairs), default=0.0)


def write_pool(folder: Path, variations: int, seed: int = 0, types: tuple[str, ...] = ()) -> Iterator[Path]:
    """Write some pairs of a normal and a novel level of each template, and yield each file.

    Without types, levels of all templates are written, as many of each scenario for the mixed type, and as many of
    each early novelty.
    """
    for type_ in types or load_templates():
        family, scenario = int(type_[2:4]), int(type_[4:])
        for number in range(1, variations + 1):
            pair = make_pair(type_, number, seed)
            for level, kept in zip((0, family), pair, strict=True):
                name = f"{number:05d}_0_{scenario}_{type_}_{level}_{scenario}.xml"
                yield _write(folder, level, type_, name, kept)
    if not types:
        for number in range(variations * len(SCENARIOS)):
            pair = make_pair(f"0101{number % len(SCENARIOS) + 1:02d}", 100 + number, seed)
            for level, kept in enumerate(pair):
                yield _write(folder, level, MIXED_TYPE, f"{number + 1:05d}.xml", kept)
        yield from write_early(folder, variations, seed)


def count_for(level: str, type_: str, levels: int) -> int:
    """Return how many variations a pool needs for a number of levels of a kind; 0 if no template makes that kind."""
    if type_ == MIXED_TYPE and level in ("0", "1"):
        return math.ceil(levels / len(SCENARIOS))
    normal = level == "0" and type_ in (EARLY_TYPE, *load_templates())
    novel = f"{level}.{type_}" in load_registry() or (type_ in load_templates() and level == str(int(type_[2:4])))
    return levels if normal or novel else 0


def write_early(folder: Path, variations: int, seed: int = 0) -> Iterator[Path]:
    """Write some levels of each early novelty and the normal levels they are made from, and yield each file."""
    for number in range(1, variations + 1):
        for key, kept in make_early(number, seed).items():
            level, type_ = key.split(".")
            yield _write(folder, int(level), type_, f"{number:05d}.xml", kept)


def _write(folder: Path, level: int, type_: str, name: str, kept: Level) -> Path:
    path = folder / f"novelty_level_{level}" / f"type{type_}" / FOLDER / name
    with replacing(path) as draft:
        draft.write_text(write_level(kept), encoding="utf-8")
    return path


def build(template: LevelTemplate, rng: random.Random) -> Level:
    """Draw a level of a template; it may be unstable or unsolvable."""
    objects = SCENARIOS[template.scenario](template, rng)
    if template.wind:
        x = round(rng.uniform(-8.0, -6.0), 3)
        objects.append(LevelObject(kind="Novelty", type="NonNovelAirTurbulence", x=x, y=1.0, scale_x=7.0, scale_y=10.0))
    return Level(birds=template.birds, objects=tuple(objects))


def single(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """Place a pig in the open: a single force is enough."""
    x, y = _draw(rng, template.x), _draw(rng, template.y)
    objects = [_platform(x, y, 3.0), _pig(x, y + PIG_REST)]
    if template.roof:
        objects.append(_platform(x, y + rng.uniform(1.8, 2.4), 5.0))
    if template.wall:
        objects.append(_platform(x - rng.uniform(1.9, 2.4), y + 0.2, 0.6, rng.uniform(1.6, 2.4)))
    return objects


def multiple(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """Place several pigs apart, or one that takes several hits: multiple forces are needed."""
    x, y = _draw(rng, template.x), _draw(rng, template.y)
    if template.pigs == 1:
        return [_platform(x, y, 4.0), _pig(x, y + 0.32 + 0.486, "BasicBigTwoShots")]
    objects: list[LevelObject] = []
    for number in range(template.pigs):
        at, height = x + number * rng.uniform(2.6, 3.4), y + number * rng.uniform(-0.6, 0.9)
        objects += [_platform(at, height, 2.4), _pig(at, height + PIG_REST)]
    return objects


def rolling(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """Place a ball on a ledge above a slope that ends at the pig."""
    x, y = _draw(rng, template.x), _draw(rng, template.y)
    angle, length = math.radians(_draw(rng, template.slope)), _draw(rng, template.length)
    run, drop = length * math.cos(angle), length * math.sin(angle)
    foot = x - 0.9  # where the slope meets the pig's platform
    slope = _platform(foot - run / 2, y + drop / 2, length / 0.64 + 0.3)
    slope = msgspec.structs.replace(slope, rotation=round(360 - math.degrees(angle), 3))
    ledge = foot - run - 0.75
    ball = _block(template, ledge, y + drop + 0.32 + (0.376 if template.shape == "Circle" else 0.211))
    objects = [_platform(x, y, 2.6), _pig(x + 0.1, y + PIG_REST), slope, _platform(ledge, y + drop, 2.2), ball]
    if template.roof:
        objects.append(_platform(x - run / 2, y + drop + rng.uniform(2.0, 2.6), (run + 2.5) / 0.64))
    return objects


def falling(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """Place a pig in a pit and a heavy block on the ledge beside it."""
    x, y, deep = _draw(rng, template.x), _draw(rng, template.y), rng.uniform(2.4, 3.2)
    half = rng.uniform(0.95, 1.15)
    top = y + deep
    return [
        _platform(x, y, 2 * half / 0.64 + 1.4),
        _pig(x, y + PIG_REST),
        _platform(x - half - 0.33, y + deep / 2 - 0.01, 1.0, deep / 0.64 - 1.0),
        _platform(x - half - 0.6, top, 2.0),
        _platform(x + half + 0.33, y + deep / 2 + 0.5, 1.0, deep / 0.64 + 1.0),
        _block(template, x - half - 0.55, top + (0.742 if template.shape == "SquareHole" else 0.537)),
    ]


def sliding(template: LevelTemplate, rng: random.Random) -> list[LevelObject]:
    """Place a smooth block at one end of a shelf, the pig at the other, and a roof over both."""
    x, y, length = _draw(rng, template.x), _draw(rng, template.y), _draw(rng, template.length)
    high = 0.32 + (0.216 if template.shape == "RectFat" else 0.421)
    block = _block(template, x - length, y + high)
    objects = [_platform(x - length / 2, y, (length + 2.2) / 0.64), _pig(x, y + PIG_REST), block]
    if template.roof:
        objects.append(_platform(x - length / 2 + 0.6, y + rng.uniform(1.9, 2.3), (length + 1.6) / 0.64))
    return objects


def hut(rng: random.Random) -> list[LevelObject]:
    """Place a pig on a table of wood, behind a wall of wood and ice: what the early novelties change is in the way."""
    x, gap = round(rng.uniform(-2.0, 5.0), 3), rng.uniform(1.1, 1.7)
    rows = [
        ("SquareHole", "wood", x - gap, 0.421),
        ("RectFat", "ice", x - gap, 0.842 + 0.216),
        ("RectFat", "wood", x - 0.43, 0.216),
        ("RectFat", "wood", x + 0.43, 0.216),
        ("RectMedium", "wood", x, 0.431 + 0.111),
        ("SquareSmall", "ice", x + rng.uniform(1.4, 1.9), 0.193),
    ]
    blocks = [
        LevelObject(kind="Block", type=shape, material=material, x=round(at, 4), y=round(GROUND + up, 4))
        for shape, material, at, up in rows
    ]
    return [*blocks, _pig(x, GROUND + 0.431 + 0.221 + 0.21)]


SCENARIOS: dict[str, Callable[[LevelTemplate, random.Random], list[LevelObject]]] = {
    scenario.__name__: scenario for scenario in (single, multiple, rolling, falling, sliding)
}
"""In published order: single force, multiple forces, rolling, falling, sliding."""


def _draw(rng: random.Random, between: Range) -> float:
    return round(rng.uniform(*between), 3)


def _platform(x: float, y: float, wide: float, high: float = 1.0) -> LevelObject:
    size = round(wide, 4), round(high, 4)
    return LevelObject(kind="Platform", type="Platform", x=round(x, 4), y=round(y, 4), scale_x=size[0], scale_y=size[1])


def _block(template: LevelTemplate, x: float, y: float) -> LevelObject:
    return LevelObject(kind="Block", type=template.shape, material=template.material, x=round(x, 4), y=round(y, 4))


def _pig(x: float, y: float, type_: str = "BasicSmall") -> LevelObject:
    return LevelObject(kind="Pig", type=type_, x=round(x, 4), y=round(y, 4))
