from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import openfield as of
from openfield.agents.policy import Policy
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import AgentProtocol, InvalidInput
from openfield.provenance.versions import identify_agent
from support.walks import WALKS

SEEN = of.spaces.Box(-1, 1, (3,))
SPEC = Spec(domain="tiny", task="Answer.", actions=of.spaces.Discrete(4), observations=SEEN)


def make(model: Any, spec: Spec = SPEC, **options: Any) -> Policy:
    return of.policy(model, **options)(spec, 0)


def act(*numbers: float, first: bool = False) -> Turn:
    return Turn(observation=list(numbers), first=first)


def test_a_function_is_shown_arrays_and_answers_with_numpy_values() -> None:
    seen: list[Any] = []

    def answer(observation: Any) -> Any:
        seen.append(observation)
        return np.argmax(observation)

    agent = make(answer)
    assert agent(act(0, 1, 0)) == Reply(1)
    assert type(agent(act(0, 0, 1)).action) is int
    assert seen[0].dtype == np.float32
    assert agent(Turn(ask=Ask.BELIEF)) == Reply(None, Belief(0.0))
    assert agent(Turn(ask=Ask.NONE, last="terminated")) == Reply()
    assert len(seen) == 2


def test_a_choice_is_a_number_or_a_word() -> None:
    spec = Spec(
        domain="tiny", task="", actions=of.spaces.Choice(("left", "right")), observations=of.spaces.Choice(("a", "b"))
    )
    assert make(lambda seen: seen, spec)(Turn(observation="b")) == Reply("right")
    assert make(lambda seen: np.array(["left", "right"])[seen], spec)(Turn(observation="a")) == Reply("left")


def test_actions_of_several_numbers_are_not_taken_for_an_action_with_a_state() -> None:
    spec = Spec(domain="tiny", task="", actions=of.spaces.Box(0, 1, (2,)), observations=SEEN)
    assert make(lambda seen: (0.5, 0.25), spec)(act(0, 0, 0)).action == [0.5, 0.25]
    assert make(lambda seen: (np.array([0.5, 0.25]), None), spec)(act(0, 0, 0)).action == [0.5, 0.25]


def test_parts_and_texts_have_the_form_of_gymnasium() -> None:
    parts = of.spaces.Tuple((of.spaces.Discrete(3, start=1), of.spaces.Text("ab", 3, 1)))
    spec = Spec(domain="tiny", task="", actions=parts, observations=parts)
    assert make(lambda seen: seen, spec)(Turn(observation=[2, "ba"])) == Reply([2, "ba"])
    limits = of.spaces.Fields({"a": parts, "b": of.spaces.Box(float("-inf"), 1, (2,))})
    shown = of.policy(len).frames.show_example(limits)
    assert (shown["a"], shown["b"].tolist()) == ((1, "a"), [0, 0])


class Recurrent:
    """Counts the turns of an episode, in the way of stable-baselines3."""

    observation_space, action_space = SimpleNamespace(shape=(3,)), SimpleNamespace(n=4)

    def predict(self, seen: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False) -> Any:
        assert deterministic
        assert episode_start.tolist() == [state is None]
        count = 0 if state is None else state
        return np.array(count), count + 1


def test_a_state_is_handed_back_until_the_episode_ends() -> None:
    agent = make(Recurrent())
    turns = [act(0, 0, 0, first=True), act(0, 0, 0), act(0, 0, 0), Turn(ask=Ask.NONE, last="terminated")]
    assert [agent(turn).action for turn in turns] == [0, 1, 2, None]
    assert [agent(turn).action for turn in turns] == [0, 1, 2, None]


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, [[2.0, 0, 0], [2, 0, 0], [2, 0, 0]]),
        ({"pad": "zeros"}, [[0.0, 0, 0], [0, 0, 0], [2, 0, 0]]),
        ({"stack_axis": -1}, [2.0, 0, 0, 2, 0, 0, 2, 0, 0]),
    ],
)
def test_frames_are_prepared_and_stacked_within_an_episode(options: Any, shown: Any) -> None:
    seen: list[Any] = []

    def answer(shown: Any) -> int:
        seen.append(shown)
        return 0

    agent = make(answer, stack=3, preprocess=lambda each: 2 * each, **options)
    for turn in (
        act(1, 0, 0, first=True),
        act(0, 1, 0),
        Turn(ask=Ask.NONE, last="terminated"),
        act(1, 0, 0, first=True),
    ):
        agent(turn)
    assert seen[0].tolist() == shown == seen[2].tolist()
    assert np.ravel(seen[1])[-6:].tolist() == [2, 0, 0, 0, 2, 0]


