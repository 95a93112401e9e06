"""Starts engines so that one that dies or hangs at its start is a fault of the world and never a crashed run.

Below `engine`. The engine's package takes its process with it when an engine is gone before it was ready. So a new WAD
is tried in a child process first, and every engine has a shell for a parent that stays in its place if it dies early.
"""

from __future__ import annotations

import faulthandler
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from openfield.domains.doom.engine import watchdog as keeper
from openfield.domains.doom.engine import workdir as workplace
from openfield.domains.doom.maps.wad import read_wad
from openfield.errors import MissingExtra, WorldFault

BUTTONS = ("MOVE_LEFT", "MOVE_RIGHT", "MOVE_FORWARD", "MOVE_BACKWARD", "ATTACK", "RELOAD", "ZOOM")
"""What the player can press; the last two turn it, see `content/scripts.asm`."""
FIRST_MAP = "HALL"
"""A map every WAD has, the same everywhere: what the engine loads before any episode."""
MOST_STARTS = 3
"""Of an engine that dies before it is ready."""
START_SECONDS = 60.0
CHECK_SECONDS = 60.0
"""How long the engine may be silent at its start before it counts as one that hangs."""
LOOK_SECONDS = 0.05
CHECK_SETTINGS = "check.ini"
LEAST_MEMORY = 12 << 20
"""Bytes of shared memory an engine needs, and some to spare; without them both sides are ended by the system."""
PLACEHOLDER = """#!/bin/sh
trap '' INT
cd {place}
printf '%s\\0' "$@" > {words}
{engine} "$@" &
wait
exec >/dev/null 2>&1
[ -e {ready} ] || : > {gone}
while ! [ -e {ready} ] && read -r _ _ _ parent _ < /proc/$$/stat && [ "$parent" = $PPID ]; do sleep 0.5; done
"""
"""What the engine's package takes for the engine: it ends with it, but not before the package is ready for that.

It is also why the engine works in a folder of its own: it leaves things where it is. What it was started with is put
down there: where a terminal is closed engines and their owner end at once, and only that tells what they had shared.
"""

abandoned: list[threading.Thread] = []
"""Starts of engines that nobody waits for any more; they would take this process with them if they were ended."""


class EarlyDeath(WorldFault):
    """An engine was gone before it was ready."""


def load_vizdoom() -> Any:
    """The engine's package, imported when it is first needed."""
    try:
        import vizdoom
    except ImportError:
        raise MissingExtra("doom", "The Doom domain") from None
    return vizdoom


def deadly() -> tuple[type[Exception], ...]:
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


def start_game(wad: Path, settings: str, large: bool) -> Any:
    """A `DoomGame` under way on a WAD; an engine that dies at its start is started again.

    Raises:
        WorldFault: The engine refuses the WAD, hangs, dies again and again, or there is no memory for it.
    """
    check_wad(wad)
    _clear_places(wad.parent, settings)
    for _ in range(MOST_STARTS):
        _need_memory()
        place = Path(tempfile.mkdtemp(prefix=f"{settings}-", dir=wad.parent))
        try:
            game = _start_once(make_game(wad, settings, large), place)
        except EarlyDeath as error:
            fault = error
            workplace.sweep_shared_memory()
        else:
            keeper.hold_queues(wad.parent / settings)
            return game
    raise fault


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


def engine_path() -> Path:
    """The engine's program."""
    return Path(load_vizdoom().__file__).with_name("vizdoom")


def _need_memory() -> None:
    with suppress(OSError):
        room = os.statvfs(workplace.SHARED)
        if room.f_bavail * room.f_frsize < LEAST_MEMORY:
            raise WorldFault(f"There is no room for an engine in {workplace.SHARED}: it needs {LEAST_MEMORY >> 20} MB.")


def _clear_places(folder: Path, settings: str) -> None:
    """Removes where engines with these settings worked, which have ended; at a start that failed a shell may wait."""
    for place in folder.glob(f"{settings}-*"):
        if (place / "ready").exists() and not (place / "gone").exists():
            shutil.rmtree(place, ignore_errors=True)


def _start_once(game: Any, place: Path) -> Any:
    """Starts the engine in a thread of its own: ending one that hangs at its start would take this process with it."""
    ready, gone = place / "ready", place / "gone"
    game.set_vizdoom_path(str(_write_placeholder(engine=engine_path(), ready=ready, gone=gone, place=place)))
    failures: list[Exception] = []

    def work() -> None:
        try:
            game.init()
        except Exception as error:
            failures.append(error)
        finally:
            ready.touch()  # also where nobody waits for it any more: whoever ends this engine waits for its shell

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    _await(thread, gone)
    if failures:
        raise WorldFault(f"The engine does not start: {failures[0]}")
    return game


def _write_placeholder(**paths: Path) -> Path:
    """The program that stands for the engine; the engine itself where programs in this folder are not allowed.

    A shell writes it: what this process has open for writing, a child that another thread starts just then has open
    too, and a file that is being written cannot be started.
    """
    program = paths["place"] / "engine"
    text = PLACEHOLDER.format(words=keeper.WORDS, **{name: shlex.quote(str(path)) for name, path in paths.items()})
    command = ["/bin/sh", "-c", 'cat > "$0" && chmod 700 "$0"', str(program)]
    subprocess.run(command, input=text, text=True, check=False)  # noqa: S603
    return program if os.access(program, os.X_OK) else paths["engine"]


def _await(thread: threading.Thread, gone: Path) -> None:
    """Waits for a start, as long as there is something to wait for."""
    for _ in range(round(START_SECONDS / LOOK_SECONDS)):
        thread.join(LOOK_SECONDS)
        if not thread.is_alive():
            return
        if gone.exists():
            abandoned.append(thread)
            raise EarlyDeath("The engine died at its start.")
    abandoned.append(thread)
    raise WorldFault(f"The engine did not start within {START_SECONDS:g} s.")


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
    command = [sys.executable, "-c", f"from {__name__} import try_wad; try_wad()", str(wad)]
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


def try_wad() -> None:
    """What the child process does."""
    faulthandler.dump_traceback_later(CHECK_SECONDS, exit=True)  # also if whoever asked is gone
    wad = Path(sys.argv[1])
    game = make_game(wad, CHECK_SETTINGS, console=True)
    os.chdir(wad.parent)  # the engine leaves things where it is
    game.init()
    game.close()


def _soul_of(wad: Path) -> str:
    """What stands for everything in a WAD that the engine reads at its start."""
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
