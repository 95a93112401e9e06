"""The rules of novelties that the engine does not know: commands to its scripts for each tick.

An episode asks for the commands; a rule reads the state. The scripts are in `data/scripts.asm`.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from openfield.domains.doom.engine.game_state import Entity, GameState
from openfield.domains.doom.engine.state_reader import StateReader
from openfield.domains.doom.maps import arena, scenario
from openfield.domains.doom.maps.arena import GUARD, LEFT, ONWARD, RIGHT, SHOOT, TURN_LEFT, TURN_RIGHT
from openfield.domains.doom.maps.pathfinder import Pathfinder
from openfield.domains.doom.maps.scenario import MapLayout, Point
from openfield.domains.doom.settings import ArenaSettings, DoomSettings

HURT, ORDER, DODGE, SPAWN, DRAIN, BLOW = (f"puke -{number}" for number in range(10, 16))
"""The calls of scripts by their numbers. The minus sign lets a script run more than once in a tick."""
ENEMIES = 4
CONE = 22.5
NEAR = 40.0
"""The player is near a wall or pillar if a square of this half width does not fit around it."""
FIRST_DELAY = 5
RETURN_AMMO = 3
Spot = tuple[int, int]
SPOT_TRIES = 50
APART = 80.0
"""At this distance between their centres two enemies do not touch, even if both take a step before."""


_QUIET = {
    name: getattr(ArenaSettings(), name)
    for name in ("toll", "wall_harm", "wind", "drain", "behaviour", "sentry_after", "blink", "respawn", "goal")
}
"""With these settings the engine needs no commands."""


def tolls(settings: DoomSettings, tick: int) -> Iterator[str]:
    """Yield the command by which the player loses health from time to time."""
    if settings.toll and tick and tick % settings.toll_period == 0:
        yield f"{HURT} {settings.toll}"


class DuelRules:
    """The duel's rules."""

    def __init__(self, settings: DoomSettings, layout: MapLayout, reader: StateReader, rng: random.Random) -> None:
        self._settings = settings
        self.quiet = not settings.toll
        """True if the engine needs no commands."""

    def lost(self, state: GameState) -> bool:
        """Return False: nothing but death loses a duel."""
        return False

    def commands(self, state: GameState, tick: int) -> Sequence[str]:
        """Return the commands for this tick."""
        return tuple(tolls(self._settings, tick))


