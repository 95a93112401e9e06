from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest
from gymnasium import spaces as gs

from openfield.core import Spec
from openfield.domains.gym.adapter import reader_of, to_env_action, to_plain, to_space
from openfield.errors import AgentProtocol, InvalidInput
from openfield.record import ENCODER
from openfield.spaces import Box, Discrete, Text, Tuple

SPACES = [
    gs.Discrete(3),
    gs.Discrete(4, start=-2),
    gs.Box(-1.0, 1.0, (2,)),
    gs.Box(np.array([-4.8, -np.inf], np.float32), np.array([4.8, np.inf], np.float32)),
    gs.Box(0, 255, (3, 4, 3), np.uint8),
    gs.Box(-np.inf, 5.0, (), np.float64),
    gs.Box(np.iinfo(np.int64).min, np.iinfo(np.int64).max, (2,), np.int64),
    gs.MultiBinary(3),
    gs.MultiBinary((2, 2)),
    gs.MultiDiscrete([2, 5]),
    gs.MultiDiscrete([2, 5], start=[3, -1]),
    gs.Text(4, min_length=1, charset="abc"),
    gs.Tuple([gs.Discrete(2), gs.Box(0, 1, (1,))]),
    gs.Sequence(gs.Discrete(3)),
    gs.Sequence(gs.Box(0, 1, (2,)), stack=True),
    gs.Sequence(gs.Dict({"a": gs.Discrete(3), "b": gs.Box(0, 1, (2,))}), stack=True),
    gs.Dict({"at": gs.Discrete(3), "inner": gs.Dict({"x": gs.MultiBinary(2)})}),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_values_go_both_ways_and_spaces_survive_json(space: gs.Space[Any]) -> None:
    space.seed(3)
    declared = to_space(space)
    assert (
        declared
        == msgspec.json.decode(msgspec.json.encode(Spec(domain="d", task="t", actions=declared)), type=Spec).actions
    )
    rng = random.Random(1)
    for _ in range(20):
        seen = reader_of(space)(space.sample())
        assert declared.contains(seen)
        assert space.contains(to_env_action(space, declared, seen))
        plain = msgspec.json.decode(msgspec.json.encode(declared.sample(rng)))
        assert declared.contains(plain)
        assert space.contains(to_env_action(space, declared, plain))


def test_bounds_are_of_each_element_and_infinities_are_null_on_the_wire() -> None:
    space = to_space(SPACES[3])
    assert isinstance(space, Box)
    assert space.low == (pytest.approx(-4.8), -np.inf)
    assert b"null" in msgspec.json.encode(space)
    assert not space.contains([5.0, 0.0])
    assert space.contains([0.0, 1e30])
    assert isinstance(to_space(gs.Tuple([gs.Discrete(2, start=1)])), Tuple)
    assert msgspec.json.encode(Discrete(2)) == b'{"type":"discrete","n":2}'
    assert not Text("ab", 2).contains("abc")


@pytest.mark.parametrize(
    ("space", "action"),
    [
        (gs.Discrete(2), 2),
        (gs.Discrete(2), 2**70),
        (gs.Discrete(2), True),
        (gs.Discrete(2), 0.0),
        (gs.Discrete(2, start=1), 0),
        (gs.Box(-1, 1, (2,)), [0.0, float("nan")]),
        (gs.Box(-1, 1, (2,)), [0.0]),
        (gs.Box(-1, 1, (2,)), np.array([0.0, 2.0], np.float32)),
        (gs.Tuple([gs.Discrete(2)]), [0, 0]),
        (gs.Text(2, charset="ab"), "c"),
        (gs.Dict({"a": gs.Discrete(2)}), {"b": 0}),
        (gs.MultiDiscrete([2, 3]), [1, 3]),
    ],
)
def test_what_is_no_action_is_refused(space: gs.Space[Any], action: Any) -> None:
    with pytest.raises(AgentProtocol, match="is not an action of"):
        to_env_action(space, to_space(space), action)


def test_numpy_actions_are_taken_as_they_are() -> None:
    space = gs.Discrete(3)
    for action in (np.int64(2), np.array(2), np.uint8(2)):
        assert to_env_action(space, to_space(space), action) == 2
    parts = gs.Tuple([gs.Discrete(2), gs.Discrete(2)])
    assert to_env_action(parts, to_space(parts), (np.array(1), np.int32(0))) == (1, 0)


def test_observations_are_copies_that_can_be_recorded() -> None:
    shown = np.zeros(3, np.float32)
    plain = to_plain({"a": shown, "b": (np.int64(1), np.float32(0.5))})
    shown[0] = 1.0
    assert plain["a"][0] == 0.0
    assert plain["b"] == [1, 0.5]
    assert ENCODER.encode(plain)


def test_bounds_whose_difference_is_no_number_are_drawn_from_too() -> None:
    ends = np.finfo(np.float64)
    space = to_space(gs.Box(ends.min, ends.max, (2,), np.float64))
    assert space.contains(space.sample(random.Random(1)))


@pytest.mark.parametrize("space", [gs.Graph(gs.Discrete(2), None), gs.OneOf([gs.Discrete(2), gs.Discrete(3)])])
def test_a_space_without_a_form_here_is_refused_in_one_line(space: gs.Space[Any]) -> None:
    with pytest.raises(InvalidInput, match="Known are Box, Discrete"):
        to_space(space)


def test_large_values_and_spaces_are_told_in_one_line() -> None:
    space = gs.Box(np.arange(12.0).reshape(3, 4), np.full((3, 4), 20.0), dtype=np.float64)
    assert "\n" in str(space)
    with pytest.raises(AgentProtocol, match="is not an action of") as caught:
        to_env_action(space, to_space(space), np.zeros((4, 4)))
    assert "\n" not in str(caught.value)
