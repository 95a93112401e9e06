"""The five small JSON texts of the published format: vector, label, performance, indicator, prediction.

Beside the wire: for agents and files that speak the format of the first phase, in which the indicator is a word.
"""

from __future__ import annotations

from typing import Any

import msgspec

from openfield.core import Belief, Reply, Turn
from openfield.errors import AgentProtocol

MOST = 10
"""The highest level a prediction may name."""
_WORDS = {True: "true", False: "false", None: "null"}


class Response(msgspec.Struct, frozen=True):
    """What an agent does."""

    action: str


class DataPrediction(msgspec.Struct, frozen=True):
    """Which level of novelty an agent sees in the episode; 0 is none."""

    novelty_prediction: int


def vector_text(turn: Turn) -> bytes:
    """The feature vector, with the keys that were published and no other."""
    vector = {key: value for key, value in turn.observation.items() if key != "enemies"}
    return msgspec.json.encode(vector)


def label_text(turn: Turn) -> bytes | None:
    """What the reference agent would do, where the trial grants it."""
    label = (turn.feedback or {}).get("label")
    return None if label is None else msgspec.json.encode(label)


def performance_text(turn: Turn) -> bytes | None:
    """How the episode goes, after the first response."""
    feedback: dict[str, Any] = turn.feedback or {}
    return msgspec.json.encode({"performance": feedback["performance"]}) if "performance" in feedback else None


def indicator_text(turn: Turn) -> bytes:
    """Whether the episode is novel, as the word the format has for it."""
    return msgspec.json.encode({"novelty_indicator": _WORDS[turn.red_light]})


def read_reply(response: bytes, prediction: bytes | None = None) -> Reply:
    """A response and the prediction after it as a reply.

    Raises:
        AgentProtocol: One of them is not of the format, or the prediction is not from 0 to 10.
    """
    try:
        action = msgspec.json.decode(response, type=Response).action
        level = None if prediction is None else msgspec.json.decode(prediction, type=DataPrediction).novelty_prediction
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AgentProtocol(f"not of the format: {error}") from None
    if level is None:
        return Reply(action)
    if not 0 <= level <= MOST:
        raise AgentProtocol(f"a prediction of {level}; levels go from 0 to {MOST}")
    return Reply(action, Belief(float(level > 0), level))
