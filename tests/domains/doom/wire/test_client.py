"""The client of protocol 0.8 says on the wire what its agent said: opinions, actions, times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openfield.core import Ask, Belief, Reply, Turn
from openfield.domains.doom.domain import DUEL
from openfield.domains.doom.wire.client import AmqpClient, play_file
from openfield.domains.doom.wire.messages import decode_request, encode_message
from openfield.domains.doom.wire.session import _belief

DATA = {"obj_type": "testing_data", "secret": "5ec7e7", "feature_vector": {}, "novelty_indicator": None}
TIMES = {"utc_remote_epoch_received": 1.0, "utc_remote_epoch_sent": 1.0}
HELLO = {"server_rpc_queue": "q", "experiment_secret": "5ec7e7", "model_experiment_id": 7, "experiment_timeout": 60.0}


class Scripted:
    """A server of one test episode of two ticks; it keeps what it was told."""

    queue = "rpc.client.v0.8.00"

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self._states: Iterator[str] = iter(("trial_start", "testing_episode_start", "experiment_end"))
        self._ends: Iterator[str] = iter(("testing_data_ack", "testing_episode_end"))

    async def __aenter__(self) -> Scripted:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def call(self, queue: str, content: dict[str, Any]) -> dict[str, Any]:
        self.told.append(content)
        match content["obj_type"]:
            case "request_state":
                return {"obj_type": next(self._states)}
            case "request_testing_data":
                return {**DATA, **TIMES}
            case "testing_data_prediction":
                return {"obj_type": next(self._ends), "performance": 0.5, "feedback": {}}
            case "testing_episode_novelty":
                return {"obj_type": "testing_episode_novelty_ack"}
        return {"obj_type": "experiment_response", **HELLO}

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [content for content in self.told if content["obj_type"] == kind]


def play(agent: Any) -> Scripted:
    server = Scripted()
    asyncio.run(AmqpClient(server, agent).play("5ec7e7"))  # type: ignore[arg-type]
    return server


@pytest.mark.parametrize(
    "belief",
    [
        Belief(1),
        Belief(0.6),
        Belief(0.4),
        Belief((0.1, 0.8)),
        Belief(0.3, 2),
        Belief(0.0, 3),
        Belief(0.7, 0),
        Belief(1.0, 0),
        Belief(1.0, 10),
        Belief(0.0, 0),
        Belief(0.5, -1),
        Belief(1, None, {"threshold": 0.9}),
        Belief(0.7, 1, {"threshold": 0.9}),
        Belief(0.95, 0, {"threshold": 1}),
        Belief(0.7, None, {"threshold": None}),
        Belief(0.2, 1, {"threshold": "high"}),
    ],
    ids=repr,
)
def test_what_is_a_detection_in_process_is_one_over_the_wire(belief: Belief) -> None:
    (told,) = play(lambda turn: Reply("nothing", belief)).of_kind("testing_episode_novelty")
    heard = _belief(decode_request(encode_message(told)))  # type: ignore[arg-type]
    assert heard is not None
    assert heard.novel == (0.8 if isinstance(belief.novel, tuple) else belief.novel)
    assert heard.level == (belief.level or 0)
    assert DUEL.detected(heard) is DUEL.detected(belief)


def test_an_action_may_be_a_label_and_a_belief_may_come_before_it() -> None:
    replies = iter((Reply(None, Belief(0.9, 4)), Reply({"action": "left"}), Reply("shoot")))

    def agent(turn: Turn) -> Reply:
        return Reply() if turn.ask is Ask.NONE else next(replies)

    server = play(agent)
    assert [told["label_prediction"] for told in server.of_kind("testing_data_prediction")] == [
        {"action": "left"},
        {"action": "shoot"},
    ]
    (opinion,) = server.of_kind("testing_episode_novelty")
    assert (opinion["novelty_probability"], opinion["novelty"]) == (0.9, 4)


def test_times_are_the_clients_own() -> None:
    before = time.time()
    for told in play(lambda turn: Reply("nothing")).of_kind("testing_data_prediction"):
        assert before <= told["utc_remote_epoch_received"] <= told["utc_remote_epoch_sent"] <= time.time()


def test_a_file_says_what_kind_of_experiment_it_wants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, path = Scripted(), tmp_path / "ta2.config"
    monkeypatch.setattr("openfield.domains.doom.wire.client.Rpc", lambda url: server)
    path.write_text("[aiq-sail-on]\nexperiment_type = SAIL-ON-SOTA\nmodel_name = m\n[amqp]\nhost = localhost\n")
    asyncio.run(play_file(path, lambda turn: Reply("nothing")))
    assert server.told[0]["experiment_type"] == "SAIL-ON-SOTA"
