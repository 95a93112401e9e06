"""A tiny study of two toy games, from its file to its page; killed, resumed and given bad input."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from openfield.cli import run_command
from openfield.objectives import Tracker, evaluate
from openfield.objectives.frames.table_of_episodes import Recipe, build_table, episodes_of_arrays
from openfield.objectives.games import game_study
from openfield.objectives.games.learners import make_study_agent
from openfield.objectives.games.life_file import collect_life, make_life_table, make_study_env, read_life, write_life
from openfield.objectives.games.plan import AGENTS, LifeTask, StudyGame, list_lives, read_game_plan
from support.places import ROOT

STUDY = """
agents = ["noop", "random", "count_bonus"]
[full]
steps = 120
seeds = 2
[quick]
steps = 40
seeds = 2
[[games]]
name = "field"
environment = "support.toy_games:ToyField-v0"
[[games]]
name = "storm"
environment = "support.toy_games:ToyStorm-v0"
make = { width = 5 }
"""
PATIENCE = 60
"""Seconds for a busy machine; nothing here waits as long."""


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "toy_study.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def field():
    return StudyGame("field", "support.toy_games:ToyField-v0")


def test_a_tiny_study_with_two_processes_makes_a_page(plan, run, tmp_path):
    status, said, failed = run("study", plan, "--quick", "-o", tmp_path / "out", "--workers", 2)
    assert (status, failed) == (0, "")
    assert "6 agents in 2 environments" in said
    page = (tmp_path / "out" / "study.html").read_text()
    for word in ("input entropy of each life", "95 % interval", "count_bonus", "steps of each life", "paper"):
        assert word.lower() in page.lower()
    found = json.loads((tmp_path / "out" / "study.json").read_text())
    noop = next(row for row in found["rows"] if (row["environment"], row["agent"]) == ("field", "noop"))
    assert noop["values"]["empowerment"] == 0
    assert noop["transitions"] == 40
    low, high = noop["intervals"]["input_entropy"]
    assert low <= noop["values"]["input_entropy"] <= high
    assert "openfield play" in noop["reasons"]["human_similarity"]
    again, said, _ = run("study", plan, "--quick", "-o", tmp_path / "out", "--workers", 0, "--json")
    assert again == 0
    assert json.loads(said)["rows"] == found["rows"]


def test_values_are_those_of_the_frames(plan, field, tmp_path):
    """A life in a study, a tracked life and a table of its frames are equal to the last bit."""
    (task, *_) = [
        task for task in list_lives(read_game_plan(plan), read_game_plan(plan).full, tmp_path) if task.agent == "random"
    ]
    life = collect_life(task)
    tracker = Tracker(make_study_env(field))
    agent = make_study_agent("random", actions=4, noop=0, steps=120, seed=0)
    frames, actions, ends = [], [], []
    frame = tracker.reset(seed=0)[0]
    for _ in range(120):
        frames.append(frame)
        actions.append(agent.act(frame))
        frame, _, terminated, truncated, _ = tracker.step(actions[-1])
        ends.append(False)
        if terminated or truncated:
            frames.append(frame)
            actions.append(0)
            ends.append(True)
            frame = tracker.reset()[0]
    if not ends[-1]:
        frames, actions, ends = [*frames, frame], [*actions, 0], [*ends, True]
    expected = build_table(episodes_of_arrays(np.array(frames), np.array(actions), np.array(ends)), Recipe())
    bins = game_study.find_life_thresholds([life])
    found = make_life_table(life.frames, life.rows, bins)
    for table in (found, tracker.table()):
        assert np.array_equal(table.obs, expected.obs)
        assert np.array_equal(table.count, expected.count)
        assert evaluate(table, num_obs=99).values == evaluate(expected, num_obs=99).values
    assert life.rewards.sum() > 0


def test_a_killed_study_goes_on_where_it_was(plan, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    words = [sys.executable, "-m", "openfield", "objectives", "study", str(plan), "-o", str(tmp_path / "out")]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests"), "OPENFIELD_GATE": str(gate)}
    process = subprocess.Popen([*words, "--workers", "0"], env=environment, cwd=tmp_path)
    tasks = list_lives(read_game_plan(plan), read_game_plan(plan).full, tmp_path / "out" / "lives")
    first = [task.path for task in tasks if task.seed == 0]
    end = time.monotonic() + PATIENCE
    while not all(path.exists() for path in first) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert all(path.exists() for path in first)
    assert not any(task.path.exists() for task in tasks if task.seed == 1)
    kept = {path: path.stat().st_mtime_ns for path in first}
    played = []
    game_study.run_games(
        read_game_plan(plan),
        read_game_plan(plan).full,
        tmp_path / "out" / "lives",
        base=tmp_path,
        workers=0,
        progress=lambda done, total: played.append((done, total)),
        draws=10,
    )
    assert played[0] == (6, 12)
    assert played[-1] == (12, 12)
    assert {path: path.stat().st_mtime_ns for path in first} == kept


def test_a_damaged_life_is_played_again(field, tmp_path):
    task = LifeTask(field, "random", 3, 50, tmp_path / "life.npz")
    life = collect_life(task)
    write_life(life, task.path)
    again = read_life(task.path)
    assert all(np.array_equal(one, other) for one, other in zip(life, again, strict=True))
    task.path.write_bytes(task.path.read_bytes()[:-40])
    assert read_life(task.path) is None
    assert read_life(tmp_path / "none.npz") is None


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_repeats_itself_and_takes_legal_actions(name, field, tmp_path):
    first, second = (collect_life(LifeTask(field, name, 5, 150, tmp_path / "x.npz")) for _ in range(2))
    assert np.array_equal(first.actions, second.actions)
    assert np.array_equal(first.rewards, second.rewards)
    assert set(first.actions.tolist()) <= {-1, 0, 1, 2, 3}
    assert len(first.rewards) == 150


def test_the_learner_learns_a_task(field, tmp_path):
    random, taught = (
        collect_life(LifeTask(field, name, 0, 2000, tmp_path / "x.npz")).rewards for name in ("random", "task_reward")
    )
    assert taught[-500:].sum() > 2 * random[-500:].sum()


def test_a_person_gives_the_similarity(plan, field, run, tmp_path):
    """A table with thresholds, as a tracker saves it, stands for the person's play."""
    tracker = Tracker(make_study_env(field))
    tracker.reset(seed=0)
    for action in [1, 3] * 60:
        if any(tracker.step(action)[2:4]):
            tracker.reset()
    tracker.save(tmp_path / "person.parquet")
    plan.write_text(STUDY.replace('ToyField-v0"', 'ToyField-v0"\nhuman = "person.parquet"'))
    assert run("study", plan, "--quick", "-o", tmp_path / "out", "--workers", 0)[0] == 0
    rows = json.loads((tmp_path / "out" / "study.json").read_text())["rows"]
    alike = {(row["environment"], row["agent"]): row["values"]["human_similarity"] for row in rows}
    assert 0 < alike["field", "noop"] < alike["field", "random"] <= 1
    assert alike["storm", "random"] is None


