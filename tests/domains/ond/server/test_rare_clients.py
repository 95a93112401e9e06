"""Connections of clients that are allowed, but rare: old ones, careful ones, those that never read or never end."""

from __future__ import annotations

import pytest

from openfield.domains.ond.server import app
from openfield.domains.ond.server.http import OndHttpProtocol
from support.ond.connections import GET, POST, say, settled, talk
from support.ond.protocol import Wires, read_answer

UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"
"""What clients of a newer HTTP send with their first request, whatever it is."""


@pytest.mark.parametrize("size", [1, 1000])
def test_a_request_that_asks_for_a_newer_http_keeps_its_body(size: int) -> None:
    sent = POST.replace(b"Host: x", UPGRADE)
    written, closed, (asked,) = say(*(sent[at : at + size] for at in range(0, len(sent), size)))
    assert (asked.method, asked.path, asked.body) == ("POST", "/a", b"hello")
    assert read_answer(written).text == "/ahello"
    assert closed


def test_a_request_for_a_tunnel_is_refused() -> None:
    written, closed, asked = say(b"CONNECT host:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert read_answer(written).json()["reason"] == "BadRequest"
    assert (closed, asked) == (True, [])


def test_a_client_of_the_first_http_sees_the_end_of_its_answer() -> None:
    written, closed, _ = say(GET.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Host: x", b"Connection: keep-alive"))
    assert read_answer(written).headers["connection"] == "close"
    assert closed


@pytest.mark.parametrize("more", [GET, b"junk"])
@pytest.mark.parametrize("last", [b"HTTP/1.1\r\nConnection: close", b"HTTP/1.0\r\nConnection: keep-alive"])
def test_what_comes_after_the_last_request_is_not_answered(last: bytes, more: bytes) -> None:
    written, closed, asked = say(GET.replace(b"HTTP/1.1\r\nHost: x", last) + more)
    answer = read_answer(written)
    assert (answer.status_code, answer.text, answer.headers["connection"]) == (200, "/a", "close")
    assert (closed, len(asked)) == (True, 1)


def test_a_body_that_is_refused_before_it_is_sent_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked first sends no body then: the next request would be taken for it, and never be answered."""
    monkeypatch.setattr(app, "MAX_BODY", 4)
    head = POST.removesuffix(b"\r\n\r\nhello") + b"\r\nExpect: 100-continue\r\n\r\n"
    written, closed, asked = say(head)
    answer = read_answer(written)
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")
    assert (closed, asked) == (True, [])


def test_a_refused_body_of_a_client_that_wants_to_end_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_BODY", 4)
    head, body = POST.replace(b"Host: x", b"Connection: close")[:-5], b"hello"
    written, closed, asked = say(head, body)
    assert (read_answer(written).status_code, closed, asked) == (400, True, [])


@pytest.mark.parametrize("header", [b"Host: x", b"Connection: close", UPGRADE])
def test_an_address_that_is_none_is_refused_whoever_asks(header: bytes) -> None:
    written, closed, asked = say(GET.replace(b"Host: x", header).replace(b"/a", b"/" + b"a" * 9_000))
    assert (read_answer(written).status_code, closed, asked) == (400, True, [])


def test_headers_after_a_body_change_nothing() -> None:
    head = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nAuthorization: mine\r\n\r\n"
    _, _, (asked,) = say(head + b"5\r\nhello\r\n0\r\nAuthorization: yours\r\nX: y\r\n\r\n")
    assert (asked.body, asked.headers["authorization"], "x" in asked.headers) == (b"hello", "mine", False)


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\na: ", b"GET / HTTP/1.1\r\n", b""])
def test_a_header_without_an_end_is_refused(start: bytes) -> None:
    written, closed, asked = say(start, *[(b"x" if start else b"\r\n") * 30_000] * 4)
    assert read_answer(written).json()["reason"] == "BadRequest"
    assert (closed, asked) == (True, [])


def test_a_client_that_asks_on_without_reading_is_not_read() -> None:
    async def script(connection: OndHttpProtocol, wires: Wires) -> None:
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
    async def script(connection: OndHttpProtocol, wires: Wires) -> None:
        for piece in (POST[:-1], POST[-1:]):
            before = connection.timeout_keep_alive_task
            connection.data_received(piece)
            assert before is not None
            assert before.cancelled()
        assert connection.timeout_keep_alive_task is None  # it is being answered
        await settled()

    assert len(talk(script)) == 1
