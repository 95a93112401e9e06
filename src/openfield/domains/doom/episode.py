"""One episode of a task: take actions, give observations and the performance.

A world plays one after the other on its engine.
"""

from __future__ import annotations

import functools
import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from openfield.core import Ending
from openfield.domains.doom import features
from openfield.domains.doom.arrays import ArenaArray, DuelArray, array_space
from openfield.domains.doom.engine.engine import Action, Engine
from openfield.domains.doom.engine.game_state import Entity, GameState, Snapshot, make_snapshot
from openfield.domains.doom.engine.launch import BUTTONS
from openfield.domains.doom.engine.state_reader import StateReader
from openfield.domains.doom.maps import arena, duel
from openfield.domains.doom.maps.scenario import MapLayout, Wall
from openfield.domains.doom.rules import ArenaRules, DuelRules
from openfield.domains.doom.settings import DoomSettings
from openfield.errors import AgentProtocol
from openfield.trial import derive


class DoomTask(msgspec.Struct, frozen=True):
    """What distinguishes the two tasks."""

    name: str
    actions: tuple[str, ...]
    lay_out: Callable[[Any, random.Random], MapLayout]
    check_room: Callable[[Any], None]
    """Raises `InvalidInput` for settings that leave too little room."""
    rules: Callable[..., Any]
    array: Callable[[Sequence[Wall]], DuelArray | ArenaArray]


DUEL = DoomTask("duel", duel.ACTIONS, duel.lay_out, duel.check_room, DuelRules, DuelArray)
ARENA = DoomTask("arena", arena.ACTIONS, arena.lay_out, arena.check_room, ArenaRules, ArenaArray)
PRESSED = {"left": 0, "right": 1, "forward": 2, "backward": 3, "shoot": 4, "turn_left": 5, "turn_right": 6}
KEYS: dict[str, Action] = {
    name: tuple(float(number == PRESSED.get(name)) for number in range(len(BUTTONS))) for name in arena.ACTIONS
}
"""The buttons that are pressed for each action."""
_OPPOSITE = {"left": "right", "right": "left", "turn_left": "turn_right", "turn_right": "turn_left"}
MIRRORED_KEYS = {name: KEYS[_OPPOSITE.get(name, name)] for name in KEYS}


class DoomEpisode:
    """An episode under way."""

    def __init__(self, task: DoomTask, engine: Engine, name: str, seed: int, settings: Any, layout: MapLayout) -> None:
        """Start the episode on the map of this name, with the settings in force, novelties included."""
        self._task = task
        self._engine = engine
        self._settings: DoomSettings = settings
        self._actions = actions_of(task, settings)
        self._keys = MIRRORED_KEYS if settings.mirrored else KEYS
        self._waiting = deque([KEYS["nothing"]] * settings.lag)
        self._reader = StateReader()
        self._rules = task.rules(settings, layout, self._reader, random.Random(derive(seed, "rules")))
        self._quiet: bool = self._rules.quiet
        self._score_ticks = max(settings.score_ticks, settings.limit)
        self._array = task.array(layout.walls()) if settings.observation == "array" else None
        self._scale = _highest(getattr(settings, "map", task.name), settings.limit) if settings.normalised else None
        self._veiled = bool(settings.buckets or settings.fog)
        self._items: dict[str, list[Entity]] | None = None
        self._item_features: features.Features = {}
        self.ticks = 0
        self.reward = 0.0
        self.won = False
        self.performance = 1.0
        """The share of time that is left, as agents are told. It is 0 after giving up, and after losing if
        `death_counts`."""
        self.lost = False
        self.ended: Ending | None = None
        self._state: GameState | None = None
        self._snapshot = self._reader.read(engine.begin(name, seed))
        self._last_enemy = self.state.enemies[0]
        self._shaping = RewardShaping(self.state) if settings.reward == "shaped" else None

    @property
    def state(self) -> GameState:
        """The current state. It is made when first asked for."""
        if self._state is None:
            self._state = self._snapshot.state()
        return self._state

    def observe(self, ticks: int) -> Any:
        """Return the observation, given the ticks since the start of the trial."""
        settings = self._settings
        if self._array is None:
            return self._features(settings.epoch + ticks * settings.tick)
        shown = make_snapshot(features.show_state(self.state, settings)) if self._veiled else self._snapshot
        array = self._array.show(shown, settings.limit - self.ticks)
        return array if self._scale is None else array / self._scale

    def move(self, action: Any) -> None:
        """Take an action, for one tick or as many as the settings say.

        Raises:
            AgentProtocol: The task has no such action.
        """
        if self._settings.buttons:
            keys = _press(action, buttons_of(self._actions), self._keys)
        else:
            name = read_action(action, self._actions)
            if name == "give_up":
                self._end("terminated")
                self.performance = 0.0
                return
            keys = self._keys[name]
        if self._settings.frame_skip == 1:
            self._tick(keys)
        else:
            self._hold(keys, min(self._settings.frame_skip, self._settings.limit - self.ticks))
        if self._shaping is not None:
            self.reward = self._shaping.advance(self.state) + (self.performance if self.won else 0.0)

    def _hold(self, keys: Action, ticks: int) -> None:
        """Hold keys for some ticks, within the engine if it needs no commands; those for turning are one tick long."""
        held = (*keys[: PRESSED["turn_left"]], 0.0, 0.0)
        if not self._quiet or self._waiting:
            for number in range(ticks):
                if self.ended is None:
                    self._tick(held if number else keys)
            return
        if keys != held:
            self._tick(keys)
            ticks -= 1
        if ticks and self.ended is None:
            self._tick(held, ticks)

    def _tick(self, keys: Action, ticks: int = 1) -> None:
        self._waiting.append(keys)
        commands = () if self._quiet else self._rules.commands(self.state, self.ticks)
        source = self._engine.act(self._waiting.popleft(), commands, ticks)
        self.ticks += ticks
        self.performance = (self._score_ticks - self.ticks) / self._score_ticks
        if source is None:
            self._die()
        else:
            self._advance(self._reader.read(source))

    def _features(self, stamp: float) -> Any:
        state = features.show_state(self.state, self._settings) if self._veiled else self.state
        if self._task is DUEL:
            return features.duel_features(state, stamp, state.enemies[0] if state.enemies else self._fallen_enemy())
        if state.items is not self._items:  # else those of the last tick are used again
            self._items, self._item_features = state.items, features.item_features(state.items)
        return features.arena_features(state, stamp, self._item_features)

    def _fallen_enemy(self) -> Entity:
        """Return the enemy that fell last, as fog and buckets show it."""
        fallen = msgspec.structs.replace(self.state, enemies=[self._last_enemy])
        return features.show_state(fallen, self._settings).enemies[0]

    def _die(self) -> None:
        """Keep the last state with a player without health: the engine shows nothing after the player's death."""
        self._state = msgspec.structs.replace(self.state, player=_without_health(self.state.player))
        self._snapshot = make_snapshot(self._state)
        self._end("terminated")

    def _advance(self, snapshot: Snapshot) -> None:
        self.won = not snapshot.roster.enemies
        if self.won:
            self._last_enemy = _without_health(self.state.enemies[0])
        self._snapshot, self._state = snapshot, None
        if self.won or snapshot.raw[0] <= 0 or (not self._quiet and self._rules.lost(self.state)):
            self._end("terminated")
        elif self.ticks >= self._settings.limit:
            self._end("truncated")

    def _end(self, how: Ending) -> None:
        self.ended = how
        self.lost = not self.won and (how == "terminated" or self._score_ticks == self._settings.limit)
        if self.won:
            self.reward = self.performance
        elif self.lost and self._settings.death_counts:
            self.performance = 0.0


