"""Answers of a server that a client can read, and those it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from openfield.domains.ond.client.rest_client import RestClient
from openfield.errors import InvalidInput


class Canned(RestClient):
    """A client whose server answers what it is told to."""

    def __init__(self, **bodies: bytes) -> None:
        self._url, self._bodies = "http://old", bodies

    def _ask(self, method: str, path: str, **request: Any) -> bytes:
        return self._bodies[path.rpartition("/")[2]]


def test_what_is_no_number_is_null() -> None:
    client = Canned(evaluations=b'{"m_acc": {"full_top1": 0.5, "pre_mean_top1": NaN, "x": -Infinity}}')
    assert client.evaluate("s", "t") == {"m_acc": {"full_top1": 0.5, "pre_mean_top1": None, "x": None}}


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"", b"\xff\xfe\x00", b"[" * 100_000, b'"x"'])
def test_answers_that_cannot_be_read_are_said_in_one_line(body: bytes) -> None:
    client = Canned(session=body, metadata=body, evaluations=body, latest=body)
    asked = [
        lambda: client.open({}, ["t"]),
        lambda: client.metadata("s", "t"),
        lambda: client.evaluate("s", "t"),
        lambda: client.latest("s"),
    ]
    for ask in asked:
        with pytest.raises(InvalidInput, match=r"http://old/.*: the answer cannot be read"):
            ask()


def test_objects_without_what_is_wanted_are_said_too() -> None:
    client = Canned(session=b"{}", latest=b'{"finished_tests": 7}', feedback=b"<html>\n</html>")
    with pytest.raises(InvalidInput, match="cannot be read"):
        client.open({}, ["t"])
    with pytest.raises(InvalidInput, match="cannot be read"):
        client.latest("s")
    with pytest.raises(InvalidInput, match="cannot be read"):
        client.feedback("s", "t", "score", None, 0)


def test_names_of_tests_come_one_on_each_line() -> None:
    client = Canned(ids=b'\xef\xbb\xbfOND.a test.1\r\n"OND.2",\r\n\r\n')
    assert client.test_ids("OND", "image_classification") == ["OND.a test.1", "OND.2"]


def test_a_server_that_is_not_there_is_said() -> None:
    with RestClient("http://127.0.0.1:9") as client, pytest.raises(InvalidInput, match="does not answer"):
        client.test_ids("OND", "image_classification")
