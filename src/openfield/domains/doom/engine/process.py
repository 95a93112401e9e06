"""The game engine as a value machine: an episode's map and seed in, objects and numbers out.

Below the worlds. The engine is a process of its own; one that dies or hangs is started again and its episode redone.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, TypeVar

from openfield.domains.doom.engine import launch
from openfield.domains.doom.engine import watchdog as keeper
from openfield.domains.doom.engine import workdir as workplace
from openfield.domains.doom.engine.snapshot import ListedSight, SharedSight, Sight, agree, share_sight
from openfield.errors import WorldFault

MOST_COMMANDS = 50
"""Per tick; 200 were fine, 2000 broke the engine's fixed buffer."""
MOST_RESTARTS = 3
"""Of an engine within one episode before the world is called broken."""
MOST_BEGINNINGS = 20
"""Of an episode whose player is dead before its first tick."""
SEEDS = 1 << 32
MOST_IDLE = 2
CALL_SECONDS = 60.0
"""How long the engine may be silent in any tick before it counts as one that hangs."""
Action = tuple[float, ...]
Seen = TypeVar("Seen", Sight, Sight | None)
Deed = tuple[Action, Sequence[str]]


class Engine:
    """An engine with a WAD loaded: begins episodes, takes actions, shows states."""

    def __init__(self, wad: Path, large: bool = False) -> None:
        """Starts the engine.

        Args:
            wad: The file with all maps.
            large: Whether its pictures are for people: 320 x 240 in colours instead of the smallest there are.
        """
        self.wad = wad
        self.large = large
        self._game: Any = None
        self._memory: SharedSight | None = None
        self._agrees = False
        self._episode = ("", 0)
        self._deeds: list[Deed] = []
        self._deadly = launch.deadly()
        with _first:
            self._pulse = _keeper().pulse()
            _alive.add(self)
            workplace.drop_wads([engine.wad for engine in _alive])
        self._start()

    def begin(self, name: str, seed: int) -> Sight:
        """Starts an episode on a map and shows its first tick; by the next seed if enemies kill the player before it.

        Raises:
            WorldFault: The player never lives to see it.
        """
        for number in range(MOST_BEGINNINGS):
            self._episode, self._deeds = (name, (seed + number) % SEEDS), []
            sight = self._surviving(self._begin)
            if sight is not None:
                return sight
        raise WorldFault(f"The player never lives to see the first tick of map {name}: enemies fire before it.")

    def act(self, action: Action, commands: Sequence[str] = ()) -> Sight | None:
        """Does an action for one tick, commands of the console first; shows what came of it, None if the player died.

        What is shown holds until the next action.
        """
        if len(commands) > MOST_COMMANDS:
            raise WorldFault(f"{len(commands)} commands in one tick; the engine takes {MOST_COMMANDS}.")
        try:
            sight = self._do(action, commands)
        except self._deadly:
            self._revive()
            sight = self._surviving(lambda: self._do(action, commands))
        self._deeds.append((action, commands))
        return sight

    def picture(self) -> Any:
        """The picture of the last state as an array, rows by columns by colours."""
        state = self._game.get_state()
        return None if state is None else state.screen_buffer

    def close(self) -> None:
        """Ends the engine's process."""
        if self._game is not None:
            with self._pulse:
                self._game.close()
            self._game = self._memory = None

    def _surviving(self, work: Callable[[], Seen]) -> Seen:
        """Does something, on a new engine if the old one dies of it."""
        for _ in range(MOST_RESTARTS):
            try:
                return work()
            except self._deadly as error:
                reason = str(error)
            self._revive()
        raise WorldFault(f"The engine died {MOST_RESTARTS} times in map {self._episode[0]} of {self.wad}: {reason}")

    def _revive(self) -> None:
        """Starts the engine again and redoes the episode so far: the same seed and actions give the same states."""
        self.close()
        workplace.sweep_shared_memory()
        self._start()
        with suppress(*self._deadly):  # the next try of the work finds out, and counts it
            self._begin()
            for deed in self._deeds:
                self._do(*deed)

    def _begin(self) -> Sight | None:
        name, seed = self._episode
        with self._pulse:
            self._game.set_doom_map(name)
            self._game.set_seed(seed)
            self._game.new_episode()
            state = self._game.get_state()
            if state is None:
                return None
            listed = ListedSight(state)
            self._agrees = self._memory is not None and agree(self._memory, listed)
            return listed

    def _do(self, action: Action, commands: Sequence[str]) -> Sight | None:
        game, beat = self._game, self._pulse.beat
        beat[0] |= 1  # as the pulse's context does, which is two calls more a tick
        try:
            for command in commands:
                game.send_game_command(command)
            game.make_action(action)
            if game.is_episode_finished():
                return None
            return self._memory if self._agrees else ListedSight(game.get_state())
        finally:
            beat[0] += 1

    def _start(self) -> None:
        settings = keeper.settings_name(self._pulse.number)
        self._game = launch.start_game(self.wad, settings, self.large)
        self._memory = share_sight(keeper.find_memory(self.wad.parent / settings))


_alive: weakref.WeakSet[Engine] = weakref.WeakSet()
_first = threading.Lock()
"""Threads that start their first engines at once must not start two keepers."""
_idle: list[Engine] = []
"""Engines at rest, latest last; worlds of the same trial take them up again."""


_rest = threading.Lock()
"""Worlds are opened and closed in several threads at once."""


def take_engine(wad: Path, large: bool = False) -> Engine:
    """An engine for a WAD: one at rest that has it loaded, or a new one."""
    with _rest:
        for engine in _idle:
            if engine.wad == wad and engine.large == large:
                _idle.remove(engine)
                return engine
    return Engine(wad, large)


def rest_engine(engine: Engine) -> None:
    """Keeps an engine for the next world; the one that rested longest is ended for it."""
    with _rest:
        _idle.append(engine)
        ended = _idle.pop(0) if len(_idle) > MOST_IDLE else None
    if ended is not None:
        ended.close()


def end_idle_engines() -> None:
    """Ends all engines at rest."""
    with _rest:
        ended = _idle[::-1]
        _idle.clear()
    for engine in ended:
        engine.close()


_keepers: dict[int, keeper.Keeper] = {}
"""By the number of their process; a forked one knows those of others too."""


def _keeper() -> keeper.Keeper:
    """This process's keeper, started with its first engine."""
    process = os.getpid()
    if process not in _keepers:
        _keepers[process] = keeper.Keeper(workplace.own(), CALL_SECONDS)
    return _keepers[process]


def _part() -> None:
    """After a fork: the engines are the other process's, and whoever ended one here would wait for its last word."""
    _others.extend(_alive)  # as garbage they would be ended, too
    _alive.clear()
    _idle.clear()
    for other in _keepers.values():
        other.part()


_others: list[Engine] = []
os.register_at_fork(after_in_child=_part)


def _leave() -> None:
    for engine in list(_alive):  # also those of worlds nobody closed
        engine.close()
    if os.getpid() in _keepers:
        _leave_keeper(_keeper())
    workplace.leave()


def _leave_keeper(own: keeper.Keeper) -> None:
    """Has engines ended, at once or, where one is still starting, once it cannot take this process with it."""
    if any(thread.is_alive() for thread in launch.abandoned):
        own.outlive()
    else:
        own.close()


# Worker processes leave without `atexit`; this is heeded by them and by any other process.
Finalize(None, _leave, exitpriority=10)