class ArenaRules:
    """The arena's rules; each novelty is one of the small methods below."""

    def __init__(self, settings: ArenaSettings, layout: MapLayout, reader: StateReader, rng: random.Random) -> None:
        self._settings = settings
        self.quiet = all(getattr(settings, name) == value for name, value in _QUIET.items())
        self._rng = rng
        self._reader = reader
        self._starts = [at for at, _ in layout.enemies]
        self._count = len(self._starts)
        self._calls: dict[int, int] = {}
        """By an enemy's tag, the tag by which scripts know it."""
        self._spots: dict[int, Spot | None] = {}
        self._orders: dict[int, int] = {}
        pillars = [(at, scenario.PILLAR_HALF) for number, at in layout.items if number == scenario.OBSTACLE]
        goal = settings.goal or (0, 0, 0)
        self._arena = arena.MAPS[settings.map]
        self._pathfinder = Pathfinder(self._arena, goal[:2], settings.enemy_stride, pillars, rng)
        self._wind = rng.uniform(0, 2 * math.pi)
        self._killed_at: int | None = None
        self._delay = float(FIRST_DELAY)
        self._due: dict[int, int] = {}

    def lost(self, state: GameState) -> bool:
        """Check whether an enemy has reached the goal."""
        goal = self._settings.goal
        return goal is not None and any(math.dist((e.x, e.y), goal[:2]) <= goal[2] for e in state.enemies)

    def commands(self, state: GameState, tick: int) -> Sequence[str]:
        """Return the commands for this tick."""
        settings = self._settings
        self._calls = self._calls or _calls(state.enemies, self._starts)
        if self._killed_at is None and len(state.enemies) < self._count:
            self._killed_at = tick
        made = list(tolls(settings, tick))
        if settings.wall_harm and self._near_solid(state):
            made.append(f"{HURT} {settings.wall_harm}")
        if settings.wind and tick % 2 == 0:  # the first gust comes with the first action
            made.append(self._blow())
        if settings.drain and self._killed_at is not None:
            since = tick - self._killed_at
            made += [f"{DRAIN} {settings.drain}"] if since and since % settings.drain_period == 0 else []
        if settings.behaviour != "random" or self._on_guard(tick):
            self._orders = {e.tag: self._order(self._expected(e), state, tick) for e in state.enemies}
            made.append(self._joined(ORDER, self._orders))
        if settings.blink[1]:
            made += self._blinks(state)
        if settings.respawn:
            made += self._returns(state, tick)
        return made

    def _near_solid(self, state: GameState) -> bool:
        """Check whether the player is near a wall or a pillar."""
        x, y = state.player.x, state.player.y
        reach = NEAR + scenario.PILLAR_HALF
        pillars = (max(abs(x - entity.x), abs(y - entity.y)) < reach for entity in state.items["obstacle"])
        return not self._arena.fits_square(x, y, NEAR) or any(pillars)

    def _on_guard(self, tick: int) -> bool:
        """Check whether enemies stand sentry when they get the order, which is in the next tick."""
        return 0 <= self._settings.sentry_after <= tick + 1

    def _joined(self, command: str, values: dict[int, int]) -> str:
        """Return the call of a script with a number for each enemy."""
        shown = {self._calls[tag]: value for tag, value in values.items()}
        return " ".join([command, *(str(shown.get(scenario.ENEMY_TAG + number, 0)) for number in range(ENEMIES))])

    def _blow(self) -> str:
        """Return the command of the wind, which moves player and enemies, and nothing that lies or stands about."""
        x, y = (round(100 * self._settings.wind * part(self._wind)) for part in (math.cos, math.sin))
        return f"{BLOW} {x} {y}"

    def _expected(self, enemy: Entity) -> Entity:
        """Return the enemy as it will be at its next order: the last one is still to be followed."""
        last, angle = self._orders.get(enemy.tag, 0), math.radians(enemy.angle)
        turn = {TURN_LEFT: 45.0, TURN_RIGHT: -45.0}.get(last, 0.0)
        step = self._settings.enemy_stride if last == ONWARD and self._settings.behaviour == "march" else 0
        return msgspec.structs.replace(
            enemy,
            x=enemy.x + step * math.cos(angle),
            y=enemy.y + step * math.sin(angle),
            angle=(enemy.angle + turn) % 360,
        )

    def _order(self, enemy: Entity, state: GameState, tick: int) -> int:
        settings, player = self._settings, state.player
        if self._on_guard(tick):
            return _turn(enemy, player.x, player.y) or GUARD
        match settings.behaviour:
            case "approach":
                return self._go(enemy, player.x, player.y)
            case "spread" if len(state.enemies) > 1:
                return self._go(enemy, *_away_from_centre(enemy, state.enemies))
            case "hide" if state.items["obstacle"]:
                return self._go(enemy, *_behind_pillar(enemy, state, settings.hide_distance))
            case "march":
                return self._march(enemy, state)
        return 0  # also for an enemy that is alone, or has no pillar to hide behind

    def _march(self, enemy: Entity, state: GameState) -> int:
        """Return a step on the way to the goal, or the turn it takes."""
        if self._orders.get(enemy.tag) != ONWARD:
            self._pathfinder.forget(enemy.tag)
        others = [((entity.x, entity.y), scenario.ENEMY_HALF) for entity in state.enemies if entity.tag != enemy.tag]
        entities = [*others, ((state.player.x, state.player.y), scenario.PLAYER_HALF)]
        angle = math.radians(self._pathfinder.direction(enemy.tag, (enemy.x, enemy.y), entities))
        return _turn(enemy, enemy.x + math.cos(angle), enemy.y + math.sin(angle)) or ONWARD

    def _go(self, enemy: Entity, x: float, y: float) -> int:
        return _turn(enemy, x, y) or self._rng.choice((ONWARD, LEFT, RIGHT, SHOOT))

    def _blinks(self, state: GameState) -> Iterator[str]:
        """Tell the engine where each enemy appears if it is hit: it moves in the same tick."""
        for enemy in state.enemies:
            spot = self._spots.get(enemy.tag)
            if spot is None or not self._is_spot(spot, enemy, state):
                spot = self._spots[enemy.tag] = self._spot(enemy, state)
            if spot is not None:
                yield f"{DODGE} {self._calls[enemy.tag]} {spot[0]} {spot[1]} {int(enemy.health)}"

    def _spot(self, enemy: Entity, state: GameState) -> Spot | None:
        """Draw where an enemy would appear; if none is found, the next tick tries again."""
        low, high = self._settings.blink
        farthest = math.hypot(abs(enemy.x) + arena.EDGE, abs(enemy.y) + arena.EDGE)
        for _ in range(SPOT_TRIES if farthest > low else 0):
            angle, distance = self._rng.uniform(0, 2 * math.pi), self._rng.uniform(low, high)
            spot = round(enemy.x + distance * math.cos(angle)), round(enemy.y + distance * math.sin(angle))
            if self._arena.fits(*spot, 28) and self._off_goal(spot) and self._is_spot(spot, enemy, state):
                return spot
        return None

    def _is_spot(self, spot: Spot, enemy: Entity, state: GameState) -> bool:
        """Check whether a spot is free and as far away as it should be."""
        low, high = self._settings.blink
        others = (state.player, *state.items["obstacle"], *(other for other in state.enemies if other is not enemy))
        return low <= math.dist((enemy.x, enemy.y), spot) <= high and _is_free(spot, others)

    def _returns(self, state: GameState, tick: int) -> Iterator[str]:
        """Bring the dead back after a delay that grows each time, and give the player bullets."""
        alive = {enemy.tag for enemy in state.enemies}
        self._reader.returning.clear()  # an enemy that has not appeared found no room, and is asked again
        for tag in range(self._count):
            if tag in alive:
                if self._due.pop(tag, None) is not None:
                    yield f"give Clip {RETURN_AMMO}"
            elif tag not in self._due:
                self._due[tag] = tick + int(self._delay)
                self._delay *= self._settings.respawn
            elif tick >= self._due[tag] and (spot := self._far_spot(state)):
                self._reader.returning.append(tag)
                yield f"{SPAWN} {self._calls[tag]} {spot[0]} {spot[1]}"

    def _far_spot(self, state: GameState) -> Spot | None:
        player = state.player
        for _ in range(100):
            spot = self._rng.randint(-480, 480), self._rng.randint(-480, 480)
            far = math.dist(spot, (player.x, player.y)) > self._settings.respawn_distance and self._off_goal(spot)
            if far and self._arena.fits(*spot, 28) and _is_free(spot, (*state.enemies, *state.items["obstacle"])):
                return spot
        return None

    def _off_goal(self, spot: Spot) -> bool:
        """Check whether a spot is so far from the goal that an enemy there has yet to walk, as at the start."""
        goal = self._settings.goal
        return goal is None or math.dist(spot, goal[:2]) > goal[2] + arena.GOAL_MARGIN


