"""Isolated agents: what they record, what they cannot see or do, and what ends them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openfield as of
from conftest import Spawn
from openfield.core import Spec, Turn
from openfield.errors import Cancelled, InvalidInput
from openfield.isolation import Isolation, isolate
from openfield.journal.reader import CellRecord, Run
from openfield.journal.schema import open_to_write
from openfield.runner.isolation import bubblewrap, sandbox
from openfield.runner.isolation.agent import IsolatedFactory
from openfield.runner.isolation.sandbox import (
    UsageWatch,
    find_descendants,
    has_own_root,
    list_memory_files,
    read_share,
    read_stat,
)
from openfield.trial import Limits
from support import intruders, players
from support.places import ROOT
from support.players import Crasher, Learner, Redriven, Stateless, Swallower, copycat, numpy_believer
from support.stories import attempts, press_ctrl_c_after, story, wait_until
from support.worlds import tiny_trials

ENVIRONMENT = {
    "HOME",
    "LANG",
    "OPENFIELD_SANDBOX",
    "PATH",
    "PWD",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "TMPDIR",
} | {*("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
EXAMPLES = ROOT / "examples"
SLEEPER = "import time; kept = bytearray(b'x' * (64 << 20)); print('ready', flush=True); time.sleep(600)"


@pytest.fixture(params=[pytest.param("bubblewrap", marks=pytest.mark.sandbox), "supervisor"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both ways to isolate."""
    with contextlib.ExitStack() as stack:
        if request.param == "supervisor":
            monkeypatch.setattr(bubblewrap, "find_obstacle", lambda: "it was taken away")
            stack.enter_context(pytest.warns(RuntimeWarning, match=r"see and signal your processes.*it was taken away"))
        yield request.param


def play_all(
    path: Path, agents: Any, workers: int = 0, limits: Limits | None = None, **allowed: Any
) -> dict[str, CellRecord]:
    """Play one trial with each agent, and return what is recorded of each."""
    of.run(isolate(agents, **allowed), tiny_trials(1, limits), path, workers=workers)
    with Run(path) as run:
        assert run.verify() == []
        return {cell.agent: cell for cell in run.cells()}


def play(path: Path, agent: Any, **allowed: Any) -> CellRecord:
    """Play one trial, and return what is recorded of it."""
    (cell,) = play_all(path, agent, **allowed).values()
    return cell


