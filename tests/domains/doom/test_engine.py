"""The engine's care: it dies, it hangs, its owner is killed, its WAD is broken, and nothing is lost or left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytest.importorskip("vizdoom", reason="pip install 'openfield[doom]'")

from domains.doom.test_world import TASKS, chance, open_world, play, trace
from openfield.domains.doom import DUEL, workplace
from openfield.domains.doom import engine as engines
from openfield.domains.doom.domain import DoomDomain
from openfield.errors import WorldFault
from openfield.record import ENCODER


def own_engines() -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(os.getpid()), "-x", "vizdoom"], capture_output=True, text=True)
    return [int(number) for number in found.stdout.split()]


def signal_engines(what: signal.Signals) -> None:
    for number in own_engines():
        os.kill(number, what)


@TASKS
def test_an_engine_that_dies_is_not_noticed(domain: DoomDomain) -> None:
    expected = trace(domain, open_world(domain, limit=40))
    world, turns = open_world(domain, limit=40), []
    agent = chance(domain)
    for number, turn in enumerate(play(world, agent)):
        turns.append(ENCODER.encode(turn))
        if number in (10, 25):
            signal_engines(signal.SIGKILL)
    assert turns == expected


def test_a_broken_wad_is_found_in_a_child_process(tmp_path: Path) -> None:
    from openfield.domains.doom.wad import write_wad

    path = tmp_path / "broken.wad"
    path.write_bytes(write_wad([("DECORATE", b"ACTOR Nonsense : NoSuchThing { Health }")]))
    with pytest.raises(WorldFault, match="refuses"):
        engines.check_wad(path)


def test_too_many_commands_are_refused() -> None:
    world = open_world(DUEL)
    world.reset()
    assert world._engine is not None
    with pytest.raises(WorldFault, match="commands in one tick"):
        world._engine.act((0.0,) * 7, ["puke 10 1"] * 51)
    world.close()


def test_leftovers_in_shared_memory_are_swept() -> None:
    stale = workplace.SHARED / "ViZDoomSMopenfieldtest"
    stale.write_bytes(b"x")
    assert stale.name not in workplace.sweep_shared_memory()  # too young
    os.utime(stale, (0, 0))
    assert stale.name in workplace.sweep_shared_memory()
    assert not stale.exists()


HANGING = """
    import signal
    from domains.doom.test_engine import signal_engines
    from domains.doom.test_world import chance, open_world, play, trace
    from openfield.domains.doom import DUEL
    from openfield.domains.doom import engine as engines
    from openfield.record import ENCODER

    engines.CALL_SECONDS = 2.0
    expected, turns = trace(DUEL, open_world(DUEL, limit=20)), []
    for number, turn in enumerate(play(open_world(DUEL, limit=20), chance(DUEL))):
        turns.append(ENCODER.encode(turn))
        if number == 7 or turn.last:
            signal_engines(signal.SIGSTOP)
    assert turns == expected
"""


def test_an_engine_that_hangs_is_not_noticed() -> None:
    """Neither in the middle of an episode, nor between two, nor at the end of its process."""
    play_elsewhere(HANGING)


OWNER = """
    import sys
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.world import DoomWorld

    world = DoomWorld(DUEL, DUEL.trials(1, training=0)[0])
    world.reset()
    print(world._engine.wad.parent, flush=True)
    sys.stdin.read()
"""


def test_engines_do_not_outlive_an_owner_that_was_killed() -> None:
    command = [sys.executable, "-c", textwrap.dedent(OWNER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert engines_in(folder)
        owner.kill()
    deadline = time.monotonic() + 20
    while (engines_in(folder) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not engines_in(folder)
    assert not folder.exists()


def engines_in(folder: Path) -> bool:
    return subprocess.run(["pgrep", "-f", f"vizdoom .*{folder}/"], capture_output=True).returncode == 0


SILENT = """
    import sys
    from domains.doom.test_world import open_world
    from openfield.domains.doom import DUEL
    from openfield.domains.doom import engine as engines
    from openfield.errors import WorldFault

    made, engines.START_SECONDS = engines.make_game, 0.5

    def make_game(*words):
        game = made(*words)
        game.set_vizdoom_path(sys.argv[1])
        return game

    engines.make_game = make_game
    try:
        open_world(DUEL).reset()
    except WorldFault as error:
        print(error, flush=True)
"""


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("exec tail -f /dev/null --pid=$PPID >/dev/null 2>&1", "The engine did not start within 0.5 s."),
        ("", "The engine does not start"),
    ],
)
def test_an_engine_that_does_not_start_is_a_fault_of_the_world(tmp_path: Path, program: str, said: str) -> None:
    path = tmp_path / "engine"
    if program:
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
    assert said in play_elsewhere(SILENT, str(path))


def play_elsewhere(script: str, *words: str) -> str:
    """What a process of its own has to say."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", textwrap.dedent(script), *words]
    return subprocess.run(command, env=environment, timeout=60, check=True, stdout=subprocess.PIPE, text=True).stdout
