"""Protocol 0.8, the messages: what agents of the old family send, what they are sent, and the envelope of an error.

Bytes in, values out. `wire` says what the messages mean, `broker` and `client` carry them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from openfield.errors import AgentProtocol

VERSION = "0.8"
REGISTRATION_QUEUE = f"experiment.request.v{VERSION}"


class FromAgent(msgspec.Struct, frozen=True, tag_field="obj_type", kw_only=True):
    """A message of an agent: every field must be there, many may be null; others are not looked at."""


class Registering(FromAgent, frozen=True, kw_only=True):
    """A model wants to play."""

    model: str
    """JSON inside JSON: name, organisation, description, user, secret."""
    client_rpc_queue: str
    experiment_type: str | None
    domain_dict: dict[str, bool]
    epoch: Any
    generator_config: dict[str, Any] | None


class RequestExperiment(Registering, frozen=True, tag="request_experiment"):
    """A model wants a new experiment: training, then all trials."""

    novelty: int | None
    novelty_visibility: int | None
    git_version: Any
    seed: int | None
    no_testing: bool | None
    description: str | None


class RequestTrials(Registering, frozen=True, tag="request_experiment_trials"):
    """A trained model wants a trial, or all trials that are left."""

    experiment_secret: str
    just_one_trial: bool | None


class RequestState(FromAgent, frozen=True, tag="request_state"):
    """What comes next?"""


class BenchmarkData(FromAgent, frozen=True, tag="benchmark_data"):
    """What machine the agent runs on."""

    benchmark_data: dict[str, Any]


class RequestData(FromAgent, frozen=True, kw_only=True):
    """What is seen now?"""

    secret: str | None
    model_experiment_id: int | None


class RequestTraining(RequestData, frozen=True, tag="request_training_data"):
    """What is seen now, in training?"""


class RequestTesting(RequestData, frozen=True, tag="request_testing_data"):
    """What is seen now, in a trial?"""


class Label(msgspec.Struct, frozen=True):
    """What to do."""

    action: str


class DataPrediction(FromAgent, frozen=True, kw_only=True):
    """What the agent does."""

    secret: str | None
    label_prediction: Label
    end_early: bool | None
    utc_remote_epoch_received: float | None
    utc_remote_epoch_sent: float | None


class TrainingPrediction(DataPrediction, frozen=True, tag="training_data_prediction"):
    """What the agent does in training."""


class TestingPrediction(DataPrediction, frozen=True, tag="testing_data_prediction"):
    """What the agent does in a trial."""

    __test__ = False


class EpisodeNovelty(FromAgent, frozen=True, kw_only=True):
    """What the agent thinks of the episode that ended."""

    novelty_probability: float | None
    """Without it there is no opinion."""
    novelty_threshold: float | None
    novelty: int | None
    novelty_characterization: dict[str, Any] | None


class TrainingNovelty(EpisodeNovelty, frozen=True, tag="training_episode_novelty"):
    """What the agent thinks of a training episode."""


class TestingNovelty(EpisodeNovelty, frozen=True, tag="testing_episode_novelty"):
    """What the agent thinks of a test episode."""

    __test__ = False


class TrainingEndEarly(FromAgent, frozen=True, tag="training_end_early"):
    """No further training episode is wanted."""


class EndExperiment(FromAgent, frozen=True, tag="end_experiment"):
    """The agent leaves."""

    model_experiment_id: int | None
    secret: str | None


Registration = RequestExperiment | RequestTrials
Request = (
    RequestExperiment
    | RequestTrials
    | RequestState
    | BenchmarkData
    | RequestTraining
    | RequestTesting
    | TrainingPrediction
    | TestingPrediction
    | TrainingNovelty
    | TestingNovelty
    | TrainingEndEarly
    | EndExperiment
)

FIELDS: dict[str, tuple[str, ...]] = {
    "experiment_response": ("server_rpc_queue", "experiment_secret", "model_experiment_id", "experiment_timeout"),
    "benchmark_request": ("benchmark_script",),
    "benchmark_ack": (),
    "experiment_start": (),
    "training_start": (),
    "training_episode_start": ("episode_number", "total_episodes"),
    "training_episode_active": (),
    "training_data": (
        "secret",
        "feature_vector",
        "feature_label",
        "utc_remote_epoch_received",
        "utc_remote_epoch_sent",
    ),
    "training_data_ack": ("secret", "performance", "feedback"),
    "training_episode_end": ("performance", "feedback"),
    "training_episode_novelty_ack": (),
    "training_end": ("message",),
    "training_model_end": (),
    "trial_start": ("trial_number", "total_trials", "message", "novelty_description"),
    "testing_start": (),
    "testing_episode_start": ("episode_number", "total_episodes"),
    "testing_episode_active": (),
    "testing_data": (
        "secret",
        "feature_vector",
        "utc_remote_epoch_received",
        "utc_remote_epoch_sent",
        "novelty_indicator",
    ),
    "testing_data_ack": ("secret", "performance", "feedback"),
    "testing_episode_end": ("performance", "feedback"),
    "testing_episode_novelty_ack": (),
    "testing_end": (),
    "trial_end": (),
    "experiment_end": (),
    "experiment_exception": ("message",),
}
"""Every message of the server with every field; the agents' parser refuses a message that lacks one."""
Message = dict[str, Any]


def message(kind: str, **fields: Any) -> Message:
    """A message of the server; its fields must be exactly those of its kind."""
    if fields.keys() != set(FIELDS[kind]):
        raise TypeError(f"{kind} has the fields {', '.join(FIELDS[kind]) or 'none'}, not {', '.join(fields)}")
    return {"obj_type": kind, **fields}


def error_message(kind: str, text: str, detail: Message | None = None) -> Message:
    """The envelope of an error."""
    entry = {"error_type": kind, "message": text, "error_dict": detail or {}}
    return {
        "action": "casas_response",
        "status": "error",
        "type": "data",
        "error_message": text,
        "error_list": [{"action": "casas_error", "data": entry}],
    }


def encode(content: Message) -> bytes:
    """The bytes of a message: a list with one object; an array of numbers is a list in it."""
    return _ENCODER.encode([content])


def decode_request(body: bytes) -> Request:
    """What an agent sent, in a list or bare.

    Raises:
        AgentProtocol: It is no message of the protocol, or lacks a field; the text says which.
    """
    try:
        bare = _bare(body)
        return _REQUEST.decode(bare)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AgentProtocol(f"not a message of protocol {VERSION}: {error}") from None


def decode_registration(body: bytes) -> Registration:
    """What an agent sent to register, in a list or bare.

    Raises:
        AgentProtocol: It is no registration.
    """
    request = decode_request(body)
    if not isinstance(request, RequestExperiment | RequestTrials):
        raise AgentProtocol(f"{type(request).__name__} is no registration")
    return request


def decode_message(body: bytes) -> Message:
    """What a server sent, in a list or bare.

    Raises:
        AgentProtocol: It is no message of the protocol.
    """
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        content = None
    found = content[0] if isinstance(content, list) and content else content
    if not isinstance(found, dict):
        raise AgentProtocol(f"not a message of protocol {VERSION}: {body[:80]!r}")
    return found


def _bare(body: bytes) -> bytes:
    if not body.lstrip().startswith(b"["):
        return body
    (only,) = _LIST.decode(body)
    return bytes(only)


_ENCODER = msgspec.json.Encoder(enc_hook=np.ndarray.tolist)
_LIST = msgspec.json.Decoder(tuple[msgspec.Raw])
_REQUEST: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