def test_an_estimator_of_scikit_learn_is_given_a_row() -> None:
    rows = np.eye(3)
    agent = make(DecisionTreeClassifier().fit(rows, [0, 1, 3]))
    assert [agent(act(*row)).action for row in rows] == [0, 1, 3]
    agent.remember(act(1, 0, 0), Reply(0))  # type: ignore[attr-defined]
    fields = Spec(
        domain="tiny",
        task="",
        actions=of.spaces.Discrete(4),
        observations=of.spaces.Fields({"a": SEEN, "b": of.spaces.Discrete(2)}),
    )
    wide = make(DecisionTreeClassifier().fit(np.eye(4), [0, 1, 2, 3]), fields)
    assert wide(Turn(observation={"a": [0, 0, 0], "b": 1})).action == 3


@pytest.mark.parametrize(
    ("model", "options", "told"),
    [
        (DecisionTreeClassifier().fit(np.eye(5), range(5)), {}, "was made for 5 numbers, and is shown 3"),
        (DecisionTreeClassifier().fit(np.eye(3), [0, 1, 4]), {}, r"where the action is a whole number from 0 to 3"),
        (Recurrent(), {"stack": 2}, r"observations of shape \(3,\), and is shown \(2, 3\)"),
        (SimpleNamespace(predict=len, action_space=SimpleNamespace(n=5)), {}, r"n=5.*where the action is a whole"),
        (len, {"preprocess": lambda seen: seen["x"]}, "cannot be prepared for the policy: IndexError"),
        (len, {"preprocess": list, "stack": 2}, "frames are stacked as arrays"),
    ],
)
def test_a_policy_for_other_spaces_is_refused_before_the_first_turn(model: Any, options: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        make(model, **options)


@pytest.mark.parametrize(
    ("given", "options", "told"),
    [
        (Recurrent, {}, "not the class Recurrent: make it first"),
        (7, {}, "7 .int. is neither"),
        (len, {"stack": 0}, "'stack' is a whole number from 1 to 1,000"),
        (len, {"stack_axis": "x"}, "'stack_axis' is the number of an axis"),
        (len, {"pad": "ones"}, "'pad' is 'first' or 'zeros'"),
        (len, {"preprocess": 3}, "'preprocess' is a function"),
    ],
)
def test_what_is_no_policy_is_refused(given: Any, options: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        of.policy(given, **options)


@pytest.mark.parametrize("given", [np.array([1, 2]), "left", None, 1.5])
def test_an_answer_that_is_no_action_is_named(given: Any) -> None:
    with pytest.raises(AgentProtocol, match=r"The policy answered .* where the action is a whole number from 0 to 3"):
        make(lambda seen: given)(act(0, 0, 0))


def test_a_cell_has_an_object_for_itself() -> None:
    class Counts:
        turns = 0

        def predict(self, seen: Any) -> int:
            self.turns += 1
            return self.turns

    factory = of.policy(Counts())
    assert [factory(SPEC, 0)(act(0, 0, 0)).action for _ in range(2)] == [1, 1]


def test_weights_and_functions_are_part_of_its_identity() -> None:
    def identify(given: Any) -> str:
        code = identify_agent(given, WALKS)
        assert code is not None
        return code.version.fingerprint

    def tree(*labels: int) -> Any:
        return of.policy(DecisionTreeClassifier(random_state=0).fit(np.eye(3), labels))

    assert identify(of.policy(np.argmax)) != identify(of.policy(np.argmin))
    assert identify(of.policy(lambda seen: 1)) == identify(of.policy(lambda seen: 1))
    assert identify(of.policy(lambda seen: 1)) != identify(of.policy(lambda seen: 2))
    assert identify(of.policy(len)) != identify(of.policy(len, stack=2))
    assert identify(tree(0, 1, 2)) == identify(tree(0, 1, 2)) != identify(tree(0, 1, 3))
    net = SimpleNamespace(weights=[np.zeros(3)], predict=len)
    other = SimpleNamespace(weights=[np.ones(3)], predict=len)
    assert identify(of.policy(net)) != identify(of.policy(other))


def test_a_run_is_played_with_one(path: Path, maze: of.Domain[Any]) -> None:
    def choose(seen: Any) -> int:
        return int(np.argmax(seen["open"]))

    (cell,) = of.run(of.policy(choose), maze.trials(1, unchanged=0), path).cells
    assert (cell.agent, cell.outcome, len(cell.episodes)) == ("choose", "done", 30)


def test_a_module_of_torch_is_refused_with_the_line_that_works() -> None:
    module = type("Net", (type("Module", (), {"__module__": "torch.nn.modules.module"}),), {"__call__": lambda *_: 0})()
    with pytest.raises(of.errors.InvalidInput, match=r"of\.policy\(lambda seen: .*torch\.as_tensor"):
        of.policy(module)
    module.predict = lambda seen: 0
    of.policy(module)
