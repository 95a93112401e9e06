"""An agent that learns what its actions do and when its shots hit, in training and ever after.

An agent of the Doom domains, a baseline for adaptation: a small table of effects instead of fixed knowledge.
"""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec

from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.domains.doom.agents.sense import scene_of, task_of, walls_of
from openfield.domains.doom.reference import AIM, MOVES, Reference
from openfield.domains.doom.scene import Scene

RATE = 0.3
"""How much of its old estimate an effect loses with every new observation."""
SURPRISE = 4.0
"""Units of difference between expected and seen movement that say the world has changed."""
MISSES = 3
"""Shots in a row without effect after which the line of fire is drawn narrower."""
NARROWER = 0.7


class Learnt(msgspec.Struct):
    """What it knows, and what is kept of it between episodes."""

    effects: dict[str, tuple[float, float]]
    """Where each move leads: forward and to the left, in units."""
    aim: float
    """How far off the line of fire a shot still hits."""
    surprise: float = 0.0


class LearningAgent:
    """Chooses what to reach as the reference does, and the action that reaches it by its own experience."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._task = task_of(spec)
        self._rng = random.Random(seed)
        straight = {move: (math.cos(math.radians(turn)), math.sin(math.radians(turn))) for move, turn in MOVES.items()}
        self._learnt = Learnt({move: (8 * x, 8 * y) for move, (x, y) in straight.items()}, AIM[self._task])
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
        kinds = tuple[Learnt, tuple[Any, ...]]
        self._learnt, (version, numbers, gauss) = msgspec.json.decode(state, type=kinds)
        self._rng.setstate((version, tuple(numbers), gauss))

    def _choose(self, scene: Scene) -> str:
        self._mind.aim = self._learnt.aim
        wanted = self._mind.choose(scene)
        if wanted not in MOVES:
            return wanted
        way = math.radians(MOVES[wanted])
        return max(MOVES, key=lambda move: _along(self._learnt.effects[move], way))

    def _learn(self, before: Scene, action: str, scene: Scene) -> None:
        if action == "shoot":
            self._learn_aim(before, scene)
        elif action in MOVES:
            self._learn_effect(before, action, scene)

    def _learn_effect(self, before: Scene, action: str, scene: Scene) -> None:
        """Takes in where a move led, in the player's own frame; a move against a wall teaches nothing."""
        dx, dy = scene.player.x - before.player.x, scene.player.y - before.player.y
        if math.hypot(dx, dy) < 0.5:
            return
        turned = math.radians(before.player.angle)
        seen = (dx * math.cos(turned) + dy * math.sin(turned), dy * math.cos(turned) - dx * math.sin(turned))
        old = self._learnt.effects[action]
        self._learnt.surprise += math.dist(old, seen) > SURPRISE
        self._learnt.effects[action] = tuple(  # type: ignore[assignment]
            (1 - RATE) * was + RATE * now for was, now in zip(old, seen, strict=True)
        )

    def _learn_aim(self, before: Scene, scene: Scene) -> None:
        """A line of fire that does not hit is too wide."""
        hurt = sum(body.health for body in scene.enemies) < sum(body.health for body in before.enemies)
        self._misses = 0 if hurt else self._misses + 1
        if self._misses >= MISSES and self._learnt.aim > 2.0:
            self._learnt.aim *= NARROWER
            self._misses = 0

    def _believe(self, training: bool) -> Belief:
        if training:
            self._learnt.surprise = 0.0
        novel = 1 - math.exp(-self._learnt.surprise / 3)
        return Belief(round(novel, 6), int(novel >= 0.5))


def _along(effect: tuple[float, float], way: float) -> float:
    return effect[0] * math.cos(way) + effect[1] * math.sin(way)
