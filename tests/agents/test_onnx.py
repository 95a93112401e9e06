from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
pytest.importorskip("onnx", reason="it makes the networks of these tests")

from onnx import helper

import openfield as of
from openfield.agents.onnx import onnx_agent
from openfield.core import Ask, Reply, Spec, Turn
from openfield.errors import AgentProtocol, Cancelled, InvalidInput, MissingExtra, UnknownName
from openfield.journal.reader import Run
from openfield.provenance.versions import identify_agent
from openfield.registry import find_agent
from support.networks import TOWARDS_GOAL, write_linear, write_network
from support.stories import press_ctrl_c_after, story

SEEN = of.spaces.Box(-1, 1, (3,))
SPEC = Spec(domain="tiny", task="Answer.", actions=of.spaces.Discrete(3), observations=SEEN)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A network that walks towards the goal of the maze."""
    return write_linear(tmp_path / "net.onnx")


def answer(path: Path, observation: Any, spec: Spec = SPEC, **options: Any) -> Any:
    return onnx_agent(str(path), **options)(spec, 0)(Turn(observation=observation)).action


def spec_of(actions: Any = None, observations: Any = None) -> Spec:
    return Spec(domain="tiny", task="", actions=actions or of.spaces.Discrete(3), observations=observations or SEEN)


def test_the_highest_score_is_the_action(tmp_path: Path) -> None:
    path = write_linear(tmp_path / "net.onnx", np.eye(3), ("batch", 3))
    assert [answer(path, row) for row in np.eye(3).tolist()] == [0, 1, 2]
    words = spec_of(of.spaces.Choice(("a", "b", "c")))
    assert answer(path, [0, 1, 0], words) == "b"
    assert answer(path, [0, 1, 0], spec_of(of.spaces.Discrete(3, start=5))) == 6
    single = write_linear(tmp_path / "single.onnx", np.eye(3), (1, 3))
    assert answer(single, [0, 0, 1]) == 2


def test_continuous_actions_are_kept_in_their_bounds(tmp_path: Path) -> None:
    path = write_linear(tmp_path / "net.onnx", [[1, 0], [0, 1], [0, 5]], ("batch", 3), "action")
    given = answer(path, [0.25, -0.5, 1], spec_of(of.spaces.Box(-1, (0.5, 1.0), (2,))))
    assert given == [0.25, 1.0]
    assert answer(path, [0.9, 0, 0], spec_of(of.spaces.Box(-1, (0.5, 1.0), (2,)))) == [0.5, 0.0]


def make_actor(path: Path) -> Path:
    """A network with an action, a value and scores, as algorithms export them."""
    nodes = [
        helper.make_node("Identity", ["row"], ["scores"]),
        helper.make_node("ArgMin", ["row"], ["int_action"], axis=1, keepdims=0),
        helper.make_node("ReduceSum", ["row"], ["value"], keepdims=1),
        helper.make_node("Neg", ["row"], ["costs"]),
    ]
    outputs = {"scores": ("batch", 3), "int_action": ("batch",), "value": (1, 1), "costs": ("batch", 3)}
    return write_network(path, nodes, {"row": ("batch", 3)}, outputs)


def test_an_output_that_is_an_action_goes_before_scores_and_both_can_be_chosen(tmp_path: Path) -> None:
    path = make_actor(tmp_path / "net.onnx")
    assert answer(path, [0, 1, -1]) == 2
    assert answer(path, [0, 1, -1], output="scores") == 1
    with pytest.raises(InvalidInput, match=r"several outputs fit, choose one with output=scores: .*costs \[1, 3\]"):
        answer(path, [0, 1, -1], reads="scores")
    with pytest.raises(InvalidInput, match="it has no output 'advice'; there are scores, int_action, value, costs"):
        answer(path, [0, 1, -1], output="advice")


def test_frames_are_stacked_and_scaled(tmp_path: Path) -> None:
    weights = np.zeros((6, 3))
    weights[0, 2] = weights[4, 1] = 1  # the first number of the frame before, the second of this one
    agent = onnx_agent(str(write_linear(tmp_path / "net.onnx", weights, ("n", 6))), stack=2, pad="zeros", scale=0.5)(
        SPEC, 0
    )
    assert agent(Turn(observation=[1, 0.5, 0], first=True)).action == 1
    assert agent(Turn(observation=[0, 0.5, 0])).action == 2


def test_pictures_may_have_their_channels_first(tmp_path: Path) -> None:
    node = helper.make_node("ReduceMean", ["picture"], ["scores"], axes=[2, 3], keepdims=0)
    path = write_network(tmp_path / "net.onnx", [node], {"picture": ("n", 3, 4, 5)}, {"scores": ("n", 3)})
    picture = np.zeros((4, 5, 3), dtype="uint8")
    picture[..., 1] = 200
    assert answer(path, picture, spec_of(observations=of.spaces.Box(0, 255, (4, 5, 3), "uint8"))) == 1


def test_several_inputs_take_fields_by_name_or_by_shape(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceSum", ["b", "axes"], ["sum"], keepdims=1),
        helper.make_node("Mul", ["long", "sum"], ["scores"]),
    ]
    inputs, seen = {"long": ("n", 3), "b": ("n", 2)}, of.spaces.Fields({"a": SEEN, "b": of.spaces.Box(-1, 1, (2,))})
    path = write_network(tmp_path / "net.onnx", nodes, inputs, {"scores": ("n", 3)}, axes=np.array([1]))
    assert answer(path, {"a": [0, 1, 0], "b": [1, 1]}, spec_of(observations=seen)) == 1
    assert answer(path, {"a": [0, 1, 0], "b": [-1, -1]}, spec_of(observations=seen)) == 0
    with pytest.raises(InvalidInput, match=r"2 fields of the observation fit its input long \[any, 3\]"):
        answer(
            path, {}, spec_of(observations=of.spaces.Fields({"a": SEEN, "c": SEEN, "b": of.spaces.Box(-1, 1, (2,))}))
        )
    with pytest.raises(InvalidInput, match=r"it has 2 inputs \(long, b\), and an observation has no named fields"):
        answer(path, [0, 0, 0])


def test_a_network_for_other_spaces_is_refused_before_the_first_turn(tmp_path: Path) -> None:
    path = write_linear(tmp_path / "net.onnx", np.ones((5, 3)), ("batch", 5))
    told = r"^net.onnx cannot play tiny: its input is row \[any, 5\], and it is shown numbers of shape \[3\]\.$"
    with pytest.raises(InvalidInput, match=told):
        answer(path, [0, 0, 0])
    fits = write_linear(tmp_path / "net.onnx", np.ones((3, 2)), ("batch", 3))
    told = r"no output gives the action: the action is a whole number from 0 to 2, the outputs are scores \[1, 2\]\.$"
    with pytest.raises(InvalidInput, match=told):
        answer(fits, [0, 0, 0])
    with pytest.raises(InvalidInput, match=r"does not declare its spaces\. Look .*: openfield list settings tiny$"):
        answer(fits, [0, 0, 0], Spec(domain="tiny", task=""))
    inner = write_linear(tmp_path / "net.onnx", np.ones((4, 2)), ("batch", "any"))
    with pytest.raises(InvalidInput, match="it cannot be run on an observation: "):
        answer(inner, [0, 0, 0])


def test_a_run_with_a_network_for_other_spaces_does_not_start(path: Path, maze: Any) -> None:
    wrong = write_linear(path.with_name("wrong.onnx"), np.ones((5, 4)), ("batch", 5))
    with pytest.raises(InvalidInput, match=r"wrong.onnx cannot play maze: its input is row \[any, 5\]"):
        of.run(f"onnx:{wrong}", maze.trials(1), path)
    assert not path.exists()


def test_an_answer_that_is_no_number_is_named(tmp_path: Path) -> None:
    node = helper.make_node("Log", ["row"], ["scores"])
    path = write_network(tmp_path / "net.onnx", [node], {"row": ("n", 3)}, {"scores": ("n", 3)})
    with pytest.raises(AgentProtocol, match="The output scores is not a finite number"):
        answer(path, [-1, 1, 1])


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("onnx:none.onnx", InvalidInput, "There is no ONNX file none.onnx"),
        ("onnx:broken.onnx", InvalidInput, "broken.onnx cannot be read as an ONNX file"),
        ("onnx:net.onnx(layers=3)", UnknownName, "layers"),
        ("onnx:net.onnx(stack=many)", InvalidInput, "'stack' is a whole number"),
        ("onnx:net.onnx(scale=big)", InvalidInput, "'scale' is a number"),
        ("onnx:net.onnx(reads=tea)", InvalidInput, "'reads' is 'auto', 'scores' or 'action'"),
    ],
)
def test_a_wrong_file_or_parameter_is_one_line(
    net: Path, maze: Any, monkeypatch: pytest.MonkeyPatch, text: str, kind: Any, told: str
) -> None:
    monkeypatch.chdir(net.parent)
    Path("broken.onnx").write_bytes(b"no network")
    with pytest.raises(kind, match=told) as raised:
        find_agent(text, maze)
    assert "\n" not in str(raised.value)


def test_a_missing_runtime_is_named(net: Path, maze: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match="onnx"):
        find_agent(f"onnx:{net}", maze)


def test_the_network_is_part_of_its_identity(net: Path, maze: Any) -> None:
    def identify(text: str) -> Any:
        code = identify_agent(text, maze)
        assert code is not None
        return code.version

    before, scaled = identify(f"onnx:{net}"), identify(f"onnx:{net}(scale=0.5)")
    assert before.fingerprint != scaled.fingerprint
    assert {"file net.onnx", "package onnxruntime"} <= before.parts.keys()
    write_linear(net, 2 * TOWARDS_GOAL)
    assert before.differences(identify(f"onnx:{net}")) == ["net.onnx"]


def test_it_is_told_its_past_and_not_asked(tmp_path: Path) -> None:
    factory = onnx_agent(str(write_linear(tmp_path / "net.onnx", np.ones((6, 3)), ("n", 6))), stack=2)
    one, told = factory(SPEC, 0), factory(SPEC, 0)
    turns = [Turn(observation=[1, 0, 0], first=True), Turn(observation=[0, 1, 0])]
    for turn in turns:
        told.remember(turn, one(turn))  # type: ignore[attr-defined]
    assert [each.tolist() for each in told._seen] == [each.tolist() for each in one._seen]
    assert one(Turn(ask=Ask.NONE, last="terminated")) == Reply()


def test_a_run_goes_on_after_ctrl_c_in_another_folder(
    net: Path, path: Path, maze: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(net.parent)
    trials, whole = maze.trials(2, unchanged=0, training=1, before=4, after=2), path.with_name("whole.sqlite")
    with pytest.raises(Cancelled):
        of.run({"net": "onnx:net.onnx"}, trials, path, watch=press_ctrl_c_after(3))
    with Run(path) as run:
        assert run.agents["net"] == f"onnx:{net}"
    other = net.parent / "elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    resumed = of.resume(path, workers=1)
    of.run({"net": f"onnx:{net}", "random": "random"}, trials, whole)
    assert {cell.outcome for cell in resumed.cells} == {"done"}
    before = {cell.agent: np.mean([each.performance for each in cell.episodes[:5]]) for cell in of.resume(whole).cells}
    assert before["net"] > before["random"] + 0.3
    of.run({"net": f"onnx:{net}"}, trials, path.with_name("again.sqlite"))
    assert story(path) == story(path.with_name("again.sqlite"))


@pytest.mark.sandbox
def test_it_plays_in_isolation(net: Path, path: Path, maze: Any) -> None:
    trials = maze.trials(1, unchanged=0, training=0, before=1, after=1)
    (cell,) = of.run(of.isolate(f"onnx:{net}"), trials, path).cells
    assert cell.outcome == "done"


def write_counter(path: Path, kept: Any = (1,)) -> Path:
    """Write a network that counts turns, acts by the count and the reward, and believes in a tenth of the count."""
    nodes = [
        helper.make_node("Add", ["count", "one"], ["next_count"]),
        helper.make_node("Add", ["next_count", "reward"], ["number"]),
        helper.make_node("Sub", ["actions", "number"], ["apart"]),
        helper.make_node("Abs", ["apart"], ["distance"]),
        helper.make_node("Neg", ["distance"], ["scores"]),
        helper.make_node("Mul", ["next_count", "tenth"], ["belief"]),
        helper.make_node("ReduceSum", ["observation"], ["unused"], keepdims=0),
    ]
    inputs = {"observation": (1, 3), "count": kept, "reward": (1,)}
    outputs = {"scores": (1, 3), "next_count": (1,), "belief": (1,), "unused": ()}
    one, actions = np.ones(1, np.float32), np.arange(3, dtype=np.float32)[None]
    return write_network(path, nodes, inputs, outputs, one=one, tenth=one / 10, actions=actions)


def test_a_network_remembers_and_believes_until_an_episode_ends(tmp_path: Path) -> None:
    agent = onnx_agent(str(write_counter(tmp_path / "net.onnx")))(SPEC, 0)
    seen = [0.0, 0.0, 0.0]
    turns = [
        Turn(observation=seen, first=True),
        Turn(observation=seen, reward=-2.0),
        Turn(observation=seen, reward=-1.0),
        Turn(ask=Ask.NONE, observation=seen, reward=1.0, last="terminated"),
        Turn(observation=seen, first=True),
    ]
    replies = [agent(turn) for turn in turns]
    assert [reply.action for reply in replies] == [1, 0, 2, None, 1]
    beliefs = [reply.belief.novel for reply in replies if reply.belief is not None and reply.action is not None]
    assert beliefs == pytest.approx([0.1, 0.2, 0.3, 0.1])


def test_memory_has_a_fixed_size(tmp_path: Path) -> None:
    factory = onnx_agent(str(write_counter(tmp_path / "net.onnx", kept=("any",))))
    with pytest.raises(InvalidInput, match=r"its memory is count \[any\], and must have a fixed size"):
        factory(SPEC, 0)
