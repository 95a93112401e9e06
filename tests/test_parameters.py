from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.core import Reply, Spec, Turn
from openfield.domain import Domain
from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import Run
from openfield.parameters import (
    MAX_DEPTH,
    MAX_TEXT,
    named_files,
    read_agent,
    read_value,
    shorten_agents,
    strip_parameters,
    with_parameters,
    write_source,
    write_value,
)
from openfield.provenance.versions import identify_agent
from openfield.registry import find_agent
from openfield.runner.experiment import make_experiment, read_agents
from openfield.runner.isolation.view import view_of_python
from openfield.runner.plan import make_plan, name_agents, settle_agent
from support.worlds import TINY

CODE = """\
from openfield.core import Reply

class Net:
    made = []
    def __init__(self, spec, seed, checkpoint="", temperature=1.0, layers=(), **_):
        Net.made.append((checkpoint, temperature, layers))
    def __call__(self, turn):
        return Reply(0)

class Strict:
    def __init__(self, spec, seed, temperature=1.0):
        self.temperature = temperature
    def __call__(self, turn):
        return Reply(int(self.temperature > 0.7))

def answer(turn, action=0):
    return Reply(action)
"""


def split_source(text: str) -> tuple[str, dict[str, Any]]:
    agent = read_agent(text)
    return agent.place, dict(agent.parameters)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.py"
    path.write_text(CODE)
    return path


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        ("-3", -3),
        (".5", 0.5),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("null", None),
        ("best.pt", "best.pt"),
        ("http://127.0.0.1:80/v1", "http://127.0.0.1:80/v1"),
        ("two words", "two words"),
        ('"0.5"', "0.5"),
        ("'a, b'", "a, b"),
        (r'"a\"\n"', 'a"\n'),
        ("[]", []),
        ("[1, [2.5, x], {}]", [1, [2.5, "x"], {}]),
        ("{a=1, b: [true]}", {"a": 1, "b": [True]}),
        ('{"a b": {c=null}}', {"a b": {"c": None}}),
        ("[1, 2,]", [1, 2]),
    ],
)
def test_values_are_typed_and_written_so_that_they_are_read_back(text: str, value: Any) -> None:
    assert split_source(f"m:C(x={text})") == ("m:C", {"x": value})
    assert type(read_value(text)) is type(value)
    assert read_value(text) == value == read_value(write_value(value))


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300, 0.1, 2**80, "", " a", "true", "12", "a=b", "€", "\x00"])
def test_every_plain_value_survives_being_written(value: Any) -> None:
    assert split_source(write_source("m:C", {"x": value})) == ("m:C", {"x": value})
    assert math.isnan(read_value(write_value(math.nan)))


def test_the_brackets_are_those_at_the_end() -> None:
    assert split_source("my (copy).py:Net(a=1)") == ("my (copy).py:Net", {"a": 1})
    assert split_source("my (copy).py:Net") == ("my (copy).py:Net", {})
    assert split_source("llm:model(url='http://h/(v1)')") == ("llm:model", {"url": "http://h/(v1)"})
    assert split_source("process:echo (a=1)") == ("process:echo (a=1)", {})
    assert split_source("knn()") == ("knn", {})
    assert strip_parameters("m:C(((") == "m:C((("
    assert strip_parameters("m:C(oops))") == "m:C"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m:C(a=)", "a value is wanted at character 7"),
        ("m:C(a=1 b=2)", "text with such signs needs quotes"),
        ("m:C(a=1, a=2)", "'a' is given twice"),
        ("m:C(a=[1)", r"a comma or '\]' is wanted"),
        ("m:C(a={1})", "NAME=VALUE is wanted"),
        ("m:C(=1)", "is wanted at character 5"),
        ("m:C(a='b)", "a text that ends with '"),
        ("m:C(a=1)b)", "nothing after the closing bracket"),
        ("m:C(best.pt)", r"NAME=VALUE, or a .json or .toml file"),
        ("m:C(gone.json)", "cannot be read"),
        (f"m:C(a={'[' * (MAX_DEPTH + 2)})", "deep"),
        (f"m:C(a={'x' * MAX_TEXT})", "Put them in a file"),
    ],
)
def test_brackets_that_cannot_be_read_are_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        split_source(text)
    assert "\n" not in str(caught.value)


def test_a_file_holds_parameters_and_those_beside_it_win(module: Path) -> None:
    Path("best.json").write_text('{"layers": [1, 2], "temperature": 0.5, "opts": {"a": null}}')
    Path("more.toml").write_text("temperature = 0.25\ncheckpoint = 'x'\n")
    assert split_source("net.py:Net(best.json, layers=[3])")[1] == {
        "layers": [3],
        "temperature": 0.5,
        "opts": {"a": None},
    }
    text = read_agent("net.py:Net(best.json, more.toml)").settle().text
    assert text == "net.py:Net(checkpoint=x, layers=[1, 2], opts={a=null}, temperature=0.25)"
    Path("list.json").write_text("[1]")
    with pytest.raises(InvalidInput, match="not an object"):
        split_source("m:C(list.json)")
    Path("d.json").mkdir()
    with pytest.raises(InvalidInput, match="not a file of parameters"):
        split_source("m:C(d.json)")