def found(path: Path) -> Any:
    """Return what an intruder found."""
    with Run(path) as run:
        (cell,) = run.cells()
        assert cell.outcome == "done", cell.note
        return next(
            step.reply.belief.detail
            for step in run.steps(cell.id, cell.attempt)
            if step.reply is not None and step.reply.belief is not None and step.reply.belief.detail is not None
        )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with an agent, beside which lie other files."""
    folder = tmp_path / "home"
    folder.mkdir()
    shutil.copy(intruders.__file__, folder / "agent.py")
    return folder


# What is recorded.


@pytest.mark.smoke
def test_isolated_agents_leave_the_record_that_others_leave(tmp_path: Path, way: str) -> None:
    agents = [Learner, Redriven, Stateless, copycat, numpy_believer]
    trials = tiny_trials(1, padding=3_000)
    of.run(agents, trials, tmp_path / "plain.sqlite")
    of.run(isolate(agents), trials, tmp_path / "isolated.sqlite", workers=2 * (way == "bubblewrap"))
    assert story(tmp_path / "plain.sqlite") == story(tmp_path / "isolated.sqlite")


@pytest.mark.sandbox
@pytest.mark.parametrize("agent", [Learner, Redriven])
def test_a_stopped_run_goes_on_in_isolation(tmp_path: Path, agent: Any) -> None:
    trials = tiny_trials(2)
    of.run([agent], trials, tmp_path / "whole.sqlite")
    path = tmp_path / "parts.sqlite"
    with pytest.raises(Cancelled):
        of.run(isolate([agent]), trials, path, watch=press_ctrl_c_after(3))
    with Run(path) as run:
        assert "isolation" in run.facts
    of.resume(path)
    assert story(path) == story(tmp_path / "whole.sqlite")


@pytest.mark.sandbox
def test_trials_that_follow_another_start_from_its_agent(tmp_path: Path) -> None:
    first, second = tiny_trials(2)
    after = of.Trial(**{**{name: getattr(second, name) for name in second.__struct_fields__}, "after": first.id})
    agents = [Learner, Redriven, Stateless]
    of.run(agents, [first, after], tmp_path / "plain.sqlite")
    of.run(isolate(agents), [first, after], tmp_path / "isolated.sqlite")
    assert story(tmp_path / "plain.sqlite") == story(tmp_path / "isolated.sqlite")


@pytest.mark.sandbox
def test_arrays_and_tuples_are_shown_as_they_are(tmp_path: Path) -> None:
    shown = {"pair": (1, 2), "image": np.eye(3, dtype="uint8"), 5: {"set": frozenset({1})}}
    factory = IsolatedFactory("support.intruders:describe", "support.worlds:TINY", _settled(), tmp_path / "run.sqlite")
    try:
        agent = factory(Spec(domain="tiny", task=""), 1)
        assert agent(Turn(observation=shown)).action == repr(shown)
        assert not hasattr(agent, "save")
    finally:
        factory.close()


@pytest.mark.sandbox
def test_an_agent_is_told_its_past(tmp_path: Path) -> None:
    factory = IsolatedFactory("support.intruders:Rememberer", "support.worlds:TINY", _settled(), tmp_path / "run")
    try:
        agent = factory(Spec(domain="tiny", task=""), 1)
        for cue in (1, 0, 1, 1):
            agent.remember(Turn(observation={"cue": cue}), of.Reply(1 - cue))
            agent(Turn(observation={"cue": cue}))
        belief = agent(Turn(observation={"cue": 0})).belief
        assert belief is not None
        assert belief.detail == [[1, 0], [0, 1], [1, 0], [1, 0]]
    finally:
        factory.close()


def _settled() -> Isolation:
    return bubblewrap.adapt_isolation(Isolation())


def test_what_an_agent_raises_is_recorded_as_ever(tmp_path: Path, way: str) -> None:
    agents = [Crasher, players.Leaver, players.BadSaver]
    of.run(agents, tiny_trials(), tmp_path / "plain.sqlite", workers=1)
    cells = play_all(tmp_path / "isolated.sqlite", agents)
    assert attempts(tmp_path / "isolated.sqlite") == attempts(tmp_path / "plain.sqlite")
    assert {cell.outcome for cell in cells.values()} == {"agent_error"}


@pytest.mark.sandbox
def test_a_close_that_fails_is_a_warning(path: Path) -> None:
    with pytest.warns(RuntimeWarning, match=r"close\(\) raised OSError: cannot close"):
        assert play(path, [intruders.Closer]).outcome == "done"


# What they cannot see.


@pytest.mark.sandbox
def test_an_agent_sees_only_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "42")
    monkeypatch.setenv("GRANTED", "43")
    play(path, [intruders.Peeker], env=["GRANTED"])
    seen = found(path)
    assert set(seen["environment"]) == ENVIRONMENT | {"GRANTED"}
    assert seen["folder"] == []
    assert seen["processes"] == []
    assert not any(str(path) in command for command in seen["commands"])
    assert {name.partition(":")[0] for name in seen["files"]} <= {"socket", "/dev/null", "/proc/2/fd", "/"} | {
        name for name in seen["files"] if name.endswith("(deleted)")
    }
    assert not seen["terminal"]
    assert seen["input"] == ""
    assert not seen["kernel"]


def test_without_bubblewrap_an_agent_inherits_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "find_obstacle", lambda: "it was taken away")
    monkeypatch.setenv("SECRET", "42")
    with pytest.warns(RuntimeWarning, match="it was taken away"):
        play(path, [intruders.Peeker])
    seen = found(path)
    assert "SECRET" not in seen["environment"]
    assert seen["folder"] == []
    assert not any(name == str(path) for name in seen["files"])
    with Run(path) as run:
        assert "it was taken away" in run.facts["isolation"]


@pytest.mark.sandbox
def test_the_control_that_looks_for_the_truth_finds_nothing(path: Path, maze: of.Domain[Any]) -> None:
    trials = of.trials(maze, 1, training=1, before=1, after=1)[:1]
    of.run(isolate({"peeker": "control:peeker"}), trials, path)
    assert found(path) == {"found": []}


@pytest.mark.sandbox
def test_an_oracle_is_shown_the_world(path: Path) -> None:
    result = of.run(isolate(["oracle"]), of.trials("commai", 1, max_steps=50)[:1], path)
    assert [cell.outcome for cell in result.cells] == ["done"]


@pytest.mark.sandbox
def test_an_agent_sees_its_folder_without_run_files_and_secrets(home: Path) -> None:
    run = home / "runs" / "own.db"  # a run file may have any name
    for name in ("weights.bin", "deep/data.txt", ".env", "old.sqlite", "deep/er/old.sqlite-wal", "old.sqlite.data/x"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    (home / "secret").symlink_to(home.parent / "outside")
    (home.parent / "outside").write_text("outside")
    play(run, {"reader": f"{home}/agent.py:Reader"})
    seen = found(run)
    assert seen.keys() == {"agent.py", "weights.bin", "deep/data.txt"}


@pytest.mark.sandbox
def test_a_run_file_in_the_agents_own_folder_is_hidden(home: Path) -> None:
    play(home / "own.db", {"reader": f"{home}/agent.py:Reader"})
    assert found(home / "own.db").keys() == {"agent.py"}


@pytest.mark.sandbox
def test_run_files_of_any_name_are_hidden_and_other_databases_are_not(home: Path, path: Path) -> None:
    """A run that is still written, or was not closed, says only in its log what it is."""
    of.run("random", tiny_trials(1), home / "first.db")
    (home / "deep" / "er").mkdir(parents=True)
    for name in ("renamed.dat", "deep/er/copy"):
        shutil.copy(home / "first.db", home / name)
    with contextlib.closing(open_to_write(home.parent / "live.db")):
        for end in ("", "-wal", "-shm"):
            shutil.copy(home.parent / f"live.db{end}", home / "deep" / f"killed{end}")
        shutil.copy(home.parent / "live.db-wal", home / "log-alone")
    with contextlib.closing(sqlite3.connect(home / "deep" / "other.db")) as db:
        db.execute("PRAGMA application_id = 7")
        db.execute("CREATE TABLE words (word)")
    play(path, {"reader": f"{home}/agent.py:Reader"}, grant=[str(home / "deep" / "er")])
    assert found(path).keys() == {"agent.py", "deep/other.db"}


@pytest.mark.sandbox
def test_a_run_file_that_is_made_later_does_not_appear(home: Path) -> None:
    for name in ("later/empty/x", "data/kept.txt"):
        (home / name).parent.mkdir(parents=True)
    (home / "data" / "kept.txt").write_text("kept")
    factory = IsolatedFactory(f"{home}/agent.py:Reader", "support.worlds:TINY", _settled())
    try:
        agent = factory(Spec(domain="tiny", task=""), 1)
        for folder in ("later", "later/empty", "data", "data/new"):
            (home / folder).mkdir(exist_ok=True)
            shutil.copy(ROOT / "tests" / "data" / "kept" / "ond.sqlite", home / folder / "x.sqlite")
            (home / folder / "x.txt").write_text("later")
        beliefs = [agent(Turn(observation={"cue": 0})).belief for _ in range(intruders.CALL)]
        assert beliefs[-1] is not None
        assert beliefs[-1].detail == {"agent.py": (home / "agent.py").read_text(), "data/kept.txt": "kept"}
    finally:
        factory.close()


@pytest.mark.sandbox
def test_grants_are_seen_and_may_be_written_if_so_granted(tmp_path: Path, path: Path) -> None:
    folder, kept = tmp_path / "granted", tmp_path / "kept"
    for each in (folder, kept):
        each.mkdir()
    (folder / "old.sqlite").write_text("truth")
    (folder / "data.txt").write_text("data")
    program = tmp_path / "program" / "agent.py"
    program.parent.mkdir()
    program.write_text(
        f"import os, openfield as of\n"
        f"def agent(turn):\n"
        f"    open({str(kept / 'model')!r}, 'w').write('trained')\n"
        f"    found = sorted(os.listdir({str(folder)!r})), os.access({str(folder)!r}, os.W_OK)\n"
        f"    return of.Reply(turn.observation['cue'], of.Belief(0.5, detail=found))\n"
    )
    play(path, {"agent": f"{program}:agent"}, grant=[str(folder), f"{kept}:rw"])
    assert found(path) == [["data.txt"], False]
    assert (kept / "model").read_text() == "trained"


@pytest.mark.sandbox
@pytest.mark.parametrize("network", [False, True])
def test_the_network_must_be_granted(home: Path, path: Path, network: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        (home / "port.txt").write_text(str(server.getsockname()[1]))
        play(path, {"caller": f"{home}/agent.py:Caller"}, network=network)
    assert found(path) == ("connected" if network else "ConnectionRefusedError")


def test_the_code_of_an_isolated_agent_does_not_run_here(home: Path, path: Path, way: str) -> None:
    (home / "agent.py").write_text(
        "import os\nimport openfield as of\nPID = os.getpid()\ndef agent(turn):\n"
        "    return of.Reply(0, of.Belief(0.5, detail=PID))\n"
    )
    play(path, {"agent": f"{home}/agent.py:agent"})
    assert "openfield_file_agent" not in sys.modules
    assert found(path) != os.getpid()


# What they cannot do.


@pytest.mark.sandbox
def test_signals_of_an_agent_reach_no_other_process(path: Path) -> None:
    play(path, [intruders.Assassin], workers=1)
    assert found(path) == "sent"


def test_no_process_of_an_agent_outlives_its_cell(home: Path, path: Path, way: str) -> None:
    mark = f"squatter {home}"
    (home / "mark.txt").write_text(mark)
    play(path, {"squatter": f"{home}/agent.py:Squatter"})
    assert found(path) == "left"
    assert processes_with(mark) == []


@pytest.mark.parametrize(
    ("way", "workers", "how"),
    [
        pytest.param("bubblewrap", 0, "killed", marks=pytest.mark.sandbox),
        pytest.param("bubblewrap", 0, "Ctrl-C twice", marks=pytest.mark.sandbox),
        ("supervisor", 1, "killed"),
    ],
)
def test_no_isolated_agent_outlives_its_harness(
    home: Path, path: Path, way: str, workers: int, how: str, spawn: Spawn
) -> None:
    mark = f"squatter {home}"
    (home / "mark.txt").write_text(mark)
    (home / "agent.py").write_text((home / "agent.py").read_text().replace('return "left"', "time.sleep(600)"))
    script = home.parent / "owner.py"
    script.write_text(OWNER)
    words = f"{home}/agent.py:Squatter", path, str(workers), way
    owner = spawn("-W", "ignore", script, *words, stderr=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: processes_with(mark))
    if how == "killed":
        owner.kill()
    else:
        owner.send_signal(signal.SIGINT)
        assert owner.stderr is not None
        assert any(b"Ctrl-C again stops at once" in line for line in owner.stderr)
        owner.send_signal(signal.SIGINT)
    owner.wait()
    wait_until(lambda: not processes_with(mark))


OWNER = """
import subprocess
import sys
import openfield as of
from openfield.runner.isolation import bubblewrap
from support.worlds import tiny_trials
if __name__ == "__main__":
    if sys.argv[4] == "supervisor":
        bubblewrap.find_obstacle = lambda: "it was taken away"
    of.run(of.isolate([sys.argv[1]]), tiny_trials(), sys.argv[2], workers=int(sys.argv[3]))
