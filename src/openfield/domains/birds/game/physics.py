"""The physics tables as values: materials, blocks, pigs, birds and blasts of both profiles."""

from __future__ import annotations

from functools import cache

import msgspec

from openfield.domains.birds.game.level import ProfileName
from openfield.files.data import read_data

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
    drag: float
    """Linear: the share of its speed that a block loses in a second."""
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
    radius: float = 0.0
    """Radius of a circle that is the first collider, and the outline the second one; 0 if there is no circle."""
    second_area: float = 0.0
    """Area of the second collider beside such a circle; its convex outline has a slightly different one."""
    second: tuple[Ring, ...] = ()
    """Convex pieces of a second collider."""
    mass: float | None = None
    rolling_radius: float = 0.0
    """Radius of the circle that replaces the outline once the block rolls; 0 if it never does."""


class PigKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The properties of a pig."""

    outline: Ring
    gravity: float
    life: float
    mass: float | None = None
    radius: float = 0.0
    """Radius of a circle that is the first collider, and the outline the second one; 0 if there is no circle."""
    second_area: float = 0.0
    """Area of the second collider beside such a circle; its convex outline has a slightly different one."""


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

    launch_speed: float
    """World units a second of a bird that was pulled as far as the sling allows."""
    block_gravity: float
    block_angular_drag: float
    bird_angular_drag: float
    pig_angular_drag: float
    pig_friction: float
    pig_bounce: float
    pig_defence: float
    bird_friction: float
    hit_factor: float
    """Points for a hit that does not destroy are the rounded product of this factor and the damage, multiplied by
    `block_points` or `pig_points`."""
    block_points: int
    pig_points: int
    points_before_end: bool
    """True if a hit earns points only if the body would survive the same damage once more."""
    immortal_seconds: float
    flight_seconds: float
    """Longest flight without a contact before the next bird is up."""
    damage_by_mass: float
    """Factor of the attacker's mass times speed; 0 if damage is the speed alone."""
    fading_blast: bool
    """True if a blast fades linearly with the distance; else it fades with the inverse."""
    pig_density: float
    block_linger: float
    """Seconds that a destroyed block stays visible."""
    pig_linger: float
    dies_in_place: bool
    """True if a destroyed body stops, and its second collider stays solid until it vanishes."""
    rolling_speed: float
    """World units a second at which a ball begins to roll, as a circle; 0 if balls keep their outline."""
    rolling_wear: float
    """Life that a rolling ball loses for each world unit it rolls."""
    ball_density: float
    """Density of the first collider of balls, whatever the material is; 0 if it is that of the material."""
    mixed_bounce: bool
    """True if a bird bounces off a body that moves with the mean of both bounces; else with the greater one."""
    landing_slope: float
    """Degrees. Where the surface is less steep, friction slows down a bird that lands, without turning it; 0: never."""
    pig_safe_speed: float
    """World units a second. A slower contact does not hurt a pig, except that with a rolling ball."""
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


def load_profile(name: ProfileName) -> Profile:
    """Return one of the two profiles."""
    return _load_profiles()[name]


@cache
def _load_profiles() -> dict[str, Profile]:
    return read_data("openfield.domains.birds", "physics.toml", dict[str, Profile])


def area(ring: Ring) -> float:
    """Return the area of a polygon."""
    return abs(sum(x * v - u * y for (x, y), (u, v) in zip(ring, (*ring[1:], ring[0]), strict=True))) / 2


def box(width: float, height: float) -> Ring:
    """Return a rectangle around the origin: bottom left, top left, top right, bottom right."""
    x, y = width / 2, height / 2
    return (-x, -y), (-x, y), (x, y), (x, -y)