def test_files_among_the_values_are_kept_with_their_full_path(module: Path) -> None:
    Path("best.pt").write_bytes(b"1")
    Path("train").write_bytes(b"")
    text = read_agent("net.py:Net(checkpoint=best.pt, mode=train, more=[best.pt])").settle().text
    full = str(Path("best.pt").absolute())
    assert split_source(text)[1] == {"checkpoint": full, "mode": "train", "more": [full]}
    assert named_files({"a": {"b": ["best.pt", 3, "gone.pt"]}}) == [Path(full)]


def test_an_isolated_agent_sees_the_files_of_its_parameters(module: Path) -> None:
    Path("data").mkdir()
    Path("data/best.pt").write_bytes(b"1")
    seen = view_of_python("net.py:Net(checkpoint=data/best.pt, temperature=0.5)", "tiny")
    assert seen.files == ((Path("data/best.pt").absolute(), False),)
    assert module.parent in seen.folders


def test_what_makes_an_agent_gets_its_parameters(module: Path) -> None:
    spec = Spec(domain="tiny", task="")
    made = find_agent("net.py:Net(checkpoint=a.pt, temperature=0.5, layers=[1, 2])", TINY)(spec, 0)
    assert type(made).made[-1] == ("a.pt", 0.5, [1, 2])
    assert find_agent("net.py:answer(action=1)", TINY)(spec, 0)(Turn()) == Reply(1)
    assert find_agent(with_parameters(type(made), temperature=0.1), TINY)(spec, 0)
    assert type(made).made[-1][1] == 0.1
    with pytest.raises(UnknownName, match=r"Unknown parameter 'temprature'. Did you mean 'temperature'"):
        find_agent("net.py:Strict(temprature=1)", TINY)
    with pytest.raises(UnknownName, match=r"Unknown parameter 'k'. RandomAgent takes"):
        find_agent("random(k=1)", TINY)
    with pytest.raises(InvalidInput, match="takes a whole number"):
        find_agent("counter:2(k=1)", TINY)


def test_parameters_are_part_of_the_identity(module: Path) -> None:
    assert list(name_agents(["net.py:Net(b=1,a=2)"])) == ["net.py:Net(a=2, b=1)"]
    assert list(read_agents(["net.py:Net(b=1,a=2)", "mine=net.py:Net(b=2)"])) == ["net.py:Net(a=2, b=1)", "mine"]
    Path("best.pt").write_bytes(b"1")

    def fingerprint(source: Any) -> str:
        code = identify_agent(source, TINY)
        assert code is not None
        return code.version.fingerprint

    first = fingerprint("net.py:Net(checkpoint=best.pt, layers=[1])")
    assert fingerprint(f"net.py:Net(layers=[1], checkpoint='{Path('best.pt').absolute()}')") == first
    assert fingerprint("net.py:Net(checkpoint=best.pt, layers=[2])") != first
    Path("best.pt").write_bytes(b"2")
    assert fingerprint("net.py:Net(checkpoint=best.pt, layers=[1])") != first
    assert fingerprint("random") != fingerprint("random(a=1)")


def test_agents_of_python_with_parameters_have_a_name_and_a_source() -> None:
    from support.players import Learner

    given = of.agents.with_parameters(Learner, rate=0.5)
    assert list(name_agents([given])) == ["Learner(rate=0.5)"]
    assert str(settle_agent(given)) == "support.players:Learner(rate=0.5)"
    assert of.agents.with_parameters("m:C(a=1)", b=[2], a=3) == "m:C(a=3, b=[2])"
    assert settle_agent(partial(Learner, rate=object())) is None
    with pytest.raises(InvalidInput, match="not a object"):
        of.agents.with_parameters("m:C", a=object())


