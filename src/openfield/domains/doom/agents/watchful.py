"""An agent that notices change: it learns the range of every sensor in training, and counts what departs from it.

A baseline for detection. It plays like the reference agent.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from openfield.core import Belief, Reply, Spec, Turn
from openfield.domains.doom.agents.reference import ReferenceAgent
from openfield.domains.doom.engine.game_state import ITEMS, GameState
from openfield.domains.doom.features import decode_features

MARGIN = 0.5
"""How far beyond the range of training a value is still normal, in widths of the range."""
DOUBT = 5.0
"""Divided by the number of training episodes and added to the margin: few episodes do not show all that is normal."""
MIN_WIDTH = 0.05
STEADY = ("enemy step", "enemy turn")
"""Sensors with many values in every episode: their means count, too."""
FADING = 0.5
"""The share of earlier evidence that is kept after an episode: a novelty stays, chance does not."""
SensorRanges = dict[str, tuple[float, float, float]]
"""Least, mean and greatest value of each sensor."""


class Sensors:
    """The values of each sensor in an episode: differences from tick to tick, and counts."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}
        self._before: GameState | None = None
        self.action = ""
        """The last action."""

    def see(self, features: dict[str, Any]) -> None:
        """Take in a feature vector."""
        state, before = decode_features(features), self._before
        self._note("enemies", len(state.enemies))
        self._note("projectiles", len(state.bolts))
        for kind in ITEMS:
            self._note(kind, len(state.items[kind]))
        if before is not None:
            self._compare(before, state)
        self._before = state

    def summary(self) -> SensorRanges:
        """Summarise the episode so far in three numbers per sensor."""
        return {name: (min(all_), math.fsum(all_) / len(all_), max(all_)) for name, all_ in self._values.items()}

    def _compare(self, before: GameState, state: GameState) -> None:
        player, was = state.player, before.player
        trapped = len(state.items["trap"]) < len(before.items["trap"])
        self._note("trapped" if trapped else "hurt", max(was.health - player.health, 0.0))
        self._note("spent", max(before.ammo - state.ammo, 0.0))
        self._note(f"{self.action} x", player.x - was.x)
        self._note(f"{self.action} y", player.y - was.y)
        known = {entity.id: entity for entity in before.enemies}
        for enemy in state.enemies:
            if enemy.id in known:
                old = known[enemy.id]
                self._note("enemy step", math.hypot(enemy.x - old.x, enemy.y - old.y))
                self._note("enemy turn", abs((enemy.angle - old.angle + 180) % 360 - 180))
                self._note("enemy health", enemy.health)
            else:
                self._note("new enemy", 1.0)

    def _note(self, name: str, value: float) -> None:
        self._values.setdefault(name, []).append(float(value))


class WatchfulAgent:
    """Plays like the reference agent, and believes what the statistics of its sensors say."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._player = ReferenceAgent(spec, seed)
        self._normal: dict[str, list[tuple[float, float, float]]] = {}
        self._evidence = 0.0
        self._sensors = Sensors()

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        if turn.first:
            self._sensors = Sensors()
        if turn.observation is not None:
            self._sensors.see(turn.observation)
        if turn.last is not None:
            return Reply(None, self._judge(turn.phase == "training"))
        reply = self._player(turn)
        self._sensors.action = reply.action
        return Reply(reply.action)

    def save(self) -> bytes:
        """Return the learned estimates, and the state of the player."""
        return msgspec.msgpack.encode((self._normal, self._evidence, self._player.save()))

    def load(self, state: bytes) -> None:
        """Restore a saved agent."""
        kinds = tuple[dict[str, list[tuple[float, float, float]]], float, bytes]
        self._normal, self._evidence, player = msgspec.msgpack.decode(state, type=kinds)
        self._player.load(player)

    def _judge(self, training: bool) -> Belief:
        episode = self._sensors.summary()
        if training:
            for name, values in episode.items():
                self._normal.setdefault(name, []).append(values)
            return Belief(0.0, 0)
        strangest = max((self._departure(name, values) for name, values in episode.items()), default=0.0)
        self._evidence = FADING * self._evidence + strangest
        novel = 1 - math.exp(-self._evidence)
        return Belief(round(novel, 6), int(novel >= 0.5))

    def _departure(self, name: str, values: tuple[float, float, float]) -> float:
        """Return how many widths a sensor is outside of its range in training; 0 if inside."""
        known = self._normal.get(name)
        if not known:
            return 0.0
        lows, means, highs = ([values[part] for values in known] for part in range(3))
        low, high = min(lows), max(highs)
        least = max((high - low) / 2, MIN_WIDTH * max(abs(low), abs(high), 1.0))
        beyond = max(
            (low - values[0]) / max(least, max(lows) - low),
            (values[2] - high) / max(least, high - min(highs)),
        )
        if name in STEADY:
            off = max(min(means) - values[1], values[1] - max(means))
            beyond = max(beyond, off / max(least / 4, max(means) - min(means)))
        return max(beyond - MARGIN - DOUBT / len(known), 0.0)