def _calls(enemies: list[Entity], starts: list[Point]) -> dict[int, int]:
    """Return the tags by which scripts know the enemies of the first state.

    They are found by their positions: the engine lists those first that have taken a step, and no two start within 48
    units.
    """

    def steps(order: tuple[int, ...]) -> float:
        return sum(math.dist((e.x, e.y), starts[number]) for e, number in zip(enemies, order, strict=False))

    order = min(itertools.permutations(range(len(starts))), key=steps)
    return {enemy.tag: scenario.ENEMY_TAG + number for enemy, number in zip(enemies, order, strict=False)}


def _is_free(spot: Spot, others: Iterable[Entity]) -> bool:
    return all(math.dist((other.x, other.y), spot) > APART for other in others)


def _turn(enemy: Entity, x: float, y: float) -> int:
    """Return the turn that brings an enemy to face a point; 0 if it does."""
    off = (math.degrees(math.atan2(y - enemy.y, x - enemy.x)) - enemy.angle + 180) % 360 - 180
    return 0 if abs(off) <= CONE else TURN_LEFT if off > 0 else TURN_RIGHT


def _away_from_centre(enemy: Entity, enemies: list[Entity]) -> tuple[float, float]:
    x, y = sum(e.x for e in enemies) / len(enemies), sum(e.y for e in enemies) / len(enemies)
    return 2 * enemy.x - x, 2 * enemy.y - y


def _behind_pillar(enemy: Entity, state: GameState, distance: float) -> tuple[float, float]:
    """Return a point behind the nearest pillar, seen from the player."""
    player = state.player
    pillar = min(state.items["obstacle"], key=lambda entity: math.dist((entity.x, entity.y), (enemy.x, enemy.y)))
    away = max(math.dist((pillar.x, pillar.y), (player.x, player.y)), 1.0)
    step = distance / away
    return pillar.x + (pillar.x - player.x) * step, pillar.y + (pillar.y - player.y) * step
