"""The physics tables as values: what every block, pig, bird and blast is made of, in both profiles.

Stands between `physics.toml`, which holds the numbers, and the bodies that are built of them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import TypeVar

import msgspec

from openfield.domains.birds.game.level import ProfileName

T = TypeVar("T")
SECOND = 50
"""Steps of the engine in a second."""
STEP = 1 / SECOND
Point = tuple[float, float]
Ring = tuple[Point, ...]
MATERIALS = ("wood", "stone", "ice")
"""The order of every list that has a number per material."""


class Material(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a block is made of; `mass` and `life` multiply those of the block."""

    friction: float
    bounce: float
    mass: float
    life: float
    density: float
    defence: float


class BlockKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form of a block."""

    life: tuple[float, float, float]
    size: Point | None = None
    seen: Point | None = None
    outline: Ring = ()
    hole: Ring = ()
    pieces: tuple[Ring, ...] = ()
    mass: float | None = None
    density: float | None = None


class PigKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pig."""

    outline: Ring
    gravity: float
    life: float
    mass: float | None = None


class BirdKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bird; its damage is per material."""

    radius: float
    bounce: float
    damage: tuple[float, float, float]
    mass: float | None = None
    density: float = 1.0
    friction: float | None = None
    offset: Point = (0.0, 0.0)


class Blast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An explosion."""

    area: float
    power: float
    damage: float


class Tnt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A box of explosives."""

    size: float
    mass: float
    life: float
    blast: Blast
    seen: float | None = None


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The physics of one family of games."""

    block_gravity: float
    block_linear_drag: float
    block_angular_drag: float
    bird_angular_drag: float
    pig_angular_drag: float
    pig_friction: float
    pig_bounce: float
    pig_defence: float
    bird_friction: float
    hit_factor: float
    """Points for a hit that does not destroy: ten times the rounded product of this and the damage."""
    immortal_seconds: float
    flight_seconds: float
    """After this the next bird is up, whether the last one has touched anything or not."""
    damage_by_mass: float
    """What the attacker's mass and speed are multiplied with; 0 where damage is the speed alone."""
    fading_blast: bool
    """Whether a blast fades linearly with distance instead of with its inverse."""
    linger_seconds: float
    """How long what was destroyed can still be seen, without anything touching it."""
    bird_outline: float
    """The share of a bird's radius at which the polygon lies that is reported of it."""
    materials: dict[str, Material]
    blocks: dict[str, BlockKind]
    pigs: dict[str, PigKind]
    birds: dict[str, BirdKind]
    tnt: Tnt
    blasts: dict[str, Blast]


@cache
def load_profile(name: ProfileName) -> Profile:
    """One of the two profiles."""
    return read_table("physics.toml", dict[str, Profile])[name]


def read_table(name: str, kind: type[T]) -> T:
    """One of the tables that lie beside the code."""
    text = files("openfield.domains.birds").joinpath("data", name).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), kind, strict=False)


def box(width: float, height: float) -> Ring:
    """A rectangle around the origin: bottom left, top left, top right, bottom right."""
    x, y = width / 2, height / 2
    return (-x, -y), (-x, y), (x, y), (x, -y)