"""


def processes_with(mark: str) -> list[str]:
    """Return the processes with a word in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark.encode() in path.read_bytes().split(b"\0"):
                found.append(path.parent.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "allowed", "reason"),
    [
        (intruders.Glutton, {"memory": "150MB"}, "used more than 150MB of memory"),
        (intruders.GluttonousFamily, {"memory": "150MB"}, "used more than 150MB of memory"),
        (intruders.Multiplier, {"processes": 40}, "had more than 40 processes"),
        (intruders.Burner, {"processor_seconds": 1}, "used more than 1 s of processor time"),
    ],
)
def test_an_agent_that_uses_too_much_is_ended(path: Path, agent: Any, allowed: Any, reason: str, way: str) -> None:
    cell = play(path, [agent], **allowed)
    assert cell.outcome == "agent_error"
    assert reason in cell.note
    assert cell.steps == intruders.CALL


@pytest.mark.sandbox
def test_files_in_memory_count_as_memory(path: Path) -> None:
    for cell in play_all(path, [intruders.Hoarder, intruders.Hider], memory="200MB").values():
        assert (cell.outcome, "used more than 200MB of memory" in cell.note) == ("agent_error", True)


def test_a_reply_of_too_many_values_is_not_read(path: Path, way: str) -> None:
    cell = play(path, [intruders.Nester])
    assert (cell.outcome, cell.note) == ("agent_protocol", "The agent's reply has more than 4,000,000 values.")


