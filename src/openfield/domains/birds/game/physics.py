"""The physics tables as values: materials, blocks, pigs, birds and blasts of both profiles."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

from openfield.domains.birds.game.level import ProfileName
from openfield.files.data import read_data

T = TypeVar("T")
SECOND = 50
"""Steps of the engine in a second."""
STEP = 1 / SECOND
Point = tuple[float, float]
Ring = tuple[Point, ...]
MATERIALS = ("wood", "stone", "ice")
"""The order of every list with one number per material."""


class Material(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A material of blocks; `mass` and `life` multiply those of the block."""

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
    """The properties of a pig."""

    outline: Ring
    gravity: float
    life: float
    mass: float | None = None


class BirdKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The properties of a bird; `damage` is per material."""

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
    """Points for a hit that does not destroy: ten times the rounded product of this factor and the damage."""
    immortal_seconds: float
    flight_seconds: float
    """Longest flight without a contact before the next bird is up."""
    damage_by_mass: float
    """Factor of the attacker's mass times speed; 0 if damage is the speed alone."""
    fading_blast: bool
    """True if a blast fades linearly with the distance; else it fades with the inverse."""
    linger_seconds: float
    """How long a destroyed body stays visible, without contacts."""
    bird_outline: float
    """Radius of the reported outline of a bird, as a share of its radius."""
    materials: dict[str, Material]
    blocks: dict[str, BlockKind]
    pigs: dict[str, PigKind]
    birds: dict[str, BirdKind]
    tnt: Tnt
    blasts: dict[str, Blast]

    def bird(self, type_: str) -> BirdKind:
        """Return the properties of a bird; an unknown type is a red one."""
        return self.birds.get(type_, self.birds["BirdRed"])


@cache
def load_profile(name: ProfileName) -> Profile:
    """Return one of the two profiles."""
    return read_data("openfield.domains.birds", "physics.toml", dict[str, Profile])[name]


def box(width: float, height: float) -> Ring:
    """Return a rectangle around the origin: bottom left, top left, top right, bottom right."""
    x, y = width / 2, height / 2
    return (-x, -y), (-x, y), (x, y), (x, -y)
