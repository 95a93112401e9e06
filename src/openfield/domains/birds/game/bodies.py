"""The bodies of a level: build, damage, explode and remove them in the physics engine, and keep the score."""

from __future__ import annotations

import math
import warnings
from typing import Any

import msgspec

from openfield.domains.birds.game.level import Level, LevelObject, ProfileName
from openfield.domains.birds.game.physics import (
    MATERIALS,
    SECOND,
    STEP,
    Blast,
    Profile,
    Ring,
    area,
    box,
    load_profile,
)
from openfield.lazy import import_extra

BIRD, BLOCK, PLATFORM, FRAME = 1, 2, 4, 8
"""Collision groups; the frame is the ground."""
SLING = 16
MASKS = {BIRD: BLOCK | PLATFORM | FRAME, BLOCK: 31, PLATFORM: 31, FRAME: 31, SLING: BLOCK | PLATFORM | FRAME}
SLING_OUTLINE: Ring = (
    *((-0.1, 0.105), (-0.19, -0.105), (-0.19, -0.995), (0.06, -0.995)),
    *((0.04, -0.745), (0.02, -0.245), (0.09, 0.005)),
)
GROUND = -3.5
GROUND_BOX = (17.49, 4.40689564, -5.703448)
"""Width and height of a piece of ground, and the height of its centre."""
SEAM = -0.005
"""Position at which two pieces of ground meet in the middle of a level."""
PLAIN_FRICTION = 0.4
LAUNCH_GRAVITY = 0.48
SHOTS_NEEDED = {"BasicBig": 3, "BasicBigTwoShots": 2, "BasicBigFourShots": 4}
"""Number of different birds that must hit these pigs in the NovPhy levels, whatever the damage."""
LONG_LIFE, PINK_LONG_LIFE = 1e8, 1e4
"""Lives of these pigs, more than any blast or fall takes."""
INTANGIBLE = ("NonNovelAirTurbulence", "NovelAirTurbulence", "InverseAirTurbulence", "Storm", "InverseGravity")
"""Object types without a body."""
STAND_IN = "SquareSmall"
"""The block that replaces an unknown one, such as the novel objects of the earliest releases."""
PINK_LIVES = {"PinkCircle": 23.4}
"""Lives of novel blocks whose level file gives them no material."""
CIRCLE_CORNERS = 11
"""Corners of the outline that is reported for a bird."""
MIN_BLAST_DISTANCE = 0.05
"""World units. A body nearer to an explosion is treated as if it were this far away."""
SECOND_DENSITY = 1.0
"""Density of a second collider, whatever the material is."""


class Body:
    """A body and what the engine does not know about it."""

    def __init__(self, physical: Any, kind: str, type_: str, ring: Ring, life: float = math.inf) -> None:
        self.physical = physical
        physical.userData = self  # contacts lead back to it
        self.kind = kind
        """`block`, `pig`, `tnt`, `bird`, `egg`, `platform`, `fan`, `magnet`."""
        self.type = type_
        self.ring = ring
        self.hole: Ring = ()
        self.material = ""
        self.id = 0
        self.life = self.full = life
        self.defence = 0.0
        self.points = 0
        self.birds = 0
        """Number of different birds that must hit it; 0 if damage counts instead."""
        self.hits: list[int] = []
        self.moves = kind not in ("platform", "fan")
        self.rolling_radius = 0.0
        """Radius of the circle that it becomes once it rolls; 0 if it never does, or already has."""
        self.rolls = False
        self.look = ""
        """Its class in the palette, if a novelty gives it one of its own."""
        self.novel = ""
        """The name that the level file has for a novel object."""
        self.changed = False
        """True if a novelty has changed a property of it."""
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
    def touches(self) -> bool:
        """True if it touches anything."""
        return any(edge.contact.touching for edge in self.physical.contacts)

    @property
    def supported(self) -> bool:
        """True if it touches a platform or the frame."""
        others = (edge.other.userData for edge in self.physical.contacts if edge.contact.touching)
        return any(other is None or not other.moves for other in others)

    def outline(self, ring: Ring | None = None) -> list[tuple[float, float]]:
        """Return the outline, or another ring of the body, in world coordinates."""
        (x, y), angle = self.place, self.physical.angle
        cos, sin = math.cos(angle), math.sin(angle)
        return [(x + cos * px - sin * py, y + sin * px + cos * py) for px, py in (ring or self.ring)]