def play(typed, *words):
    """Play a toy game at the terminal, as a person does who types these lines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(typed))
        return run_command(["play", *words, "--terminal", "-o", "played.sqlite"])


def test_a_person_plays_and_is_compared(plan, run, tmp_path, monkeypatch):
    """The command that the study asks for, a person who leaves early, and agents that are compared with them."""
    monkeypatch.chdir(tmp_path)
    assert run("study", plan, "--quick", "-o", "out", "--workers", 0)[0] == 0
    rows = json.loads(Path("out/study.json").read_text())["rows"]
    reason = next(row for row in rows if row["environment"] == "storm")["reasons"]["human_similarity"]
    asked = shlex.split(re.search(r"openfield play (.*) -o storm_human.sqlite", reason)[1])
    assert asked == ["gym:support.toy_games:ToyStorm-v0", "--novelty", "none", "--set", "make.width=5"]
    assert play("3\n1\n0\n3\n1\nQUIT\n", *asked) == 130
    plan.write_text(f'{STUDY}human = "played.sqlite"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which says that the code of the domain runs now
        assert run("study", plan, "--quick", "-o", "out", "--workers", 0)[0] == 0
    rows = json.loads(Path("out/study.json").read_text())["rows"]
    alike = {(row["environment"], row["agent"]): row["values"]["human_similarity"] for row in rows}
    assert 0 < alike["storm", "noop"] < 1
    assert 0 < alike["storm", "random"] < 1
    assert alike["field", "random"] is None
    assert "played.sqlite, 5 transitions" in Path("out/study.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["gym:support.toy_games:ToyStorm-v0", "--novelty", "none"],
            "played gym-ToyStorm-v0, which is not .* make.wid",
        ),
        (["gym:support.toy_games:ToyField-v0", "--novelty", "none"], "gym-ToyField-v0, which is not the game 'storm'"),
        (
            [
                *(
                    "gym:support.toy_games:ToyStorm-v0",
                    "--set",
                    "make.width=5",
                    "--set",
                    "before=0",
                    "--set",
                    "after=1",
                ),
                *("--set", "unchanged=0", "--novelty", "wind=0.9", "--set", "onset=0"),
            ],
            "only a world that had changed. Play with --novelty none",
        ),
    ],
)
def test_another_game_is_no_persons_play(words, said, plan, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert play("3\n1\nQUIT\n", *words) == 130
    plan.write_text(f'{STUDY}human = "played.sqlite"\n')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        status, _, failed = run("study", plan, "--quick", "-o", "out", "--workers", 0)
    assert status == 2
    assert re.search(said, failed), failed
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"random"', '"randon"', "Unknown agent in .*'randon'. Did you mean 'random'"),
        ("ToyField-v0", "ToyFeld-v0", "Game 'field': .* cannot be made: NameNotFound"),
        ("support.toy_games:ToyField", "no_such_module:ToyField", "cannot be imported"),
        ('ToyField-v0"', 'ToyField-v0"\nextra = "atari"', ""),
        ("steps = 120", "steps = 0", "has 0 steps"),
        ("seeds = 2\n[quick]", "seeds = 0\n[quick]", "and 0 seeds"),
        ('name = "storm"', 'name = "field"', "'field' is listed twice"),
        ('agents = ["noop", "random", "count_bonus"]', "agents = []", "no agent is listed"),
        ("width = 5", "depth = 5", "cannot be made: TypeError"),
        ("support.toy_games:ToyField-v0", "CartPole-v1", "Game 'field': observations of Box.* are not pictures"),
        ("support.toy_games:ToyField-v0", "Pendulum-v1", "Game 'field': its actions are Box.*; a study needs numbered"),
        ("make = { width = 5 }", "noop = 4", "Game 'storm': noop is 4; its actions are 0 to 3"),
        ("[full]", "[large]", "not a study of games"),
        ('name = "storm"', 'name = "storm"\nhuman = "none.sqlite"', "none.sqlite"),
    ],
)
def test_mistakes_in_the_file_are_one_line(old, new, said, plan, run, tmp_path):
    text = STUDY.replace(old, new)
    if not said:
        text, said = text.replace("support.toy_games", "no_such_module"), r"optional part .*\[atari\]"
    plan.write_text(text)
    status, _, failed = run("study", plan, "-o", tmp_path / "out", "--workers", 0)
    assert status == 2
    assert len(failed.strip().splitlines()) == 1
    assert re.search(said, failed), failed
    assert not (tmp_path / "out" / "study.html").exists()


def test_options_that_do_not_fit(plan, run, tmp_path):
    assert "--compat is for tables" in run("study", plan, "--compat")[2]
    assert "cannot be written" in run("study", plan, "--quick", "-o", plan, "--workers", 0)[2]
    assert "--quick is for a study of live games" in run("study", tmp_path, "--quick")[2]
    plan.write_text(STUDY.replace("[quick]\nsteps = 40\nseeds = 2\n", ""))
    assert "no [quick]" in run("study", plan, "--quick")[2]


def test_the_example_can_be_read():
    plan = read_game_plan(Path(ROOT) / "examples" / "atari_study.toml")
    assert [game.name for game in plan.games] == ["breakout", "seaquest", "montezuma", "crafter"]
    assert plan.agents == list(AGENTS)