def test_a_run_with_other_parameters_is_played_again_and_resumes_from_the_file_alone(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = of.trials(TINY, 1)
    of.run({"net": "net.py:Strict(temperature=0.5)"}, trials, "run.sqlite")
    with pytest.warns(UserWarning, match=r"earlier version of net .*temperature changed"):
        of.run({"net": "net.py:Strict(temperature=0.9)"}, trials, "run.sqlite")
    with Run("run.sqlite") as run:
        assert run.agents["net"] == f"{module}:Strict(temperature=0.9)"
    other = tmp_path / "elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    assert of.resume(tmp_path / "run.sqlite").cells


def test_an_experiment_file_gives_parameters_in_brackets_or_as_a_table(module: Path) -> None:
    table = {"agent": "net.py:Net", "parameters": {"layers": [1, 2], "opts": {"a": True}, "temperature": 0.5}}
    experiment = make_experiment({"domain": "tiny", "agents": {"a": "net.py:Net(layers=[3])", "b": table}})
    assert {name: agent.text for name, agent in experiment.read_agents().items()} == {
        "a": "net.py:Net(layers=[3])",
        "b": "net.py:Net(layers=[1, 2], opts={a=true}, temperature=0.5)",
    }
    with pytest.raises(InvalidInput, match="unknown field `parameter`"):
        make_experiment({"domain": "tiny", "agents": {"b": {"agent": "x", "parameter": {}}}})


def test_a_domain_that_adapts_agents_is_given_their_parameters() -> None:
    class Adapting(Domain[Any]):
        name, title, novelties, settings = "adapting", "", (), of.Settings

        def world(self, trial: Any) -> Any: ...
        def spec(self, trial: Any) -> Any: ...
        def phases(self, settings: Any, novelty: Any) -> Any: ...

        def adapt(self, found: Any, parameters: Any) -> Any:
            return lambda spec, seed: (found, parameters)

    assert find_agent("support.players:Learner(a=1)", Adapting())(None, 0)[1] == {"a": 1}


def test_a_plan_refuses_wrong_parameters_before_anything_is_played(module: Path) -> None:
    with pytest.raises(UnknownName, match="temp"):
        make_plan("net.py:Strict(temp=1)", of.trials(TINY, 1))


def test_short_names_of_agents_are_their_own() -> None:
    names = ["random", "a/net.py:Net(rate=1)", "b/net.py:Net(rate=1)", "llm:org/small", "onnx:best.onnx", "wire:run it"]
    short = shorten_agents(names)
    assert list(short.values()) == [
        "random",
        "a/net.py:Net(rate=1)",
        "b/net.py:Net(rate=1)",
        "small",
        "best.onnx",
        "wire:run it",
    ]
    watched = ["random+river:ADWIN(delta=0.1)", "a/net.py:Net+cusum"]
    assert list(shorten_agents(watched).values()) == ["random+river:ADWIN(delta=0.1)", "Net+cusum"]
    versions = ["x.py:Net", "x.py:Net (version 72d033fb)", "x.py:Net(rate=1) (v1)", "two words (v1)"]
    assert list(shorten_agents(versions).values()) == ["Net", "Net (version 72d033fb)", "Net (v1)", "two words (v1)"]
    assert shorten_agents(["x.py:Net", "net.py:Other"]) == {"x.py:Net": "Net", "net.py:Other": "Other"}


@pytest.mark.parametrize(
    ("text", "agent", "detector"),
    [
        ("planner+river:ADWIN(delta=0.002)", "planner", "river:ADWIN(delta=0.002)"),
        ("my.py:Net(rate=0.5)+cusum", "my.py:Net(rate=0.5)", "cusum"),
        ("my.py:Net(rate=0.5) + cusum", "my.py:Net(rate=0.5) + cusum", None),
        ("c++/my.py:Net+mmd(window=2)", "c++/my.py:Net", "mmd(window=2)"),
        ("my.py:Net(text='a+cusum(1)')", 'my.py:Net(text="a+cusum(1)")', None),
        ("process:./a+cusum", "process:./a", "cusum"),
        ("process:python -c 'f((' x +mmd(window=2)", "process:python -c 'f((' x", "mmd(window=2)"),
        ("process:./a '+cusum'", "process:./a '+cusum'", None),
        ("process:./a+cusumm", "process:./a+cusumm", None),
        ("wire:./a {port}+cusum", "wire:./a {port}", "cusum"),
        ("random+cusumm", "random+cusumm", None),
    ],
)
def test_a_detector_is_split_from_its_agent(text: str, agent: str, detector: str | None) -> None:
    try:
        found = read_agent(text)
    except InvalidInput:
        assert "+ cusum" in text
        return
    assert found.player.name == agent
    assert (found.detector and found.detector.name) == detector
    assert read_agent(found.name) == read_agent(read_agent(found.name).name)
    assert strip_parameters(text) == found.place


def test_an_agent_has_one_detector() -> None:
    with pytest.raises(InvalidInput, match="has two detectors, and an agent takes one"):
        read_agent("random+cusum+deedee(watch=reward)")


def test_a_detector_stays_with_its_agent_and_is_part_of_its_version(tmp_path: Path) -> None:
    text = "random+cusum(watch=reward)"
    assert with_parameters("my.py:Net(b=2)+cusum", a=1) == "my.py:Net(a=1, b=2)+cusum"
    assert read_agent(text).settle().text == text
    plain, one, other = (identify_agent(each, TINY) for each in ("random", text, "random+cusum"))
    assert len({each.version.fingerprint for each in (plain, one, other) if each is not None}) == 3
