"""Every example runs as its first lines say."""

from __future__ import annotations

import ast
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import openfield as of
from conftest import ROOT
from openfield.journal.reader import CellRecord, Run
from openfield.registry import find_domain
from support.voice import find_offences

EXAMPLES = ROOT / "examples"
MAZE = str(EXAMPLES / "maze.py")
STDIO = f"process:{sys.executable} {EXAMPLES / 'stdio_agent.py'}"
TCP = f"wire:{sys.executable} {EXAMPLES / 'tcp_agent.py'} {{host}} {{port}}"
SUBJECTS = {
    "breakout.py": "gym:ALE/Breakout-v5",
    "catch.py": "examples/catch.py",
    "commai_learner.py": "commai",
    "door.py": "gym:MiniGrid-DoorKey-5x5-v0",
    "fog.py": "gym:CartPole-v1",
    "garden.py": "gym:examples/garden.py:Garden",
}
SCRIPTS = ("commai_task.py", "curves.py", "local_model.py", "onnx_network.py", "q_learner.py")
OLD = [name for name in ("python3.6", "python3.7", "python3.8", "python3.9") if shutil.which(name)]


def maze_trials(count: int = 3, **options: object) -> list[of.Trial]:
    return of.trials(MAZE, count, **options, unchanged=0)


def test_the_maze_is_a_domain_in_fewer_than_120_lines() -> None:
    assert len(Path(MAZE).read_text().splitlines()) <= 120
    domain = find_domain(MAZE)
    assert [novelty.id for novelty in domain.novelties] == ["swapped", "slip:easy", "slip:hard"]
    (trial,) = maze_trials(1, onset=10)
    assert [(phase.name, phase.episodes, phase.novelty) for phase in trial.phases] == [
        ("training", 5, ()),
        ("test", 10, ()),
        ("test", 15, ("swapped",)),
    ]


def test_the_compass_beats_chance_and_notices_the_swap(path: Path) -> None:
    of.run(["compass", "random"], maze_trials(), path)
    with Run(path) as run:
        cells = run.cells()
    assert {cell.outcome for cell in cells} == {"done"}
    assert mean(*cells[::2]) > mean(*cells[1::2]) + 0.2
    for cell in cells:
        detected = {episode.detected for episode in cell.episodes if episode.novel}
        assert (cell.agent == "compass") == (True in detected)
        assert not any(episode.detected for episode in cell.episodes if not episode.novel)


def test_the_follower_catches_until_its_moves_are_swapped_and_then_says_so(path: Path) -> None:
    of.run(["follower", "random"], of.trials(str(EXAMPLES / "catch.py"), 3, unchanged=0), path)
    with Run(path) as run:
        cells = run.cells()
    for cell in (cell for cell in cells if cell.agent == "follower"):
        usual = [episode for episode in cell.episodes if not episode.novel]
        assert {(episode.performance, episode.detected) for episode in usual} == {(1.0, False)}
        assert all(episode.detected for episode in cell.episodes if episode.novel)
    assert not any(episode.detected for cell in cells if cell.agent == "random" for episode in cell.episodes)


def test_programs_on_stdio_and_tcp_play_the_maze_alike(path: Path) -> None:
    """Both hold the same walker; only their seeds differ, so they do about as well."""
    of.run({"stdio": STDIO, "tcp": TCP, "random": "random"}, maze_trials(2), path, workers=2)
    with Run(path) as run:
        cells = run.cells()
        assert [(cell.outcome, cell.note) for cell in cells] == [("done", "")] * 6
    for cell in cells:
        noticed = any(episode.detected for episode in cell.episodes if episode.novel)
        if cell.agent == "random":
            assert (mean(cell) < 0.35, noticed) == (True, False)
        else:
            assert (mean(cell) > 0.5, noticed) == (True, True)


def mean(*cells: CellRecord) -> float:
    values = [episode.performance or 0.0 for cell in cells for episode in cell.episodes]
    return sum(values) / len(values)


@pytest.mark.skipif(not OLD, reason="there is no older Python here")
@pytest.mark.parametrize("name", OLD[:1])
def test_the_stdio_agent_runs_on_an_old_python(path: Path, name: str) -> None:
    if subprocess.run([name, "-c", "pass"], capture_output=True).returncode:
        pytest.skip(f"{name} does not run")
    of.run([f"process:{name} {EXAMPLES / 'stdio_agent.py'}"], maze_trials(1), path)
    with Run(path) as run:
        (cell,) = run.cells()
    assert (cell.outcome, len(cell.episodes)) == ("done", 30)


@pytest.mark.parametrize("name", ["stdio_agent.py", "tcp_agent.py"])
def test_programs_import_nothing_of_ours_and_no_new_syntax(name: str) -> None:
    tree = ast.parse((EXAMPLES / name).read_text(), feature_version=(3, 6))
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imports <= {"base64", "json", "random", "socket", "sys"}


def test_every_example_says_what_it_is() -> None:
    for file in EXAMPLES.glob("*.py"):
        (command,) = (line for line in _words(file).splitlines() if line.startswith("Try it: "))
        assert f"examples/{file.name}" in command
        subject = SUBJECTS.get(file.name, "examples/maze.py")
        start = f"python examples/{file.name}" if file.name in SCRIPTS else f"openfield run {subject} --agent "
        assert command.startswith(f"Try it: {start}")


def test_docstrings_begin_with_a_verb() -> None:
    files = sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("baselines/*.py")])
    assert [offence for file in files for offence in find_offences(file)] == []


@pytest.mark.slow
def test_a_learner_of_the_challenge_runs_as_its_first_lines_say(tmp_path: Path) -> None:
    command = _words(EXAMPLES / "commai_learner.py").partition("Try it: openfield ")[2].splitlines()[0]
    words = [*shlex.split(command.replace("examples/", f"{EXAMPLES}/")), "--trials", "1", "--set", "max_steps=3000"]
    done = subprocess.run([sys.executable, "-m", "openfield", *words], cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    with Run(tmp_path / "runs" / "commai.sqlite") as run:
        cells = {cell.agent.rpartition(":")[2]: cell for cell in run.cells()}
    patient, echo = (cells[name].episodes for name in ("Patient", "echo"))
    assert sum(bool(episode.detail["solved"]) for episode in patient) > 3
    assert not any(episode.detail["solved"] for episode in echo if episode.detail["task"] == "micro1")


def _words(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text())) or ""


def test_the_trained_learner_plays_through_the_ordinary_rollout(path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    trials = of.trials("commai", 1, tasks="micro4", max_steps=250, unchanged=0)
    (cell,) = of.run({"learner": f"onnx:{EXAMPLES / 'train_commai' / 'learner.onnx'}"}, trials, path).cells
    assert cell.outcome == "done"
    solved = [episode.detail["solved"] for episode in cell.episodes if episode.detail["solved"] is not None]
    assert len(solved) >= 5
    assert all(solved)
    assert all(episode.belief is not None and 0 <= episode.belief.novel <= 1 for episode in cell.episodes)
