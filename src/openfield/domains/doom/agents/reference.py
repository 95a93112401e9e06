"""The reference agent: plays as the labels of training say, and never believes that anything has changed.

Worlds take the labels of training from its policy. Its loss under a novelty measures how difficult the novelty is.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable

from openfield.agents.random import SavesGenerator
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.domains.doom.engine.game_state import Entity, GameState
from openfield.domains.doom.features import decode_features, read_walls
from openfield.domains.doom.maps.scenario import Point, Wall
from openfield.errors import InvalidInput

AIM = {"duel": 18.0, "arena": 14.0}
"""Closer to the line of fire than this a shot hits: enemies are 20 wide on each side, in the arena shots scatter."""
CONE = 22.6
STRIDE = 16.0
RADIUS = 16.0
PILLAR = 20.0
"""Half the width of a pillar, corners considered."""
WAYPOINTS = [(x, y) for x in (-256.0, 256.0) for y in (-256.0, 256.0)] + [
    (x, y) for x in (-416.0, 0.0, 416.0) for y in (-416.0, 0.0, 416.0)
]
"""Places in the arena from which corners and doors can be looked around."""
MOVES = {"forward": 0.0, "left": 90.0, "backward": 180.0, "right": 270.0}


class ReferenceAgent(SavesGenerator):
    """Plays well in the world without novelties. Walls come anew with every episode."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._task = task_of(spec)
        self._rng = random.Random(seed)
        self._policy = ReferencePolicy(self._task, (), self._rng)

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        if turn.ask is not Ask.ACT:
            return Reply(None, Belief(0.0, 0))
        if turn.first:
            self._policy = ReferencePolicy(self._task, read_walls(turn.observation), self._rng)
        return Reply(self._policy.choose(decode_features(turn.observation)), Belief(0.0, 0))


def task_of(spec: Spec) -> str:
    """Return the task an agent is made for; refuse arrays, because these agents read feature vectors."""
    if spec.observations is not None:
        raise InvalidInput("This agent reads feature vectors; leave the setting observation=features.")
    return "arena" if spec.domain.endswith("arena") else "duel"


