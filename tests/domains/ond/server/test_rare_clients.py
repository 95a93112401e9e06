"""Connections of clients that are allowed, but rare: old ones, careful ones, those that never read or never end."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import PlainTextResponse, Response

from openfield.domains.ond.server import parameters
from openfield.domains.ond.server.http import HttpConnection
from support.ond.connections import GET, POST, Asked, say, settled, talk
from support.ond.protocol import Wires, read_answer

UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"
"""What clients of a newer HTTP send with their first request, whatever it is."""


@pytest.mark.parametrize("size", [1, 1000])
def test_a_request_that_asks_for_a_newer_http_keeps_its_body(size: int) -> None:
    sent = POST.replace(b"Host: x", UPGRADE)
    written, _, (asked,) = say(*(sent[at : at + size] for at in range(0, len(sent), size)))
    assert (asked.method, asked.path, asked.body) == ("POST", "/a", b"hello")
    assert read_answer(written).text == "/ahello"


def test_a_client_of_the_first_http_sees_the_end_of_its_answer() -> None:
    written, closed, _ = say(
        GET.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Host: x", b"Host: x\r\nConnection: keep-alive")
    )
    assert read_answer(written).headers["connection"] == "close"
    assert closed


@pytest.mark.parametrize("more", [GET, b"junk"])
@pytest.mark.parametrize("last", [b"HTTP/1.1\r\nHost: x\r\nConnection: close", b"HTTP/1.0\r\nConnection: keep-alive"])
def test_what_comes_after_the_last_request_is_not_answered(last: bytes, more: bytes) -> None:
    written, closed, asked = say(GET.replace(b"HTTP/1.1\r\nHost: x", last) + more)
    answer = read_answer(written)
    assert (answer.status_code, answer.text, answer.headers["connection"]) == (200, "/a", "close")
    assert (closed, len(asked)) == (True, 1)


def test_a_body_that_is_refused_before_it_is_sent_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked first sends no body then: the next request would be taken for it, and never be answered."""
    monkeypatch.setattr(parameters, "MAX_BODY", 4)
    head = POST.removesuffix(b"\r\n\r\nhello") + b"\r\nExpect: 100-continue\r\n\r\n"
    written, closed, asked = say(head)
    answer = read_answer(written)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")
    assert (closed, asked) == (True, [])


def test_a_refused_body_of_a_client_that_wants_to_end_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "MAX_BODY", 4)
    head, body = POST.replace(b"Host: x", b"Host: x\r\nConnection: close")[:-5], b"hello"
    written, closed, asked = say(head, body)
    assert (read_answer(written).status_code, closed, asked) == (400, True, [])


def test_headers_after_a_body_change_nothing() -> None:
    head = b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAuthorization: mine\r\n\r\n"
    _, _, (asked,) = say(head + b"5\r\nhello\r\n0\r\nAuthorization: yours\r\nX: y\r\n\r\n")
    assert (asked.body, asked.headers["authorization"], "x" in asked.headers) == (b"hello", "mine", False)


def test_a_client_that_asks_on_without_reading_is_not_read() -> None:
    async def script(connection: HttpConnection, wires: Wires) -> None:
        connection.pause_writing()
        connection.data_received(POST)
        await settled()
        assert wires.written == b""
        connection.data_received(POST)
        assert not wires.reads  # or all it sends would be kept
        assert connection.eof_received()  # it is still answered
        connection.resume_writing()
        await settled()
        assert wires.closed
        assert wires.written.count(b"hello") == 2

    assert len(talk(script)) == 2


@pytest.mark.parametrize("broken", [b"junk\r\n\r\n", b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx"])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_what_is_no_http_is_refused_after_the_requests_before_it(broken: bytes, before: int) -> None:
    written, closed, asked = say(POST * before + broken)
    *answers, refusal = written.split(b"HTTP/1.1 ")[1:]
    assert [answer.endswith(b"/ahello") for answer in answers] == [True] * before
    assert read_answer(b"HTTP/1.1 " + refusal).json()["reason"] == "BadRequest"
    assert (closed, len(asked)) == (True, before)


def test_a_client_that_sends_slowly_is_not_idle() -> None:
    async def script(connection: HttpConnection, wires: Wires) -> None:
        begun = asyncio.get_running_loop().time()
        connection.data_received(POST[:-1])
        await settled()
        connection._heard = begun + 200  # when the last piece came
        connection.close_if_silent(begun + 400)
        assert not wires.closed
        connection.data_received(POST[-1:])
        await asyncio.sleep(0)
        connection._heard = begun
        connection.close_if_silent(begun + 900)  # it is being answered
        assert not wires.closed
        await settled()

    async def slow(request: Asked) -> Response:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return PlainTextResponse(request.body)

    assert len(talk(script, slow)) == 1
