"""Start engines. One that dies or hangs at its start is a fault of the world and never a crashed run.

The engine's package ends its own process when an engine is gone before it was ready. So a new WAD is tried in a child
process first. And every engine has a shell as its parent that stays in its place if it dies early.
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
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from openfield.domains.doom.engine import watchdog, workdir
from openfield.domains.doom.maps.scenario import FIRST_MAP, read_wad
from openfield.errors import InvalidInput, WorldFault
from openfield.lazy import import_extra

BUTTONS = ("MOVE_LEFT", "MOVE_RIGHT", "MOVE_FORWARD", "MOVE_BACKWARD", "ATTACK", "RELOAD", "ZOOM")
"""The buttons of the player. The last two turn it, see `data/scripts.asm`."""
SMALLEST = "160x120"
"""The size of pictures that are not looked at. The engine always draws."""
MAX_STARTS = 3
"""Starts of an engine that dies before it is ready."""
START_SECONDS = 60.0
CHECK_SECONDS = 60.0
"""How long a start may take. After that the engine counts as hanging."""
LOOK_SECONDS = 0.05
CHECK_SETTINGS = "check.ini"
MIN_MEMORY = 12 << 20
"""Bytes of shared memory an engine needs, and some to spare. Without them the system ends both sides."""
DATA = files("openfield.domains.doom") / "data"
abandoned: list[threading.Thread] = []
"""Starts of engines that are not waited for any more. Ending these engines would end this process too."""


class EarlyDeath(WorldFault):
    """An engine was gone before it was ready."""


def load_vizdoom() -> Any:
    """Import the engine's package when it is first needed.

    Raises:
        InvalidInput: This is not Linux.
        MissingExtra: The package is not installed.
    """
    if sys.platform != "linux":
        raise InvalidInput("Doom plays on Linux only: its engines are watched through /proc and /dev/shm.")
    return import_extra("vizdoom", "doom", "The Doom domain")


def engine_errors() -> tuple[type[Exception], ...]:
    """Return the errors that the engine's package raises when the engine is gone or does not start."""
    vizdoom = load_vizdoom()
    own = ("ViZDoomUnexpectedExit", "ViZDoomIsNotRunning", "ViZDoomError")
    names = (*own, "MessageQueue", "SharedMemory", "FileDoesNotExist")
    return tuple(getattr(vizdoom, f"{name}Exception") for name in names)


def start_game(wad: Path, settings: str, view: EngineView) -> Any:
    """Start a `DoomGame` on a WAD; start the engine again if it dies at its start.

    Raises:
        WorldFault: The engine refuses the WAD, hangs, dies again and again, or there is no memory for it.
    """
    check_wad(wad)
    _remove_old_folders(wad.parent, settings)
    for _ in range(MAX_STARTS):
        _check_memory()
        folder = Path(tempfile.mkdtemp(prefix=f"{settings}-", dir=wad.parent))
        try:
            game = _start_once(make_game(wad, settings, view), folder)
        except EarlyDeath as error:
            fault = error
            workdir.sweep_shared_memory()
        else:
            watchdog.hold_queues(wad.parent / settings)
            return game
    raise fault


class EngineView(NamedTuple):
    """The pictures that an engine draws."""

    size: str = ""
    """Width and height, such as 320x240; empty if nobody looks."""
    buffers: tuple[str, ...] = ()
    """Further pictures beside the image: depth, labels, automap."""


def make_game(wad: Path, settings: str, view: EngineView | None = None, console: bool = False) -> Any:
    """Make a `DoomGame` on a WAD, without window and sound; it is not started yet."""
    size, buffers = view or EngineView()
    vizdoom = load_vizdoom()
    game = vizdoom.DoomGame()
    game.load_config(str(DATA / "engine.cfg"))
    game.set_doom_scenario_path(str(wad))
    game.set_doom_config_path(str(wad.parent / settings))
    game.set_doom_map(FIRST_MAP)
    game.set_console_enabled(console)
    game.set_screen_resolution(getattr(vizdoom.ScreenResolution, f"RES_{(size or SMALLEST).upper()}"))
    game.set_screen_format(vizdoom.ScreenFormat.RGB24 if size else vizdoom.ScreenFormat.DOOM_256_COLORS8)
    game.set_render_hud(bool(size))
    for name in buffers:
        getattr(game, f"set_{name}_buffer_enabled")(True)
    game.set_available_buttons([getattr(vizdoom.Button, name) for name in BUTTONS])
    return game


