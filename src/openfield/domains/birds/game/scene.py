"""The scene: everything visible in a level at one moment, with its class, in the pixels of a viewport.

Ground truth (`ground_truth.py`) is made from its pixels, and pictures (`picture/`) from the places in the world.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from openfield.domains.birds.game.bodies import GROUND, Body, pig_size
from openfield.domains.birds.game.early_novelties import registry_key
from openfield.domains.birds.game.forces import WINDS
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Camera
from openfield.domains.birds.game.physics import Ring, box
from openfield.files.data import read_data

Pixel = tuple[int, int]
WIDTH, HEIGHT = 640, 480
SLING_BOX = (-0.485, -0.985, 0.22, 1.03)
"""The rectangle of the slingshot relative to its position: left, bottom, right, top."""
SLING_ID, FIRST_WIND = -106, -90_000
STAGES = 4
QUEUE_START, QUEUE_GAP = 1.15, 0.75
"""World units: from the rectangle of the slingshot to the first waiting bird, and from one waiting bird to the next."""
STAND = {"BirdBlack": 0.42, "BirdWhite": 0.42}
"""Height of a large bird's centre above the ground on which it waits."""
SMALL_STAND = 0.21
RANKS = ("pig", "bird", "egg", "shape", "wind", "fan", "rect", "tnt", "platform")
"""The order in which objects are listed."""


class Viewport(msgspec.Struct, frozen=True):
    """The part of the world that is on the screen."""

    width: float
    x: float
    y: float
    screen: tuple[int, int] = (WIDTH, HEIGHT)
    """Pixels across and down."""

    @property
    def scale(self) -> float:
        """Pixels per unit."""
        return self.screen[0] / self.width

    def pixel(self, x: float, y: float) -> tuple[int, int]:
        """Return the pixel of a point; the origin is the top left corner."""
        across, down = self.spot(x, y)
        return round(across), round(down)

    def spot(self, x: float, y: float) -> tuple[float, float]:
        """Return the position of a point on the screen, in fractions of a pixel."""
        return self.screen[0] / 2 + self.scale * (x - self.x), self.screen[1] / 2 - self.scale * (y - self.y)

    def point(self, px: float, py: float) -> tuple[float, float]:
        """Return the point of a pixel."""
        return (px - self.screen[0] / 2) / self.scale + self.x, (self.screen[1] / 2 - py) / self.scale + self.y


class Appearance(msgspec.Struct, frozen=True):
    """The colours of a class of objects."""

    colours: dict[int, float]
    fill: str
    edge: str


