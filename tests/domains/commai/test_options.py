"""The command line: the original's options, configurations, learners, summaries, budgets."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from openfield.cli import run_command
from openfield.domains.commai import CommaiSettings, LearnerSession, Oracle, make_environment
from openfield.domains.commai.options import CommaiRunOptions
from openfield.journal.reader import Run
from support.places import SUPPORT

PEER = SUPPORT / "commai" / "peer.py"
CONFIGURATION = {
    "worlds": {},
    "tasks": {"M4": {"type": "tasks.challenge.round1.challenge_micro.Micro4Task"}},
    "scheduler": {"type": "core.scheduler.ConsecutiveTaskScheduler", "args": {"tasks": ["M4"], "success_threshold": 2}},
}
LEARNER = """
class Parrot:
    def next(self, symbol):
        return symbol

    def reward(self, reward):
        self.last = reward
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps(CONFIGURATION))
    (tmp_path / "parrots.py").write_text(LEARNER)
    return tmp_path


def cells(path="runs/commai.sqlite"):
    with Run(path) as run:
        return run.cells()


@pytest.mark.parametrize(
    "agent", [["-l", "parrots.Parrot"], ["-a", "parrots:Parrot"], ["-l", "learners.base.BaseLearner"]]
)
def test_a_configuration_runs_with_any_learner_and_leaves_a_summary(agent, capsys):
    assert run_command(["run", "commai", "config.json", *agent, "--workers", "0", "--summary", "results.out"]) == 0
    (cell,) = cells()
    assert cell.outcome == "done"
    assert [episode.detail["task"] for episode in cell.episodes] == ["M4", "M4"]
    summary = Path("results.out").read_text()
    assert "Total reward: 20" in summary
    assert "* Number of trials per task\nM4: 2" in summary


def test_agents_of_a_configuration_are_held_to_limits_as_everywhere(folder):
    """Only a person, whom a configuration without a learner asks for, may take their time and skip."""
    assert run_command(["run", "commai", "config.json", "-a", "parrots:Parrot", "--workers", "0"]) == 0
    (trial,) = [cell.trial for cell in cells()]
    assert trial.limits.reply_seconds == 60
    assert "skips" not in trial.settings
    changes = CommaiRunOptions(config=folder / "config.json").prepare()
    assert [*changes.agents] == ["human"]
    assert changes.experiment["workers"] == 0
    assert changes.experiment["settings"]["skips"]
    assert "workers" not in changes.for_others().experiment


@pytest.mark.parametrize("setting", ["unchanged=1", "onset=10-20"])
def test_a_configuration_has_no_drawn_onset_and_no_twins(setting, capsys):
    assert run_command(["run", "commai", "config.json", "-l", "parrots.Parrot", "--set", setting]) == 2
    assert "takes neither the setting 'onset' nor 'unchanged'" in capsys.readouterr().err


def test_a_compatible_summary_has_the_names_of_the_originals_classes():
    words = ["run", "commai", "-a", "oracle", "--workers", "0", "--set", "compat=round1", "--summary", "results.out"]
    tasks = ["--set", "tasks=micro1,micro5.2,mini0", "--set", "success_threshold=1", "--trials", "1"]
    assert run_command([*words, *tasks]) == 0
    summary = Path("results.out").read_text()
    assert "* Number of trials per task\nMicro1Task: 1\nMicro5Sub2Task: 1\nTaskSet0: 1\n" in summary
    Path("second.json").write_text(Path("config.json").read_text())
    assert run_command([*words[:2], "second.json", *words[2:]]) == 0
    assert "* Number of trials per task\nMicro4Task: 2" in Path("results.out").read_text()


def test_a_summary_counts_steps_as_a_session_does_and_can_be_exported_later(capsys):
    words = ["run", "commai", "-a", "oracle", "--trials", "1", "--novelty", "none", "--workers", "0"]
    tasks = "tasks=micro4,micro5.3,mini1"
    assert run_command([*words, "--set", tasks, "--set", "success_threshold=2", "--summary", "results.out"]) == 0
    seed = cells()[0].trial.seed
    environment = make_environment(CommaiSettings(tasks=("micro4", "micro5.3", "mini1"), success_threshold=2), seed)
    LearnerSession(environment, Oracle(environment)).run()
    summary = Path("results.out").read_text()
    for name, book in environment.tallies().items():
        assert f"* Total time per task\n{name}: {book.steps}" in summary or f"\n{name}: {book.steps}\n" in summary
    assert f"Total time: {sum(book.steps for book in environment.tallies().values())}" in summary
    assert run_command(["export", "runs/commai.sqlite", "-f", "results", "-o", "again.out"]) == 0
    assert Path("again.out").read_text() == summary
    assert run_command(["export", "runs/commai.sqlite", "-f", "tasks", "-o", "tasks.json"]) == 0
    rows = json.loads(Path("tasks.json").read_text())[0]["tasks"]
    assert [(row["task"], row["solved"], row["instances"]) for row in rows] == [
        ("micro4", True, 2),
        ("micro5.3", True, 2),
        ("mini1", True, 2),
    ]


