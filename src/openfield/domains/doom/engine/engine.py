"""The game engine: begin episodes by map and seed, take actions, show states.

The engine is a process of its own. If it dies or hangs, it is started again and its episode is repeated.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, TypeVar

from openfield.domains.doom.engine import launch, state_source, watchdog, workdir
from openfield.domains.doom.engine.launch import EngineView
from openfield.domains.doom.engine.state_source import MemorySource, PackageSource, StateSource
from openfield.errors import WorldFault
from openfield.processes.forks import WORKER_NAME

MAX_COMMANDS = 50
"""Commands in one tick. 200 were fine, 2000 broke the engine's fixed buffer."""
MAX_RESTARTS = 3
"""Restarts of an engine within one episode before the world is called broken."""
MAX_BEGINNINGS = 20
"""Beginnings of an episode whose player is dead before its first tick."""
SEEDS = 1 << 32
MAX_IDLE = 2
CALL_SECONDS = 60.0
"""How long a call to the engine may take. After that the engine counts as hanging."""
Action = tuple[float, ...]
Source = TypeVar("Source", StateSource, StateSource | None)


class Engine:
    """An engine with a WAD loaded: begins episodes, takes actions, shows states."""

    def __init__(self, wad: Path, view: EngineView | None = None) -> None:
        """Start the engine with a WAD, and with pictures that are worth looking at if a view says so."""
        self.wad = wad
        self.view = view or EngineView()
        self._game: Any = None
        self._memory: MemorySource | None = None
        self._agrees = False
        self._episode = ("", 0)
        self._history: list[tuple[Action, Sequence[str], int]] = []
        self._errors = launch.engine_errors()
        with _first:
            self._heartbeat = _watchdog().add_engine()
            _alive.add(self)
            workdir.drop_wads([engine.wad for engine in _alive])
        self._start()

    def begin(self, name: str, seed: int) -> StateSource:
        """Begin an episode on a map and show its first tick; use the next seed if the player dies before it.

        Raises:
            WorldFault: The player dies before the first tick with every seed that was tried.
        """
        for number in range(MAX_BEGINNINGS):
            self._episode, self._history = (name, (seed + number) % SEEDS), []
            source = self._retry(self._begin)
            if source is not None:
                return source
        raise WorldFault(f"The player never lives to see the first tick of map {name}: enemies fire before it.")

    def act(self, action: Action, commands: Sequence[str] = (), ticks: int = 1) -> StateSource | None:
        """Send console commands and take an action; show the result, or None if the player died.

        The result is valid until the next action.

        Args:
            action: The buttons that are pressed.
            commands: Commands sent to the engine before.
            ticks: For how long. Only the last tick is drawn.
        """
        if len(commands) > MAX_COMMANDS:
            raise WorldFault(f"{len(commands)} commands in one tick; the engine takes {MAX_COMMANDS}.")
        try:
            source = self._do(action, commands, ticks)
        except self._errors:
            self._restart()
            source = self._retry(lambda: self._do(action, commands, ticks))
        self._history.append((action, commands, ticks))
        return source

    def pictures(self, names: Sequence[str] = ()) -> dict[str, Any]:
        """Return the pictures of the last state, rows by columns by colours, as arrays of their own.

        They are the image and the buffers of the view, or only those that are named.
        """
        with self._heartbeat:
            state = self._game.get_state()
        if state is None:
            return {}
        buffers = {"image": "screen_buffer", **{name: f"{name}_buffer" for name in self.view.buffers}}
        return {name: getattr(state, buffers[name]).copy() for name in names or buffers}

    def close(self) -> None:
        """End the engine's process."""
        if self._game is not None:
            with self._heartbeat:
                self._game.close()
            self._game = self._memory = None

    def _retry(self, work: Callable[[], Source]) -> Source:
        """Do some work; do it again on a new engine if the old one dies."""
        for _ in range(MAX_RESTARTS):
            try:
                return work()
            except self._errors as error:
                reason = str(error)
            self._restart()
        raise WorldFault(f"The engine died {MAX_RESTARTS} times in map {self._episode[0]} of {self.wad}: {reason}")

    def _restart(self) -> None:
        """Start the engine again and repeat the episode so far: the same seed and actions give the same states."""
        self.close()
        workdir.sweep_shared_memory()
        self._start()
        with suppress(*self._errors):  # the next try of the work fails too, and is counted
            self._begin()
            for action, commands, ticks in self._history:
                self._do(action, commands, ticks)

    def _begin(self) -> StateSource | None:
        name, seed = self._episode
        with self._heartbeat:
            self._game.set_doom_map(name)
            self._game.set_seed(seed)
            self._game.new_episode()
            state = self._game.get_state()
            if state is None:
                return None
            source = PackageSource(state)
            self._agrees = self._memory is not None and state_source.sources_agree(self._memory, source)
            if self._memory is not None and not self._agrees:
                _mention_layout()
            return source

    def _do(self, action: Action, commands: Sequence[str], ticks: int) -> StateSource | None:
        game, beat = self._game, self._heartbeat.beat
        beat[0] |= 1  # as the heartbeat's context does, without two more calls in every tick
        try:
            for command in commands:
                game.send_game_command(command)
            game.make_action(action, ticks)
            if game.is_episode_finished():
                return None
            return self._memory if self._agrees else PackageSource(game.get_state())
        finally:
            beat[0] += 1

    def _start(self) -> None:
        settings = watchdog.settings_name(self._heartbeat.number)
        self._game = launch.start_game(self.wad, settings, self.view)
        found = watchdog.find_shared(self.wad.parent / settings)
        self._memory = state_source.open_memory(found[0]) if found else None