class RewardShaping:
    """Rewards hits and punishes lost health, in every tick: by the change of a number that says how well it goes.

    The number is the share of the player's first health that is left, less that of the enemies. So the rewards of an
    episode add up to its change over the episode, and the reward for winning.
    """

    def __init__(self, first: GameState) -> None:
        self._player = first.player.health or 1.0
        self._enemies = sum(enemy.health for enemy in first.enemies) or 1.0
        self._value = self._rate(first)

    def advance(self, state: GameState) -> float:
        """Return the reward of a tick that led to this state."""
        before, self._value = self._value, self._rate(state)
        return self._value - before

    def _rate(self, state: GameState) -> float:
        return state.player.health / self._player - sum(enemy.health for enemy in state.enemies) / self._enemies


def actions_of(task: DoomTask, settings: DoomSettings) -> tuple[str, ...]:
    """Return the actions of a task under these settings."""
    return tuple(name for name in task.actions if name != "give_up" or getattr(settings, "give_up", True))


def read_action(action: Any, known: tuple[str, ...]) -> str:
    """Return the name of an action given as such or as `{"action": name}`."""
    name = action.get("action") if isinstance(action, dict) else action
    if not isinstance(name, str) or name not in known:
        raise AgentProtocol(f"unknown action {action!r}; known are {', '.join(known)}")
    return name


def buttons_of(actions: tuple[str, ...]) -> list[str]:
    """Return the actions that are a button each, in the order in which they are pressed."""
    return [name for name in actions if name in PRESSED]


def _press(action: Any, buttons: list[str], keys: dict[str, Action]) -> Action:
    """Return the keys of several buttons that are pressed at once, given as 0 or 1 for each."""
    pressed: Any = action.get("action") if isinstance(action, dict) else action
    try:
        down = [int(each) for each in pressed]
    except (TypeError, ValueError):
        down = []
    if len(down) != len(buttons) or not set(down) <= {0, 1}:
        raise AgentProtocol(f"unknown action {action!r}; a list of 0 or 1 for {', '.join(buttons)} is known")
    held = [keys[name] for name, is_down in zip(buttons, down, strict=True) if is_down]
    return tuple(map(max, zip(*held, strict=True))) if held else KEYS["nothing"]


@functools.cache
def _highest(walls_of: str, limit: int) -> Any:
    """Return what each number of an array is divided by, to be 1 at most."""
    return array_space(walls_of, limit).bounds[1].astype(np.float32)


def _without_health(entity: Entity) -> Entity:
    return msgspec.structs.replace(entity, health=0.0)
