"""Parameters of agents of the original client: typed, from brackets, experiment files and JSON configurations."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openfield.cli import run_command
from openfield.domains.ond.client import configuration
from openfield.domains.ond.client.configuration import is_configuration, read_agent_configuration, read_description
from openfield.domains.ond.client.original_client import register_stubs
from openfield.domains.ond.client.workflow import write_version
from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import Run
from support.ond.protocol import TEST, write_test

AGENT = """\
import json
from pathlib import Path
from sail_on_client.agent.ond_agent import ONDAgent

class Mine(ONDAgent):
    def __init__(self, alpha=1.0, layers=(), opts=None, fast=False, name="x", **rest):
        super().__init__()
        self.made = {"alpha": alpha, "layers": layers, "opts": opts, "fast": fast, "name": name, "rest": rest}

    def initialize(self, toolset):
        self.made["toolset"] = {key: toolset.get(key) for key in ("alpha", "detection_threshold")}
        Path("made.json").write_text(json.dumps(self.made))

    def feature_extraction(self, toolset):
        return {key: [0] for key in toolset["dataset_ids"]}, {}

    def world_detection(self, toolset):
        return self.write(toolset, "world", "0.7")

    def novelty_classification(self, toolset):
        return self.write(toolset, "class", "0.1,0.6,0.1,0.1,0.1")

    def novelty_adaptation(self, toolset):
        return None

    def write(self, toolset, name, values):
        path = Path(toolset["dataset"]).with_suffix("." + name)
        path.write_text("".join(f"{key},{values}\\n" for key in toolset["dataset_ids"]))
        return str(path)

class Closed(Mine):
    def __init__(self, alpha=1.0):
        Mine.__init__(self, alpha)
