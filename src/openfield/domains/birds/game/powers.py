"""What the birds do when tapped.

Stands beside game: it moves, splits or blows up the flying bird.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from openfield.domains.birds.game.bodies import Body

if TYPE_CHECKING:
    from openfield.domains.birds.game.game import Game

SPLIT_DEGREES = (15.0, 5.0, -5.0)
YELLOW_IMPULSE = 4.0
EGG_IMPULSE = 6.0
LIFT_IMPULSE = 10.0


def use_power(game: Game, bird: Body) -> None:
    """Does what the bird's kind can do; a red one can do nothing."""
    power = {"BirdBlue": _split, "BirdYellow": _rush, "BirdBlack": _burst, "BirdWhite": _lay}.get(bird.type)
    if power is not None:
        power(game, bird)


def _split(game: Game, bird: Body) -> None:
    """Three birds instead of one, as fast as it was."""
    velocity = bird.physical.linearVelocity
    angle, speed = math.atan2(velocity.y, velocity.x), math.hypot(velocity.x, velocity.y)
    for number, degrees in enumerate(SPLIT_DEGREES):
        part = bird if number == 1 else game.add(game.builder.bird(bird.type, bird.place))
        part.launch = bird.launch
        turned = angle + math.radians(degrees)
        part.physical.linearVelocity = (speed * math.cos(turned), speed * math.sin(turned))


def _rush(game: Game, bird: Body) -> None:
    """A push along its way."""
    velocity = bird.physical.linearVelocity
    speed = math.hypot(velocity.x, velocity.y) or 1.0
    impulse = (YELLOW_IMPULSE * velocity.x / speed, YELLOW_IMPULSE * velocity.y / speed)
    bird.physical.ApplyLinearImpulse(impulse, bird.physical.worldCenter, True)


def _burst(game: Game, bird: Body) -> None:
    """It explodes."""
    game.touch(bird)
    game.burst(bird)


def _lay(game: Game, bird: Body) -> None:
    """An egg goes down, the bird goes up."""
    egg = game.add(game.builder.egg((bird.place[0], bird.place[1] - 0.3)))
    egg.physical.ApplyLinearImpulse((0, -EGG_IMPULSE), egg.physical.worldCenter, True)
    bird.physical.ApplyLinearImpulse((0, LIFT_IMPULSE), bird.physical.worldCenter, True)