def test_options_become_settings(capsys):
    words = ["run", "commai", "-a", "echo", "--trials", "1", "--workers", "0", "--scramble", "--bit-mode", "-w"]
    assert run_command([*words, "--max-reward-per-task", "7", "--step-budget", "50", "--strict"]) == 0
    assert cells()[0].trial.settings == {
        "scramble": "readable",
        "bit_mode": True,
        "show_world": True,
        "max_reward_per_task": 7,
        "max_steps": 50,
        "strict": True,
    }


def test_the_evaluation_has_budgets_that_can_be_changed(capsys):
    words = ["run", "commai", "--evaluate", "--step-budget", "30", "--time-budget", "5", "-a", "echo"]
    assert run_command([*words, "--workers", "0"]) == 0
    (cell,) = cells()
    assert cell.trial.settings == {"max_steps": 30}
    assert cell.trial.limits.trial_seconds == 5


def test_a_learner_may_be_watched(capsys):
    words = ["run", "commai", "config.json", "-l", "parrots.Parrot", "-v", "ConsoleView", "-d", "0.0001"]
    assert run_command(words) == 0
    shown = capsys.readouterr().out
    assert "teacher" in shown
    assert "reward 20, step 21" in shown


def test_a_remote_learner_is_started_as_the_original_did(capsys):
    pytest.importorskip("zmq", reason="pyzmq is not installed")
    command = f"{sys.executable} {PEER}"
    words = ["run", "commai", "config.json", "-l", "learners.base.RemoteLearner", "--learner-cmd", command]
    assert run_command([*words, "--learner-port", "0"]) == 0
    assert cells()[0].outcome == "done"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["missing.json"], "There is no configuration file missing.json"),
        (["-l", "Parrot"], "dotted path"),
        (["-l", "parrots.Parot"], "Did you mean 'Parrot'"),
        (["-v", "Nice"], "Unknown view 'Nice'"),
        (["--mode", "fast", "config.json"], "--mode is one of line, dot, immediate, not 'fast'"),
        (["--set", "tasks=micro99"], "Unknown task 'micro99'"),
        (["-d", "-1", "-l", "parrots.Parrot"], "-d cannot be -1.0. Must be a number of seconds, 0 or more."),
        (["--learner-port", "99999999"], "--learner-port cannot be 99999999. Must be <= 65535."),
        (["--learner-port", "0"], "Only a learner of --learner-cmd learns which."),
        (["--learner-address", "192.0.2.1"], "Cannot listen on 192.0.2.1:5556"),
        (["-l", "parrots.Parrot", "--curses"], "--curses needs a terminal"),
        (
            ["-l", "parrots.Parrot", "-a", "echo"],
            "Both --learner and --agent say who plays. Name all of them with --agent",
        ),
        (["--learner-port", "5999", "-a", "echo"], "Both --learner-port and --agent say who plays."),
        (["--learner-cmd", ""], "--learner-cmd is empty. Is a variable of your shell not set?"),
        (["--summary", "/proc/nope/x.out"], "/proc/nope/x.out cannot be written"),
        (["--table", "."], "cannot be written: it is a folder"),
        (["--set", "dependencies=a>b", "--set", "scheduler=dependencies"], "dependencies"),
    ],
)
def test_mistakes_are_one_line_and_status_2(words, says, capsys):
    assert run_command(["run", "commai", "--workers", "0", "--trials", "1", *words]) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert "Traceback" not in shown


def test_people_do_not_play_as_somebody_else(capsys):
    assert run_command(["play", "commai", "-l", "parrots.Parrot"]) == 2
    assert "openfield run commai -l parrots.Parrot" in capsys.readouterr().err


def test_a_learner_that_says_what_is_no_symbol_is_named_with_it(folder, capsys):
    (folder / "doubles.py").write_text(LEARNER.replace("return symbol", "return 'ab'"))
    assert run_command(["run", "commai", "config.json", "-l", "doubles.Parrot", "--workers", "0"]) == 1
    assert "Parrot said 'ab'; a symbol is one character" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_for_a_remote_learner(folder, number):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    words = [sys.executable, "-m", "openfield", "run", "commai", "config.json", "--learner-port", str(port)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as program:
        assert f"Waiting for a learner on 127.0.0.1:{port}" in program.stderr.readline()
        while True:
            with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                break
        program.send_signal(number)
        program.communicate(timeout=300)
    assert program.returncode == 130
    assert cells()[0].outcome == "cancelled"


def test_the_line_about_cells_without_a_score_has_the_cause(folder, capsys):
    (folder / "broken.py").write_text("class Broken:\n    def next(self, symbol):\n        return symbol.nothing\n")
    words = ["run", "commai", "--set", "tasks=micro4", "--trials", "2", "--workers", "0", "-l", "broken.Broken"]
    assert run_command(words) == 1
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "No cell was played to its end, and each counts as 0 (agent_error: " in line
    assert "'str' object has no attribute 'nothing'" in line
    assert "See more: openfield show" in line