def _mention_layout() -> None:
    """Say that states come from the slower source; once in a run, whose workers have the same parent."""
    own = os.getppid() if multiprocessing.current_process().name == WORKER_NAME else os.getpid()
    mark = workdir.shared_folder() / str(own) / "layout"
    with suppress(FileExistsError):
        mark.parent.mkdir(exist_ok=True)
        mark.touch(exist_ok=False)
        warnings.warn(state_source.describe_unknown(), RuntimeWarning, stacklevel=2)


_alive: weakref.WeakSet[Engine] = weakref.WeakSet()
_first = threading.Lock()
"""Threads that start their first engines at once must not start two watchdogs."""
_idle: list[Engine] = []
"""Engines that wait for the next world, latest last."""
_idle_lock = threading.Lock()
"""Worlds are opened and closed in several threads at once."""


def take_engine(wad: Path, view: EngineView | None = None) -> Engine:
    """Return an engine for a WAD and a view: an idle one that has it loaded, or a new one."""
    with _idle_lock:
        for engine in _idle:
            if engine.wad == wad and engine.view == (view or EngineView()):
                _idle.remove(engine)
                return engine
    return Engine(wad, view)


def release_engine(engine: Engine) -> None:
    """Keep an engine for the next world; end the one that was idle longest if there are too many."""
    with _idle_lock:
        _idle.append(engine)
        ended = _idle.pop(0) if len(_idle) > MAX_IDLE else None
    if ended is not None:
        ended.close()


def close_idle_engines() -> None:
    """End all idle engines."""
    with _idle_lock:
        ended = _idle[::-1]
        _idle.clear()
    for engine in ended:
        engine.close()


_watchdogs: dict[int, watchdog.Watchdog] = {}
"""By the ids of their processes. A forked process knows those of others too."""


def _watchdog() -> watchdog.Watchdog:
    """Return this process's watchdog; start it with the first engine."""
    process = os.getpid()
    if process not in _watchdogs:
        worker = multiprocessing.current_process().name == WORKER_NAME
        _watchdogs[process] = watchdog.Watchdog(workdir.process_folder(), CALL_SECONDS, ends_owner=worker)
    return _watchdogs[process]


def _detach() -> None:
    """Forget the engines after a fork: they belong to the other process, and ending one here would wait for ever."""
    _others.extend(_alive)  # as garbage they would be ended, too
    _alive.clear()
    _idle.clear()
    for other in _watchdogs.values():
        other.detach()


_others: list[Engine] = []
if hasattr(os, "register_at_fork"):  # a system without it does not fork
    os.register_at_fork(after_in_child=_detach)


def _close_all() -> None:
    for engine in list(_alive):  # also those of worlds that were not closed
        engine.close()
    if os.getpid() in _watchdogs:
        if any(thread.is_alive() for thread in launch.abandoned):
            _watchdog().outlive_owner()  # ending an engine that is still starting would end this process, too
        else:
            _watchdog().close()
    workdir.remove_process_folder()


# Worker processes end without `atexit`; all processes run this.
Finalize(None, _close_all, exitpriority=10)
