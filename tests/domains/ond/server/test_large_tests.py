"""Large tests cost what their parts cost: no request, zip, replay or file is copied or kept as a whole without need."""

from __future__ import annotations

import asyncio
import io
import signal
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.responses import Response

from openfield.core import Reply
from openfield.domains.ond.server import archive, http, session_service
from openfield.domains.ond.server.http import serve_http
from openfield.domains.ond.world import TestWorld
from openfield.journal.recorder import read_raw_chunk
from openfield.record import Chunk, RawStep, Step
from support.ond.connections import Asked, make_echo
from support.ond.protocol import TEST, Client, answers, connect, known, refused, write_test

ROUNDS = 20


def peak(work: Callable[[], object]) -> int:
    """The most bytes something had in memory at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture
def played(data: Path, tmp_path: Path) -> Iterator[tuple[Client, str]]:
    """A completed test of some megabytes, asked of a server that was started anew."""
    write_test(data, count=ROUNDS * 10)
    first = Client(data, tmp_path / "large.sqlite")
    session, test = first.open(), known(first)
    for number in range(ROUNDS):
        ids = test.ids[number * 10 : number * 10 + 10]
        notes = "".join(f"{key},{'note ' * 5_000}\n" for key in ids).removesuffix("\n")
        assert first.post(session, number, **answers(test, ids), x_notes=notes).text == "OK"
    assert first.complete(session).text == "OK"
    first.close()
    again = Client(data, tmp_path / "large.sqlite")
    yield again, session
    again.close()


def test_a_body_in_many_pieces_is_copied_once() -> None:
    piece = b"x" * 65_536
    found: list[Asked] = []

    async def send() -> None:
        connection, _ = connect(make_echo(found, lambda _: asyncio.sleep(0, Response())))
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (256 * len(piece)))
        for _ in range(256):
            connection.data_received(bytes(bytearray(piece)))  # a piece of its own, as from a socket
            await asyncio.sleep(0)
        await asyncio.gather(*connection.http.tasks)
        connection.connection_lost(None)

    assert peak(lambda: asyncio.run(send())) < 2.2 * 256 * len(piece)  # the pieces, and what they make
    assert found[0].body == piece * 256


def test_a_zip_has_one_post_in_memory_at_a_time(played: tuple[Client, str], monkeypatch) -> None:
    client, session = played
    monkeypatch.setattr(zipfile, "ZIP_BZIP2", zipfile.ZIP_DEFLATED)  # which itself takes eight megabytes
    group, packed = client.dispatcher.groups[session], list[bytes]()
    steps = client.dispatcher.steps(group, TEST)
    never = threading.Event()
    assert peak(lambda: packed.append(archive.pack_session(group, {TEST: steps}, {}, never))) < 3_000_000  # of 5
    with zipfile.ZipFile(io.BytesIO(packed[0])) as file:
        notes = file.read(f"OND/image_classification/{session}.{TEST}_x_notes.csv").decode().splitlines()
        classes = file.read(f"OND/image_classification/{session}.{TEST}_classification.csv").decode().splitlines()
    assert [line.partition(",")[0] for line in notes] == known(client).ids
    assert [line.partition(",")[0] for line in classes] == known(client).ids


def test_a_zip_holds_what_there_was_when_it_was_begun(client: Client) -> None:
    session, test = client.open(), known(client)
    assert client.post(session, 0, **answers(test, test.ids[:10])).text == "OK"
    steps = client.dispatcher.steps(client.dispatcher.groups[session], TEST)
    before = len(list(steps))
    assert client.post(session, 1, **answers(test, test.ids[10:20])).text == "OK"
    assert len(list(steps)) == before
    assert len(list(client.dispatcher.steps(client.dispatcher.groups[session], TEST))) == before + 1


def test_a_zip_nobody_waits_for_is_given_up(client: Client) -> None:
    session, stopped, asked = client.open(), threading.Event(), list[int]()

    def endless() -> Iterator[Step]:
        while True:
            asked.append(len(asked))
            if len(asked) == 5:
                stopped.set()
            assert len(asked) < 10, "it goes on"
            yield Step(Reply({"do": "post", "round": 0, "at": "now", "results": {"detection": "a,1\n"}}), 0, None)

    archive.pack_session(client.dispatcher.groups[session], {TEST: endless()}, {}, stopped)
    assert len(asked) == 6  # the last was asked for its rows


def test_a_server_that_ends_gives_up_its_zips(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, given_up = threading.Event(), threading.Event()

    def slow(group: object, tests: object, told: object, stopped: threading.Event) -> bytes:
        begun.set()
        assert stopped.wait(60)
        given_up.set()
        return b""

    async def ask_and_end() -> None:
        asking = asyncio.ensure_future(client.http.get("/session/zip", params={"session_id": session}))
        await asyncio.to_thread(begun.wait, 20)
        asking.cancel()
        refused(await asking, 500, "ServerError")
        await asyncio.to_thread(given_up.wait, 20)

    session = client.open()
    monkeypatch.setattr(session_service, "pack_session", slow)
    client.loop.run_until_complete(ask_and_end())
    assert given_up.is_set()


def test_a_server_told_to_end_waits_for_no_request_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    told, answers_given = list[int](), list[str]()

    async def answer(request: Asked) -> Response:
        signal.raise_signal(signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            answers_given.append("given up")
        return Response()

    async def serve() -> None:
        opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve_http(make_echo([], answer), "127.0.0.1", 0, opened.set_result))
        _, writer = await asyncio.open_connection("127.0.0.1", await opened)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(serving, 30)
        writer.close()

    monkeypatch.setattr(http, "GRACE", 0)
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        asyncio.run(serve())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (told, answers_given) == ([signal.SIGTERM], ["given up"])


def test_a_test_is_replayed_post_by_post(played: tuple[Client, str], monkeypatch: pytest.MonkeyPatch) -> None:
    client, session = played
    done: list[str] = []
    read = TestWorld.read

    def noted_chunk(chunk: Chunk) -> list[RawStep]:
        done.append("chunk")
        return read_raw_chunk(chunk)

    def noted_post(world: TestWorld, post: object) -> object:
        done.append("post")
        return read(world, post)  # type: ignore[arg-type]

    monkeypatch.setattr("openfield.journal.reader.read_raw_chunk", noted_chunk)
    monkeypatch.setattr(TestWorld, "read", noted_post)
    found = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST}).json()
    assert found["m_acc"]["full_top1"] == 1
    assert done.count("post") == ROUNDS
    assert done.count("chunk") >= ROUNDS
    assert "chunk chunk chunk" not in " ".join(done[: done.index("post") + ROUNDS])
    refused(client.post(session, 0, **answers(known(client), known(client).ids[:10])), 400, "TestCompleted")