class ReferencePolicy:
    """Chooses actions. It knows the walls and remembers nothing."""

    def __init__(self, task: str, walls: Iterable[Wall], rng: random.Random) -> None:
        self._task = task
        self._walls = list(walls)
        self._rng = rng
        self._pillars: list[tuple[float, float]] = []
        self.aim = AIM[task]
        """How far off the line of fire it shoots."""

    def choose(self, state: GameState) -> str:
        """Choose the action for a state."""
        if not state.enemies:
            return "nothing"
        return self._duel(state) if self._task == "duel" else self._arena(state)

    def clearance(self, x: float, y: float) -> float:
        """Return how far along the axes the nearest wall, or pillar of the last state, is from a point."""
        walls = (max(wall.x1 - x, x - wall.x2, wall.y1 - y, y - wall.y2, 0.0) for wall in self._walls)
        pillars = (max(abs(x - px), abs(y - py)) - RADIUS for px, py in self._pillars)
        return max(0.0, min((*walls, *pillars), default=math.inf))

    def _duel(self, state: GameState) -> str:
        """Step sideways until the enemy is in the line of fire."""
        player = state.player
        enemy = min(state.enemies, key=lambda entity: abs(entity.y - player.y))
        off = enemy.y - player.y
        return "shoot" if abs(off) < self.aim else "left" if off > 0 else "right"

    def _arena(self, state: GameState) -> str:
        player = state.player
        self._pillars = [(entity.x, entity.y) for entity in state.items["obstacle"]]
        seen = [entity for entity in state.enemies if self._sees(player, entity.x, entity.y)]
        if not state.ammo:
            return self._fetch(state)
        if not seen:
            target = min(state.enemies, key=lambda entity: _distance(player, entity.x, entity.y))
            return self._walk(player, *self._via(player, target.x, target.y))
        return self._fight(player, min(seen, key=lambda entity: _effort(player, entity)))

    def _fight(self, player: Entity, enemy: Entity) -> str:
        off = _bearing(player, enemy.x, enemy.y)
        if abs(off) > CONE:
            return "turn_left" if off > 0 else "turn_right"
        aside = _distance(player, enemy.x, enemy.y) * math.sin(math.radians(off))
        if abs(aside) < self.aim:
            return "shoot"
        return "left" if aside > 0 else "right"

    def _fetch(self, state: GameState) -> str:
        """Go for bullets; without any there is nothing left to do."""
        packs, player = state.items["ammo"], state.player
        if not packs:
            return "nothing"
        pack = min(packs, key=lambda entity: _distance(player, entity.x, entity.y))
        return self._walk(player, *self._via(player, pack.x, pack.y))

    def _via(self, player: Entity, x: float, y: float) -> tuple[float, float]:
        """Return the next place on the shortest way to a point: the point itself, or a waypoint that is seen."""
        if self._sees(player, x, y):
            return x, y
        target = x, y
        seen = [way for way in WAYPOINTS if self._sees(player, *way) and _distance(player, *way) > STRIDE]
        queue = [(_distance(player, *way), way, way) for way in seen]
        heapq.heapify(queue)
        passed: set[Point] = set()
        while queue:
            far, here, first = heapq.heappop(queue)
            if here == target:
                return first
            if here in passed:
                continue
            passed.add(here)
            for way in (*WAYPOINTS, target):
                if way not in passed and self._clear(here, way):
                    heapq.heappush(queue, (far + math.dist(here, way), way, first))
        return target

    def _walk(self, player: Entity, x: float, y: float) -> str:
        """Choose the free step that leads nearest; now and then any step, so that it never gets stuck."""
        if self._rng.random() < 0.2:
            return self._rng.choice(list(MOVES))
        ways = {move: math.radians(player.angle + turn) for move, turn in MOVES.items()}
        ends = {m: (player.x + STRIDE * math.cos(way), player.y + STRIDE * math.sin(way)) for m, way in ways.items()}
        free = [move for move, end in ends.items() if self._is_free(*end)]
        return min(free or MOVES, key=lambda move: math.dist(ends[move], (x, y)))

    def _is_free(self, x: float, y: float) -> bool:
        sides = ((max(w.x1 - x, 0.0, x - w.x2), max(w.y1 - y, 0.0, y - w.y2)) for w in self._walls)
        pillars = (max(abs(x - px), abs(y - py)) < 2 * RADIUS for px, py in self._pillars)
        return not any(math.hypot(*side) < RADIUS for side in sides) and not any(pillars)

    def _sees(self, player: Entity, x: float, y: float) -> bool:
        return self._clear((player.x, player.y), (x, y))

    def _clear(self, here: tuple[float, float], there: tuple[float, float]) -> bool:
        walls = any(_crosses(here, there, wall) for wall in self._walls)
        return not walls and not any(_passes(here, there, pillar) for pillar in self._pillars)


def _effort(player: Entity, enemy: Entity) -> float:
    """Return roughly the ticks until the enemy is in the line of fire."""
    off = _bearing(player, enemy.x, enemy.y)
    turns = max(0.0, (abs(off) - CONE) / 45)
    left = math.radians(abs(off) % 45 if abs(off) % 45 <= 22.5 else 45 - abs(off) % 45)
    return turns + _distance(player, enemy.x, enemy.y) * math.sin(left) / STRIDE


def _bearing(player: Entity, x: float, y: float) -> float:
    """Return how far to the left of the player's direction a point is, in degrees."""
    return (math.degrees(math.atan2(y - player.y, x - player.x)) - player.angle + 180) % 360 - 180


def _distance(player: Entity, x: float, y: float) -> float:
    return math.hypot(x - player.x, y - player.y)


def _passes(here: tuple[float, float], there: tuple[float, float], pillar: tuple[float, float]) -> bool:
    """Check whether the way from one point to another touches a pillar."""
    way, off = (there[0] - here[0], there[1] - here[1]), (pillar[0] - here[0], pillar[1] - here[1])
    length = max(math.hypot(*way), 1.0)
    along = (way[0] * off[0] + way[1] * off[1]) / length
    aside = abs(way[0] * off[1] - way[1] * off[0]) / length
    return 0 < along < length and aside < PILLAR


def _crosses(here: tuple[float, float], there: tuple[float, float], wall: Wall) -> bool:
    """Check whether the way from one point to another meets a wall, which runs along an axis."""
    if wall.x1 == wall.x2:
        here, there = (here[1], here[0]), (there[1], there[0])
        at, low, high = wall.x1, wall.y1, wall.y2
    else:
        at, low, high = wall.y1, wall.x1, wall.x2
    if (here[1] - at) * (there[1] - at) >= 0:
        return False
    share = (at - here[1]) / (there[1] - here[1])
    return low <= here[0] + share * (there[0] - here[0]) <= high
