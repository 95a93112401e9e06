"""Odd addresses and forms are read after all, and those that would cost too much are refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.requests import Request

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.server import parameters
from openfield.domains.ond.server.parameters import RequestBody, adapt_address, read_request_parameters
from openfield.serving.listen import MemoryBudget

FORM = b'--%b\r\nContent-Disposition: form-data; name="a"\r\n\r\nhello\r\n--%b--\r\n'
FILE = b'--xx\r\nContent-Disposition: form-data; name="a"; filename="a"\r\n\r\n%b\r\n--xx--\r\n'
PLAIN = "multipart/form-data; boundary=xx"


def read(body: bytes, content_type: str, size: int = 1 << 20) -> dict[str, Any]:
    """Read a form that comes in pieces."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]

    async def receive() -> dict[str, object]:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    headers = [(b"content-type", content_type.encode()), (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": b"", "app": None}
    limited = RequestBody(scope, receive, MemoryBudget(1 << 30))
    return asyncio.run(read_request_parameters(Request(scope, limited.receive)))


@pytest.mark.parametrize(
    ("path", "query", "headers", "found"),
    [
        ("/test/ids", b"", [], ("/test/ids", None)),
        ("/test/ids/", b"", [], ("/test/ids", None)),
        ("/s3cret/test/ids", b"token=x", [], ("/test/ids", "s3cret")),
        ("/test/ids", b"a=b&token=s3cret", [], ("/test/ids", "s3cret")),
        ("/test/ids", b"token=x", [(b"authorization", b"Bearer s3cret")], ("/test/ids", "s3cret")),
        ("http://host:1/test/ids", b"", [], ("/test/ids", None)),
        ("https://host/s3cret/docs", b"", [], ("/docs", "s3cret")),
        ("/", b"", [], ("/", None)),
    ],
)
def test_addresses_are_brought_to_one_form(
    path: str, query: bytes, headers: list[tuple[bytes, bytes]], found: tuple[str, str | None]
) -> None:
    scope = {"type": "http", "path": path, "query_string": query, "headers": headers}
    token = adapt_address(scope)
    assert (scope["path"], token) == found


def test_what_a_proxy_adds_to_a_query_is_cut_off_and_an_endless_path_refused() -> None:
    scope = {"type": "http", "path": "http://host:1/test/ids", "query_string": b"c=d#e", "headers": []}
    adapt_address(scope)
    assert scope["query_string"] == b"c=d"
    with pytest.raises(Refusal, match="too long"):
        adapt_address(scope | {"path": "/" + "x" * 9_000})


@pytest.mark.parametrize(
    ("said", "border"),
    [
        ("boundary=xx", b"xx"),
        ('Boundary="x,x"', b"x,x"),
        ('title="boundary=yy"; boundary=xx; charset=utf-8', b"xx"),
        ('boundary="x:=?()/x"', b"x:=?()/x"),
    ],
)
def test_the_border_of_a_form_is_found_however_it_is_said(said: str, border: bytes) -> None:
    assert read(FORM.replace(b"%b", border), f"multipart/form-data; {said}") == {"a": "hello"}


def test_the_name_of_a_part_is_that_of_its_disposition() -> None:
    other = FORM.replace(b"%b", b"xx").replace(b"Content-D", b'Content-Type: text/csv; name="b"\r\nContent-D')
    assert read(other, PLAIN) == {"a": "hello"}


def test_what_comes_before_and_after_a_form_is_passed_over(capfd: pytest.CaptureFixture[str]) -> None:
    around = b"for old readers\r\n" + FORM.replace(b"%b", b"xx") + b"the end"
    assert read(around, PLAIN) == {"a": "hello"}
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("content", ["é,1\n".encode(), "é,1\n".encode("utf-8-sig"), "é,1\n".encode("utf-16")])
def test_files_are_text_in_any_usual_encoding(content: bytes, size: int) -> None:
    assert read(FILE % content, PLAIN, size) == {"a": "é,1\n"}


def test_a_large_file_is_read_whole() -> None:
    rows = b"id,0.25\n" * 300_000
    assert read(FILE % rows, PLAIN, 1 << 16)["a"] == rows.decode()


@pytest.mark.parametrize("part", [b'name="p%d"', b'name="p%d"; filename="f"'])
def test_a_form_of_too_many_parts_is_refused(monkeypatch: pytest.MonkeyPatch, part: bytes) -> None:
    monkeypatch.setattr(parameters, "MAX_PARTS", 3)
    parts = [b"--xx\r\nContent-Disposition: form-data; " + part % number + b"\r\n\r\nv\r\n" for number in range(4)]
    assert len(read(b"".join(parts[:3]) + b"--xx--\r\n", PLAIN)) == 3
    with pytest.raises(Refusal, match="Too many"):
        read(b"".join(parts) + b"--xx--\r\n", PLAIN)


def test_a_field_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "MAX_FIELD", 4)
    with pytest.raises(Refusal, match="exceeded maximum size"):
        read(FORM.replace(b"%b", b"xx"), PLAIN)
    with pytest.raises(Refusal, match="exceeded maximum size"):
        read(b"a=hello", "application/x-www-form-urlencoded")


def test_fields_in_an_encoding_that_takes_long_to_read_are_refused() -> None:
    with pytest.raises(Refusal, match="UTF-8"):
        read(FORM.replace(b"%b", b"xx"), f"{PLAIN}; charset=punycode")


@pytest.mark.parametrize("body", [b"junk", b"--xx\r\n\r\nhello\r\n--xx--\r\n"])
def test_what_is_no_form_is_refused_and_nothing_printed(body: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Refusal, match="cannot be read"):
        read(body, PLAIN)
    assert capfd.readouterr().err == ""
