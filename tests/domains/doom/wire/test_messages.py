"""Protocol 0.8: every message with every field, bytes in, values out."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.domains.doom.wire import messages
from openfield.domains.doom.wire.messages import (
    FIELDS,
    DataPrediction,
    RequestExperiment,
    decode_message,
    decode_request,
    encode_message,
    error_message,
    message,
)
from openfield.errors import AgentProtocol

EXPERIMENT = {
    "obj_type": "request_experiment",
    "model": '{"obj_type": "model", "model_name": "m"}',
    "novelty": 0,
    "novelty_visibility": 0,
    "client_rpc_queue": "rpc.client.v0.8.00",
    "git_version": "x",
    "seed": None,
    "domain_dict": {"cartpole": False, "vizdoom": True, "smartenv": False},
    "epoch": 1.5,
    "no_testing": False,
    "experiment_type": "SAIL-ON",
    "description": "",
    "generator_config": {"episode_seed": None, "start_zeroed_out": False, "start_world_state": None},
}


@pytest.mark.parametrize("kind", FIELDS)
def test_every_message_has_exactly_its_fields(kind: str) -> None:
    made = decode_message(encode_message(message(kind, **dict.fromkeys(FIELDS[kind]))))
    assert set(made) == {"obj_type", *FIELDS[kind]}
    if FIELDS[kind]:
        with pytest.raises(TypeError, match=kind):
            message(kind)


def test_a_list_and_a_bare_object_mean_the_same() -> None:
    bare, listed = json.dumps(EXPERIMENT).encode(), json.dumps([EXPERIMENT]).encode()
    assert decode_request(bare) == decode_request(listed)
    assert isinstance(decode_request(listed), RequestExperiment)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 10))
def test_opinions_come_through(probability: float, threshold: float, level: int) -> None:
    sent = {
        "obj_type": "testing_episode_novelty",
        "novelty_probability": probability,
        "novelty_threshold": threshold,
        "novelty": level,
        "novelty_characterization": {},
    }
    read = decode_request(encode_message(sent))
    assert read == messages.TestingNovelty(
        novelty_probability=probability, novelty_threshold=threshold, novelty=level, novelty_characterization={}
    )


PREDICTION = {
    "obj_type": "training_data_prediction",
    "secret": "s",
    "utc_remote_epoch_received": 1.5,
    "utc_remote_epoch_sent": 2.5,
    "label_prediction": {"action": "left"},
    "end_early": False,
}


def test_unknown_fields_are_not_looked_at() -> None:
    assert isinstance(decode_request(encode_message({**PREDICTION, "more": 1})), DataPrediction)


@pytest.mark.parametrize("whole", [EXPERIMENT, PREDICTION], ids=["registration", "prediction"])
def test_every_field_must_be_there(whole: dict[str, Any]) -> None:
    for name in whole:
        with pytest.raises(AgentProtocol, match="not a message"):
            decode_request(encode_message({key: value for key, value in whole.items() if key != name}))


@pytest.mark.parametrize("name", ["secret", "utc_remote_epoch_received", "utc_remote_epoch_sent", "end_early"])
def test_many_fields_may_be_null(name: str) -> None:
    assert isinstance(decode_request(encode_message({**PREDICTION, name: None})), DataPrediction)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"[{}, {}]",
        b"{",
        b'"text"',
        b'[{"obj_type": "nonsense"}]',
        b'[{"obj_type": "benchmark_data"}]',
        b"\xff",
    ],
)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(AgentProtocol, match="not a message"):
        decode_request(body)


def test_a_flood_is_refused_before_it_is_read() -> None:
    body = encode_message(EXPERIMENT | {"description": "x" * messages.MAX_BODY})
    with pytest.raises(AgentProtocol, match="a message of more than 16 MB"):
        decode_request(body)


def test_the_error_envelope() -> None:
    made: dict[str, Any] = error_message("AgentProtocol", "no", {"a": 1})
    assert made == {
        "action": "casas_response",
        "status": "error",
        "type": "data",
        "error_message": "no",
        "error_list": [
            {
                "action": "casas_error",
                "data": {"error_type": "AgentProtocol", "message": "no", "error_dict": {"a": 1}},
            }
        ],
    }


def test_arrays_travel_as_lists() -> None:
    ack = message("testing_data_ack", secret="s", performance=0.5, feedback={})
    (sent,) = json.loads(encode_message({**ack, "feedback": np.array([0.5, -384.0], np.float32)}))
    assert sent["feedback"] == [0.5, -384.0]
    with pytest.raises(TypeError):
        encode_message({**ack, "feedback": object()})
