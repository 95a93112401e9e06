"""Whose sessions are whose, what is told before the last round, and who is no client at all."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request

from openfield.cli import run_command
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.options import OndServeOptions
from openfield.domains.ond.server import app
from openfield.domains.ond.server.parameters import RequestBody
from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.result import Result
from openfield.serving.listen import MemoryBudget
from support.ond.protocol import OTHER, REQUESTS, TEST, Caller, Client, answers, known, refused, write_test
from support.ond.serving import server

RED, BLUE = {"Authorization": "Bearer r3d"}, {"Authorization": "Bearer blu3"}


@pytest.fixture
def teams(data: Path, tmp_path: Path) -> Iterator[Client]:
    made = Client(data, tmp_path / "teams.sqlite", teams={"r3d": "red", "blu3": "blue"})
    yield made
    made.close()


def play(client: Client, token: dict[str, str]) -> str:
    """Play a test as a team, and return the session."""
    client.http.headers.update(token)
    session = client.open()
    client.play(session)
    return session


def test_a_team_sees_its_own_sessions_and_no_others(teams: Client) -> None:
    red = play(teams, RED)
    asked = {"session_id": red, "test_id": TEST}
    assert teams.ask("GET", "/session/evaluations", params=asked).status_code == 200
    blue = play(teams, BLUE)
    for method, path, more in REQUESTS:
        refused(teams.ask(method, path, params=asked | more), 400, "session_id_invalid")
    refused(teams.post(red, 0, detection="a,0.1"), 400, "session_id_invalid")
    refused(teams.ask("GET", "/session/evaluations", params=asked), 400, "TestInProcess")
    against = {"session_id": blue, "test_id": TEST, "baseline_session_id": red}
    refused(teams.ask("GET", "/session/evaluations", params=against), 400, "TestInProcess")
    assert [line.split(",")[:2] for line in teams.ask("GET", "/session/status").text.splitlines()] == [
        [blue, "probe-1"]
    ]
    teams.http.headers.update(RED)
    assert [line.split(",")[0] for line in teams.ask("GET", "/session/status").text.splitlines()] == [red]
    with Run(teams.journal.path) as run:
        assert {cell.agent for cell in run.cells()} == {"red/probe-1", "blue/probe-1"}


def test_teams_keep_their_sessions_after_a_restart(data: Path, tmp_path: Path) -> None:
    known_teams = {"r3d": "red", "blu3": "blue"}
    first = Client(data, tmp_path / "r.sqlite", teams=known_teams)
    session = play(first, RED)
    first.close()
    again = Client(data, tmp_path / "r.sqlite", teams=known_teams)
    asked = {"session_id": session, "test_id": TEST}
    again.http.headers.update(BLUE)
    refused(again.ask("GET", "/session/zip", params=asked), 400, "session_id_invalid")
    again.http.headers.update(RED)
    assert again.ask("GET", "/session/zip", params=asked).status_code == 200
    again.close()


@pytest.mark.parametrize("token", ["", "r3", "r3d:", "red", "é"])
def test_with_teams_nobody_comes_in_without_a_token(teams: Client, token: str) -> None:
    answer = teams.ask("GET", "/test/ids", params={"protocol": "OND", "token": token})
    assert refused(answer, 400, "BadRequest") == "The token is wrong."
    assert teams.ask("GET", "/r3d/test/ids", params={"protocol": "OND"}).status_code == 200


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("s3cret",), "--team takes a team and its token"),
        ((":s3cret",), "--team takes a team and its token"),
        (("red:",), "--team takes a team and its token"),
        (("red:a/b",), "may hold letters, digits"),
        (("red:x", "blue:x"), "The teams red and blue have the same token"),
        (("red:x", "red:x"), "The teams red and red have the same token"),
        (("red:x", "red:y"), "The team red is given twice"),
    ],
)
def test_a_wrong_team_is_refused(given: tuple[str, ...], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        OndServeOptions(team=given).prepare()


def test_the_command_refuses_a_token_without_a_team(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", "ond", "--data", str(data), "--team", "s3cret", "-o", str(tmp_path / "r.sqlite")]
    assert run_command(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--team takes a team and its token" in said
    assert "s3cret" not in said


def test_with_teams_the_command_takes_no_other_token(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", "ond", "--data", str(data), "--team", "red:r3d", "--token", "s3cret"]
    assert run_command([*words, "-o", str(tmp_path / "r.sqlite")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "Leave out --token" in said


def test_scores_before_the_last_round_need_a_server_in_devmode(client: Client, devmode: Client) -> None:
    for each in (client, devmode):
        session, test = each.open(), known(each)
        asked = {"session_id": session, "test_id": TEST, "devmode": "1"}
        for number in range(3):
            each.post(session, number, **answers(test, test.ids[number * 10 : number * 10 + 10]))
        for more in ({}, {"more": "1"}, {"roundwise": "1", "round_id": 0}):
            answer = each.ask("GET", "/session/evaluations", params=asked | more)
            if each is client:
                assert "--devmode" in refused(answer, 400, "TestInProcess")
            else:
                assert answer.status_code == 200
        each.complete(session)
        assert each.ask("GET", "/session/evaluations", params=asked).status_code == 200
    assert Result([client.journal.path]).cautions == []


def test_reports_say_that_devmode_was_used(devmode: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session, test = devmode.open(TEST, OTHER), known(devmode)
    for number in range(3):
        devmode.post(session, number, **answers(test, test.ids[number * 10 : number * 10 + 10]))
    for _ in range(2):
        devmode.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST, "devmode": "1"})
    devmode.complete(session)
    told = f"probe-1 was shown the scores of test {TEST} before its last round (devmode)."
    page = tmp_path / "report.html"
    assert run_command(["report", str(devmode.journal.path), "-o", str(page)]) == 0
    assert " ".join(capsys.readouterr().out.split()).count(told) == 1
    assert told in page.read_text()
    assert run_command(["report", str(devmode.journal.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cautions"] == [told]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:3307", "127.0.0.1.evil.example", "ond.evil.example", "[x"]
)
def test_requests_for_other_names_are_refused(client: Client, host: str) -> None:
    answer = client.ask("GET", "/test/ids", params={"protocol": "OND"}, headers={"Host": host})
    assert "--hostname" in refused(answer, 400, "BadRequest")


@pytest.mark.parametrize(
    "host", ["ond", "OND:80", "localhost:3307", "127.0.0.1", "127.0.0.1:3307", "[::1]:3307", "10.0.0.7"]
)
def test_names_and_addresses_of_the_server_are_its_own(client: Client, host: str) -> None:
    for origin in ({}, {"Origin": f"http://{host}"}):
        answer = client.ask("GET", "/test/ids", params={"protocol": "OND"}, headers={"Host": host} | origin)
        assert answer.status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://ond:8080", "http://ond.evil.example"])
def test_pages_of_other_sites_are_refused(client: Client, origin: str) -> None:
    answer = client.ask("POST", "/session", json={}, headers={"Origin": origin})
    assert refused(answer, 400, "BadRequest") == "Pages of other sites may not use this server."
    assert answer.headers["connection"] == "close"


def test_without_a_token_no_body_is_read(tmp_path: Path) -> None:
    write_test(tmp_path / "data")
    with server(tmp_path, "--data", str(tmp_path / "data"), "--team", "red:r3d") as (url, _):
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            head = "POST /session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50000000\r\n\r\n"
            client.sendall(head.encode())
            answer = http.client.HTTPResponse(client)
            answer.begin()  # before any byte of the body was sent
            assert json.loads(answer.read())["message"] == "The token is wrong."
            assert client.recv(1) == b""
        caller = Caller(tmp_path / "data", f"{url}/r3d")
        caller.http = httpx.Client(base_url=f"{url}/r3d", timeout=60)
        caller.play(caller.open())
        caller.close()


def test_all_bodies_together_have_a_limit() -> None:
    memory = MemoryBudget(3_000)

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"x" * 2_000, "more_body": False}

    async def read() -> None:
        scope = {"type": "http", "method": "POST", "headers": [(b"content-length", b"2000")]}
        first, second = (RequestBody(scope, receive, memory) for _ in range(2))
        assert len(await Request(scope, first.receive).body()) == 2_000
        with pytest.raises(Refusal) as refusal:
            await Request(scope, second.receive).body()
        assert (refusal.value.reason, refusal.value.status) == ("ServerBusy", 500)
        second.free()
        first.free()
        second = RequestBody(scope, receive, memory)
        assert len(await Request(scope, second.receive).body()) == 2_000
        second.free()

    asyncio.run(read())
    assert memory.take(3_000)


def test_bodies_are_forgotten_once_answered(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "MAX_BODIES", 3_000)
    client = Client(data, tmp_path / "r.sqlite")
    session, test = client.open(), known(client)
    for _ in range(5):
        refused(client.post(session, 0, detection="x" * 2_000), 400, "InvalidResults")
    refused(client.post(session, 0, detection="x" * 4_000), 500, "ServerBusy")
    assert client.post(session, 0, **answers(test, test.ids[:10])).text == "OK"
    client.close()


def test_a_client_not_seen_for_an_hour_is_forgotten_and_may_come_back(client: Client) -> None:
    session, test = client.open(TEST, OTHER), known(client)
    client.post(session, 0, **answers(test, test.ids[:10]))
    client.play(session, OTHER)
    held = client.dispatcher
    assert held._remotes
    assert held._finished
    client.loop.run_until_complete(held.forget(time.monotonic() - 3_600))
    assert held._remotes, "it was seen a moment ago"
    client.loop.run_until_complete(held.forget(time.monotonic() + 1))
    assert [*held._remotes, *held._finished, *held._locks, *held._seen] == []
    for number in (1, 2):
        assert client.dataset(session, number).status_code == 200
        ids = test.ids[number * 10 : number * 10 + 10]
        assert client.post(session, number, **answers(test, ids)).text == "OK"
    client.complete(session)
    asked = {"session_id": session, "test_id": TEST}
    assert client.ask("GET", "/session/evaluations", params=asked).json()["m_acc"]["full_top1"] == 1
