"""Builds the bodies of a level in the physics engine, and keeps what the engine does not know of them.

Stands between tables and game: level and profile -> bodies the game steps, hurts and removes.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import msgspec

from openfield.domains.birds.game.level import Level, LevelObject
from openfield.domains.birds.game.physics import MATERIALS, BirdKind, PigKind, Profile, Ring, box
from openfield.errors import MissingExtra

BIRD, BLOCK, PLATFORM, FRAME = 1, 2, 4, 8
"""Collision groups; the frame is the ground."""
SLING = 16
MASKS = {BIRD: BLOCK | PLATFORM | FRAME, BLOCK: 31, PLATFORM: 31, FRAME: 31, SLING: BLOCK | PLATFORM | FRAME}
SLING_OUTLINE: Ring = (
    (-0.1, 0.105),
    (-0.19, -0.105),
    (-0.19, -0.995),
    (0.06, -0.995),
    (0.04, -0.745),
    (0.02, -0.245),
    (0.09, 0.005),
)
GROUND = -3.5
GROUND_BOX = (17.49, 4.40689564, -5.703448)
"""Width and height of a piece of ground, and the height of its centre."""
SEAM = -0.005
"""Where two pieces meet in the middle of a level."""
PLAIN_FRICTION = 0.4
LAUNCH_GRAVITY = 0.48
SHOTS_NEEDED = {
    **dict.fromkeys(("BasicBig", "PinkBigPig"), 3),
    **dict.fromkeys(("BasicBigTwoShots", "PinkBigPigTwoShots"), 2),
    **dict.fromkeys(("BasicBigFourShots", "PinkBigPigFourShots"), 4),
}
"""Different birds that must hit these pigs in the levels of the NovPhy test bed, whatever the damage."""
LONG_LIFE, PINK_LONG_LIFE = 1e8, 1e4
"""Their lives, which no blast and no fall uses up."""
INTANGIBLE = (
    *("NonNovelAirTurbulence", "NovelAirTurbulence", "InverseAirTurbulence"),
    *("Storm", "InverseGravity"),
)
"""Things that have no body."""
STAND_IN = "SquareSmall"
"""The block that is built for one nobody knows, as the novel objects of the earliest releases."""
PINK_LIVES = {"PinkCircle": 23.4}
"""What has a life of its own where a file gives it no material; what is only coloured keeps that of its material."""
CIRCLE_CORNERS = 11
"""A bird's outline, as the game reports it."""


class Body:
    """A body and what the engine does not know of it."""

    def __init__(self, physical: Any, kind: str, type_: str, ring: Ring) -> None:
        self.physical = physical
        self.kind = kind
        """`block`, `pig`, `tnt`, `bird`, `egg`, `platform`, `fan`, `magnet`."""
        self.type = type_
        self.ring = ring
        self.hole: Ring = ()
        self.material = ""
        self.id = 0
        self.life = self.full = math.inf
        self.defence = 0.0
        self.points = 0
        self.birds = 0
        """How many different birds must hit it; 0 where damage counts."""
        self.hits: list[int] = []
        self.moves = kind not in ("platform", "fan")
        self.touched = False
        self.launch = -1
        """The step at which a bird was launched; the parts of one that split have it in common."""
        self.gone = False

    @property
    def place(self) -> tuple[float, float]:
        """Where it is."""
        position = self.physical.position
        return position.x, position.y  # unpacking it takes three times as long

    @property
    def speed(self) -> float:
        """How fast it moves."""
        velocity = self.physical.linearVelocity
        return math.hypot(velocity.x, velocity.y)

    @property
    def stirs(self) -> bool:
        """Whether it moves or turns at all."""
        return self.speed > 0 or self.physical.angularVelocity != 0

    def outline(self, ring: Ring | None = None) -> list[tuple[float, float]]:
        """Its outline, or another ring of its own, in the world."""
        (x, y), angle = self.place, self.physical.angle
        cos, sin = math.cos(angle), math.sin(angle)
        return [(x + cos * px - sin * py, y + sin * px + cos * py) for px, py in (ring or self.ring)]


def load_engine() -> Any:
    """The physics engine, imported only when a level is built."""
    try:
        with warnings.catch_warnings():  # a warning made an error while it is imported crashes the interpreter
            warnings.simplefilter("ignore")
            import Box2D
    except ImportError as error:
        raise MissingExtra("birds", "The birds domain") from error
    return Box2D


