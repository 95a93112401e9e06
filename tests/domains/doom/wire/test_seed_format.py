"""The published JSON texts of the duel, letter by letter."""

from __future__ import annotations

import json

import pytest

from openfield.core import Belief, Reply, Turn
from openfield.domains.doom import DUEL
from openfield.domains.doom.wire.phase1_format import (
    indicator_text,
    label_text,
    performance_text,
    read_reply,
    vector_text,
)
from openfield.errors import AgentProtocol

BODY = {"id": 0, "x_position": 10.0, "y_position": 10.0, "z_position": 0.0, "health": 10.0}
VECTOR = {"time_stamp": 1.5, "player": BODY, "enemy": BODY, "projectiles": []}


def test_vector() -> None:
    assert json.loads(vector_text(Turn(observation={**VECTOR, "enemies": [BODY]}))) == VECTOR


@pytest.mark.parametrize(("light", "word"), [(True, "true"), (False, "false"), (None, "null")])
def test_indicator_is_a_word(light: bool | None, word: str) -> None:
    assert json.loads(indicator_text(Turn(red_light=light))) == {"novelty_indicator": word}


def test_label_and_performance_where_there_are_any() -> None:
    turn = Turn(feedback={"label": {"action": "shoot"}, "performance": 0.9})
    assert (label_text(turn), performance_text(turn)) == (b'{"action":"shoot"}', b'{"performance":0.9}')
    assert (label_text(Turn()), performance_text(Turn())) == (None, None)


def test_replies() -> None:
    assert read_reply(b'{"action": "left"}') == Reply("left")
    assert read_reply(b'{"action": "left"}', b'{"novelty_prediction": 2}') == Reply("left", Belief(1.0, 2))


@pytest.mark.parametrize(
    "texts",
    [
        (b"{}",),
        (b'{"action": "left"}', b'{"novelty_prediction": 11}'),
        (b"x", None),
        (b'{"action": "\xff"}',),
        (b'{"action": "left"}', b'{"novelty_prediction": "\xff"}'),
        (b'{"more": ' + b"[" * 100_000,),
    ],
)
def test_anything_else_is_refused(texts: tuple[bytes, ...]) -> None:
    with pytest.raises(AgentProtocol):
        read_reply(*texts)


def test_detection_is_a_last_prediction_above_zero() -> None:
    assert not DUEL.detected(Belief(0.9, 0))
    assert DUEL.detected(Belief(0.1, 1))
    assert DUEL.detected(Belief(0.3, 0, {"threshold": 0.25}))
    assert not DUEL.detected(Belief(0.3, 5, {"threshold": 0.5}))
    assert DUEL.detected(Belief(0.5))
