"""The bodies of a level in the physics engine, and what the engine does not know about them."""

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
"""Position at which two pieces of ground meet in the middle of a level."""
PLAIN_FRICTION = 0.4
LAUNCH_GRAVITY = 0.48
SHOTS_NEEDED = {
    **dict.fromkeys(("BasicBig", "PinkBigPig"), 3),
    **dict.fromkeys(("BasicBigTwoShots", "PinkBigPigTwoShots"), 2),
    **dict.fromkeys(("BasicBigFourShots", "PinkBigPigFourShots"), 4),
}
"""Number of different birds that must hit these pigs in the NovPhy levels, whatever the damage."""
LONG_LIFE, PINK_LONG_LIFE = 1e8, 1e4
"""Lives of these pigs, more than any blast or fall takes."""
INTANGIBLE = (
    *("NonNovelAirTurbulence", "NovelAirTurbulence", "InverseAirTurbulence"),
    *("Storm", "InverseGravity"),
)
"""Object types without a body."""
STAND_IN = "SquareSmall"
"""The block that replaces an unknown one, such as the novel objects of the earliest releases."""
PINK_LIVES = {"PinkCircle": 23.4}
"""Lives of novel blocks whose level file gives them no material."""
CIRCLE_CORNERS = 11
"""Corners of the outline that is reported for a bird."""


class Body:
    """A body and what the engine does not know about it."""

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
        """Number of different birds that must hit it; 0 if damage counts instead."""
        self.hits: list[int] = []
        self.moves = kind not in ("platform", "fan")
        self.touched = False
        self.launch = -1
        """The step at which a bird was launched; all parts of a split bird share it."""
        self.gone = False

    @property
    def place(self) -> tuple[float, float]:
        """Its position."""
        position = self.physical.position
        return position.x, position.y  # unpacking it takes three times as long

    @property
    def speed(self) -> float:
        """Its speed."""
        velocity = self.physical.linearVelocity
        return math.hypot(velocity.x, velocity.y)

    @property
    def stirs(self) -> bool:
        """True if it moves or turns at all."""
        return self.speed > 0 or self.physical.angularVelocity != 0

    def outline(self, ring: Ring | None = None) -> list[tuple[float, float]]:
        """Return the outline, or another ring of the body, in world coordinates."""
        (x, y), angle = self.place, self.physical.angle
        cos, sin = math.cos(angle), math.sin(angle)
        return [(x + cos * px - sin * py, y + sin * px + cos * py) for px, py in (ring or self.ring)]


def load_engine() -> Any:
    """Import the physics engine; it is loaded only when a level is built."""
    try:
        with warnings.catch_warnings():  # a warning turned into an error during this import crashes the interpreter
            warnings.simplefilter("ignore")
            import Box2D
    except ImportError as error:
        raise MissingExtra("birds", "The birds domain") from error
    return Box2D