class BodyBuilder:
    """Builds bodies of one profile in one world of the engine."""

    def __init__(self, engine: Any, world: Any, profile: Profile, level: Level) -> None:
        self.engine, self._world, self._profile, self._level = engine, world, profile, level

    def frame(self) -> None:
        """The ground, and the slingshot's post."""
        width, height, centre = GROUND_BOX
        count = self._level.width
        for number in range(count):
            x = (number - (count - 1) / 2) * width + (SEAM if count > 1 else 0.0)
            self._static((x, centre), 0.0, [box(width, height)], FRAME)
        self._static(self._level.sling, 0.0, [SLING_OUTLINE], SLING)

    def place(self, thing: LevelObject) -> Body | None:
        """The body of a thing; None if it has none, as a wind."""
        shape = thing.type.removeprefix("Pink")
        if thing.kind == "Platform":
            return self._platform(thing)
        if thing.kind == "Pig":
            return self._pig(thing)
        if thing.kind == "TNT":
            return self._tnt(thing)
        if thing.type == "Fan":
            return self._fixed(thing, "fan", box(0.77, 0.77))
        if thing.type == "Magnet":
            return self._block(thing, "Circle", "magnet")
        if thing.kind not in ("Block", "Novelty") or thing.type in INTANGIBLE:
            return None
        if shape not in self._profile.blocks:
            warnings.warn(
                f"Level {self._level.name}: '{thing.type}' is unknown; {STAND_IN} stands for it.", stacklevel=2
            )
            thing, shape = msgspec.structs.replace(thing, type=STAND_IN), STAND_IN
        return self._block(thing, shape, "block")

    def bird(self, type_: str, place: tuple[float, float]) -> Body:
        """A bird at its start."""
        kind = self.bird_kind(type_)
        drag = self._profile.bird_angular_drag
        physical = self._world.CreateDynamicBody(position=place, angularDamping=drag, bullet=True)
        physical.gravityScale = LAUNCH_GRAVITY
        shape = self.engine.b2CircleShape(radius=kind.radius, pos=kind.offset)
        friction = self._profile.bird_friction if kind.friction is None else kind.friction
        self._fixture(physical, shape, BIRD, kind.density, friction, kind.bounce)
        self._weigh(physical, kind.mass)
        return _named(Body(physical, "bird", type_, self.bird_outline(type_)))

    def egg(self, place: tuple[float, float]) -> Body:
        """The egg of a white bird."""
        physical = self._world.CreateDynamicBody(position=place, bullet=True)
        self._fixture(physical, self.engine.b2CircleShape(radius=0.2), BIRD, 1.0, PLAIN_FRICTION, 0.0)
        self._weigh(physical, 1.0)
        return _named(Body(physical, "egg", "Egg", box(0.3, 0.4)))

    def untouchable(self, body: Body) -> None:
        """Takes a body out of everybody's way; it goes on moving."""
        for fixture in body.physical.fixtures:
            fixture.filterData = self.engine.b2Filter(categoryBits=0, maskBits=0)

    def bird_kind(self, type_: str) -> BirdKind:
        """What a bird is made of; an unknown one is a red one."""
        return self._profile.birds.get(type_, self._profile.birds["BirdRed"])

    def bird_outline(self, type_: str) -> Ring:
        """What is reported of a bird: a polygon, in one profile slightly smaller than the circle that collides."""
        kind, step = self.bird_kind(type_), 2 * math.pi / CIRCLE_CORNERS
        (x, y), radius = kind.offset, kind.radius * self._profile.bird_outline
        return tuple((x + radius * math.cos(step * n), y + radius * math.sin(step * n)) for n in range(CIRCLE_CORNERS))

    def pig_kind(self, type_: str) -> PigKind:
        """What a pig is made of, by the size in its name."""
        size = "BasicBig" if "Big" in type_ else "BasicMedium" if "Medium" in type_ else "BasicSmall"
        return self._profile.pigs[size]

    def _block(self, thing: LevelObject, shape: str, kind: str) -> Body:
        profile, form = self._profile, self._profile.blocks[shape]
        name = thing.material if thing.material in profile.materials else "wood"
        material, index = profile.materials[name], MATERIALS.index(name)
        physical = self._dynamic(thing, profile.block_gravity, profile.block_angular_drag)
        physical.linearDamping = profile.block_linear_drag
        outline = form.outline or box(*form.size) if form.size else form.outline
        for piece in form.pieces or (outline,):
            polygon = self.engine.b2PolygonShape(vertices=list(piece))
            density = material.density if form.density is None else form.density
            self._fixture(physical, polygon, BLOCK, density, material.friction, material.bounce)
        self._weigh(physical, None if form.mass is None else form.mass * material.mass)
        body = Body(physical, kind, thing.type, box(*form.seen) if form.seen else outline)
        body.hole, body.material, body.defence = form.hole, name, material.defence
        usual = form.life[index] * material.life
        body.life = body.full = usual if thing.material else PINK_LIVES.get(thing.type, usual)
        body.points = 500
        return _named(body)

    def _pig(self, thing: LevelObject) -> Body:
        profile, kind = self._profile, self.pig_kind(thing.type)
        physical = self._dynamic(thing, kind.gravity, profile.pig_angular_drag)
        shape = self.engine.b2PolygonShape(vertices=list(kind.outline))
        self._fixture(physical, shape, BLOCK, 1.0, profile.pig_friction, profile.pig_bounce)
        self._weigh(physical, kind.mass)
        body = Body(physical, "pig", thing.type, kind.outline)
        body.life = body.full = kind.life
        body.defence, body.points = profile.pig_defence, 5000
        if profile.damage_by_mass == 0 and self._level.camera.widest != 30:
            body.birds = SHOTS_NEEDED.get(thing.type, 0)
        if body.birds:
            body.life = body.full = PINK_LONG_LIFE if thing.type.startswith("Pink") else LONG_LIFE
            self._weigh(physical, 1.5)
            physical.gravityScale = 0.5
        return _named(body)

    def _tnt(self, thing: LevelObject) -> Body:
        tnt = self._profile.tnt
        physical = self._dynamic(thing, 1.0, 0.05)
        outline = box(tnt.size, tnt.size)
        polygon = self.engine.b2PolygonShape(vertices=list(outline))
        self._fixture(physical, polygon, BLOCK, 1.0, PLAIN_FRICTION, 0.0)
        self._weigh(physical, tnt.mass)
        body = Body(physical, "tnt", "TNT", box(tnt.seen, tnt.seen) if tnt.seen else outline)
        body.life = body.full = tnt.life
        return _named(body)

    def _platform(self, thing: LevelObject) -> Body:
        size = max(0.64 * abs(thing.scale_x), 0.02), max(0.64 * abs(thing.scale_y), 0.02)
        return self._fixed(thing, "platform", box(*size))

    def _fixed(self, thing: LevelObject, kind: str, outline: Ring) -> Body:
        physical = self._static((thing.x, thing.y), math.radians(thing.rotation), [outline], PLATFORM)
        return _named(Body(physical, kind, thing.type, outline))

    def _dynamic(self, thing: LevelObject, gravity: float, drag: float) -> Any:
        physical = self._world.CreateDynamicBody(
            position=(thing.x, thing.y), angle=math.radians(thing.rotation), angularDamping=drag
        )
        physical.gravityScale = gravity
        return physical

    def _static(self, place: tuple[float, float], angle: float, outlines: list[Ring], group: int) -> Any:
        physical = self._world.CreateStaticBody(position=place, angle=angle)
        for outline in outlines:
            shape = self.engine.b2PolygonShape(vertices=list(outline))
            self._fixture(physical, shape, group, 0.0, PLAIN_FRICTION, 0.0)
        return physical

    def _fixture(self, physical: Any, shape: Any, group: int, *material: float) -> None:
        density, friction, bounce = material
        groups = self.engine.b2Filter(categoryBits=group, maskBits=MASKS[group])
        fixture = self.engine.b2FixtureDef(
            shape=shape, density=density, friction=friction, restitution=bounce, filter=groups
        )
        physical.CreateFixture(fixture)

    def _weigh(self, physical: Any, mass: float | None) -> None:
        """Gives a body a mass of its own instead of that of its area."""
        if mass is not None:
            data = physical.massData
            inertia = data.I * mass / data.mass
            physical.massData = self.engine.b2MassData(mass=mass, center=data.center, I=inertia)


def _named(body: Body) -> Body:
    """The engine hands bodies back in contacts; this is how ours is found again."""
    body.physical.userData = body
    return body
