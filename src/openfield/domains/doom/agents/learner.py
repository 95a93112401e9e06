"""An agent that learns what its actions do, when its shots hit and where it is hurt, in training and ever after.

An agent of the Doom domains, a baseline for adaptation: small tables (`experience`) instead of fixed knowledge.
"""

from __future__ import annotations

import math
import random

import msgspec

from openfield.agents.random import GeneratorState
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.domains.doom.agents.experience import Learnt, untaught
from openfield.domains.doom.agents.expert_policy import MOVES, RADIUS, Reference
from openfield.domains.doom.agents.sense import scene_of, task_of, walls_of
from openfield.domains.doom.engine.scene import Body, Scene

SURPRISE = 4.0
"""Units of difference between expected and seen movement that say the world has changed."""
MISSES = 3
"""Shots in a row without effect after which, until one hits, the line of fire is drawn narrower."""
NARROWER = 0.7
CAUTION = 1.0
"""Steps of detour that one health is worth."""
LEAST_PROGRESS = 0.1
"""Of a step: where no move is known to lead farther than this, any is tried, or the one that would is never found."""


class LearningAgent:
    """Chooses what to reach as the reference does, and the action that reaches it by its own experience."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._task = task_of(spec)
        self._rng = random.Random(seed)
        self._learnt = untaught(self._task)
        self._mind = Reference(self._task, (), self._rng)
        self._before: tuple[Scene, str] | None = None
        self._misses = 0

    def __call__(self, turn: Turn) -> Reply:
        """Answers a turn."""
        if turn.first:
            self._mind = Reference(self._task, walls_of(turn.observation), self._rng)
            self._before, self._misses = None, 0
        scene = scene_of(turn.observation)
        if self._before is not None:
            self._learn(*self._before, scene)
        belief = self._believe(turn.phase == "training")
        if turn.ask is not Ask.ACT:
            return Reply(None, belief)
        action = self._choose(scene)
        self._before = scene, action
        return Reply(action, belief)

    def save(self) -> bytes:
        """What it has learnt, and the state of its generator."""
        return msgspec.json.encode((self._learnt, self._rng.getstate()))

    def load(self, state: bytes) -> None:
        """Becomes the saved agent."""
        self._learnt, generator = msgspec.json.decode(state, type=tuple[Learnt, GeneratorState])
        self._rng.setstate(generator)

    def _choose(self, scene: Scene) -> str:
        """The move that leads best to where the mind wants, wherever it hurts less; a shot is worth being hurt for."""
        self._mind.aim = self._learnt.aim * NARROWER ** (self._misses // MISSES)
        wanted, player = self._mind.choose(scene), scene.player
        hurts = self._learnt.harm_at(self._mind.clearance(player.x, player.y))
        if wanted == "shoot" or (wanted not in MOVES and not hurts):
            return wanted
        if wanted in MOVES and max(self._progress(move, wanted) for move in MOVES) < LEAST_PROGRESS:
            return self._rng.choice(list(MOVES))
        return max(MOVES, key=lambda move: self._progress(move, wanted) - CAUTION * self._cost(move, player))

    def _progress(self, move: str, wanted: str) -> float:
        """How much of a step a move goes where another is meant to go; none if none is wanted."""
        if wanted not in MOVES:
            return 0.0
        effect, way = self._learnt.effects[move], math.radians(MOVES[wanted])
        return (effect[0] * math.cos(way) + effect[1] * math.sin(way)) / max(math.hypot(*effect), 1.0)

    def _cost(self, move: str, player: Body) -> float:
        """What it costs to be where a move leads."""
        return self._learnt.harm_at(self._clearance_after(move, player))

    def _clearance_after(self, move: str, player: Body) -> float:
        (ahead, left), turned = self._learnt.effects[move], math.radians(player.angle)
        x = player.x + ahead * math.cos(turned) - left * math.sin(turned)
        y = player.y + ahead * math.sin(turned) + left * math.cos(turned)
        return self._mind.clearance(x, y)

    def _learn(self, before: Scene, action: str, scene: Scene) -> None:
        if action == "shoot":
            self._learn_shot(before, scene)
        elif action in MOVES:
            self._learn_effect(before, action, scene)
        if len(scene.items["trap"]) == len(before.items["trap"]):
            lost = max(before.player.health - scene.player.health, 0.0)
            self._learnt.enter_harm(self._mind.clearance(before.player.x, before.player.y), lost)

    def _learn_effect(self, before: Scene, action: str, scene: Scene) -> None:
        """Takes in where a move led, in the player's own frame; a move against a wall teaches nothing."""
        dx, dy = scene.player.x - before.player.x, scene.player.y - before.player.y
        if math.hypot(dx, dy) < 0.5 or self._clearance_after(action, before.player) < RADIUS:
            return
        ahead, left = _own_frame(before.player, dx, dy)
        self._learnt.surprise += self._learnt.enter_effect(action, (ahead, left)) > SURPRISE

    def _learn_shot(self, before: Scene, scene: Scene) -> None:
        """Takes in whether a shot hit the one nearest to its line."""
        player = before.player
        frames = [_own_frame(player, enemy.x - player.x, enemy.y - player.y) for enemy in before.enemies]
        hurt = sum(body.health for body in scene.enemies) < sum(body.health for body in before.enemies)
        offset = min((abs(left) for ahead, left in frames if ahead > 0), default=math.inf)
        if math.isfinite(offset):
            self._learnt.enter_shot(offset, hurt)
        self._misses = 0 if hurt else self._misses + 1

    def _believe(self, training: bool) -> Belief:
        if training:
            self._learnt.surprise = 0.0
        novel = 1 - math.exp(-self._learnt.surprise / 3)
        return Belief(round(novel, 6), int(novel >= 0.5))


def _own_frame(player: Body, dx: float, dy: float) -> tuple[float, float]:
    """A difference of places as the player sees it: ahead, and to the left."""
    turned = math.radians(player.angle)
    return dx * math.cos(turned) + dy * math.sin(turned), dy * math.cos(turned) - dx * math.sin(turned)