"""
CONFIG = {"alpha": 0.5, "layers": [1, 2], "opts": {"a": 1}, "fast": True, "detection_threshold": 0.25}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_test(tmp_path / "data", TEST)
    register_stubs()
    Path("mine.py").write_text(AGENT)
    return tmp_path


def play(*words: str) -> Any:
    status = run_command(["run", *words, "--server", "here", "-o", "run.sqlite", "--set", "data=data"])
    assert status == 0
    return msgspec.json.decode(Path("made.json").read_bytes())


def thresholds() -> list[float]:
    with Run("run.sqlite") as run:
        return [trial.settings.get("threshold", 0.5) for trial in run.trials()]


def check(made: Any) -> None:
    assert (made["alpha"], made["layers"], made["opts"], made["fast"]) == (0.5, [1, 2], {"a": 1}, True)
    assert made["rest"] == {"detection_threshold": 0.25}
    assert made["toolset"] == {"alpha": 0.5, "detection_threshold": 0.25}
    assert thresholds() == [0.25]


def test_brackets_give_typed_parameters(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(play("ond", "-a", "mine.py:Mine(alpha=0.5, layers=[1, 2], opts={a=1}, fast=true, detection_threshold=.25)"))
    with Run("run.sqlite") as run:
        (agent,) = run.agents
    whole = "Mine(alpha=0.5, detection_threshold=0.25, fast=true, layers=[1, 2], opts={a=1})-0.0.1"
    assert agent == whole.replace(",", "_")  # a list of sessions has commas between its columns
    assert list(msgspec.json.decode(capsys.readouterr().out)) == ["Mine"]


def test_an_experiment_file_gives_typed_parameters(place: Path) -> None:
    Path("exp.toml").write_text(
        'domain = "ond"\n[agents.own]\nagent = "mine.py:Mine"\n[agents.own.parameters]\nalpha = 0.5\n'
        "layers = [1, 2]\nopts = {a = 1}\nfast = true\ndetection_threshold = 0.25\n"
    )
    check(play("exp.toml"))


def test_settings_are_typed_and_brackets_win(place: Path) -> None:
    made = play("ond", "-a", "mine.py:Mine(alpha=0.5, name='7')", "--set", "alpha=2", "--set", "layers=[1, 2]")
    assert (made["alpha"], made["layers"], made["name"]) == (0.5, [1, 2], "7")


@pytest.mark.parametrize(
    "content",
    [
        {"smqtk": {"class": "mine.Mine", "config": CONFIG}},
        {"algorithms": {"Mine": {"smqtk": {"class": "mine.Mine", "config": CONFIG}}}, "domain": "image_classification"},
        {
            "protocol": {
                "smqtk": {"class": "a.SailOn", "config": {"algorithms": {"Mine": {"type": "m.Mine", "m.Mine": CONFIG}}}}
            }
        },
        {"detectors": {"has_baseline": False, "detector_configs": {"Mine": CONFIG}}},
        CONFIG,
    ],
)
def test_a_configuration_of_the_original_gives_parameters_of_a_class(place: Path, content: Any) -> None:
    Path("config.json").write_bytes(msgspec.json.encode(content))
    check(play("ond", "-a", "mine.py:Mine(config.json)"))
    made = play("ond", "-a", "again=mine.py:Mine(config.json, alpha=3)")
    assert (made["alpha"], made["layers"]) == (3, [1, 2])


def test_a_configuration_of_the_original_names_agents(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(place))
    described = {"smqtk": {"class": "mine.Mine", "config": CONFIG}}
    content = {"algorithms": {"one": described, "two": {"smqtk": {"class": "Gone", "config": {}}}}}
    Path("c.json").write_bytes(msgspec.json.encode(content))
    check(play("ond", "-a", "c.json:one"))
    assert list(msgspec.json.decode(capsys.readouterr().out)) == ["one"]
    assert run_command(["run", "ond", "--server", "here", "-a", "c.json", "-o", "other.sqlite"]) == 2
    assert "no installed plugin has the class 'Gone'" in capsys.readouterr().err
    with pytest.raises(UnknownName, match=r"Unknown agent 'on'. Did you mean 'one'"):
        read_agent_configuration("c.json:on")


def test_plugins_of_the_original_client_are_found(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(place))
    points = [EntryPoint("agents", "mine", "smqtk_plugins")]
    monkeypatch.setattr(configuration, "entry_points", lambda group: points)
    Path("c.json").write_text('{"algorithms": {"Mine": {"alpha": 2}}}')
    assert read_agent_configuration("c.json") == {"Mine": "mine:Mine(alpha=2)"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "names no agent"),
        ("[1]", "not an object"),
        ("{", "is not JSON"),
        ('{"algorithms": {"a": 3}}', "is a int, not an object"),
        ('{"class": "m.A", "config": 3}', "The parameters of m.A are a int"),
    ],
)
def test_configurations_that_cannot_be_used_are_refused_in_one_line(place: Path, content: str, message: str) -> None:
    Path("c.json").write_text(content)
    with pytest.raises(InvalidInput, match=message) as caught:
        read_agent_configuration("c.json")
    assert "\n" not in str(caught.value)


def test_parameters_that_look_like_a_description_are_parameters() -> None:
    assert read_description("A", {"type": "resnet", "depth": 3}) == {"type": "resnet", "depth": 3}
    assert read_description("A", {"class": "cat", "count": 3}) == {"class": "cat", "count": 3}
    with pytest.raises(InvalidInput, match="Which of the agents a, b is 'C'"):
        read_description("C", {"algorithms": {"a": {}, "b": {}}})
    assert is_configuration("x.json")
    assert not is_configuration("m.py:A(x.json)")


@pytest.mark.parametrize("value", ["2", "high", "true", "[1]"])
def test_a_threshold_that_is_none_is_refused(place: Path, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "ond", "--server", "here", "-a", f"mine.py:Mine(detection_threshold={value})", "--set", "data=data"]
    assert run_command([*words, "-o", "run.sqlite"]) == 2
    assert "detection_threshold must be a number from 0 to 1" in capsys.readouterr().err


def test_a_class_without_a_threshold_is_made_without_it(place: Path) -> None:
    made = play("ond", "-a", "mine.py:Closed(alpha=4, detection_threshold=0.3)")
    assert made["alpha"] == 4
    assert thresholds() == [0.3]


def test_two_agents_of_one_class_need_names(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agents = ["-a", "mine.py:Mine(alpha=1)", "-a", "mine.py:Mine(alpha=2)"]
    assert run_command(["run", "ond", "--server", "here", *agents, "-o", "run.sqlite"]) == 2
    assert "Two agents are called 'Mine'" in capsys.readouterr().err


def test_a_long_version_is_a_digest() -> None:
    assert write_version("A", {"x": 1}) == "A(x=1)-0.0.1"
    assert len(write_version("A", {"x": "y" * 500})) < 30
