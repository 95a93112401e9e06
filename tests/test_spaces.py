from __future__ import annotations

import random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.spaces import Box, Choice, Discrete, Fields, Space

plain = (
    st.builds(Discrete, st.integers(1, 99))
    | st.builds(Choice, st.lists(st.text(max_size=5), min_size=1, max_size=4).map(tuple))
    | st.builds(
        Box,
        st.integers(-9, 0).map(float),
        st.integers(1, 9).map(float),
        st.lists(st.integers(1, 3), max_size=3).map(tuple),
        st.sampled_from(["float32", "float64", "int64", "uint8"]),
    )
)
spaces = st.recursive(
    plain, lambda inner: st.builds(Fields, st.dictionaries(st.text(max_size=4), inner, max_size=3)), max_leaves=5
)


@given(spaces, st.integers(0, 9))
def test_what_is_drawn_is_contained_and_drawn_again_from_the_same_seed(space: Space, seed: int) -> None:
    value = space.sample(random.Random(seed))
    assert space.contains(value)
    assert value == space.sample(random.Random(seed))
    assert space.contains(msgspec.json.decode(msgspec.json.encode(value)))


@given(spaces)
def test_spaces_are_carried_by_files_and_wires(space: Space) -> None:
    assert msgspec.json.decode(msgspec.json.encode(space), type=Space) == space
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(space), type=Space) == space


@pytest.mark.parametrize(
    ("space", "value", "contained"),
    [
        (Discrete(3), 2, True),
        (Discrete(3), np.int64(2), True),
        (Discrete(3), 3, False),
        (Discrete(3), -1, False),
        (Discrete(3), True, False),
        (Discrete(3), 1.0, False),
        (Discrete(3), "1", False),
        (Choice(("a", "b")), "a", True),
        (Choice(("a", "b")), "c", False),
        (Choice(("a", "b")), ["a"], False),
        (Choice(("a", "b")), np.array(["a", "b"]), False),
        (Box(0, 1), 0.5, True),
        (Box(0, 1), 1, True),
        (Box(0, 1), 1.5, False),
        (Box(0, 1), float("nan"), False),
        (Box(0, 1), "0.5", False),
        (Box(0, 1), None, False),
        (Box(0, 1), [0.5], False),
        (Box(0, 1, (2,)), [0, 1], True),
        (Box(0, 1, (2,)), [[0, 1]], False),
        (Box(0, 1, (2,)), [0, [1]], False),
        (Box(0, 9, (), "int64"), 2.7, False),
        (Box(0, 9, (), "int64"), 2, True),
        (Box(0, 9, (), "uint8"), -1, False),
        (Fields({"x": Discrete(2)}), {"x": 1}, True),
        (Fields({"x": Discrete(2)}), {"x": 2}, False),
        (Fields({"x": Discrete(2)}), {"x": 1, "y": 1}, False),
        (Fields({"x": Discrete(2)}), {}, False),
        (Fields({"x": Discrete(2)}), [1], False),
    ],
)
def test_what_belongs_to_a_space(space: Space, value: Any, contained: bool) -> None:
    assert space.contains(value) is contained