def test_files_have_a_greatest_size(path: Path, way: str) -> None:
    cell = play(path, [intruders.Writer], file_size="1MB")
    assert (cell.outcome, "File too large" in cell.note) == ("agent_error", True)


@pytest.mark.slow
def test_an_agent_that_hangs_is_ended(path: Path, way: str) -> None:
    agents, limits = [intruders.Hanger, Swallower], Limits(reply_seconds=2.0)
    cells = play_all(path, agents, int(way == "bubblewrap"), limits)
    assert {name: (cell.outcome, cell.steps) for name, cell in cells.items()} == {
        "Hanger": ("agent_timeout", intruders.CALL),
        "Swallower": ("agent_timeout", players.FATAL_CALL),
    }


def test_an_agent_that_misbehaves_harms_only_itself(path: Path, way: str) -> None:
    bad = (intruders.Shouter, intruders.Forker, intruders.Talker, intruders.Liar, intruders.Leaver, players.Suicide)
    cells = play_all(path, bad)
    assert {name: cell.outcome for name, cell in cells.items()} == {
        "Shouter": "done",
        "Forker": "done",
        "Talker": "agent_protocol",
        "Liar": "agent_protocol",
        "Leaver": "agent_error",
        "Suicide": "agent_error",
    }
    assert "a message of 17," in cells["Talker"].note
    assert cells["Leaver"].note == "The agent ended the process it ran in (exit status 7)."
    assert cells["Suicide"].note == "The agent ended the process it ran in (signal SIGKILL)."


