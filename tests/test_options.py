"""Options of a domain: parsed with the command's own, and understood without knowing any domain."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, get_type_hints

import msgspec
import pytest
from cyclopts import Parameter

from openfield import api
from openfield.capabilities import HasOptions
from openfield.cli import run_command
from openfield.domains.commai import DOMAIN as COMMAI
from openfield.domains.ond import DOMAIN as OND
from openfield.options import CommandChanges, changed_fields
from openfield.registry import installed_domains
from openfield.runner.experiment import LimitOptions
from openfield.trial import Limits
from support.options import parse_options

DOMAIN = """
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter
from maze import Maze
from openfield.options import CommandChanges, Seconds, Whole


@dataclass(frozen=True, kw_only=True)
class MazeOptions:
    size: Annotated[Whole | None, Parameter(name="SIZE")] = field(default=None, kw_only=False)
    '''The size of the maze.'''
    short: bool = False
    '''Play one episode of each kind.'''
    delay: Annotated[Seconds | None, Parameter(name=["--delay", "-d"])] = None
    '''Seconds between two turns.'''

    def prepare(self):
        settings = {"training": 0, "before": 1, "after": 1} if self.short else {}
        if self.size is not None:
            settings["size"] = self.size
        return CommandChanges({"settings": settings}, notice="Noticed." if self.short else "")


class Optional(Maze):
    name = "optional"

    def options(self, command):
        return None if command == "serve" else MazeOptions


OPTIONAL = Optional()
"""


@pytest.fixture
def optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    monkeypatch.syspath_prepend(str(request.config.rootpath / "examples"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "optional.py").write_text(DOMAIN)
    return "optional.py:OPTIONAL"


def test_options_change_the_run_and_the_commands_own_win(optional: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", optional, "4", "--short", "--trials", "1", "--workers", "0", "--set", "after=2", "--json"]
    words += ["--set", "unchanged=0"]
    assert run_command(words) == 0
    assert "Noticed." in capsys.readouterr().err
    from openfield.journal.reader import Run

    with Run("runs/optional.sqlite") as run:
        (cell,) = run.cells()
    assert cell.trial.settings == {"size": 4, "training": 0, "before": 1, "after": 2}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "--dela", "1"], "Unknown option '--dela'. Did you mean '--delay'?"),
        (["run", "--trails", "1"], "Unknown option '--trails'. Did you mean '--trials'?"),
        (["serve", "--delay", "1"], "Unknown option '--delay'."),
        (["run", "--delay"], "--delay needs a value."),
        (["run", "-d"], "-d needs a value."),
        (["run", "--delay", "soon"], "--delay takes a number, not 'soon'."),
        (["run", "--delay=-1"], "--delay cannot be -1.0. Must be a number of seconds, 0 or more."),
        (["run", "-d", "nan"], "-d cannot be nan. Must be a number of seconds, 0 or more."),
        (["run", "4", "5"], "There is a word too many: '5'."),
        (["run", "four"], "SIZE takes a whole number, not 'four'."),
        (["run", "-d", "1", "-d", "2"], "-d is given more than once."),
    ],
)
def test_wrong_options_teach_the_right_ones(
    optional: str, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    command, *rest = words
    assert run_command([command, optional, *rest]) == 2
    assert capsys.readouterr().err == f"openfield: {says} Help: openfield {command} --help\n"


def test_options_are_shown_in_help_and_listed(optional: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", optional, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Options of optional:" in shown
    assert "-d, --delay SECONDS  Seconds between two turns." in shown
    assert run_command(["list", "flags", optional]) == 0
    listed = capsys.readouterr().out
    assert "-d, --delay SECONDS  run, play  Seconds between two turns." in listed
    assert "SIZE                 run, play  The size of the maze." in listed


def test_an_experiment_file_takes_the_options_of_its_domain(optional: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.toml").write_text(f'domain = "{optional}"\ntrials = 1\nworkers = 0\n')
    assert run_command(["run", "e.toml", "--short", "--json"]) == 0
    assert run_command(["run", "e.toml", "--shrt"]) == 2
    assert "Did you mean '--short'?" in capsys.readouterr().err


def test_given_options_are_those_that_differ_from_their_defaults() -> None:
    @dataclass
    class Some:
        one: int = 1
        two: Annotated[str, Parameter(name="--zwei")] = ""

    assert changed_fields(Some()) == {}
    assert changed_fields(Some(two="x")) == {"two": "x"}


def test_every_shipped_domain_with_options_takes_none_of_them_by_default() -> None:
    for domain in installed_domains():
        if not isinstance(domain, HasOptions):
            continue
        for command in ("run", "play", "serve"):
            options = parse_options(domain, command, [])
            changes = options.prepare() if options is not None else CommandChanges()
            assert changes.trials_from == changes.notice == ""
            assert changes.instead is None


def test_words_of_the_original_command_lines_are_still_understood() -> None:
    words = ["CONFIG.json", "-d", "0.1", "-l", "learners.Base", "--bitmode", "-w", "--learner-port", "0"]
    options = parse_options(COMMAI, "run", words)
    assert options.config == Path("CONFIG.json")
    assert (options.time_delay, options.learner, options.learner_port) == (0.1, "learners.Base", 0)
    assert options.bit_mode
    assert options.show_world
    assert parse_options(OND, "serve", ["--data", "d", "--compat"]).compat


def test_keywords_of_python_are_the_options_of_a_run_with_their_types() -> None:
    keywords = get_type_hints(api.ResumeKeywords) | get_type_hints(api.RunKeywords)
    options = get_type_hints(api.CallOptions)
    assert {name: options[name] for name in keywords} == keywords
    named = {*inspect.signature(api.run).parameters, *inspect.signature(api.resume).parameters}
    assert {each.name for each in fields(api.CallOptions)} <= {*keywords, *named}
    assert keywords.keys() - get_type_hints(api.RunKeywords) == {"trust"}


def test_the_limits_of_the_command_line_are_those_of_trials() -> None:
    known = {each.name: each for each in msgspec.structs.fields(Limits)}
    assert {each.name for each in fields(LimitOptions)} <= known.keys()
    assert f"[{Limits().reply_seconds:g}]" in inspect.getsource(LimitOptions)
