"""A domain's own flags: read into a launch, and understood by the command line without knowing any domain."""

import pytest

from openfield.cli import run_command
from openfield.errors import InvalidInput, UnknownName
from openfield.options import Flag, Launch, read_flags

FLAGS = (
    Flag(("CONFIG",), "A file.", lambda launch, value: launch.set(config=value), str),
    Flag(("--fast",), "No waiting.", lambda launch, value: launch.set(fast=value)),
    Flag(("-d", "--delay"), "Seconds.", lambda launch, value: launch.limit(trial_seconds=value), float),
    Flag(("--amqp",), "A broker.", lambda launch, value: launch.set(amqp=value), str, ("serve",)),
)


def test_flags_change_a_launch_in_order():
    launch = read_flags(FLAGS, "run", ["a=b.json", "--fast", "-d", "0.5"])
    assert launch == Launch(settings={"config": "a=b.json", "fast": True}, limits={"trial_seconds": 0.5})


def test_a_value_may_follow_an_equals_sign_and_look_like_a_flag():
    assert read_flags(FLAGS, "run", ["--delay=-1"]).limits == {"trial_seconds": -1.0}


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        (["--dela", "1"], UnknownName, "Did you mean '--delay'?"),
        (["--trails", "1"], UnknownName, "Did you mean '--trials'?"),
        (["--amqp", "x"], UnknownName, "Unknown option '--amqp'"),
        (["--delay"], InvalidInput, "--delay needs a value: -d, --delay NUMBER."),
        (["--delay", "soon"], InvalidInput, "--delay takes a value of type number, not 'soon'."),
        (["--fast=1"], InvalidInput, "--fast takes no value."),
        (["a.json", "b.json"], InvalidInput, "a word too many: 'b.json'"),
    ],
)
def test_wrong_words_are_named(words, error, says):
    with pytest.raises(error, match=says.replace("?", r"\?").replace(".", r"\.")):
        read_flags(FLAGS, "run", words, ["--trials"])


DOMAIN = """
import sys
from maze import Maze
from openfield.options import Flag


class Flagged(Maze):
    name = "flagged"
    flags = (
        Flag(("SIZE",), "The size.", lambda launch, value: launch.set(size=value), int),
        Flag(("--short",), "One episode.", lambda launch, value: launch.set(training=0, before=1, after=1)),
    )


FLAGGED = Flagged()
"""


@pytest.fixture
def flagged(tmp_path, monkeypatch, request):
    monkeypatch.syspath_prepend(str(request.config.rootpath / "examples"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flagged.py").write_text(DOMAIN)
    return "flagged.py:FLAGGED"


def test_run_takes_flags_and_options_win(flagged, capsys):
    words = ["run", flagged, "4", "--short", "--trials", "1", "--workers", "0", "--set", "after=2", "--json"]
    assert run_command(words) == 0
    from openfield.journal.reader import Run

    with Run("runs/flagged.sqlite") as run:
        (cell,) = run.cells()
    assert cell.trial.settings == {"size": 4, "training": 0, "before": 1, "after": 2}


def test_a_mistyped_option_is_answered_with_the_right_one(flagged, capsys):
    assert run_command(["run", flagged, "--trails", "3"]) == 2
    assert "Did you mean '--trials'?" in capsys.readouterr().err


def test_flags_are_listed(flagged, capsys):
    assert run_command(["list", "flags", flagged]) == 0
    assert "--short" in capsys.readouterr().out