def load_engine() -> Any:
    """Import the physics engine; it is loaded only when a level is built."""
    with warnings.catch_warnings():  # a warning turned into an error during this import crashes the interpreter
        warnings.simplefilter("ignore")
        return import_extra("Box2D", "birds", "The birds domain")


class BodyBuilder:
    """Builds bodies of one profile in one engine world."""

    def __init__(self, engine: Any, world: Any, profile: Profile, level: Level) -> None:
        self.engine, self._world, self._profile, self._level = engine, world, profile, level
        self._early = level.early
        self._colliders = 0
        for bird in dict.fromkeys(level.birds):
            if self.base(bird) not in profile.birds:
                self._warn(bird, "BirdRed")

    def frame(self) -> None:
        """Build the ground and the post of the slingshot."""
        width, height, centre = GROUND_BOX
        count = self._level.width
        for number in range(count):
            x = (number - (count - 1) / 2) * width + (SEAM if count > 1 else 0.0)
            self._static((x, centre), 0.0, box(width, height), FRAME)
        self._static(self._level.sling, 0.0, SLING_OUTLINE, SLING)

    def place(self, placed: LevelObject) -> Body | None:
        """Build the body of a level object; None if it has no body, as a wind."""
        known = self._early.objects.get(placed.type)
        if known is None or placed.kind not in ("Block", "Pig", "Novelty"):
            return self._place(placed)
        material = placed.material if placed.material in self._profile.materials else known.material
        body = self._place(msgspec.structs.replace(placed, type=known.base, material=material))
        if body is not None:
            body.novel = placed.type
            self._change(body, placed.type)
        return body

    def _place(self, placed: LevelObject) -> Body | None:
        if placed.kind == "Platform":
            return self._fixed(placed, "platform", (0.64 * abs(placed.scale_x), 0.64 * abs(placed.scale_y)))
        if placed.kind == "Pig":
            return self._pig(placed)
        if placed.kind == "TNT":
            return self._tnt(placed)
        if placed.type == "Fan":
            return self._fixed(placed, "fan", (0.77, 0.77))
        if placed.type == "Magnet":
            return self._block(placed, "Circle", "magnet")
        if placed.kind == "ExternalAgent":
            self._warn(placed.type, "nothing")
        if placed.kind not in ("Block", "Novelty") or placed.type in INTANGIBLE:
            return None
        shape = placed.type.removeprefix("Pink")
        if shape not in self._profile.blocks:
            self._warn(placed.type, STAND_IN)
            named = placed.material in self._profile.materials or placed.material in self._early.objects
            material = placed.material if named else ""  # one warning is enough
            placed, shape = msgspec.structs.replace(placed, type=STAND_IN, material=material), STAND_IN
        return self._block(placed, shape, "block")

    def base(self, name: str) -> str:
        """Return the type of the usual bird that a name of a level file means."""
        known = self._early.objects.get(name)
        return name if known is None else known.base

    def look(self, name: str) -> str:
        """Return the class in the palette that a novelty gives to a bird; empty if it looks as usual."""
        return next((found.look for found in self._early.properties(name) if found.look), "")

    def bird(self, name: str, place: tuple[float, float]) -> Body:
        """Build a bird at its start."""
        type_ = self.base(name)
        kind = self._profile.bird(type_)
        drag = self._profile.bird_angular_drag
        physical = self._world.CreateDynamicBody(position=place, angularDamping=drag, bullet=True)
        physical.gravityScale = LAUNCH_GRAVITY
        shape = self.engine.b2CircleShape(radius=kind.radius, pos=kind.offset)
        friction = self._profile.bird_friction if kind.friction is None else kind.friction
        self._fixtures(physical, (shape,), BIRD, kind.density, friction, kind.bounce)
        self._weigh(physical, kind.mass)
        body = Body(physical, "bird", type_, self.bird_outline(name))
        body.novel = name if name != type_ else ""
        self._change(body, *dict.fromkeys((type_, name)))
        return body

    def egg(self, place: tuple[float, float]) -> Body:
        """Build the egg of a white bird."""
        physical = self._world.CreateDynamicBody(position=place, bullet=True)
        self._circle(physical, 0.2, BIRD, 1.0, PLAIN_FRICTION, 0.0)
        self._weigh(physical, 1.0)
        return Body(physical, "egg", "Egg", box(0.3, 0.4))

    def bird_outline(self, name: str) -> Ring:
        """Return the polygon reported for a bird; in one profile it is smaller than the circle that collides."""
        kind, step = self._profile.bird(self.base(name)), 2 * math.pi / CIRCLE_CORNERS
        (x, y), radius = kind.offset, kind.radius * self._profile.bird_outline
        return tuple((x + radius * math.cos(step * n), y + radius * math.sin(step * n)) for n in range(CIRCLE_CORNERS))

    def make_round(self, body: Body) -> None:
        """Replace each collider of a ball by a circle, without a change of its mass: it rolls instead of hopping."""
        physical = body.physical
        mass, old = physical.mass, physical.fixtures
        friction, bounce = old[0].friction, old[0].restitution
        colliders = dict.fromkeys(fixture.userData for fixture in old)
        for fixture in old:
            physical.DestroyFixture(fixture)
        for collider in colliders:
            circle = self.engine.b2CircleShape(radius=body.rolling_radius)
            self._fixture(physical, circle, BLOCK, collider, 1.0, friction, bounce)
        self._weigh(physical, mass)
        body.rolling_radius, body.rolls = 0.0, True

    def _block(self, placed: LevelObject, shape: str, kind: str) -> Body:
        profile, form = self._profile, self._profile.blocks[shape]
        known = self._early.objects.get(placed.material)
        name = placed.material if known is None else known.base
        if name not in profile.materials:
            if name:
                self._warn(name, "wood")
            name = "wood"
        material = profile.materials[name]
        physical = self._dynamic(placed, profile.block_gravity, profile.block_angular_drag)
        physical.linearDamping = material.drag
        outline = form.outline or box(*form.size) if form.size else form.outline
        density, surface = material.density, (material.friction, material.bounce)
        if form.radius:
            self._circle(physical, form.radius, BLOCK, profile.ball_density or density, *surface)
            density = SECOND_DENSITY * form.second_area / area(outline)
        self._polygons(physical, form.pieces or (outline,), BLOCK, density, *surface)
        if form.second:
            self._polygons(physical, form.second, BLOCK, SECOND_DENSITY, *surface)
        self._weigh(physical, None if form.mass is None else form.mass * material.mass)
        usual = form.life[MATERIALS.index(name)] * material.life
        life = usual if placed.material else PINK_LIVES.get(placed.type, usual)
        body = Body(physical, kind, placed.type, box(*form.seen) if form.seen else outline, life)
        body.hole, body.material, body.defence, body.points = form.hole, name, material.defence, 500
        body.rolling_radius = form.rolling_radius
        self._change(body, *dict.fromkeys((name, placed.material)))
        return body

    def _pig(self, placed: LevelObject) -> Body:
        profile = self._profile
        if not placed.type.startswith(("Basic", "Pink")):
            self._warn(placed.type, "BasicSmall")
        kind = profile.pigs[f"Basic{pig_size(placed.type)}"]
        physical = self._dynamic(placed, kind.gravity, profile.pig_angular_drag)
        density, surface = profile.pig_density, (profile.pig_friction, profile.pig_bounce)
        if kind.radius:
            self._circle(physical, kind.radius, BLOCK, density, *surface)
            density = SECOND_DENSITY * kind.second_area / area(kind.outline)
        self._polygons(physical, (kind.outline,), BLOCK, density, *surface)
        self._weigh(physical, kind.mass)
        body = Body(physical, "pig", placed.type, kind.outline, kind.life)
        body.defence, body.points = profile.pig_defence, 5000
        if profile.damage_by_mass == 0 and self._level.camera.widest != 30:
            body.birds = SHOTS_NEEDED.get(placed.type.replace("PinkBigPig", "BasicBig"), 0)
        if body.birds:
            body.life = body.full = PINK_LONG_LIFE if placed.type.startswith("Pink") else LONG_LIFE
            self._weigh(physical, 1.5)
            physical.gravityScale = 0.5
        self._change(body, placed.type)
        return body

    def _change(self, body: Body, *names: str) -> None:
        """Give a body the properties that a novelty gives to things of these names."""
        for found in self._early.properties(*names):
            body.changed = True
            body.look = found.look or body.look
            body.life = body.full = body.full * found.life
            body.points = round(body.points * found.points)
            if found.linear_drag is not None:
                body.physical.linearDamping = found.linear_drag
            for fixture in body.physical.fixtures if found.bounce is not None else ():
                fixture.restitution = found.bounce

    def _warn(self, name: str, replacement: str) -> None:
        warnings.warn(f"Level {self._level.name}: '{name}' is unknown; {replacement} replaces it.", stacklevel=2)

    def _tnt(self, placed: LevelObject) -> Body:
        tnt = self._profile.tnt
        physical = self._dynamic(placed, 1.0, 0.05)
        self._polygons(physical, (box(tnt.size, tnt.size),), BLOCK, 1.0, PLAIN_FRICTION, 0.0)
        self._weigh(physical, tnt.mass)
        seen = tnt.seen or tnt.size
        return Body(physical, "tnt", "TNT", box(seen, seen), tnt.life)

    def _fixed(self, placed: LevelObject, kind: str, size: tuple[float, float]) -> Body:
        outline = box(max(size[0], 0.02), max(size[1], 0.02))
        physical = self._static((placed.x, placed.y), math.radians(placed.rotation), outline, PLATFORM)
        return Body(physical, kind, placed.type, outline)

    def _dynamic(self, placed: LevelObject, gravity: float, drag: float) -> Any:
        place, angle = (placed.x, placed.y), math.radians(placed.rotation)
        physical = self._world.CreateDynamicBody(position=place, angle=angle, angularDamping=drag)
        physical.gravityScale = gravity
        return physical

    def _static(self, place: tuple[float, float], angle: float, outline: Ring, group: int) -> Any:
        physical = self._world.CreateStaticBody(position=place, angle=angle)
        self._polygons(physical, (outline,), group, 0.0, PLAIN_FRICTION, 0.0)
        return physical

    def _circle(self, physical: Any, radius: float, group: int, *material: float) -> None:
        self._fixtures(physical, (self.engine.b2CircleShape(radius=radius),), group, *material)

    def _polygons(self, physical: Any, pieces: tuple[Ring, ...], group: int, *material: float) -> None:
        shapes = tuple(self.engine.b2PolygonShape(vertices=list(ring)) for ring in pieces)
        self._fixtures(physical, shapes, group, *material)

    def _fixtures(self, physical: Any, shapes: tuple[Any, ...], group: int, *material: float) -> None:
        """Add one collider, whose pieces share a number that no other collider of the level has."""
        self._colliders += 1
        density, friction, bounce = material
        friction *= self._level.laws.friction
        for shape in shapes:
            self._fixture(physical, shape, group, self._colliders, density, friction, bounce)

    def _fixture(self, physical: Any, shape: Any, group: int, collider: int, *material: float) -> None:
        density, friction, bounce = material
        groups = self.engine.b2Filter(categoryBits=group, maskBits=MASKS[group])
        fixture = physical.CreateFixture(
            shape=shape, density=density, friction=friction, restitution=bounce, filter=groups
        )
        fixture.userData = collider

    def _weigh(self, physical: Any, mass: float | None) -> None:
        """Set the mass of a body; None keeps the mass of its area."""
        if mass is not None:
            data = physical.massData
            inertia = data.I * mass / data.mass
            physical.massData = self.engine.b2MassData(mass=mass, center=data.center, I=inertia)


