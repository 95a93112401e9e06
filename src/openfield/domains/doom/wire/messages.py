"""The messages of protocol 0.8: to and from agents, and the envelope of an error.

Bytes in, values out. `session` says what the messages mean; `server` and `client` carry them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from openfield.errors import AgentProtocol
from openfield.files.data import read_data

VERSION = "0.8"
REGISTRATION_QUEUE = f"experiment.request.v{VERSION}"
MAX_BODY = 16 << 20
"""Bytes of a message; an agent that sends more is flooding."""


class FromAgent(msgspec.Struct, frozen=True, tag_field="obj_type", kw_only=True):
    """A message of an agent: every field must be there, many may be null, unknown ones are ignored."""


class Registering(FromAgent, frozen=True, kw_only=True):
    """A model registers."""

    model: str
    """JSON inside JSON: name, organisation, description, user, secret."""
    client_rpc_queue: str
    experiment_type: str | None
    domain_dict: dict[str, bool]
    epoch: Any
    generator_config: dict[str, Any] | None


class RequestExperiment(Registering, frozen=True, tag="request_experiment"):
    """A model registers for a new experiment: training, then all trials."""

    novelty: int | None
    novelty_visibility: int | None
    git_version: Any
    seed: int | None
    no_testing: bool | None
    description: str | None


class RequestTrials(Registering, frozen=True, tag="request_experiment_trials"):
    """A trained model registers for a trial, or for all remaining trials."""

    experiment_secret: str
    just_one_trial: bool | None


class RequestState(FromAgent, frozen=True, tag="request_state"):
    """Asks for the next state."""


class BenchmarkData(FromAgent, frozen=True, tag="benchmark_data"):
    """Describes the machine the agent runs on."""

    benchmark_data: dict[str, Any]


class RequestData(FromAgent, frozen=True, kw_only=True):
    """Asks for an observation."""

    secret: str | None
    model_experiment_id: int | None


class RequestTraining(RequestData, frozen=True, tag="request_training_data"):
    """Asks for an observation in training."""


class RequestTesting(RequestData, frozen=True, tag="request_testing_data"):
    """Asks for an observation in a trial."""


class Label(msgspec.Struct, frozen=True):
    """An action."""

    action: str


class DataPrediction(FromAgent, frozen=True, kw_only=True):
    """The agent's action."""

    secret: str | None
    label_prediction: Label
    end_early: bool | None
    utc_remote_epoch_received: float | None
    utc_remote_epoch_sent: float | None


class TrainingPrediction(DataPrediction, frozen=True, tag="training_data_prediction"):
    """The agent's action in training."""


class TestingPrediction(DataPrediction, frozen=True, tag="testing_data_prediction"):
    """The agent's action in a trial."""


class EpisodeNovelty(FromAgent, frozen=True, kw_only=True):
    """The agent's belief about the episode that ended."""

    novelty_probability: float | None
    """Null means: no belief."""
    novelty_threshold: float | None
    novelty: int | None
    novelty_characterization: dict[str, Any] | None


class TrainingNovelty(EpisodeNovelty, frozen=True, tag="training_episode_novelty"):
    """The agent's belief about a training episode."""


class TestingNovelty(EpisodeNovelty, frozen=True, tag="testing_episode_novelty"):
    """The agent's belief about a test episode."""


class TrainingEndEarly(FromAgent, frozen=True, tag="training_end_early"):
    """Ends the training early."""


class EndExperiment(FromAgent, frozen=True, tag="end_experiment"):
    """Ends the experiment."""

    model_experiment_id: int | None
    secret: str | None


Registration = RequestExperiment | RequestTrials
TrainingRequest = RequestTraining | TrainingPrediction | TrainingNovelty | TrainingEndEarly
TestingRequest = RequestTesting | TestingPrediction | TestingNovelty
Request = Registration | RequestState | BenchmarkData | TrainingRequest | TestingRequest | EndExperiment
FIELDS = read_data("openfield.domains.doom", "messages.toml", dict[str, tuple[str, ...]])
"""Every message of the server with every field; the agents' parser refuses a message that lacks one."""
Message = dict[str, Any]


def message(kind: str, **fields: Any) -> Message:
    """Make a message of the server; its fields must be exactly those of its kind."""
    if fields.keys() != set(FIELDS[kind]):
        raise TypeError(f"{kind} has the fields {', '.join(FIELDS[kind]) or 'none'}, not {', '.join(fields)}")
    return {"obj_type": kind, **fields}


def error_message(kind: str, text: str, detail: Message | None = None) -> Message:
    """Make the envelope of an error."""
    entry = {"error_type": kind, "message": text, "error_dict": detail or {}}
    return {
        "action": "casas_response",
        "status": "error",
        "type": "data",
        "error_message": text,
        "error_list": [{"action": "casas_error", "data": entry}],
    }


def encode_message(content: Message) -> bytes:
    """Encode a message as a list with one object; arrays become lists of numbers."""
    return _ENCODER.encode([content])


def decode_request(body: bytes) -> Request:
    """Decode an agent's message, in a list or bare; an `AgentProtocol` says what is wrong or missing."""
    if len(body) > MAX_BODY:
        raise AgentProtocol(f"a message of more than {MAX_BODY >> 20} MB")
    try:
        return _REQUEST.decode(_LIST.decode(body)[0] if body.lstrip().startswith(b"[") else body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AgentProtocol(f"not a message of protocol {VERSION}: {error}") from None


def decode_registration(body: bytes) -> Registration:
    """Decode an agent's registration, in a list or bare; raise `AgentProtocol` if it is not a registration."""
    request = decode_request(body)
    if not isinstance(request, RequestExperiment | RequestTrials):
        raise AgentProtocol(f"{type(request).__name__} is not a registration")
    return request


def decode_message(body: bytes) -> Message:
    """Decode a server's message, in a list or bare; raise `AgentProtocol` if it is not a message."""
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        content = None
    found = content[0] if isinstance(content, list) and content else content
    if not isinstance(found, dict):
        raise AgentProtocol(f"not a message of protocol {VERSION}: {body[:80]!r}")
    return found


_ENCODER = msgspec.json.Encoder(enc_hook=np.ndarray.tolist)
_LIST = msgspec.json.Decoder(tuple[msgspec.Raw])
_REQUEST: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