# Programs.


def test_programs_are_isolated_too(tmp_path: Path, path: Path, way: str) -> None:
    program, weights = tmp_path / "home" / "program.py", tmp_path / "weights.txt"
    program.parent.mkdir()
    weights.write_text("1 2 3")
    program.write_text(PROGRAM)
    play(path, {"program": f"process:{sys.executable} -S {program} --weights={weights}"})
    seen = found(path)
    assert seen["weights"] == "1 2 3"
    assert seen["here"] == []
    assert "PYTEST_CURRENT_TEST" not in seen["environment"]
    assert way == "supervisor" or seen["processes"] <= 3


PROGRAM = r"""
import json, os, sys
def say(**message): print(json.dumps(message), flush=True)
say(type="hello")
weights = sys.argv[1].partition("=")[2]
found = {
    "weights": open(weights).read(),
    "here": os.listdir(),
    "environment": sorted(os.environ),
    "processes": sum(name.isdecimal() for name in os.listdir("/proc")),
}
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "turn" and message["ask"] == "act":
        say(type="reply", action=message["observation"]["cue"], belief={"novel": 0.5, "detail": found})
"""


def test_a_program_that_cannot_be_started_is_gone(path: Path, way: str) -> None:
    cell = play(path, {"program": "process:no-such-program"})
    assert (cell.outcome, cell.note) == (
        "agent_gone",
        "'no-such-program' cannot be started: No such file or directory.",
    )


def test_a_program_on_a_wire_reaches_its_server(path: Path, way: str) -> None:
    command = f"wire:{sys.executable} {EXAMPLES / 'tcp_agent.py'} {{host}} {{port}}"
    trials = of.trials(of.registry.find_domain(str(EXAMPLES / "maze.py")), 1)
    of.run({"program": command}, trials, path.with_name("plain.sqlite"))
    of.run(isolate({"program": command}), trials, path)
    assert story(path) == story(path.with_name("plain.sqlite"))


def test_a_program_on_a_wire_that_uses_too_much_is_ended(tmp_path: Path, path: Path, way: str) -> None:
    program = tmp_path / "program.py"
    program.write_text("kept = bytearray(b'x' * (300 << 20))\nimport time\ntime.sleep(600)\n")
    cell = play(path, {"program": f"wire:{sys.executable} -S {program} {{port}}"}, memory="150MB")
    assert (cell.outcome, "used more than 150MB of memory" in cell.note) == ("agent_gone", True)


