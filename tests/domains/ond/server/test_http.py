"""Askeds on a connection: whole, in pieces, several at once, cut off, too large, or no HTTP at all."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import PlainTextResponse, Response

from openfield.domains.ond.server import http, parameters
from openfield.domains.ond.server.http import HttpConnection
from openfield.serving.listen import MemoryBudget
from support.ond.connections import GET, POST, Asked, make_echo, say, settled, talk
from support.ond.protocol import Wires, connect, read_answer


def test_a_request_is_answered_and_the_connection_kept() -> None:
    written, closed, (asked,) = say(GET)
    assert (asked.method, asked.path, asked.query, asked.headers) == ("GET", "/a", {"b": " c"}, {"host": "x"})
    answer = read_answer(written)
    assert (answer.status_code, answer.text, answer.headers["content-length"]) == (200, "/a", "2")
    assert answer.headers["date"] == "today"
    assert not closed


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_request_may_come_in_pieces_of_any_size(size: int) -> None:
    chunked = b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
    sent = POST + chunked
    _, _, asked = say(*(sent[at : at + size] for at in range(0, len(sent), size)))
    assert [(one.path, one.body) for one in asked] == [("/a", b"hello"), ("/c", b"hello")]


def test_a_request_is_begun_when_all_of_it_is_here() -> None:
    assert say(POST[:-1])[2] == []
    assert len(say(POST[:-1], POST[-1:])[2]) == 1


def test_requests_sent_at_once_are_answered_one_after_the_other() -> None:
    at_once: list[int] = []
    most: list[int] = []

    async def slow(request: Asked) -> Response:
        at_once.append(1)
        most.append(len(at_once))
        await asyncio.sleep(0)
        at_once.pop()
        return PlainTextResponse(request.body)

    async def script(connection: HttpConnection, wires: Wires) -> None:
        connection.data_received(b"".join(POST.replace(b"hello", b"%05d" % number) for number in range(5)))
        assert not wires.reads  # more than these is not read before they are answered
        await settled()
        assert wires.reads
        assert [part.split(b"HTTP")[0] for part in wires.written.split(b"\r\n\r\n")[1:]] == [
            b"%05d" % number for number in range(5)
        ]

    assert len(talk(script, slow)) == 5
    assert max(most) == 1


def test_a_client_that_does_not_read_is_answered_no_further() -> None:
    async def script(connection: HttpConnection, wires: Wires) -> None:
        connection.pause_writing()
        connection.data_received(POST)
        await settled()
        assert wires.written == b""
        connection.resume_writing()
        await settled()
        assert wires.written.endswith(b"hello")

    assert len(talk(script)) == 1


@pytest.mark.parametrize(
    ("request_", "closed"),
    [
        (GET, False),
        (GET.replace(b"Host: x", b"Host: x\r\nConnection: close"), True),
        (GET.replace(b"HTTP/1.1", b"HTTP/1.0"), True),
        (GET.replace(b"Host: x", b"Host: x\r\nConnection: Upgrade\r\nUpgrade: h2c"), False),
    ],
)
def test_a_connection_is_closed_when_the_client_wants_it(request_: bytes, closed: bool) -> None:
    written, was_closed, asked = say(request_)
    assert (was_closed, len(asked)) == (closed, 1)
    assert (read_answer(written).headers.get("connection") == "close") is closed


def test_a_client_that_says_it_is_done_is_still_answered() -> None:
    async def script(connection: HttpConnection, wires: Wires) -> None:
        connection.data_received(GET)
        assert connection.eof_received()
        await settled()
        assert read_answer(wires.written).text == "/a"
        assert wires.closed

    talk(script)

    async def cut_off(connection: HttpConnection, wires: Wires) -> None:
        connection.data_received(POST[:-1])
        connection.eof_received()
        await settled()
        assert wires.closed
        assert wires.written == b""

    assert talk(cut_off) == []


def test_a_head_request_gets_no_body_and_nothing_has_no_length() -> None:
    answer = read_answer(say(GET.replace(b"GET", b"HEAD"))[0])
    assert (answer.headers["content-length"], answer.content) == ("2", b"")

    async def script(connection: HttpConnection, wires: Wires) -> None:
        connection.data_received(GET)
        await settled()
        assert b"204 No Content" in wires.written
        assert b"content-length" not in wires.written

    async def nothing(_: Asked) -> Response:
        return Response(status_code=204)

    talk(script, nothing)


def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    head, _, body = POST.partition(b"\r\n\r\n")
    written, _, asked = say(head + b"\r\nExpect: 100-continue\r\n\r\n", body)
    assert written.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    assert asked[0].body == b"hello"


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_too_large_is_refused_once_and_the_rest_passed_over(
    monkeypatch: pytest.MonkeyPatch, announced: bool
) -> None:
    monkeypatch.setattr(parameters, "MAX_BODY", 100)
    head = b"Content-Length: 1000\r\n\r\n" if announced else b"Transfer-Encoding: chunked\r\n\r\n"
    block = b"x" * 100 if announced else b"64\r\n" + b"x" * 100 + b"\r\n"
    end = b"" if announced else b"0\r\n\r\n"
    written, closed, asked = say(b"POST /a HTTP/1.1\r\nHost: x\r\n" + head, *[block] * 10, end, GET)
    refusal, _, answer = written.partition(b"HTTP/1.1 200")
    assert read_answer(refusal).json()["reason"] == "BadRequest"
    assert answer.endswith(b"/a")
    assert [one.method for one in asked] == ["GET"]
    assert not closed


@pytest.mark.parametrize(
    "junk",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: " + b"x" * 70_000 + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"GET http:// HTTP/1.1\r\n\r\n",
        b"CONNECT host:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_an_error_object(junk: bytes) -> None:
    written, closed, asked = say(junk)
    answer = read_answer(written)
    assert (answer.status_code, answer.json()["reason"], answer.json()["stack_trace"]) == (400, "BadRequest", "")
    assert (closed, asked) == (True, [])


@pytest.mark.parametrize("start", [b"GET /", b"GET /?a=", b"GET / HTTP/1.1\r\na: ", b"GET / HTTP/1.1\r\n", b""])
def test_a_head_that_is_too_long_gets_an_error_object(monkeypatch: pytest.MonkeyPatch, start: bytes) -> None:
    monkeypatch.setattr(http, "MAX_ADDRESS", 100_000)
    written, closed, asked = say(start, *[b"x" * 30_000] * 4)
    answer = read_answer(written)
    assert (answer.status_code, answer.json()["reason"], answer.json()["stack_trace"]) == (400, "BadRequest", "")
    assert (closed, asked) == (True, [])


def test_the_heads_of_all_clients_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpConnection, "heads", MemoryBudget(50_000))

    async def script(connection: HttpConnection, wires: Wires) -> None:
        connection.data_received(b"GET /?a=" + b"x" * 30_000)
        other, refused = connect(make_echo([]))
        other.data_received(b"GET /?a=" + b"x" * 30_000)
        assert read_answer(refused.written).json()["reason"] == "BadRequest"
        other.connection_lost(None)
        connection.data_received(b" HTTP/1.1\r\nHost: x\r\n\r\n")
        await settled()
        assert read_answer(wires.written).text == "/"
        assert HttpConnection.heads.take(50_000)  # all was freed when the request began

    assert len(talk(script)) == 1


@pytest.mark.parametrize("size", [1000, 1 << 22])
@pytest.mark.parametrize("count", [20_000, 500_000])
def test_long_addresses_and_those_of_proxies_are_read(count: int, size: int) -> None:
    ids = b"|".join(b"id%d" % number for number in range(count))
    sent = b"GET /a?ids=" + ids + b" HTTP/1.1\r\n\r\n"
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    if len(pieces) > 200:
        pieces = [*pieces[:100], b"".join(pieces[100:])]
    (first, second) = say(*pieces, GET)[2]
    assert first.query["ids"] == ids.decode()
    assert second.query == {"b": " c"}
    (asked,) = say(b"GET http://host:1/a%20b?c=d#e HTTP/1.1\r\n\r\n")[2]
    assert (asked.path, asked.query) == ("/a b", {"c": "d"})


@pytest.mark.parametrize("sent", [b"", GET[:9], POST[:-1], GET])
def test_an_idle_connection_is_closed(sent: bytes) -> None:
    async def script(connection: HttpConnection, wires: Wires) -> None:
        if sent:
            connection.data_received(sent)
            await settled()
        now = asyncio.get_running_loop().time()
        connection.close_if_silent(now + 290)
        assert not wires.closed
        connection.close_if_silent(now + 301)
        assert wires.closed

    talk(script)


def test_a_connection_that_broke_keeps_no_timer() -> None:
    async def script(connection: HttpConnection, wires: Wires) -> None:
        connection.data_received(GET)
        await settled()
        timers = connection._timer, connection.http.timeout_keep_alive_task
        connection.connection_lost(ConnectionResetError())
        assert [timer is not None and timer.cancelled() for timer in timers] == [True, True]

    talk(script)


def test_a_server_that_ends_closes_what_is_idle_and_answers_what_is_not() -> None:
    async def idle(connection: HttpConnection, wires: Wires) -> None:
        connection.http.shutdown()
        assert wires.closed

    async def busy(connection: HttpConnection, wires: Wires) -> None:
        connection.data_received(GET)
        connection.http.shutdown()
        assert not wires.closed
        await settled()
        assert read_answer(wires.written).text == "/a"
        assert wires.closed

    talk(idle)
    talk(busy)


def test_a_client_that_is_gone_is_answered_nothing() -> None:
    async def script(connection: HttpConnection, wires: Wires) -> None:
        connection.data_received(POST + GET)
        await asyncio.sleep(0)
        wires.closed = True
        connection.connection_lost(ConnectionResetError())
        await settled()
        assert wires.written == b""

    async def slow(request: Asked) -> Response:
        await asyncio.sleep(0)
        return PlainTextResponse(request.body)

    assert [one.method for one in talk(script, slow)] == ["POST"]  # which was being done
