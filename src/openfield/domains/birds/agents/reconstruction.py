"""A level rebuilt from what is seen of it.

Stands between an agent's sight and the physics it imagines with.
"""

from __future__ import annotations

import math

from openfield.domains.birds.agents.planner import ObservedLevel, ObservedObject
from openfield.domains.birds.game.game import SLING_REST
from openfield.domains.birds.game.level import Camera, Level, LevelObject
from openfield.domains.birds.game.physics import load_profile

GROUND = -3.5
SLING_X = -12.0


def imagine(sight: ObservedLevel, upwards: bool = False) -> Level:
    """A level that looks like what is seen, with the laws the agent knows, gravity perhaps the other way up."""
    origin = SLING_X + SLING_REST[0], GROUND + (sight.ground - sight.rest[1]) / sight.scale
    things = [thing for seen in sight.objects if (thing := _thing(seen, sight, origin)) is not None]
    if upwards:
        things.append(LevelObject(kind="Novelty", type="InverseGravity", x=0.0, y=0.0))
    birds = [seen for seen in sight.objects if seen.look.startswith("bird_")]
    near = min(birds, key=lambda seen: math.dist(seen.centre, sight.rest), default=None)
    bird = "Bird" + near.look.removeprefix("bird_").capitalize() if near else "BirdRed"
    sling = origin[0] - SLING_REST[0], origin[1] - SLING_REST[1]
    return Level(sling=sling, birds=(bird,), objects=tuple(things), width=4, camera=Camera(widest=30.0))


def _thing(seen: ObservedObject, sight: ObservedLevel, origin: tuple[float, float]) -> LevelObject | None:
    x = origin[0] + (seen.centre[0] - sight.rest[0]) / sight.scale
    y = origin[1] + (sight.rest[1] - seen.centre[1]) / sight.scale
    width, height, angle = _form(seen, sight.scale)
    if seen.look == "tnt":
        return LevelObject(kind="TNT", x=x, y=y)
    if seen.look in ("pig", "novel"):
        size = "BasicBig" if width > 0.85 else "BasicMedium" if width > 0.6 else "BasicSmall"
        return LevelObject(kind="Pig", type=size, x=x, y=y + 0.02)
    if seen.look in ("wood", "stone", "ice"):
        return LevelObject(kind="Block", type=_shape(seen, width, height), material=seen.look, x=x, y=y, rotation=angle)
    if seen.look in ("platform", "fan"):
        return LevelObject(kind="Platform", x=x, y=y, rotation=angle, scale_x=width / 0.64, scale_y=height / 0.64)
    return None


def _form(seen: ObservedObject, scale: float) -> tuple[float, float, float]:
    """Width, height and rotation: of the rectangle if it is one, else of its bounds."""
    if len(seen.ring) != 4:
        left, top, right, bottom = seen.box
        return (right - left) / scale, (bottom - top) / scale, 0.0
    (ax, ay), (bx, by), (cx, cy), _ = seen.ring  # bottom left, top left, top right
    angle = math.degrees(math.atan2(by - cy, cx - bx))
    return math.dist((bx, by), (cx, cy)) / scale, math.dist((ax, ay), (bx, by)) / scale, angle


def _shape(seen: ObservedObject, width: float, height: float) -> str:
    """The block whose size is nearest."""
    if len(seen.ring) > 6:
        return "Circle" if width > 0.6 else "CircleSmall"
    sizes = {name: block.size for name, block in load_profile("sailon").blocks.items() if block.size}
    sizes["SquareHole"] = (0.84, 0.84)
    return min(sizes, key=lambda name: math.dist(sizes[name], (width, height)))
