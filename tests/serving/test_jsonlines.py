from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import AgentFault, AgentProtocol, AgentTimeout
from openfield.rollout import Rollout
from openfield.serving import jsonlines as lines
from openfield.serving.jsonlines import (
    HelloMessage,
    JsonLinesWire,
    LineConnection,
    LineDecoder,
    LoadedMessage,
    ReplyMessage,
    StateMessage,
    bye,
    load_line,
    save_line,
    turn_line,
    welcome,
)
from openfield.serving.listen import ConnectionTasks, MemoryBudget
from openfield.serving.remote import RemoteRollout
from openfield.spaces import Discrete
from support.connections import break_off, count_live
from support.worlds import Scripted, act

texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
finite = st.floats(allow_nan=False, allow_infinity=False)
messages = (
    st.builds(
        HelloMessage, st.just(1), st.none() | texts, st.booleans(), st.booleans(), st.none() | texts, st.none() | texts
    )
    | st.builds(
        ReplyMessage,
        values,
        st.none() | st.builds(Belief, finite | st.lists(finite).map(tuple), st.none() | st.integers(0, 9), values),
    )
    | st.builds(StateMessage, st.binary())
    | st.just(LoadedMessage())
)
HELLO = b'{"type":"hello","name":"ada"}\n'
BROKEN = (b"", HELLO[:9], HELLO, HELLO + HELLO[:9], b"x" * 100_000, b"junk\n")
"""What an agent has written when its connection breaks."""


@settings(deadline=None)
@given(st.lists(messages, max_size=6), st.data())
def test_messages_come_out_as_they_went_in_however_they_are_cut(sent: list[Any], data: st.DataObject) -> None:
    stream = b"".join(
        msgspec.json.encode(message) + data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n"])) for message in sent
    )
    reader, got = LineDecoder(), list[Any]()
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        got += reader.feed(stream[:size])
        stream = stream[size:]
    assert got == sent


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_noise_is_a_protocol_fault_and_nothing_else(noise: bytes) -> None:
    with suppress(AgentProtocol):
        for message in LineDecoder().feed(noise + b"\n"):
            assert isinstance(message, HelloMessage | ReplyMessage | StateMessage | LoadedMessage)


def test_bytes_that_are_no_text_are_a_protocol_fault() -> None:
    with pytest.raises(AgentProtocol, match="not a message of the protocol"):
        list(LineDecoder().feed(b'{"type": "reply", "action": "\xff"}\n'))


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"type": "reply", "action": ' + b"[" * 100_000])
def test_nesting_without_end_is_a_protocol_fault(line: bytes) -> None:
    with pytest.raises(AgentProtocol):
        list(LineDecoder().feed(line + b"\n"))


def test_a_line_of_too_many_values_is_a_protocol_fault() -> None:
    with pytest.raises(AgentProtocol, match="a message of more than 4,000,000 values"):
        list(LineDecoder().feed(b'{"type": "reply", "action": [' + b"[]," * 600_000 + b"1]}\n"))


def test_a_line_without_end_is_a_protocol_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1000)
    reader = LineDecoder()
    for _ in range(10):
        assert list(reader.feed(b"x" * 100)) == []
    assert list(reader.feed(b"x" * 100)) == []
    with pytest.raises(AgentProtocol, match="a line of more than"):
        list(reader.feed(b"x" * 100))


def read(line: bytes) -> dict[str, Any]:
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line)


@settings(deadline=None)
@given(values, values, st.sampled_from(Ask), st.sampled_from([None, "terminated", "truncated"]), finite)
def test_turns_are_shown_whole(seen: Any, feedback: Any, ask: Ask, last: Any, reward: float) -> None:
    turn = Turn(ask=ask, observation=seen, feedback=feedback, last=last, reward=reward, phase="training", first=True)
    shown = read(turn_line(turn))
    assert shown.pop("type") == "turn"
    assert shown == {
        "ask": ask.value,
        "observation": seen,
        "reward": reward,
        "feedback": feedback,
        "phase": "training",
        "first": True,
        "last": last,
        "red_light": None,
    }


def test_large_arrays_are_shown_in_full() -> None:
    image = np.arange(10_000, dtype="uint8").reshape(100, 100)
    shown = read(turn_line(Turn(observation={"image": image, "x": np.float32(0.5)})))
    assert np.array_equal(np.array(shown["observation"]["image"], "uint8"), image)
    assert shown["observation"]["x"] == 0.5
    with pytest.raises(TypeError, match="a object cannot be shown over a wire"):
        turn_line(Turn(observation=object()))


def test_the_other_messages() -> None:
    spec = Spec(domain="tiny", task="Answer.", actions=Discrete(2), reply_seconds=5.0)
    assert read(welcome(spec, 2**62, "secret")) == {
        "type": "welcome",
        "protocol": 1,
        "spec": {"domain": "tiny", "task": "Answer.", "actions": {"type": "discrete", "n": 2}, "reply_seconds": 5.0},
        "seed": 2**62,
        "session": "secret",
    }
    assert read(save_line()) == {"type": "save"}
    assert read(load_line(b"\x00state")) == {"type": "load", "state": "AHN0YXRl"}
    assert read(bye("why")) == {"type": "bye", "note": "why"}


