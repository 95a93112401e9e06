"""The engine's care: it dies, it hangs, its owner is killed, its WAD is broken, and nothing is lost or left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from openfield.core import Reply
from openfield.domains.doom import DUEL
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.engine import engine as engines
from openfield.domains.doom.engine import launch, watchdog, workdir
from openfield.domains.doom.world import DoomWorld
from openfield.errors import InvalidInput, WorldFault
from openfield.record import ENCODER
from support.doom.engines import own_engines, signal_engines
from support.doom.worlds import TASKS, chance, open_world, play, trace
from support.stories import wait_until


@pytest.mark.engine
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
    from openfield.domains.doom.maps.scenario import write_wad

    path = tmp_path / "broken.wad"
    path.write_bytes(write_wad([("DECORATE", b"ACTOR Nonsense : NoSuchThing { Health }")]))
    with pytest.raises(WorldFault, match="refuses") as caught:
        launch.check_wad(path)
    assert "NoSuchThing" in str(caught.value)
    assert "Warning" not in str(caught.value)


@pytest.mark.parametrize("kind", ["link", "open", "file", "foreign"])
def test_a_folder_that_others_can_use_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(workdir.tempfile, "gettempdir", lambda: str(tmp_path))
    place = tmp_path / f"openfield-doom-{os.getuid()}"
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    elif kind == "file":
        place.touch(0o700)
    else:
        place.mkdir()
        place.chmod(0o777 if kind == "open" else 0o700)
    if kind == "foreign":
        own = os.getuid()
        monkeypatch.setattr(workdir.os, "getuid", lambda: own + 1)
        place.rename(tmp_path / f"openfield-doom-{os.getuid()}")
    with pytest.raises(InvalidInput, match="only this user"):
        workdir.shared_folder()


@pytest.mark.engine
def test_too_many_commands_are_refused() -> None:
    world = open_world(DUEL)
    world.reset()
    assert world._engine is not None
    with pytest.raises(WorldFault, match="commands in one tick"):
        world._engine.act((0.0,) * 7, ["puke 10 1"] * 51)
    world.close()


def test_leftovers_in_shared_memory_are_swept() -> None:
    stale = workdir.SHARED / "ViZDoomSMopenfieldtest"
    stale.write_bytes(b"x")
    assert stale.name not in workdir.sweep_shared_memory()  # too young
    os.utime(stale, (0, 0))
    assert stale.name in workdir.sweep_shared_memory()
    assert not stale.exists()


HANGING = """
    import signal
    from support.doom.engines import signal_engines
    from support.doom.worlds import chance, open_world, play, trace
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.engine import engine as engines
    from openfield.record import ENCODER

    engines.CALL_SECONDS = 2.0
    expected, turns = trace(DUEL, open_world(DUEL, limit=20)), []
    for number, turn in enumerate(play(open_world(DUEL, limit=20), chance(DUEL))):
        turns.append(ENCODER.encode(turn))
        if number == 7 or turn.last:
            signal_engines(signal.SIGSTOP)
    assert turns == expected
"""


@pytest.mark.engine
def test_an_engine_that_hangs_is_not_noticed() -> None:
    """Neither in the middle of an episode, nor between two, nor at the end of its process."""
    play_elsewhere(HANGING)


OWNER = """
    import sys
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.world import DoomWorld

    world = DoomWorld(DUEL, DUEL.trials(1, training=0, unchanged=0)[0])
    world.reset()
    print(world._engine.wad.parent, flush=True)
    sys.stdin.read()
