"""One episode: actions in, what is seen and how well it goes out.

Between world and engine; the same for both tasks.
"""

from __future__ import annotations

import functools
import random
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from openfield.core import Ending
from openfield.domains.doom import features
from openfield.domains.doom.arrays import ArenaArray, DuelArray
from openfield.domains.doom.engine.launch import BUTTONS
from openfield.domains.doom.engine.process import Action, Engine
from openfield.domains.doom.engine.scene import Body, Scene
from openfield.domains.doom.engine.state_reader import Reader, Seen, seen_of
from openfield.domains.doom.maps import arena, duel
from openfield.domains.doom.maps.rules import ArenaRules, DuelRules
from openfield.domains.doom.maps.scenario import Layout
from openfield.domains.doom.settings import DoomSettings
from openfield.errors import AgentProtocol
from openfield.trial import derive


class Task(msgspec.Struct, frozen=True):
    """What tells one task from the other."""

    name: str
    actions: tuple[str, ...]
    lay_out: Callable[[Any, random.Random], Layout]
    check_room: Callable[[Any], None]
    """Raises `InvalidInput` for settings nothing can be laid out by."""
    rules: Callable[..., Any]
    array: Callable[[], DuelArray | ArenaArray]


DUEL = Task("duel", duel.ACTIONS, duel.lay_out, duel.check_room, DuelRules, DuelArray)
ARENA = Task("arena", arena.ACTIONS, arena.lay_out, arena.check_room, ArenaRules, ArenaArray)
PRESSED = {"left": 0, "right": 1, "forward": 2, "backward": 3, "shoot": 4, "turn_left": 5, "turn_right": 6}
KEYS: dict[str, Action] = {
    name: tuple(float(number == PRESSED.get(name)) for number in range(len(BUTTONS))) for name in arena.ACTIONS
}
MIRRORED = {"left": "right", "right": "left", "turn_left": "turn_right", "turn_right": "turn_left"}


class Play:
    """An episode under way."""

    def __init__(self, task: Task, engine: Engine, name: str, seed: int, settings: Any, layout: Layout) -> None:
        """Starts an episode.

        Args:
            task: Which task.
            engine: An engine with the trial's WAD.
            name: The episode's map.
            seed: The episode's seed.
            settings: The settings in force, novelties included.
            layout: Where everything is at the start.
        """
        self._task = task
        self._engine = engine
        self._settings: DoomSettings = settings
        self._keys = _keys(settings.mirrored)
        self._waiting = deque([KEYS["nothing"]] * settings.lag)
        self._reader = Reader(drifting=bool(getattr(settings, "wind", 0)))
        self._rules = task.rules(settings, layout, self._reader, random.Random(derive(seed, "rules")))
        self._quiet: bool = self._rules.quiet
        self._array = task.array() if settings.observation == "array" else None
        self._veiled = bool(settings.buckets or settings.fog)
        self._lying: dict[str, list[Body]] | None = None
        self._items: features.Features = {}
        self.ticks = 0
        self.reward = 0.0
        self.won = False
        self.performance = 1.0
        """The share of time that is left; none for giving up, and none for a lost episode where death counts."""
        self.ended: Ending | None = None
        self._scene: Scene | None = None
        self._seen = self._reader.read(engine.begin(name, seed))
        self._last_enemy = self.scene.enemies[0]

    @property
    def scene(self) -> Scene:
        """What is there now; made when somebody asks for it."""
        if self._scene is None:
            self._scene = self._seen.scene()
        return self._scene

    def observe(self, ticks: int) -> Any:
        """What the agent sees, so many ticks after the start of its trial."""
        settings = self._settings
        if self._array is None:
            return self._features(settings.epoch + ticks * settings.tick)
        seen = seen_of(features.shown(self.scene, settings)) if self._veiled else self._seen
        return self._array.show(seen, settings.limit - self.ticks)

    def move(self, action: Any) -> None:
        """Does an action for one tick.

        Raises:
            AgentProtocol: It is none of the task's actions.
        """
        name = read_action(action, self._task.actions)
        if name == "give_up":
            self._end("terminated")
            self.performance = 0.0
            return
        self._waiting.append(self._keys[name])
        commands = () if self._quiet else self._rules.commands(self.scene, self.ticks)
        sight = self._engine.act(self._waiting.popleft(), commands)
        self.ticks += 1
        self.performance = (self._settings.limit - self.ticks) / self._settings.limit
        if sight is None:
            self._die()
        else:
            self._look(self._reader.read(sight))

    def _features(self, stamp: float) -> Any:
        scene = features.shown(self.scene, self._settings) if self._veiled else self.scene
        if self._task is DUEL:
            return features.duel_features(scene, stamp, scene.enemies[0] if scene.enemies else self._seen_last())
        return features.arena_features(scene, stamp, self._lying_about(scene.items))

    def _lying_about(self, items: dict[str, list[Body]]) -> features.Features:
        """What is shown of items that are the same as in the tick before is the same, too."""
        if items is not self._lying:
            self._lying, self._items = items, features.item_features(items)
        return self._items

    def _seen_last(self) -> Body:
        """The enemy that fell last, seen as all enemies are."""
        fallen = msgspec.structs.replace(self.scene, enemies=[self._last_enemy])
        return features.shown(fallen, self._settings).enemies[0]

    def look(self, query: str) -> Any:
        """A picture of the last state, where the engine draws any."""
        return self._engine.picture() if query == "picture" else None

    def _die(self) -> None:
        """The engine shows nothing after the player's death: what was seen last stays, without health."""
        self._scene = msgspec.structs.replace(self.scene, player=_without_health(self.scene.player))
        self._seen = seen_of(self._scene)
        self._end("terminated")

    def _look(self, seen: Seen) -> None:
        self.won = not seen.cast.enemies
        if self.won:
            self._last_enemy = _without_health(self.scene.enemies[0])
        self._seen, self._scene = seen, None
        if self.won or seen.look[0] <= 0 or (not self._quiet and self._rules.lost(self.scene)):
            self._end("terminated")
        elif self.ticks >= self._settings.limit:
            self._end("truncated")

    def _end(self, how: Ending) -> None:
        self.ended = how
        if self.won:
            self.reward = self.performance
        elif self._settings.death_counts:
            self.performance = 0.0


def read_action(action: Any, known: tuple[str, ...]) -> str:
    """The name of an action given as such or as `{"action": name}`."""
    name = action.get("action") if isinstance(action, dict) else action
    if not isinstance(name, str) or name not in known:
        raise AgentProtocol(f"unknown action {action!r}; known are {', '.join(known)}")
    return name


@functools.cache
def _keys(mirrored: bool) -> dict[str, Action]:
    """What is pressed for each action."""
    return {name: KEYS[MIRRORED.get(name, name) if mirrored else name] for name in KEYS}


def _without_health(body: Body) -> Body:
    return msgspec.structs.replace(body, health=0.0)
