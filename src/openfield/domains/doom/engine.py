"""The game engine as a value machine: an episode's map and seed in, objects and numbers out.

Below the worlds. The engine is a process of its own; one that dies or hangs is started again and its episode redone.
"""

from __future__ import annotations

import faulthandler
import functools
import hashlib
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, TypeVar

from openfield.domains.doom import keeper, workplace
from openfield.domains.doom.sight import ListedSight, SharedSight, Sight, agree, share_sight
from openfield.errors import MissingExtra, WorldFault

BUTTONS = ("MOVE_LEFT", "MOVE_RIGHT", "MOVE_FORWARD", "MOVE_BACKWARD", "ATTACK", "RELOAD", "ZOOM")
"""What the player can press; the last two turn it, see `content/scripts.asm`."""
MOST_COMMANDS = 50
"""Per tick; 200 were fine, 2000 broke the engine's fixed buffer."""
MOST_RESTARTS = 3
"""Of an engine within one episode before the world is called broken."""
MOST_IDLE = 2
CHECK_SECONDS = 60.0
START_SECONDS = 60.0
CALL_SECONDS = 60.0
"""How long the engine may be silent, at its start and in any tick, before it counts as one that hangs."""
CHECK_SETTINGS = "check.ini"
FIRST_MAP = "HALL"
"""A map every WAD has, the same everywhere: what the engine loads before any episode."""
Action = tuple[float, ...]
Seen = TypeVar("Seen", Sight, Sight | None)
Deed = tuple[Action, Sequence[str]]


def load_vizdoom() -> Any:
    """The engine's package, imported when it is first needed."""
    try:
        import vizdoom
    except ImportError:
        raise MissingExtra("doom", "The Doom domain") from None
    return vizdoom


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
        self._deadly = _deadly()
        self._pulse = _keeper(os.getpid()).pulse()
        _alive.add(self)
        self._start()

    def begin(self, name: str, seed: int) -> Sight:
        """Starts an episode on a map and shows its first tick."""
        self._episode, self._deeds = (name, seed), []
        return self._surviving(self._begin)

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

    def _begin(self) -> Sight:
        name, seed = self._episode
        with self._pulse:
            self._game.set_doom_map(name)
            self._game.set_seed(seed)
            self._game.new_episode()
            listed = ListedSight(self._game.get_state())
            self._agrees = self._memory is not None and agree(self._memory, listed)
            return listed

    def _do(self, action: Action, commands: Sequence[str]) -> Sight | None:
        game = self._game
        with self._pulse:
            for command in commands:
                game.send_game_command(command)
            game.make_action(action)
            if game.is_episode_finished():
                return None
            return self._memory if self._agrees else ListedSight(game.get_state())

    def _start(self) -> None:
        check_wad(self.wad)
        settings = keeper.settings_name(self._pulse.number)
        game = make_game(self.wad, settings, self.large)
        try:
            _initialise(game)
        except self._deadly as error:
            raise WorldFault(f"The engine does not start: {error}") from None
        self._game = game
        self._memory = share_sight(game, keeper.find_memory(self.wad.parent / settings))


_alive: weakref.WeakSet[Engine] = weakref.WeakSet()
_abandoned: list[threading.Thread] = []
"""Starts of engines that nobody waits for any more; they would take this process with them if they were ended."""
_idle: list[Engine] = []
"""Engines at rest, latest last; worlds of the same trial take them up again."""


def take_engine(wad: Path, large: bool = False) -> Engine:
    """An engine for a WAD: one at rest that has it loaded, or a new one."""
    for engine in _idle:
        if engine.wad == wad and engine.large == large:
            _idle.remove(engine)
            return engine
    return Engine(wad, large)


def rest_engine(engine: Engine) -> None:
    """Keeps an engine for the next world; the one that rested longest is ended for it."""
    _idle.append(engine)
    if len(_idle) > MOST_IDLE:
        _idle.pop(0).close()


def end_idle_engines() -> None:
    """Ends all engines at rest."""
    while _idle:
        _idle.pop().close()


@functools.cache
def _keeper(process: int) -> keeper.Keeper:
    """This process's keeper, started with its first engine."""
    return keeper.Keeper(workplace.own(), CALL_SECONDS)