"""


@pytest.mark.engine
@pytest.mark.parametrize("together", [False, True])
def test_engines_do_not_outlive_an_owner_that_was_killed(together: bool) -> None:
    """Nor does their shared memory, also where engines are killed with it, as when a terminal is closed."""
    command = [sys.executable, "-c", textwrap.dedent(OWNER)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert engines_in(folder)
        memory = [
            path for _, words in watchdog._engines() if shares(words, folder) for path in watchdog._shared(words, "*")
        ]
        assert memory
        os.killpg(owner.pid, signal.SIGKILL) if together else owner.kill()
    wait_until(lambda: not engines_in(folder))
    wait_until(lambda: not folder.exists())
    assert not [path for path in memory if path.exists()]


def shares(words: list[bytes], folder: Path) -> bool:
    return any(word.startswith(os.fsencode(folder)) for word in words)


@pytest.mark.parametrize("cut", [b"+viz_instance_id", b"+viz_instance_id\0", b"+viz_instance_id\0opEN"])
def test_words_of_an_engine_that_were_cut_off_stand_for_no_shared_memory(tmp_path: Path, cut: bytes) -> None:
    other = workdir.SHARED / "ViZDoomSMopenfieldtestopEN"
    other.write_bytes(b"x")
    (tmp_path / "own" / "engine-1.ini-x").mkdir(parents=True)
    (tmp_path / "own" / "engine-1.ini-x" / watchdog.ARGUMENTS_FILE).write_bytes(b"vizdoom\0" + cut)
    watchdog.remove_folder(tmp_path / "own")
    assert not (tmp_path / "own").exists()
    assert other.exists()
    other.unlink()


def test_a_folder_is_removed_though_a_shell_leaves_a_word_in_it_just_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, remove, words = tmp_path / "1", shutil.rmtree, ["gone", "gone"]
    folder.mkdir()

    def remove_and_be_disturbed(path: Path, ignore_errors: bool) -> None:
        remove(path, ignore_errors=ignore_errors)
        if words:
            path.mkdir()
            (path / words.pop()).touch()

    monkeypatch.setattr(shutil, "rmtree", remove_and_be_disturbed)
    watchdog.remove_folder(folder)
    assert not folder.exists()


def engines_in(folder: Path) -> bool:
    return subprocess.run(["pgrep", "-f", f"vizdoom .*{folder}/"], capture_output=True).returncode == 0


BAD = """
    import sys
    from pathlib import Path
    import openfield as of
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.engine import launch

    launch.START_SECONDS = float(sys.argv[2])
    launch.engine_path = lambda: Path(sys.argv[1])
    trials = DUEL.trials(1, training=0, episodes=1, unchanged=0)
    for cell in of.run("random", trials, Path(sys.argv[1]).with_name("run.sqlite")).cells:
        print(cell.outcome, cell.note, flush=True)
"""


@pytest.mark.engine
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("exec sleep 4 >/dev/null 2>&1", "The engine did not start within 1 s."),
        ("exit 1", "The engine died at its start."),
        ("kill -9 $$", "The engine died at its start."),
        ("", "The engine died at its start."),
    ],
    ids=["hangs", "ends", "is killed", "is not there"],
)
def test_an_engine_that_does_not_start_is_a_fault_of_the_world(tmp_path: Path, program: str, said: str) -> None:
    """The process that plays lives on, though the engine's package would have taken it with it."""
    path = tmp_path / "engine"
    if program:
        path.write_text(f"#!/bin/sh\n{program}\n")
        path.chmod(0o755)
    told = play_elsewhere(BAD, str(path), "1" if "sleep" in program else "60")
    assert told.startswith("world_error")
    assert said in told


KILLED = """
    import sys, threading, time
    from support.doom.engines import own_engines, signal_engines
    from support.doom.worlds import open_world, trace
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.engine import engine as engine
    from openfield.domains.doom.engine import watchdog

    def kill_early(delay):
        while not own_engines():
            time.sleep(0.001)
        time.sleep(delay)
        signal_engines(9)
        killed.append(delay)

    expected, killed = trace(DUEL, open_world(DUEL, limit=20)), []
    for delay in (0.0, 0.03, 0.1):
        engine.close_idle_engines()
        killer = threading.Thread(target=kill_early, args=(delay,))
        killer.start()
        assert trace(DUEL, open_world(DUEL, limit=20)) == expected
        killer.join()
    print(killed)
"""


@pytest.mark.engine
def test_an_engine_that_is_killed_at_its_start_is_not_noticed() -> None:
    assert "[0.0, 0.03, 0.1]" in play_elsewhere(KILLED)