def pig_size(type_: str) -> str:
    """Return the size of a pig by its type: `Big`, `Medium` or `Small`."""
    return next((size for size in ("Big", "Medium") if size in type_), "Small")


class BodySet:
    """The bodies of a level, and the points earned with them."""

    def __init__(self, level: Level, profile: ProfileName | None = None) -> None:
        engine = load_engine()
        self.level = level
        self.profile = load_profile(profile or level.profile)
        self.engine_world: Any = engine.b2World(gravity=(0, -9.81 * level.laws.gravity), doSleep=True)
        self.builder = BodyBuilder(engine, self.engine_world, self.profile, level)
        self.bodies: list[Body] = []
        self.ghosts: list[tuple[Body, int]] = []
        """Destroyed bodies that stay visible for a moment, each with the step at which it vanishes."""
        self.pigs = 0
        self.score = 0
        self.steps = 0
        self.slow_ticks = 0
        """Ticks in a row in which nothing has moved."""
        self.birds_removed = 0
        self._ids = 0
        self.builder.frame()
        for placed in level.objects:
            if (body := self.builder.place(placed)) is not None:
                self.add(body)
        self.balls = [body for body in self.bodies if body.rolling_radius]
        """Bodies that roll once they move."""

    @property
    def seconds(self) -> float:
        """Simulated time since the level was loaded."""
        return self.steps * STEP

    def next_id(self) -> int:
        """Return an id that no other object has."""
        self._ids += 1
        return -1000 - 6 * self._ids

    def add(self, body: Body) -> Body:
        """Add a body to the level."""
        body.id = self.next_id()
        self.bodies.append(body)
        self.pigs += body.kind == "pig"
        return body

    def hurt(self, body: Body, damage: float) -> None:
        """Take life from a body, and destroy it when it has none left."""
        body.life -= damage
        if body.life <= 0:
            self.destroy(body)

    def destroy(self, body: Body) -> None:
        """Remove a body and score its points; explosives explode."""
        if body.gone:
            return
        place = body.place
        self.score += body.points
        self.remove(body, self.profile.pig_linger if body.kind == "pig" else self.profile.block_linger)
        if body.kind == "tnt":
            self.explode(place, self.profile.tnt.blast)

    def remove(self, body: Body, linger: float = 0.0) -> None:
        """Remove a body from the level; it stays visible for `linger` seconds."""
        body.gone = True
        self.bodies.remove(body)
        self.pigs -= body.kind == "pig"
        self.slow_ticks = 0
        if linger:
            self._switch_off(body.physical)
            self.ghosts.append((body, self.steps + round(linger * SECOND)))
        else:
            self.engine_world.DestroyBody(body.physical)

    def _switch_off(self, physical: Any) -> None:
        """Let nothing touch a destroyed body any more, but for its second collider where the profile says so."""
        fixtures = physical.fixtures
        if self.profile.dies_in_place:
            physical.linearVelocity = (0, 0)
            first = min(fixture.userData for fixture in fixtures)
            fixtures = [fixture for fixture in fixtures if fixture.userData == first]
        for fixture in fixtures:
            fixture.filterData = self.builder.engine.b2Filter(categoryBits=0, maskBits=0)

    def remove_ghosts(self) -> None:
        """Remove the ghosts whose time has come."""
        for body, until in self.ghosts:
            if self.steps >= until:
                self.engine_world.DestroyBody(body.physical)
        self.ghosts = [(body, until) for body, until in self.ghosts if self.steps < until]

    def explode(self, place: tuple[float, float], blast: Blast) -> None:
        """Push and hurt all bodies around a place, except birds."""
        for body in [body for body in self.bodies if body.kind in ("block", "pig", "tnt", "magnet")]:
            if body.gone:  # with another blast that this one set off: the engine has forgotten where it was
                continue
            dx, dy = body.place[0] - place[0], body.place[1] - place[1]
            distance = max(math.hypot(dx, dy), MIN_BLAST_DISTANCE)
            if distance > blast.area:
                continue
            fade = max(0.0, 1 - distance / blast.area) if self.profile.fading_blast else 1 / distance
            push = blast.power * fade * (1.0 if self.profile.fading_blast else 0.5) / distance
            body.physical.ApplyLinearImpulse((dx * push, dy * push), body.physical.worldCenter, True)
            self.hurt(body, blast.damage * fade)