class BodyBuilder:
    """Builds bodies of one profile in one engine world."""

    def __init__(self, engine: Any, world: Any, profile: Profile, level: Level) -> None:
        self.engine, self._world, self._profile, self._level = engine, world, profile, level

    def frame(self) -> None:
        """Build the ground and the post of the slingshot."""
        width, height, centre = GROUND_BOX
        count = self._level.width
        for number in range(count):
            x = (number - (count - 1) / 2) * width + (SEAM if count > 1 else 0.0)
            self._static((x, centre), 0.0, [box(width, height)], FRAME)
        self._static(self._level.sling, 0.0, [SLING_OUTLINE], SLING)

    def place(self, placed: LevelObject) -> Body | None:
        """Build the body of a level object; None if it has no body, as a wind."""
        shape = placed.type.removeprefix("Pink")
        if placed.kind == "Platform":
            return self._platform(placed)
        if placed.kind == "Pig":
            return self._pig(placed)
        if placed.kind == "TNT":
            return self._tnt(placed)
        if placed.type == "Fan":
            return self._fixed(placed, "fan", box(0.77, 0.77))
        if placed.type == "Magnet":
            return self._block(placed, "Circle", "magnet")
        if placed.kind not in ("Block", "Novelty") or placed.type in INTANGIBLE:
            return None
        if shape not in self._profile.blocks:
            warnings.warn(
                f"Level {self._level.name}: '{placed.type}' is unknown; {STAND_IN} replaces it.", stacklevel=2
            )
            placed, shape = msgspec.structs.replace(placed, type=STAND_IN), STAND_IN
        return self._block(placed, shape, "block")

    def bird(self, type_: str, place: tuple[float, float]) -> Body:
        """Build a bird at its start."""
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
        """Build the egg of a white bird."""
        physical = self._world.CreateDynamicBody(position=place, bullet=True)
        self._fixture(physical, self.engine.b2CircleShape(radius=0.2), BIRD, 1.0, PLAIN_FRICTION, 0.0)
        self._weigh(physical, 1.0)
        return _named(Body(physical, "egg", "Egg", box(0.3, 0.4)))

    def untouchable(self, body: Body) -> None:
        """Take a body out of all contacts; it goes on moving."""
        for fixture in body.physical.fixtures:
            fixture.filterData = self.engine.b2Filter(categoryBits=0, maskBits=0)

    def bird_kind(self, type_: str) -> BirdKind:
        """Return the properties of a bird; an unknown type is a red one."""
        return self._profile.birds.get(type_, self._profile.birds["BirdRed"])

    def bird_outline(self, type_: str) -> Ring:
        """Return the polygon reported for a bird; in one profile it is smaller than the circle that collides."""
        kind, step = self.bird_kind(type_), 2 * math.pi / CIRCLE_CORNERS
        (x, y), radius = kind.offset, kind.radius * self._profile.bird_outline
        return tuple((x + radius * math.cos(step * n), y + radius * math.sin(step * n)) for n in range(CIRCLE_CORNERS))

    def pig_kind(self, type_: str) -> PigKind:
        """Return the properties of a pig, by the size in its name."""
        size = "BasicBig" if "Big" in type_ else "BasicMedium" if "Medium" in type_ else "BasicSmall"
        return self._profile.pigs[size]

    def _block(self, placed: LevelObject, shape: str, kind: str) -> Body:
        profile, form = self._profile, self._profile.blocks[shape]
        name = placed.material if placed.material in profile.materials else "wood"
        material, index = profile.materials[name], MATERIALS.index(name)
        physical = self._dynamic(placed, profile.block_gravity, profile.block_angular_drag)
        physical.linearDamping = profile.block_linear_drag
        outline = form.outline or box(*form.size) if form.size else form.outline
        for piece in form.pieces or (outline,):
            polygon = self.engine.b2PolygonShape(vertices=list(piece))
            density = material.density if form.density is None else form.density
            self._fixture(physical, polygon, BLOCK, density, material.friction, material.bounce)
        self._weigh(physical, None if form.mass is None else form.mass * material.mass)
        body = Body(physical, kind, placed.type, box(*form.seen) if form.seen else outline)
        body.hole, body.material, body.defence = form.hole, name, material.defence
        usual = form.life[index] * material.life
        body.life = body.full = usual if placed.material else PINK_LIVES.get(placed.type, usual)
        body.points = 500
        return _named(body)

    def _pig(self, placed: LevelObject) -> Body:
        profile, kind = self._profile, self.pig_kind(placed.type)
        physical = self._dynamic(placed, kind.gravity, profile.pig_angular_drag)
        shape = self.engine.b2PolygonShape(vertices=list(kind.outline))
        self._fixture(physical, shape, BLOCK, 1.0, profile.pig_friction, profile.pig_bounce)
        self._weigh(physical, kind.mass)
        body = Body(physical, "pig", placed.type, kind.outline)
        body.life = body.full = kind.life
        body.defence, body.points = profile.pig_defence, 5000
        if profile.damage_by_mass == 0 and self._level.camera.widest != 30:
            body.birds = SHOTS_NEEDED.get(placed.type, 0)
        if body.birds:
            body.life = body.full = PINK_LONG_LIFE if placed.type.startswith("Pink") else LONG_LIFE
            self._weigh(physical, 1.5)
            physical.gravityScale = 0.5
        return _named(body)

    def _tnt(self, placed: LevelObject) -> Body:
        tnt = self._profile.tnt
        physical = self._dynamic(placed, 1.0, 0.05)
        outline = box(tnt.size, tnt.size)
        polygon = self.engine.b2PolygonShape(vertices=list(outline))
        self._fixture(physical, polygon, BLOCK, 1.0, PLAIN_FRICTION, 0.0)
        self._weigh(physical, tnt.mass)
        body = Body(physical, "tnt", "TNT", box(tnt.seen, tnt.seen) if tnt.seen else outline)
        body.life = body.full = tnt.life
        return _named(body)

    def _platform(self, placed: LevelObject) -> Body:
        size = max(0.64 * abs(placed.scale_x), 0.02), max(0.64 * abs(placed.scale_y), 0.02)
        return self._fixed(placed, "platform", box(*size))

    def _fixed(self, placed: LevelObject, kind: str, outline: Ring) -> Body:
        physical = self._static((placed.x, placed.y), math.radians(placed.rotation), [outline], PLATFORM)
        return _named(Body(physical, kind, placed.type, outline))

    def _dynamic(self, placed: LevelObject, gravity: float, drag: float) -> Any:
        physical = self._world.CreateDynamicBody(
            position=(placed.x, placed.y), angle=math.radians(placed.rotation), angularDamping=drag
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
        """Set the mass of a body; None keeps the mass of its area."""
        if mass is not None:
            data = physical.massData
            inertia = data.I * mass / data.mass
            physical.massData = self.engine.b2MassData(mass=mass, center=data.center, I=inertia)


def _named(body: Body) -> Body:
    """Store our body in the engine's body, so that contacts lead back to it."""
    body.physical.userData = body
    return body