LATE = """
    import os, signal, sys, threading, time
    from pathlib import Path
    import openfield as of
    from support.doom.engines import own_engines, signal_engines
    from support.doom.worlds import open_world
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.engine import launch

    launch.check_wad(open_world(DUEL)._maps.wad)
    await_start, late = launch._await, []

    def wait(thread, gone):
        if late:
            launch.START_SECONDS = 1200.0  # only the first start is given up
        else:
            launch.START_SECONDS = 4.0
            while not own_engines():
                time.sleep(0.001)
            signal_engines(signal.SIGSTOP)
            late.extend(own_engines())
        await_start(thread, gone)

    launch._await = wait

    def end_first():
        while not late or len(own_engines()) <= len(late):
            time.sleep(0.01)
        if sys.argv[2]:
            os.kill(late[0], getattr(signal, sys.argv[2]))
            while set(late) & set(own_engines()):
                time.sleep(0.01)

    holder = threading.Thread(target=end_first)
    holder.start()
    trials = DUEL.trials(3, training=0, episodes=1, limit=20, unchanged=0)
    for cell in of.run("random", trials, Path(sys.argv[1]), workers=0).cells:
        print(cell.outcome)
    holder.join()
"""


@pytest.mark.engine
@pytest.mark.parametrize("later", ["", "SIGCONT", "SIGKILL"], ids=["hangs on", "starts late", "dies late"])
def test_a_run_in_one_process_survives_an_engine_that_hangs_at_its_start(tmp_path: Path, later: str) -> None:
    """Whatever becomes of that engine: its start is given up, the cell is played on another."""
    assert play_elsewhere(LATE, str(tmp_path / "run.sqlite"), later).split() == ["done"] * 3


CROWD = """
    import threading
    from support.doom.worlds import open_world
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.engine import engine as engine
    from openfield.domains.doom.engine import launch

    wad, started = open_world(DUEL)._maps.wad, []
    launch.check_wad(wad)

    def start():
        made = engine.Engine(wad)
        started.append(made.begin("E00000", 1) is not None)
        made.close()

    threads = [threading.Thread(target=start) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(sum(started))
"""


@pytest.mark.engine
def test_threads_may_start_their_first_engines_at_once() -> None:
    assert play_elsewhere(CROWD).strip() == "5"


STUCK = """
    import os, signal, subprocess
    from support.doom.engines import own_engines, signal_engines
    from support.doom.worlds import chance, open_world, play, trace
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.engine import engine as engines
    from openfield.domains.doom.engine import watchdog
    from openfield.record import ENCODER

    engines.CALL_SECONDS = 2.0
    ended = subprocess.Popen(["true"])
    ended.wait()

    def die_within_queues():
        signal_engines(signal.SIGSTOP)
        own = set(own_engines())
        for number, words in watchdog._engines():
            for path in watchdog._shared(words, "MQ*") if number in own else ():
                with path.open("r+b") as file:
                    file.seek(watchdog.MUTEX_AT)
                    file.write(watchdog.MUTEX.pack(1, 0, ended.pid, 1, watchdog.SHARED_MUTEX))
        signal_engines(signal.SIGKILL)

    expected, turns = trace(DUEL, open_world(DUEL, limit=20)), []
    for number, turn in enumerate(play(open_world(DUEL, limit=20), chance(DUEL))):
        turns.append(ENCODER.encode(turn))
        if number == 7:
            die_within_queues()
    assert turns == expected
"""


@pytest.mark.engine
def test_an_engine_that_dies_within_a_queue_is_not_noticed() -> None:
    """Its owner waits for a lock that a dead process holds, inside a call that Python cannot interrupt."""
    play_elsewhere(STUCK)


WAITING = """
    import multiprocessing, sys, time
    from support.doom.worlds import open_world
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.engine import engine as engines
    from openfield.processes.forks import WORKER_NAME

    if sys.argv[1] == "worker":
        multiprocessing.current_process().name = WORKER_NAME
    engines.CALL_SECONDS = 0.5
    world = open_world(DUEL)
    world.reset()
    with world._engine._heartbeat:  # as if a call came to no end
        time.sleep(50 if sys.argv[1] == "worker" else 3)
    print("alive")
"""


@pytest.mark.engine
def test_a_process_of_the_user_is_never_ended_and_a_worker_that_waits_for_ever_is() -> None:
    assert play_elsewhere(WAITING, "user").strip() == "alive"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        play_elsewhere(WAITING, "worker")
    assert caught.value.returncode == -signal.SIGKILL


