"""Connections that carry lines: their limits of memory and time, and what is left of those that break."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from openfield.errors import AgentFault, AgentProtocol, AgentTimeout
from openfield.serving import connection
from openfield.serving.connection import LineConnection
from openfield.serving.jsonlines import JsonLinesWire
from openfield.serving.listen import MemoryBudget, Talks
from support.connections import break_off, count_live

HELLO = b'{"type":"hello","name":"ada"}\n'
BROKEN = (b"", HELLO[:9], HELLO, HELLO + HELLO[:9], b"x" * 100_000, b"junk\n")
"""What an agent has written when its connection breaks."""


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

    made, line = LineConnection(Talks(), silence, memory), Line()
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
    monkeypatch.setattr(connection, "MAX_LINE", 1_000)

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
    monkeypatch.setattr(connection, "FORGET_SECONDS", 0.02)

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