def engine_path() -> Path:
    """Return the path of the engine's program."""
    return Path(load_vizdoom().__file__).with_name("vizdoom")


def _check_memory() -> None:
    with suppress(OSError):
        room = os.statvfs(workdir.SHARED)
        if room.f_bavail * room.f_frsize < MIN_MEMORY:
            raise WorldFault(f"There is no room for an engine in {workdir.SHARED}: it needs {MIN_MEMORY >> 20} MB.")


def _remove_old_folders(parent: Path, settings: str) -> None:
    """Remove the folders of ended engines with these settings; after a failed start a shell may still wait in one."""
    for folder in parent.glob(f"{settings}-*"):
        if (folder / "ready").exists() and not (folder / "gone").exists():
            shutil.rmtree(folder, ignore_errors=True)


def _start_once(game: Any, folder: Path) -> Any:
    """Start the engine in a thread of its own: ending one that hangs at its start would end this process too."""
    ready, gone = folder / "ready", folder / "gone"
    game.set_vizdoom_path(str(_write_placeholder(engine=engine_path(), ready=ready, gone=gone, place=folder)))
    failures: list[Exception] = []

    def work() -> None:
        try:
            game.init()
        except Exception as error:
            failures.append(error)
        finally:
            ready.touch()  # also after an abandoned start: ending this engine waits for its shell

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    _await(thread, gone)
    if failures:
        raise WorldFault(f"The engine does not start: {failures[0]}")
    return game


def _write_placeholder(**paths: Path) -> Path:
    """Write the program that stands for the engine; return the engine itself if programs in this folder are forbidden.

    A shell writes it. A file this process has open for writing would be open in a child that another thread starts just
    then, and a file that is open for writing cannot be started.
    """
    program = paths["place"] / "engine"
    quoted = {name: shlex.quote(str(path)) for name, path in paths.items()}
    text = (DATA / "engine.sh").read_text().format(words=watchdog.ARGUMENTS_FILE, **quoted)
    command = ["/bin/sh", "-c", 'cat > "$0" && chmod 700 "$0"', str(program)]
    subprocess.run(command, input=text, text=True, check=False)  # noqa: S603
    return program if os.access(program, os.X_OK) else paths["engine"]


def _await(thread: threading.Thread, gone: Path) -> None:
    """Wait until a start succeeds, dies or takes too long."""
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
    """Check in a child process that the engine takes a WAD: a broken one ends its process.

    WADs that differ only in their maps are checked once. A broken map is found when it is played.

    Raises:
        WorldFault: The engine refuses the WAD; the message is the engine's.
    """
    mark = workdir.shared_folder() / "sound" / _content_digest(wad)
    if mark.exists():
        return
    command = [sys.executable, "-c", f"from {__name__} import try_wad; try_wad()", str(wad)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        watchdog.end_engines(wad.parent, CHECK_SETTINGS)
        raise WorldFault(f"The engine hangs on {wad}.") from None
    if done.returncode:
        workdir.sweep_shared_memory()
        raise WorldFault(f"The engine refuses {wad.name}: {_error_lines(done.stdout + done.stderr)}")
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def try_wad() -> None:
    """Load a WAD. This is what the child process of `check_wad` does."""
    faulthandler.dump_traceback_later(CHECK_SECONDS, exit=True)  # also if the parent is gone
    wad = Path(sys.argv[1])
    game = make_game(wad, CHECK_SETTINGS, console=True)
    os.chdir(wad.parent)  # the engine leaves files where it works
    game.init()
    game.close()


def _content_digest(wad: Path) -> str:
    """Return a digest of everything in a WAD that the engine reads at its start."""
    lumps = read_wad(wad.read_bytes())
    first = next((number for number, (name, _) in enumerate(lumps) if name == FIRST_MAP), 0)
    digest = hashlib.sha256()
    for name, content in [*lumps[first : first + 4], *((n, c) for n, c in lumps if n == "DECORATE")]:
        digest.update(name.encode() + len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:32]


def _error_lines(output: str) -> str:
    """Return the engine's error lines."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if "error" in line.lower()), -3)
    return " ".join(lines[first:][:3])[:500] or "it died without a message."