def test_without_shared_memory_no_engine_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    engines.close_idle_engines()
    monkeypatch.setattr(launch, "MIN_MEMORY", 1 << 60)
    with pytest.raises(WorldFault, match="There is no room for an engine"):
        open_world(DUEL, limit=19).reset()


@pytest.mark.engine
def test_the_queues_of_an_engine_have_their_memory_from_the_start() -> None:
    """Else an engine might die of a lack of it while it has them locked, and its owner would wait for ever."""
    world = open_world(DUEL)
    world.reset()
    own = set(own_engines())
    queues = [path for number, words in watchdog._engines() if number in own for path in watchdog._shared(words, "MQ*")]
    assert queues
    assert all(path.stat().st_blocks * 512 >= path.stat().st_size for path in queues)
    world.close()


LITTER = """
    import os
    from support.doom.worlds import open_world
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.engine import launch

    launch.check_wad(open_world(DUEL)._maps.wad)
    open_world(DUEL).reset()
    print(os.listdir())
"""


@pytest.mark.engine
def test_nothing_is_left_where_it_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert play_elsewhere(LITTER).strip() == "[]"


def play_elsewhere(script: str, *words: str) -> str:
    """What a process of its own has to say."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", textwrap.dedent(script), *words]
    return subprocess.run(command, env=environment, timeout=1200, check=True, stdout=subprocess.PIPE, text=True).stdout


FORKS = """
    import os, time
    from openfield.domains.doom import DUEL
    from openfield.domains.doom.engine import engine as engine
    from openfield.domains.doom.world import DoomWorld

    engine.CALL_SECONDS = 5.0
    first, trials = os.getpid(), DUEL.trials(4, training=0, episodes=1, unchanged=0)
    DUEL.expect(trials[:2])

    def play(trial):
        world = DoomWorld(DUEL, trial)
        world.reset()
        wad = world._engine.wad
        world.close()
        return wad.parent.name == str(os.getpid())

    assert play(trials[0]) and play(trials[2])
    child = os.fork()
    if not child:
        status = 0 if play(trials[1]) and play(trials[3]) else 1
        if not os.fork():  # and a further one, which outlives all others
            os.close(1), os.close(2)
            while os.path.exists(f"/proc/{first}"):
                time.sleep(0.1)
        os._exit(status)
    status = os.waitpid(child, 0)[1]
    print(os.waitstatus_to_exitcode(status), [at_rest._game.is_running() for at_rest in engine._idle])
    assert play(trials[0]) and play(trials[2])
"""


@pytest.mark.engine
def test_engines_at_rest_are_left_to_the_process_that_started_them() -> None:
    """A child that was forked, as environments side by side are, has engines of its own."""
    command = [sys.executable, "-c", textwrap.dedent(FORKS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "0 [True, True]\n", done.stderr


@pytest.mark.engine
def test_wads_that_nobody_needs_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workdir, "MAX_WADS", 2)
    monkeypatch.setattr(workdir, "MIN_AGE", 0.0)
    engines.close_idle_engines()
    for wad in workdir.process_folder().glob("*.wad"):
        wad.unlink()
    first, *others = DUEL.trials(6, training=0, episodes=1, unchanged=0)
    playing = DoomWorld(DUEL, first)
    playing.reset()
    used = []
    for trial in others:
        world = DoomWorld(DUEL, trial)
        world.reset()
        used.append(world._maps.wad)
        world.close()
    assert set(workdir.process_folder().glob("*.wad")) == {playing._maps.wad, *used[-3:]}  # two were at rest
    playing.close()


def test_a_wad_whose_engine_has_yet_to_start_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many threads have just written theirs."""
    monkeypatch.setattr(workdir, "MAX_WADS", 1)
    wads = [workdir.keep_wad(content) for content in (b"first", b"second", b"third")]
    workdir.drop_wads(())
    assert all(wad.exists() for wad in wads)
    for wad in wads:
        wad.unlink()


@pytest.mark.engine
def test_an_engine_that_is_started_again_takes_no_further_folder() -> None:
    world = open_world(DUEL, limit=10)
    world.reset()
    before = folders()
    for _ in range(3):
        signal_engines(signal.SIGKILL)
        world.step(Reply("nothing"))
    assert folders() == before
    world.close()


def folders() -> int:
    return sum(place.is_dir() for place in workdir.process_folder().iterdir())