# What is refused.


@pytest.mark.sandbox
def test_a_run_is_isolated_as_a_whole(path: Path) -> None:
    of.run(isolate([copycat]), tiny_trials(), path)
    with pytest.raises(InvalidInput, match=r"was begun with --isolate\. Add it, or use another run file\."):
        of.run([copycat], tiny_trials(2), path)
    plain = path.with_name("plain.sqlite")
    of.run([copycat], tiny_trials(), plain)
    with pytest.raises(InvalidInput, match=r"was begun without --isolate\. Leave it out, or use another run file\."):
        of.run(isolate([copycat]), tiny_trials(2), plain)


@pytest.mark.sandbox
def test_a_run_inside_bubblewrap_goes_on_inside_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of.run(isolate([copycat]), tiny_trials(), path)
    monkeypatch.setattr(bubblewrap, "find_obstacle", lambda: "it was taken away")
    with pytest.warns(RuntimeWarning), pytest.raises(InvalidInput, match="was begun inside bubblewrap"):
        of.run(isolate([copycat]), tiny_trials(2), path)


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (lambda turn: None, "cannot be isolated, because another process cannot import it"),
        ("wire:@127.0.0.1:5999", "waits for a program that is started elsewhere; it cannot be isolated"),
        ("nobody.py:Agent", "no such file: .*nobody.py"),
        ("support.players:Lerner", "Unknown name 'Lerner'. Did you mean 'Learner'?"),
    ],
)
def test_agents_that_cannot_be_isolated_are_refused(path: Path, agent: Any, message: str, way: str) -> None:
    with pytest.raises(of.errors.OpenfieldError, match=message):
        of.run(isolate({"agent": agent}), tiny_trials(), path)


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ({"memory": "lots"}, "'lots' is not a size; write 500MB or 2GB"),
        ({"memory": "0GB"}, "'0GB' is not a size"),
        ({"grant": ["/no/such/file"]}, "--grant /no/such/file: there is no such file or folder"),
        ({"env": ["NO_SUCH_NAME"]}, "--env NO_SUCH_NAME: there is no such environment variable"),
        ({"disk": "1GB"}, "isolate: Unknown key 'disk'. Keys of isolate: env, file_size"),
    ],
)
def test_what_may_be_used_is_checked(allowed: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        isolate(["random"], **allowed)


def test_processes_are_measured_from_outside() -> None:
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', {SLEEPER!r}])"
    parent = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        (child,) = find_descendants(parent.pid)
        threads, seconds, resident = read_stat(child)
        assert threads == 1
        assert 0 < seconds < 60
        assert 64 << 20 < resident < 128 << 20
        assert 64 << 20 < read_share(child) <= resident
    finally:
        os.killpg(parent.pid, 9)
        parent.communicate()


def test_files_without_a_name_are_found() -> None:
    number = os.memfd_create("kept")
    try:
        os.write(number, b"x" * 8192)
        assert (os.fstat(number).st_ino, 8192) in list(list_memory_files(sandbox.PROC / "self"))
    finally:
        os.close(number)


def test_what_an_agent_prints_is_not_kept_for_ever() -> None:
    with tempfile.TemporaryFile() as output:
        output.write(bytes(range(256)) * (sandbox.MAX_OUTPUT // 256 + 1))
        output.flush()
        watch = UsageWatch(Isolation(), lambda: [], lambda: None)
        watch.output = output.fileno()
        wait_until(lambda: os.fstat(output.fileno()).st_size == 0)
        watch.close()
        assert watch.reason == ""


def test_what_the_machine_uses_is_not_counted_while_a_sandbox_is_set_up() -> None:
    """The first process of a sandbox still sees the files and processes of the machine, and on a busy one for long."""
    assert not has_own_root(os.getpid())
    assert not has_own_root(0)
    looks: list[Path] = []

    def find() -> list[Path]:
        looks.append(sandbox.PROC)
        return []

    watch = UsageWatch(Isolation(memory="1KB"), find, lambda: None)
    watch.folders = ("/",)
    wait_until(lambda: len(looks) > 3 or watch.reason)
    watch.close()
    assert watch.reason == ""
