"""Dust, splinters and feathers where things break: each a function of what happened and of how long ago that is.

What happened is found by comparing two scenes. The random numbers of a burst are seeded with its object and what
happened to it, so a replay shows the same film.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import msgspec

from openfield.domains.birds.game.bodies import GROUND
from openfield.domains.birds.game.scene import Scene, SceneItem, load_palette
from openfield.domains.birds.picture.creatures import feather_sprite
from openfield.domains.birds.picture.objects import chip_sprite, puff_sprite
from openfield.domains.birds.picture.sprites import Point, Sprite, colour, lighter

LIFETIME = 1.3
"""Seconds until the last particle of a burst is gone."""
FALL = 5.0
"""Units a second squared."""
DUST = {"wood": (214, 188, 150), "ice": (226, 244, 250), "stone": (186, 184, 180), "pig": (196, 226, 160)}
SMOKE, FLAME, GLOW = (70, 66, 64), (250, 150, 40), (255, 240, 190)
SOLID = ("shape", "rect", "platform")


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """Something broke, was hit or exploded."""

    kind: str
    """`break`, `chip`, `feathers`, `vanish` or `blast`."""
    look: str
    place: Point
    size: float
    """Radius of the object, in units."""
    time: float
    """Seconds of the film."""
    seed: str


class Particle(msgspec.Struct, frozen=True):
    """A sprite in the air."""

    sprite: Sprite
    place: Point
    size: float = 1.0
    angle: float = 0.0
    fade: float = 1.0


def find_bursts(before: Scene, after: Scene, time: float) -> Iterator[Burst]:
    """Yield the events between two scenes: objects that are gone, more damaged, or have touched something."""
    now = {item.id: item for item in after.items}
    for item in before.items:
        found = now.get(item.id)
        if found is None:
            yield _burst(_ending(item), item, time)
        elif found.stage > item.stage:
            yield _burst("feathers" if item.rank == "bird" else "chip", found, time)


def fly(burst: Burst, time: float) -> Iterator[Particle]:
    """Yield the particles of a burst at a moment."""
    age = time - burst.time
    if not 0 <= age < LIFETIME:
        return
    rng = random.Random(burst.seed)
    if burst.kind == "blast":
        yield from _blast(burst, age, rng)
    elif burst.kind in ("feathers", "vanish"):
        yield from _puffs(burst, age, rng, 3 if burst.kind == "vanish" else 1, (245, 240, 232))
        yield from _pieces(burst, age, rng, feather_sprite(burst.look), 8 if burst.kind == "vanish" else 5, light=True)
    else:
        whole = burst.kind == "break"
        shade = DUST.get(burst.look, lighter(colour(load_palette()[burst.look].fill), 0.5))
        yield from _puffs(burst, age, rng, 6 if whole else 2, shade)
        if burst.look != "pig":
            yield from _pieces(burst, age, rng, chip_sprite(burst.look), 11 if whole else 3)


def _ending(item: SceneItem) -> str:
    if item.rank in ("tnt", "egg") or item.look == "bird_black":
        return "blast"
    return "vanish" if item.rank == "bird" else "break"


def _burst(kind: str, item: SceneItem, time: float) -> Burst:
    size = max(math.hypot(x, y) for x, y in item.shape)
    return Burst(
        kind=kind, look=item.look, place=item.place, size=size, time=time, seed=f"{item.id} {item.stage} {kind}"
    )


def _pieces(
    burst: Burst, age: float, rng: random.Random, sprite: Sprite, count: int, light: bool = False
) -> Iterator[Particle]:
    """Yield pieces that fly off and fall; light ones are slowed by the air and sway."""
    for _ in range(count):
        way, speed = rng.uniform(0, 2 * math.pi), rng.uniform(0.8, 3.2)
        spin, start, size = rng.uniform(-9, 9), rng.uniform(0, burst.size), rng.uniform(0.7, 1.4)
        lasts = rng.uniform(0.6, 1.0) * LIFETIME
        gone = (1 - math.exp(-3 * age)) / 3 if light else age
        x = burst.place[0] + math.cos(way) * (0.5 * start + speed * gone)
        y = burst.place[1] + math.sin(way) * (0.5 * start + speed * gone)
        y += (0.6 * gone - 0.55 * age * age) if light else (0.8 * age - FALL * age * age / 2)
        x += 0.12 * math.sin(6 * age + way) if light else 0.0
        if age < lasts:
            fade = min(1.0, 3 * (1 - age / lasts))
            yield Particle(sprite, (x, max(y, GROUND + 0.05)), size, way + spin * (gone if light else age), fade)


def _puffs(burst: Burst, age: float, rng: random.Random, count: int, shade: tuple[int, int, int]) -> Iterator[Particle]:
    """Yield clouds that grow and fade."""
    for _ in range(count):
        way, far, lasts = rng.uniform(0, 2 * math.pi), rng.uniform(0, 0.8), rng.uniform(0.35, 0.8)
        size = (0.25 + 0.5 * min(burst.size, 0.7)) * (0.6 + 1.2 * age / lasts)
        reach = burst.size * far + 0.5 * age
        place = burst.place[0] + reach * math.cos(way), burst.place[1] + 0.7 * reach * math.sin(way) + 0.25 * age
        if age < lasts:
            yield Particle(puff_sprite(shade), place, size, fade=0.75 * (1 - age / lasts))


def _blast(burst: Burst, age: float, rng: random.Random) -> Iterator[Particle]:
    """Yield a flash, flames and the smoke that stays."""
    for _ in range(12):
        way, far, lasts = rng.uniform(0, 2 * math.pi), rng.uniform(0.1, 1.5), rng.uniform(0.6, 1.0) * LIFETIME
        reach = far * (1 - math.exp(-5 * age))
        place = burst.place[0] + reach * math.cos(way), burst.place[1] + reach * math.sin(way) + 0.5 * age
        if age < lasts:
            yield Particle(puff_sprite(SMOKE), place, 0.5 + 0.7 * age, fade=0.7 * (1 - age / lasts))
        if age < 0.4 * lasts:
            yield Particle(puff_sprite(FLAME), place, 0.55 + age, fade=1 - age / (0.4 * lasts))
    if age < 0.22:
        yield Particle(puff_sprite(GLOW), burst.place, 1.2 + 6 * age, fade=1 - age / 0.22)