class SceneItem(msgspec.Struct, frozen=True, kw_only=True):
    """A visible object."""

    id: int
    rank: str
    look: str
    """Its class, a key of the palette."""
    sprite: str
    """Its name in developer mode."""
    ring: tuple[Pixel, ...]
    hole: tuple[Pixel, ...] = ()
    life: float | None = None
    place: tuple[float, float]
    """Where it is in the world, in units."""
    angle: float = 0.0
    shape: Ring
    """Its outline around its place, before it is turned by its angle."""
    hollow: Ring = ()
    stage: int = 1
    """How damaged it is, from 1 to `STAGES`; a bird has 2 once it has touched something."""
    turn: int = -1
    """Of a bird that was not shot yet: how many fly before it. The bird on the sling has 0."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """A level at one moment, seen through a viewport."""

    ground: int
    """The pixel row of the surface."""
    sling: tuple[Pixel, ...]
    dots: tuple[Pixel, ...]
    items: tuple[SceneItem, ...]
    storm: bool = False
    view: Viewport
    sling_place: tuple[float, float]
    path: tuple[tuple[float, float], ...]
    """The dots in the world, in units."""


def bounds(ring: Sequence[Pixel]) -> tuple[int, int, int, int]:
    """Return the bounding box of some pixels: left, top, right, bottom."""
    xs, ys = [x for x, _ in ring], [y for _, y in ring]
    return min(xs), min(ys), max(xs), max(ys)


def zoomed_out(camera: Camera, screen: tuple[int, int] = (WIDTH, HEIGHT)) -> Viewport:
    """Return the widest viewport of a camera; every level starts with it."""
    return Viewport(camera.widest, 0.0, camera.y, screen)


def zoomed_in(camera: Camera, screen: tuple[int, int] = (WIDTH, HEIGHT)) -> Viewport:
    """Return the narrowest viewport of a camera, at the left edge."""
    return Viewport(camera.narrowest, camera.narrowest / 2 - camera.widest / 2, camera.y, screen)


@cache
def load_palette() -> dict[str, Appearance]:
    """Return the colours of every class of objects."""
    return read_data("openfield.domains.birds", "palette.toml", dict[str, Appearance])


def see(game: Game, view: Viewport) -> Scene:
    """Return the scene of a level as it is now."""
    x, y = game.level.sling
    left, bottom, right, top = SLING_BOX
    corners = ((left, bottom), (left, top), (right, top), (right, bottom))
    ground = view.pixel(0, GROUND)[1]
    items = [item for item in _items(game, view) if item.rank == "bird" or _visible(item, ground, view.screen)]
    return Scene(
        ground=ground,
        sling=tuple(view.pixel(x + dx, y + dy) for dx, dy in corners),
        dots=tuple(view.pixel(*dot) for dot in game.trajectory),
        items=tuple(sorted(items, key=lambda item: RANKS.index(item.rank))),
        storm=game.birds_removed > 0 and any(placed.type == "Storm" for placed in game.level.objects),
        view=view,
        sling_place=(x, y),
        path=tuple(game.trajectory),
    )


def _items(game: Game, view: Viewport) -> Iterator[SceneItem]:
    type_ = registry_key(game.level.name).replace(".", "_")
    for body in (*game.bodies, *(ghost for ghost, _ in game.ghosts)):
        yield _item(body, view, type_)
    yield from _waiting(game, view, type_)
    for number, placed in enumerate(game.level.objects):
        if placed.type in WINDS:
            corners = box(0.64 * abs(placed.scale_x), 0.64 * abs(placed.scale_y))
            ring = tuple(view.pixel(placed.x + dx, placed.y + dy) for dx, dy in corners)
            yield SceneItem(
                id=FIRST_WIND - number,
                rank="wind",
                look="wind",
                sprite="AirTurbulence",
                ring=ring,
                place=(placed.x, placed.y),
                shape=corners,
            )


def _item(body: Body, view: Viewport, type_: str) -> SceneItem:
    look, sprite = _appearance(body, type_)
    return SceneItem(
        id=body.id,
        rank=_rank(body),
        look=look,
        sprite=sprite,
        ring=tuple(view.pixel(x, y) for x, y in body.outline()),
        hole=tuple(view.pixel(x, y) for x, y in body.outline(body.hole)) if body.hole else (),
        life=body.life if math.isfinite(body.life) else None,
        place=body.place,
        angle=body.physical.angle,
        shape=body.ring,
        hollow=body.hole,
        stage=1 + body.touched if body.kind == "bird" else _stage(body),
    )


def _waiting(game: Game, view: Viewport, novelty_type: str) -> Iterator[SceneItem]:
    """Yield the bird on the sling and those behind it; a flying bird is a body."""
    for number, (type_, name) in enumerate(game.queue):
        if number == 0 and game.flying is not None:
            continue
        shape, base = game.builder.bird_outline(type_), game.builder.base(type_)
        x, y = _queue_place(game.level.sling, number, base) if number else game.rest
        ring = tuple(view.pixel(x + dx, y + dy) for dx, dy in shape)
        look = game.builder.look(type_) or _bird_look(base)
        sprite = f"{look}_1" if base == type_ else f"{type_}_{novelty_type}"
        yield SceneItem(
            id=name, rank="bird", look=look, sprite=sprite, ring=ring, place=(x, y), shape=shape, turn=number
        )


def _queue_place(sling: tuple[float, float], number: int, type_: str) -> tuple[float, float]:
    """Return where a bird waits: on the ground beside the foot of the slingshot."""
    left, foot = sling[0] + SLING_BOX[0], sling[1] + SLING_BOX[1]
    return left - QUEUE_START - QUEUE_GAP * (number - 1), foot + STAND.get(type_, SMALL_STAND)


def _rank(body: Body) -> str:
    if body.kind == "block":
        return "rect" if not body.novel and body.type.startswith(("Rect", "SquareSmall", "SquareTiny")) else "shape"
    return {"magnet": "shape"}.get(body.kind, body.kind)


def _appearance(body: Body, type_: str) -> tuple[str, str]:
    """Return the class of a body and the name of its sprite, in a level of a novelty level and type such as `1_6`."""
    look, sprite = _usual_appearance(body)
    return body.look or look, f"{body.novel}_{type_}" if body.novel else sprite


def _usual_appearance(body: Body) -> tuple[str, str]:
    stage = _stage(body)
    pink = body.type.startswith("Pink")
    if body.kind == "pig":
        return ("novel", f"{body.type}_1_1") if pink else ("pig", f"pig_basic_{pig_size(body.type).lower()}_{stage}")
    if body.kind == "bird":
        look = _bird_look(body.type)
        return look, f"{look}_{2 if body.touched else 1}"
    if body.kind == "block":
        if pink:
            return "novel", f"{body.type}_1_1"
        shape = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", body.type).lower().replace("triangle", "triang")
        return body.material, f"{body.material}_{shape}_{stage}"
    names = {"platform": ("platform", "Platform"), "tnt": ("tnt", "TNT"), "egg": ("bird_white", "egg")}
    names |= {"fan": ("fan", "Fan_2_1"), "magnet": ("wood", "Magnet_4_1")}
    return names[body.kind]


def _stage(body: Body) -> int:
    """Return how damaged a body is: its life lost in equal parts, from 1 to `STAGES`."""
    return 1 + min(STAGES - 1, int(STAGES * max(0.0, 1 - body.life / body.full))) if body.full < math.inf else 1


def _bird_look(type_: str) -> str:
    look = f"bird_{type_.removeprefix('Bird').lower()}"
    return look if look in load_palette() else "bird_red"


def _visible(item: SceneItem, ground: int, screen: tuple[int, int]) -> bool:
    left, top, right, bottom = bounds(item.ring)
    on_screen = right >= 0 and left < screen[0] and bottom >= 0 and top < screen[1]
    return on_screen and top <= ground and right > left and bottom > top
