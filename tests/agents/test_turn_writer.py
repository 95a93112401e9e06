"""Turns in words for any spec, and actions read back."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import openfield as of
from openfield.agents.turn_writer import MAX_TEXT, TurnWriter, asks_belief, describe_space, schema_of
from openfield.core import Ask, Reply, Spec, Turn
from openfield.spaces import Box, Choice, Discrete, Fields, Sequence, Space, Text, Tuple

SPACES: list[Space] = [
    Discrete(3),
    Discrete(2, start=5),
    Choice(("left", "Right")),
    Box(-1, 1, (2,)),
    Box(0, 255, (), "uint8"),
    Box(None, None, (2, 2)),
    Fields({"x": Discrete(4), "way": Choice(("in", "out"))}),
    Tuple((Discrete(2), Text("ab", 3))),
    Text("abc", 5),
    Sequence(Discrete(3)),
]
END = of.Turn(ask=of.Ask.NONE, last="terminated")


def writer(actions: Space | None) -> TurnWriter:
    return TurnWriter(Spec(domain="d", task="Do it.", actions=actions))


@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_what_a_space_draws_can_be_written_and_read(space: Space) -> None:
    rng, talk = random.Random(1), writer(space)
    for _ in range(5):
        value = talk.sample(rng)
        assert space.contains(talk.read(value))
    assert schema_of(space)["type"] in ("integer", "number", "string", "array", "object")
    assert describe_space(space)


@pytest.mark.parametrize(
    ("space", "written", "action"),
    [
        (Discrete(3), "2", 2),
        (Discrete(3), 2.0, 2),
        (Choice(("left", "Right")), " RIGHT ", "Right"),
        (Box(-1, 1, (2,)), ["0.5", 1], [0.5, 1.0]),
        (Box(0, 9, (2,), "int64"), [1.0, "2"], [1, 2]),
        (Fields({"x": Discrete(4)}), {"x": "3"}, {"x": 3}),
        (None, {"any": [1]}, {"any": [1]}),
    ],
)
def test_what_models_write_is_taken(space: Space | None, written: Any, action: Any) -> None:
    assert writer(space).read(written) == action


@pytest.mark.parametrize(
    ("space", "written", "told"),
    [
        (Discrete(3), 3, "3 is not an action here; it must be a whole number from 0 to 2"),
        (Discrete(3), True, "true is not an action here"),
        (Choice(("left", "right")), "up", "one of 'left', 'right'"),
        (Box(-1, 1, (2,)), [0.5], "2 numbers from -1 to 1, as a list"),
        (Box(-1, 1, (2,)), {"x": 1}, "is not an action here"),
        (Box(-1, 1, ()), 10**400, "is not an action here"),
        (Text("ab", 2), "x" * 500, "a text of at most 2 characters"),
    ],
)
def test_what_is_no_action_is_refused_with_what_would_be(space: Space, written: Any, told: str) -> None:
    with pytest.raises(ValueError, match="is not an action here") as refused:
        writer(space).read(written)
    assert told in str(refused.value)
    assert len(str(refused.value)) < 200


def test_a_turn_is_said_in_words() -> None:
    seen = {
        "at": [1, 2.123456],
        "grid": np.eye(2, dtype=int),
        "far": np.zeros(100),
        "eye": np.zeros((4, 6, 3), "uint8"),
    }
    turn = Turn(observation=seen, reward=0.5, feedback={"ok": True}, red_light=True, phase="training")
    text, images = writer(None).describe(turn)
    for words in (
        "Reward: 0.5",
        "- ok: True",
        "the world has changed",
        "- at: [1, 2.1235]",
        "\n1 0\n0 1",
        "100 numbers",
    ):
        assert words in text
    assert "picture 1, 6 x 4 pixels" in text
    assert [image.shape for image in images] == [(4, 6, 3)]
    assert "A new episode begins" in writer(None).describe(Turn(first=True)).text
    assert "The episode is over (truncated)." in writer(None).describe(Turn(last="truncated")).text
    assert len(writer(None).describe(Turn(observation="x" * 99_999)).text) < MAX_TEXT + 100


def test_only_what_matters_is_asked() -> None:
    talk = writer(Discrete(2))
    assert talk.pass_over(Turn(ask=Ask.READY)) == Reply()
    assert talk.pass_over(Turn(ask=Ask.NONE, last="terminated", phase="training")) == Reply()
    assert talk.pass_over(Turn(ask=Ask.NONE, last="terminated")) is None
    assert talk.pass_over(Turn(ask=Ask.BELIEF)) is None
    assert talk.pass_over(Turn()) is None
    assert not talk.asks_belief(Turn())
    assert TurnWriter(Spec(domain="d", task="t", ask="turn")).asks_belief(Turn())


def test_every_shipped_spec_has_a_schema() -> None:
    for domain in ("commai", "doom", "ond"):
        trial = of.trials(domain, 1, unchanged=0)[0]
        assert TurnWriter(of.registry.find_domain(domain).spec(trial)).schema


def test_question_comes_at_the_end_of_test_episodes_and_where_the_world_asks() -> None:
    assert asks_belief(END, "episode")
    assert not asks_belief(of.Turn(ask=of.Ask.NONE, last="terminated", phase="training"), "episode")
    assert not asks_belief(of.Turn(), "episode")
    assert asks_belief(of.Turn(ask=of.Ask.BELIEF, phase="training"), "episode")


def test_question_comes_with_every_action_of_the_test_if_wanted() -> None:
    assert asks_belief(of.Turn(), "turn")
    assert asks_belief(END, "turn")
    assert not asks_belief(of.Turn(phase="training"), "turn")
    assert not asks_belief(of.Turn(ask=of.Ask.READY), "turn")
