"""Who is let in: a token that works once, a cookie, this server's own name and pages, and nothing that changes."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from openfield.provenance.remarks import EditedRemarks, locate_remarks, read_remarks
from openfield.report.addresses import name_run, run_address
from openfield.serving.listen import is_own_host
from openfield.view import ViewServer
from support.browsers import open_viewer


@pytest.fixture
def client(viewer: ViewServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=viewer.origin) as made:
        yield made


def test_a_token_is_exchanged_for_a_cookie_once(viewer: ViewServer, client: httpx.Client) -> None:
    address = viewer.address("/?sort=name")
    answer = client.get(address)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?sort=name")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert client.get("/").status_code == 200
    assert client.get(address).status_code == 303  # in the same browser it leads on
    with httpx.Client(base_url=viewer.origin) as other:
        assert other.get(address).status_code == 403
        assert other.get("/").status_code == 403


def test_a_used_token_brings_a_fresh_address(viewer: ViewServer) -> None:
    told: list[str] = []
    viewer.access.renew = told.append
    address = viewer.address()
    assert [httpx.get(address).status_code for _ in range(3)] == [303, 403, 403]
    assert len(told) == 1
    assert httpx.get(f"{viewer.origin}/?token={told[0]}").status_code == 303
    viewer.access.renew = None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"cookie": "openfield-0=; openfield=x"}, 403),
        ({"cookie": "openfield-%s=9999999999.00"}, 403),
    ],
)
def test_requests_for_others_are_refused(viewer: ViewServer, headers: dict[str, str], status: int) -> None:
    named = {name: value.replace("%s", str(viewer.port)) for name, value in headers.items()}
    assert httpx.get(viewer.origin, headers=named).status_code == status


def test_a_second_host_is_refused(viewer: ViewServer, client: httpx.Client) -> None:
    cookie = client.get(viewer.address()).headers["set-cookie"].partition(";")[0]
    own = f"127.0.0.1:{viewer.port}"
    answers = []
    for hosts in ([own], [own, "evil.example"], ["evil.example", own], []):
        lines = ["GET / HTTP/1.1", *(f"Host: {host}" for host in hosts), f"Cookie: {cookie}", "Connection: close"]
        with socket.create_connection(("127.0.0.1", viewer.port)) as made, made.makefile("rb") as answer:
            made.sendall("\r\n".join([*lines, "", ""]).encode())
            answers.append(int(answer.readline().split()[1]))
    assert answers[0] == 200
    assert set(answers[1:]) <= {400, 421}  # by the library that reads requests, or by ours


def test_nothing_can_be_changed(viewer: ViewServer, client: httpx.Client) -> None:
    client.get(viewer.address())
    assert [client.request(method, "/").status_code for method in ("POST", "PUT", "DELETE")] == [405] * 3


def test_remarks_are_put_only_by_those_who_were_let_in(runs: Path, tmp_path: Path, client: httpx.Client) -> None:
    path = Path(shutil.copy(runs / "maze.sqlite", tmp_path))
    with open_viewer(path) as server:
        place, told = f"{server.origin}{run_address(name_run(path))}/remarks", {"tags": ["paper"], "note": "kept"}
        assert client.put(place, json=told).status_code == 403
        client.get(server.address())
        assert client.put(place, json=told, headers={"origin": "http://evil.example"}).status_code == 403
        assert client.post(place, json=told).status_code == 405
        assert client.put(place, json={"tags": ["two words"]}).json()["error"].startswith("A tag is a word")
        assert client.put(place, content=b"x" * 200_000).status_code == 400
        assert client.put(f"{server.origin}/runs/none/remarks", json=told).status_code == 404
        assert not locate_remarks(path).exists()
        assert client.put(place, json=told).json() == told
        assert read_remarks(path) == EditedRemarks(("paper",), "kept")
        server.library.editable = False  # as where other machines are let in
        assert client.put(place, json=told).status_code == 400
        assert 'id="remarks"' not in client.get(f"{server.origin}{run_address(name_run(path))}").text


def test_every_answer_has_a_strict_policy(viewer: ViewServer, client: httpx.Client) -> None:
    client.get(viewer.address())
    for path in ("/", "/nowhere", "/static/page.css", "/static/../access.py"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_own_names_are_known_names_and_addresses() -> None:
    names = {"localhost"}
    assert all(is_own_host(host, names) for host in ("localhost:80", "127.0.0.1", "[::1]:80", "LOCALHOST"))
    assert not any(is_own_host(host, names) for host in ("", "evil.example", "localhost.evil.example", "[evil]"))
