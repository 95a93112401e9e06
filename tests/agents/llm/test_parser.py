"""What models write around and instead of JSON."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.agents.belief_question import read_probability
from openfield.agents.llm.parser import MAX_ANSWER, read_answer


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"action": "up"}', {"action": "up"}),
        ('Sure!\n```json\n{"action": "up", "reasoning": "a {b} c"}\n```\nDone.', {"action": "up"}),
        ('<think>{"action": "down"}</think>{"action": "up"}', {"action": "up"}),
        ('{"action": "down"} no, rather {"action": "up"}', {"action": "up"}),
        ("{'action': 'up', 'world_changed': None}", {"action": "up", "world_changed": None}),
        ('{"Action ": "up",}', {"action": "up"}),
        ('{"action": [1, 2,], }', {"action": [1, 2]}),
        ('{"action": "two\nlines"}', {"action": "two\nlines"}),
        ('a { that is left open, then {"action": 3}', {"action": 3}),
        ('{"action": {"do": "shoot", "angle": 42}}', {"action": {"do": "shoot", "angle": 42}}),
        ('{"note": 1} {"action": "\\"}"} {"other": 2}', {"action": '"}'}),
    ],
)
def test_the_object_in_an_answer_is_found(text: str, values: dict[str, Any]) -> None:
    found = read_answer(text, ["action"])
    assert {key: found[key] for key in values} == values


@pytest.mark.parametrize("text", ["", "up", "{", '{"other": 1}', "[1]", '"action"', "{action: up}", "{" * 9_999])
def test_an_answer_without_the_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="there is no JSON object with action or world_changed in it"):
        read_answer(text, ["action", "world_changed"])


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    answer = f'{text}"action"{text}'
    with suppress(ValueError):
        assert "action" in read_answer(answer, ["action"])
    assert read_answer(answer.replace("{", "(") + '{"action": 1}', ["action"])["action"] == 1


def test_only_the_beginning_of_a_flood_is_read() -> None:
    with pytest.raises(ValueError, match="no JSON object"):
        read_answer("x" * MAX_ANSWER + '{"action": 1}', ["action"])


@pytest.mark.parametrize(
    ("value", "probability"), [(0, 0.0), (1, 1.0), (0.7, 0.7), ("0.7", 0.7), ("70%", 0.7), (" 5 % ", 0.05)]
)
def test_a_probability_is_read(value: Any, probability: float) -> None:
    assert read_probability(value) == pytest.approx(probability)


@pytest.mark.parametrize("value", [True, None, "yes", -0.1, 1.1, "120%", [0.5], {}, float("nan"), 10**400, "1.2.3%"])
def test_what_is_no_probability_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"world_changed is a number|could not convert"):
        read_probability(value)