class Gone:
    """A connection that was broken off; the fastest event loop lets nobody write to it then."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: bytes) -> None:
        raise RuntimeError("the handler is closed")

    def close(self) -> None: ...


class Giving:
    """A dispatcher with one remote, or none."""

    def __init__(self, remote: RemoteRollout | None) -> None:
        self._seat = remote

    async def join(self, *_: object) -> RemoteRollout:
        if self._seat is None:
            raise AgentFault("There is no trial left.")
        return self._seat


@pytest.mark.parametrize("refused", [False, True])
def test_who_hangs_up_before_the_answer_is_no_failure(refused: bool) -> None:
    """Neither of the server's, which it told at length, nor of the trial, which ended as one."""

    async def talk() -> RemoteRollout:
        remote = RemoteRollout(Rollout(Scripted([act(), act()])), Spec(domain="tiny", task=""), 7)
        over = asyncio.Event()

        async def answer(lines: LineConnection) -> None:
            await JsonLinesWire()._talk(Giving(None if refused else remote), lines)  # type: ignore[arg-type]
            over.set()

        connection = LineConnection(ConnectionTasks(), answer)
        connection.connection_made(Gone())
        connection.data_received(b'{"type": "hello"}\n')
        await asyncio.wait_for(over.wait(), 60)
        return remote

    assert asyncio.run(talk()).fault is None


def test_arrays_are_packed_for_agents_that_ask_for_it() -> None:
    seen = {"picture": np.arange(70, dtype=">i2").reshape(7, 10), "small": np.arange(3), "number": np.float32(0.5)}
    shown = json.loads(lines.turn_line(Turn(observation=seen), "base64"))["observation"]
    assert (shown["small"], shown["number"]) == ([0, 1, 2], 0.5)
    assert (shown["picture"]["dtype"], shown["picture"]["shape"]) == ("int16", [7, 10])
    packed = base64.b64decode(shown["picture"]["base64"])
    assert np.frombuffer(packed, "<i2").tolist() == list(range(70))
    told = json.loads(lines.remember_line(Turn(observation=seen), Reply(1), "base64"))
    assert told["turn"]["observation"] == shown


class Line:
    """A transport that reads on demand."""

    def __init__(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def connect(memory: MemoryBudget | None = None) -> tuple[LineConnection, Line]:
    """Return a connection that nobody talks on."""

    async def silence(_: LineConnection) -> None: ...

    made, line = LineConnection(ConnectionTasks(), silence, memory), Line()
    made.connection_made(line)
    return made, line


def test_lines_are_read_however_they_are_cut_and_no_further_than_needed() -> None:
    async def script() -> None:
        made, line = connect()
        for piece in (b"on", b"e\nt", b"wo\n", b"x" * 70_000, b"\nlast\n"):
            made.data_received(piece)
        assert not line.reads, "there is enough to be answered first"
        assert [await made.read(), await made.read()] == [b"one\n", b"two\n"]
        assert len(await made.read()) == 70_001
        assert not line.reads
        assert await made.read() == b"last\n"
        assert line.reads
        made.eof_received()
        with pytest.raises(EOFError):
            await made.read()

    asyncio.run(script())


def test_a_line_without_end_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1_000)

    async def script() -> None:
        for flood in ([b"x" * 600] * 2, [b"x" * 1_001 + b"\n"]):
            memory = MemoryBudget(5_000)
            made, _ = connect(memory)
            for piece in flood:
                made.data_received(piece)
            with pytest.raises(AgentProtocol, match="a line of more than"):
                await made.read()
            assert memory.take(5_000), "it keeps nothing"

    asyncio.run(script())


def test_the_lines_of_all_agents_together_have_a_limit() -> None:
    async def script() -> None:
        memory = MemoryBudget(3_000)
        (first, _), (second, _), (third, _) = (connect(memory) for _ in range(3))
        first.data_received(b"x" * 2_000)
        second.data_received(b"y" * 2_000)
        with pytest.raises(ConnectionError):
            await second.read()
        third.data_received(b"z" * 900)
        first.data_received(b"\n")
        assert len(await first.read()) == 2_001, "those that came before are none the worse"
        third.data_received(b"z" * 2_000 + b"\n")
        assert len(await third.read()) == 2_901
        for each in (first, second, third):
            each.connection_lost(None)
        assert memory.take(3_000)

    asyncio.run(script())


def test_an_agent_that_is_late_and_one_that_is_silent_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "FORGET_SECONDS", 0.02)

    async def script() -> None:
        made, _ = connect()
        heard: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        made.listen(heard.set_result, 0.01)
        assert isinstance(await heard, AgentTimeout)
        with pytest.raises(EOFError):  # it may come back
            await made.read()

    asyncio.run(script())


KINDS = (LineConnection, asyncio.Task, asyncio.TimerHandle, asyncio.Transport)
"""What a connection needs."""


class Full:
    """A dispatcher without trials."""

    async def join(self, *_: object) -> None:
        raise AgentFault("There is no trial left.")


async def be_refused(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HELLO)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.slow
def test_broken_connections_leave_nothing_behind() -> None:
    counts: list[Counter[str]] = []

    async def serve() -> None:
        opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(JsonLinesWire().serve(Full(), "127.0.0.1", 0, opened.set_result))  # type: ignore[arg-type]
        port = await opened
        for _ in range(3):
            for sent in BROKEN * 17:
                await break_off(port, sent)
            for _ in range(1_000):  # the last ones may still be being closed
                assert b"There is no trial left." in await be_refused(port)
                if not count_live(*KINDS)["LineConnection"]:
                    break
            counts.append(count_live(*KINDS))
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(serve())
    assert counts[0]["LineConnection"] == 0
    assert counts[0] == counts[1] == counts[2]
