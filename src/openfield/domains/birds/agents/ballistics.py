"""Ballistics of a shot: which launch hits a point, where to pull the bird to, and when to tap."""

from __future__ import annotations

import math

from openfield.domains.birds.agents.observed_level import ObservedLevel

Point = tuple[float, float]
SPEED, GRAVITY = 10.0, 0.48 * 9.81
"""Launch speed and gravity, in world units, as agents know them."""
UPWARD_GRAVITY = -0.48 * 6.0
"""Gravity of birds in levels where it points upwards."""
ROUNDS = 5
TAPS = {"bird_blue": 0.7, "bird_yellow": 0.7, "bird_white": 0.9, "bird_black": 0.95}
"""Default moment of the tap for each bird, as a share of the distance to the target."""


def aim(level: ObservedLevel, target: Point, high: bool = False, gravity: float = GRAVITY) -> Point | None:
    """Return the launch vector that hits a pixel; None if the pixel is out of reach.

    The bird starts where it was pulled to, one unit behind its rest position, so the solution is iterated.

    Args:
        level: The level as the agent sees it.
        target: The pixel to hit.
        high: Take the high arc instead of the low one.
        gravity: Acceleration of birds in world units; negative points upwards.

    Returns:
        A vector of length 1 in world units, the second number upwards.
    """
    x, y = (target[0] - level.rest[0]) / level.scale, (level.rest[1] - target[1]) / level.scale
    launch = _launch(x, y, high, gravity)
    for _ in range(ROUNDS):
        if launch is None:
            return None
        launch = _launch(x + launch[0], y + launch[1], high, gravity)
    return launch


def release(level: ObservedLevel, launch: Point, pull: float = 5.0) -> tuple[int, int]:
    """Return the pixel to pull the bird to for a launch at full power."""
    reach = pull * level.scale
    return round(level.rest[0] - reach * launch[0]), round(level.rest[1] + reach * launch[1])


def tap_time(level: ObservedLevel, launch: Point, target: Point, share: float | None = None) -> float:
    """Return the milliseconds until the tap; 0 for a bird without a power.

    Args:
        level: The level as the agent sees it.
        launch: The launch vector.
        target: The pixel that the shot aims at.
        share: Part of the distance to the target before the tap; None takes the bird's default.
    """
    bird = level.bird
    if bird is None or bird.look not in TAPS:
        return 0.0
    distance = abs(target[0] - level.rest[0]) / level.scale
    return 1000 * (share or TAPS[bird.look]) * distance / (SPEED * max(abs(launch[0]), 0.1))


def _launch(x: float, y: float, high: bool, gravity: float) -> Point | None:
    """Return the launch vector from the origin to a point; upward gravity is solved in the mirrored world."""
    if gravity < 0:
        mirrored = _launch(x, -y, high, -gravity)
        return None if mirrored is None else (mirrored[0], -mirrored[1])
    side, x = (1 if x >= 0 else -1), max(abs(x), 1e-6)
    root = SPEED**4 - gravity * (gravity * x * x + 2 * y * SPEED**2)
    if root < 0:
        return None
    angle = math.atan2(SPEED**2 + (1 if high else -1) * math.sqrt(root), gravity * x)
    return side * math.cos(angle), math.sin(angle)