def _leave() -> None:
    for engine in list(_alive):  # also those of worlds nobody closed
        engine.close()
    if _keeper.cache_info().currsize and not any(thread.is_alive() for thread in _abandoned):
        _keeper(os.getpid()).close()  # otherwise it ends them when this process is gone
    workplace.leave()


# Worker processes leave without `atexit`; this is heeded by them and by any other process.
Finalize(None, _leave, exitpriority=10)


def _deadly() -> tuple[type[Exception], ...]:
    """What the engine's package raises when the engine is gone or does not come."""
    vizdoom = load_vizdoom()
    return (
        vizdoom.ViZDoomUnexpectedExitException,
        vizdoom.ViZDoomIsNotRunningException,
        vizdoom.ViZDoomErrorException,
        vizdoom.MessageQueueException,
        vizdoom.SharedMemoryException,
        vizdoom.FileDoesNotExistException,
    )


def make_game(wad: Path, settings: str, large: bool = False, console: bool = False) -> Any:
    """A `DoomGame` on a WAD, without window and sound, that has yet to be started."""
    vizdoom = load_vizdoom()
    game = vizdoom.DoomGame()
    size, colours = ("RES_320X240", "RGB24") if large else ("RES_160X120", "DOOM_256_COLORS8")
    game.set_doom_scenario_path(str(wad))
    game.set_doom_config_path(str(wad.parent / settings))
    game.set_doom_map(FIRST_MAP)
    game.set_window_visible(False)
    game.set_console_enabled(console)
    game.set_screen_resolution(getattr(vizdoom.ScreenResolution, size))
    game.set_screen_format(getattr(vizdoom.ScreenFormat, colours))
    game.set_render_hud(large)
    game.set_render_decals(False)
    game.set_render_particles(False)
    game.set_objects_info_enabled(True)
    game.set_available_buttons([getattr(vizdoom.Button, name) for name in BUTTONS])
    game.set_available_game_variables([vizdoom.GameVariable.HEALTH, vizdoom.GameVariable.AMMO2])
    game.set_mode(vizdoom.Mode.PLAYER)
    game.set_doom_skill(3)
    game.set_episode_timeout(0)
    game.set_episode_start_time(1)
    return game


def _initialise(game: Any) -> None:
    """Starts the engine in a thread of its own: ending one that hangs at its start would take this process with it."""
    failures: list[Exception] = []

    def work() -> None:
        try:
            game.init()
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(START_SECONDS)
    if thread.is_alive():
        _abandoned.append(thread)
        raise WorldFault(f"The engine did not start within {START_SECONDS:g} s.")
    if failures:
        raise failures[0]


def check_wad(wad: Path) -> None:
    """Makes sure that the engine takes a WAD, in a child process: a broken one takes its process with it.

    What was found sound once is not looked at again; what decides is all but the maps, and the maps' own check is that
    the engine survives them.

    Raises:
        WorldFault: It does not; the message is the engine's.
    """
    mark = workplace.home() / "sound" / _soul_of(wad)
    if mark.exists():
        return
    command = [sys.executable, "-m", "openfield.domains.doom.engine", str(wad)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        keeper.end_engines(wad.parent, CHECK_SETTINGS)
        raise WorldFault(f"The engine hangs on {wad}.") from None
    if done.returncode:
        workplace.sweep_shared_memory()
        raise WorldFault(f"The engine refuses {wad.name}: {_last_words(done.stdout + done.stderr)}")
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def _soul_of(wad: Path) -> str:
    """What stands for everything in a WAD that the engine reads at its start."""
    from openfield.domains.doom.wad import read_wad

    lumps = read_wad(wad.read_bytes())
    first = [name for name, _ in lumps].index(FIRST_MAP) if any(name == FIRST_MAP for name, _ in lumps) else 0
    digest = hashlib.sha256()
    for name, content in [*lumps[first : first + 4], *((n, c) for n, c in lumps if n == "DECORATE")]:
        digest.update(name.encode() + len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:32]


def _last_words(output: str) -> str:
    """The lines in which the engine says what is wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if "error" in line.lower()), -3)
    return " ".join(lines[first:][:3])[:500] or "it died without a word."


if __name__ == "__main__":
    faulthandler.dump_traceback_later(CHECK_SECONDS, exit=True)  # also if whoever asked is gone
    checked = make_game(Path(sys.argv[1]), CHECK_SETTINGS, console=True)
    checked.init()
    checked.close()
