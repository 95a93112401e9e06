"""The conversation of protocol 0.8 against its rules, written a second time, and every message with every mistake."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.core import Ask, Reply, Spec, Turn
from openfield.domains.doom.pictures import unpack_image
from openfield.domains.doom.wire.messages import FIELDS, decode_request, encode_message
from openfield.domains.doom.wire.server import PrivateQueue
from openfield.domains.doom.wire.session import FULL, ONE_TRIAL, REMAINING, TRAINING, AgentSession
from openfield.errors import AgentProtocol
from openfield.spaces import Choice

TICKS = 2
"""Of every episode."""
SECRET, NUMBER = "5ec7e7", 7
KINDS = ("training", "testing")


class FakeWorld:
    over = False


class FakeRollout:
    """Episodes of two ticks each, as a rollout shows them."""

    def __init__(self, episodes: int) -> None:
        self.world, self._left = FakeWorld(), episodes
        self.over, self.beliefs = False, []  # type: tuple[bool, list[Any]]
        self._begin()

    def _begin(self) -> None:
        self._ticks, self.turn = 0, Turn(observation={"tick": 0}, feedback={"label": {"action": "left"}}, first=True)

    def take(self, reply: Reply) -> Turn:
        if self.turn.ask is Ask.NONE:
            self.beliefs.append(reply.belief)
            self._left -= 1
            if self._left:
                self._begin()
            else:
                self.over = True
            return self.turn
        self._ticks += 1
        ended = self._ticks == TICKS
        self.world.over = ended and self._left == 1
        ask = Ask.NONE if ended else Ask.ACT
        self.turn = Turn(ask=ask, feedback={"performance": 0.5}, last="terminated" if ended else None)
        return self.turn

    def cut(self) -> None:
        self.over = True


class FakeRemoteRollout:
    spec = Spec(domain="doom", task="", actions=Choice(("left", "shoot")))

    def __init__(self, episodes: int) -> None:
        self.rollout, self.left = FakeRollout(episodes), asyncio.Event()

    async def reply(self, reply: Reply) -> Turn:
        return self.rollout.take(reply)


class FakeSource:
    """One training of two episodes, two trials of two."""

    trials = 2

    def __init__(self) -> None:
        self.machine: dict[str, Any] = {}
        self.remotes: list[FakeRemoteRollout] = []
        self._left = self.trials

    def note_machine(self, facts: dict[str, Any]) -> None:
        self.machine = facts

    def number(self, remote: Any) -> int:
        return self.remotes.index(remote)

    async def start(self, training: bool) -> Any:
        self._left -= not training
        return self._open_remote() if self._left >= 0 else None

    async def settle(self) -> None:
        pass

    def _open_remote(self) -> FakeRemoteRollout:
        self.remotes.append(FakeRemoteRollout(2))
        return self.remotes[-1]


class Rules:
    """The rules as they are written, (a) to (h): what a request is answered with."""

    def __init__(self, mode: str, benchmark: bool) -> None:
        self.mode, self.state = mode, "benchmark_request" if benchmark else "experiment_start"
        self.ticks = self.episodes = self.trials = 0
        self.ending = self.opinion_due = False

    def answer(self, kind: str, end_early: bool = False) -> str:
        if kind == "request_state":
            return self._announce()
        if kind == "benchmark_data":  # (h)
            return "benchmark_ack" if self.state == "experiment_start" else "error"
        phase = "training" if "training" in kind else "testing"
        if kind.endswith("_episode_novelty"):  # (e)
            legal = self.opinion_due and self.state.startswith(phase)
            self.opinion_due &= not legal
            return f"{kind}_ack" if legal else "error"
        if self.state != f"{phase}_episode_active":  # (c)
            return "error"
        if kind.startswith("request_"):
            return f"{phase}_data"
        return self._predict(phase, end_early)

    def _announce(self) -> str:  # (a)
        said, self.opinion_due = self.state, False
        if said.endswith("_episode_start"):
            self.ticks, self.state = 0, said.replace("start", "active")
        elif said == "experiment_start":
            self.state = "training_start" if self.mode in (FULL, TRAINING) else "trial_start"
        elif said == "training_model_end":  # (g)
            self.state = "experiment_end" if self.mode == TRAINING else "trial_start"
        elif said == "trial_start":
            self.trials += 1
            self.episodes, self.ending, self.state = 0, False, "testing_start"
            if self.trials > 2:
                self.state = said = "experiment_end"
        elif said == "trial_end":
            self.state = "experiment_end" if self.mode == ONE_TRIAL else "trial_start"
        else:
            self.state = {
                "benchmark_request": "experiment_start",
                "training_start": "training_episode_start",
                "training_end": "training_model_end",
                "testing_start": "testing_episode_start",
                "testing_end": "trial_end",
            }.get(said, said)
        return said

    def _predict(self, phase: str, end_early: bool) -> str:  # (d), (f)
        self.ticks += 1
        self.ending |= end_early
        if self.ticks < TICKS:
            return f"{phase}_data_ack"
        self.episodes += 1
        over = self.episodes == 2 or self.ending
        self.state = f"{phase}_end" if over else f"{phase}_episode_start"
        self.opinion_due = True
        return f"{phase}_episode_end"


def request(kind: str, end_early: bool = False) -> dict[str, Any]:
    """A message of an agent as the tables have it."""
    data = {"model_experiment_id": NUMBER, "secret": SECRET}
    times = {"utc_remote_epoch_received": 1.0, "utc_remote_epoch_sent": 2.0}
    opinion = {"novelty_probability": 0.5, "novelty_threshold": 0.5, "novelty": 0, "novelty_characterization": {}}
    bodies: dict[str, dict[str, Any]] = {
        "request_state": {},
        "benchmark_data": {"benchmark_data": {"num_physical_cpu": 1}},
        **{f"request_{phase}_data": data for phase in KINDS},
        **{
            f"{phase}_data_prediction": {
                "secret": SECRET,
                **times,
                "label_prediction": {"action": "left"},
                "end_early": end_early,
            }
            for phase in KINDS
        },
        **{f"{phase}_episode_novelty": opinion for phase in KINDS},
        "training_end_early": {},
        "end_experiment": data,
    }
    return {"obj_type": kind, **bodies[kind]}


def ask(session: AgentSession, content: dict[str, Any]) -> dict[str, Any]:
    """The answer, or an error."""
    try:
        return asyncio.run(session.handle(decode_request(encode_message(content))))
    except AgentProtocol as error:
        return {"obj_type": "error", "message": str(error)}


FORMS = ("request_{}_data", "{}_data_prediction", "{}_episode_novelty")
REQUESTS = ["request_state", "benchmark_data", *(form.format(phase) for phase in KINDS for form in FORMS)]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([FULL, TRAINING, ONE_TRIAL, REMAINING]),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(["request_state"] * 4 + REQUESTS), st.integers(0, 9)), max_size=120),
)
def test_any_conversation_goes_as_the_rules_say(mode: str, benchmark: bool, talk: list[tuple[str, int]]) -> None:
    session, rules = AgentSession(FakeSource(), SECRET, mode, NUMBER, benchmark), Rules(mode, benchmark)
    for kind, chance in talk:
        reply, end_early = ask(session, request(kind, chance == 0)), chance == 0
        assert reply["obj_type"] == rules.answer(kind, end_early)
        if reply["obj_type"] != "error":
            assert set(reply) == {"obj_type", *FIELDS[reply["obj_type"]]}


def walk(mode: str, benchmark: bool = False) -> tuple[list[str], FakeSource]:
    """An agent that does what it is told; what it hears when it asks for the state."""
    source, heard = FakeSource(), [""]
    session = AgentSession(source, SECRET, mode, NUMBER, benchmark)
    while heard[-1] != "experiment_end":
        heard.append(ask(session, request("request_state"))["obj_type"])
        if heard[-1].endswith("_episode_active"):
            phase = heard[-1].partition("_")[0]
            while ask(session, request(f"{phase}_data_prediction"))["obj_type"] != f"{phase}_episode_end":
                assert ask(session, request(f"request_{phase}_data"))["obj_type"] == f"{phase}_data"
            assert ask(session, request(f"{phase}_episode_novelty"))["obj_type"] == f"{phase}_episode_novelty_ack"
    return heard[1:], source


def test_the_whole_way() -> None:
    episode = ["_episode_start", "_episode_active"] * 2
    training = ["training_start", *(f"training{part}" for part in episode), "training_end", "training_model_end"]
    trial = ["trial_start", "testing_start", *(f"testing{part}" for part in episode), "testing_end", "trial_end"]
    assert walk(FULL, True)[0] == [
        *["benchmark_request", "experiment_start", *training, *trial * 2, "experiment_end"],
    ]
    assert walk(TRAINING)[0] == ["experiment_start", *training, "experiment_end"]
    assert walk(ONE_TRIAL)[0] == ["experiment_start", *trial, "experiment_end"]
    assert walk(REMAINING)[0] == ["experiment_start", *trial * 2, "experiment_end"]


def in_training() -> AgentSession:
    session = AgentSession(FakeSource(), SECRET, FULL, NUMBER)
    for expected in ("experiment_start", "training_start", "training_episode_start"):
        assert ask(session, request("request_state"))["obj_type"] == expected
    return session


KNOWN = [*REQUESTS, "training_end_early", "end_experiment"]


@pytest.mark.parametrize("kind", KNOWN)
def test_a_message_without_a_field_or_with_a_wrong_type_is_refused(kind: str) -> None:
    whole = request(kind)
    for name in whole:
        lacking = {key: value for key, value in whole.items() if key != name}
        assert "not a message" in ask(in_training(), lacking)["message"], name
        for wrong in ([1], {"x": [1]}, "text", 1.5, True):
            if name == "benchmark_data" or type(wrong) is type(whole[name]) or (name, wrong) in LENIENT:
                continue
            assert ask(in_training(), {**whole, name: wrong})["obj_type"] == "error", (name, wrong)


def test_an_opinion_that_cannot_be_put_on_record_is_refused_and_may_be_said_again() -> None:
    session = in_training()
    for _ in range(TICKS):
        ask(session, request("training_data_prediction"))
    opinion = request("training_episode_novelty")
    refused = ask(session, {**opinion, "novelty_characterization": {"level": 10**25}})
    assert "cannot be put on record" in refused["message"]
    assert ask(session, opinion)["obj_type"] == "training_episode_novelty_ack"


LENIENT = [(name, 1.5) for name in ("utc_remote_epoch_received", "utc_remote_epoch_sent")]


@pytest.mark.parametrize("kind", [kind for kind in KNOWN if "secret" in request(kind)])
@pytest.mark.parametrize("secret", ["wrong", "", None, SECRET.upper()])
def test_without_the_secret_nothing_is_told_or_done(kind: str, secret: str | None) -> None:
    session = in_training()
    reply = ask(session, {**request(kind), "secret": secret})
    assert reply["obj_type"] == "error"
    assert "secret is" in reply["message"]
    assert session.remote is not None
    assert session.remote.rollout.turn.first


@pytest.mark.parametrize("novelty", [-1, 0, 8, 10, None])
def test_opinions_are_put_on_record_as_they_are_given(novelty: int | None) -> None:
    """An agent that says -1 for unknown is an agent like any other."""
    session = in_training()
    source = session._source
    while ask(session, request("training_data_prediction"))["obj_type"] != "training_episode_end":
        pass
    words = {"level": [{"level_number": 3, "probability": 0.5}], "entity": "enemy", "attribute": None, "change": ""}
    sent = {"novelty_probability": 0.25, "novelty": novelty, "novelty_characterization": words}
    reply = ask(session, {**request("training_episode_novelty"), **sent})
    assert reply["obj_type"] == "training_episode_novelty_ack"
    assert isinstance(source, FakeSource)
    (belief,) = source.remotes[0].rollout.beliefs
    assert (belief.novel, belief.level) == (0.25, novelty)
    assert belief.detail == {"threshold": 0.5, "characterization": words}


@pytest.mark.parametrize(
    "wrong", [{"novelty": 11}, {"novelty": 208}, {"novelty": -(2**70)}, {"novelty_probability": 1.01}]
)
def test_opinions_nobody_can_keep_are_refused_and_may_be_given_again(wrong: dict[str, Any]) -> None:
    session = in_training()
    while ask(session, request("training_data_prediction"))["obj_type"] != "training_episode_end":
        pass
    assert ask(session, {**request("training_episode_novelty"), **wrong})["obj_type"] == "error"
    assert ask(session, request("training_episode_novelty"))["obj_type"] == "training_episode_novelty_ack"


@pytest.mark.parametrize("beside", [True, False])
def test_an_image_is_packed_and_a_vector_that_is_nothing_else_has_only_that(beside: bool) -> None:
    session, image = in_training(), np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert session.remote is not None
    shown = {"player": 1, "image": image} if beside else image
    session.remote.rollout.turn = Turn(observation=shown)
    vector = ask(session, request("request_training_data"))["feature_vector"]
    assert unpack_image(vector.pop("image")).tolist() == image.tolist()
    assert vector == ({"player": 1} if beside else {})


class FakeChannel:
    async def basic_ack(self, tag: int, wait: bool) -> None:
        pass


class FakeIncoming:
    """A request as the broker brings it."""

    channel, delivery_tag, reply_to = FakeChannel(), 1, "queue"

    def __init__(self, correlation: str) -> None:
        self.body, self.correlation_id = encode_message(request("request_state")), correlation
        self.header, self.properties = self, self


class FakeServer:
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def send(self, asked: FakeIncoming, body: bytes) -> None:
        self.sent.append(body)


def test_a_request_during_which_the_connection_broke_is_handled_once() -> None:
    """The library ends what it called; the agent, which heard nothing, sends the same request again."""

    async def work() -> list[bytes]:
        server, begun, go_on = FakeServer(), asyncio.Event(), asyncio.Event()
        session = AgentSession(FakeSource(), SECRET, FULL, NUMBER)
        handle = session.handle

        async def slowly(request: Any) -> dict[str, Any]:
            begun.set()
            await go_on.wait()
            return await handle(request)

        session.handle = slowly  # type: ignore[method-assign]
        line = PrivateQueue(server, session, None, (None, None), b"")  # type: ignore[arg-type]
        broken = asyncio.create_task(line.take(FakeIncoming("one")))
        await begun.wait()
        broken.cancel()
        go_on.set()
        await line.take(FakeIncoming("one"))
        await line.take(FakeIncoming("two"))
        return server.sent

    first, again, second = asyncio.run(work())
    assert first == again != second
    assert b"experiment_start" in first
    assert b"training_start" in second
