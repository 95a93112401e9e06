"""A client that behaves as the specification says existing ones do, over real HTTP, through all thirteen requests.

It sends every parameter as a part of a multipart body, also with GET and DELETE, opens a connection for each request,
knows the statuses 200, 204, 400 and 500, needs all three keys of an error, and retries every failure.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openfield.cli import run_command
from openfield.domains.ond.testset.data_directory import DataDirectory
from support.ond.protocol import OTHER, TEST, answers, write_test
from support.ond.serving import announced, server


class Refused(Exception):
    """What such a client raises."""

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.reason, self.status = reason, status


class Veteran:
    """An existing client."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.seen: set[int] = set()

    def ask(self, method: str, path: str, **parts: Any) -> tuple[int, bytes, str]:
        """One request on a connection of its own; parts are files with names."""
        border = uuid.uuid4().hex
        body = b"".join(
            f'--{border}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n'.encode()
            + b"Content-Type: application/octet-stream\r\n\r\n"
            + (content if isinstance(content, bytes) else str(content).encode())
            + b"\r\n"
            for name, content in parts.items()
        )
        head = {"Content-Type": f"multipart/form-data; boundary={border}", "Connection": "close"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body + f"--{border}--\r\n".encode(), head)
        answer = connection.getresponse()
        content, kind = answer.read(), answer.headers.get("content-type", "")
        connection.close()
        self.seen.add(answer.status)
        if answer.status in (400, 500):
            told = json.loads(content)
            raise Refused(told["reason"] if {"message", "stack_trace"} <= told.keys() else "exit", answer.status)
        return answer.status, content, kind

    def retry(self, method: str, path: str, **parts: Any) -> Refused:
        """Tries five times, as it does with every failure; returns the last one."""
        for _ in range(4):
            with pytest.raises(Refused):
                self.ask(method, path, **parts)
        with pytest.raises(Refused) as last:
            self.ask(method, path, **parts)
        return last.value

    def post(self, session: str, test: str, number: int, results: dict[str, str]) -> bytes:
        asked = {"session_id": session, "test_id": test, "round_id": number, "result_types": "|".join(results)}
        files = {f"{kind}_file": text for kind, text in results.items()}
        return self.ask("POST", "/session/results", test_identification=json.dumps(asked), **files)[1]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Veteran, DataDirectory]]:
    for name in (TEST, OTHER):
        write_test(tmp_path / "data", name)
    with server(tmp_path, "--data", str(tmp_path / "data")) as (url, _):
        yield Veteran(int(url.rpartition(":")[2])), DataDirectory(tmp_path / "data")


def test_an_existing_client_gets_through_all_thirteen_requests(served: tuple[Veteran, DataDirectory]) -> None:
    client, directory = served
    wanted = {"protocol": "OND", "domain": "image_classification", "detector_seed": "1"}
    listed = client.ask("GET", "/test/ids", test_requirements=json.dumps(wanted), test_assumptions="{}")[1]
    tests = listed.decode().split()
    assert tests == [TEST, OTHER]
    asked = {"protocol": "OND", "novelty_detector_version": "veteran-0.0.1", "detection_threshold": 0.5}
    asked |= {"domain": "image_classification", "hints": ["red_light"]}
    opened = client.ask("POST", "/session", configuration=json.dumps(asked), test_ids=listed)[1]
    session = json.loads(opened)["session_id"]
    for name in tests:
        known, place = directory.load("OND", "image_classification", name)[0], {"session_id": session, "test_id": name}
        metadata = json.loads(client.ask("GET", "/test/metadata", **place)[1])
        assert metadata["red_light"] == f"{name}-15.png"
        number = 0
        while (answer := client.ask("GET", "/session/dataset", **place, round_id=number))[0] == 200:
            both = answers(known, answer[1].decode().split())
            if number == 0:  # both at once, with labels
                listed_types = place | {"round_id": 0, "result_types": list(both)}
                listed_types |= {"feedback_types": ["classification"], "feedback_ids": known.ids[:2]}
                files = {f"{kind}_file": text for kind, text in both.items()}
                more = client.ask(
                    "POST", "/session/resultsfeedback", test_identification=json.dumps(listed_types), **files
                )[1]
                assert more.decode().splitlines() == [f"{known.ids[0]},1", f"{known.ids[1]},2"]
            else:
                for kind, text in both.items():
                    assert client.post(session, name, number, {kind: text}) == b"OK"
                bought = client.ask(
                    "GET",
                    "/session/feedback",
                    **place,
                    feedback_type="classification",
                    feedback_ids="|".join(known.ids[number * 10 : number * 10 + 2]),
                    round_id=number,
                )[1]
                assert len(bought.decode().splitlines()) == 2
            number += 1
        assert (answer[0], answer[1]) == (204, b"")
        clusters = "".join(f"{key},0.5,0.5\n" for key in known.ids)
        assert client.post(session, name, 0, {"characterization": clusters}) == b"OK"
        assert client.ask("DELETE", "/test", **place)[1] == b"OK"
        assert client.retry("DELETE", "/test", **place).reason == "TestCompleted"
        scores = json.loads(client.ask("GET", "/session/evaluations", **place)[1])
        assert len(scores) == 8
        assert scores["m_acc"]["full_top1"] == 1
    assert json.loads(client.ask("GET", "/session/latest", session_id=session)[1])["finished_tests"] == tests
    packed = client.ask("GET", "/session/zip", session_id=session, test_id=TEST)[1]
    assert f"{session}.json" in zipfile.ZipFile(io.BytesIO(packed)).namelist()
    assert client.ask("DELETE", "/session", session_id=session)[1] == b"OK"
    lines = client.ask("GET", "/session/status", session_id=session, include_tests="1")[1].decode().splitlines()
    assert [line.split(",")[:3] for line in lines] == [[session, "veteran-0.0.1", name] for name in tests]
    assert client.retry("GET", "/session/latest", session_id=session).reason == "SessionEnded"
    assert client.seen <= {200, 204, 400, 500}


def test_what_is_no_http_gets_an_error_object_and_long_addresses_are_read(
    served: tuple[Veteran, DataDirectory],
) -> None:
    client, directory = served
    known = directory.load("OND", "image_classification", TEST)[0]
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5, "test_ids": [TEST]}
    session = json.loads(client.ask("POST", "/session", configuration=json.dumps(asked))[1])["session_id"]
    client.post(session, TEST, 0, answers(known, known.ids[:10]))
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
    many = "|".join(["x" * 60] * 2_000 + known.ids[:1])
    query = f"session_id={session}&test_id={TEST}&feedback_type=classification&feedback_ids={many}"
    connection.request("GET", f"/session/feedback?{query.replace('|', '%7C')}")
    assert connection.getresponse().read().decode() == f"{known.ids[0]},1\n"
    connection.close()
    for junk in (b"GARBAGE\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", client.port), timeout=60) as raw:
            raw.sendall(junk)
            answer = http.client.HTTPResponse(raw)
            answer.begin()
            told = json.loads(answer.read())
            assert (answer.status, told["reason"], told["stack_trace"]) == (400, "BadRequest", "")
    assert client.ask("GET", "/test/metadata", session_id=session, test_id=TEST)[0] == 200


def test_a_server_says_how_many_tests_it_has(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for count in ("0 tests", "1 test", "2 tests"):
        with announced(tmp_path, "--data", str(tmp_path / "data")) as (line, _):
            assert line.startswith(f"Serving {count} of ond on 127.0.0.1:")
        write_test(tmp_path / "data", f"OND.{count[0]}")
    with announced(tmp_path, "--trials", "3", "--set", "unchanged=2") as (line, _):
        assert line.startswith("Serving 5 tests of ond on 127.0.0.1:")


@pytest.mark.parametrize("words", [("--set", "unchanged=2"), ("--set", "onset=1-2"), ("--seed", "3")])
def test_options_of_trials_are_refused_beside_a_data_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, str]
) -> None:
    assert run_command(["serve", "ond", "--data", str(tmp_path), *words]) == 2
    assert f"{tmp_path} lists the trials to serve. Leave out" in capsys.readouterr().err


def test_texts_are_posted_and_read_in_utf_16(tmp_path: Path) -> None:
    place = tmp_path / "data/OND/nlt"
    place.mkdir(parents=True)
    sheet = "id,text\n" + "".join(
        f"t{n},|line one\nsnow 雪 || {n}|,w0,w{n},good,tea,{n // 2},0,{n}\n" for n in range(4)
    )
    (place / "NL.1_single_df.csv").write_bytes(sheet.encode("utf-16"))
    (place / "NL.1_metadata.json").write_text('{"known_classes": 2, "round_size": 3, "feedback_max_ids": 5}')
    with server(tmp_path, "--data", str(tmp_path / "data")) as (url, _):
        client = Veteran(int(url.rpartition(":")[2]))
        asked = {"protocol": "OND", "domain": "nlt", "novelty_detector_version": "x", "detection_threshold": 0.5}
        opened = client.ask("POST", "/session", configuration=json.dumps(asked), test_ids="NL.1")[1]
        place_ = {"session_id": json.loads(opened)["session_id"], "test_id": "NL.1"}
        status, body, kind = client.ask("GET", "/session/dataset", **place_, round_id=0)
        assert (status, kind) == (200, "text/csv; charset=utf-16")
        assert body.decode("utf-16").startswith("t0,w0,|line one\nsnow 雪 || 0|,good,tea\n")
        asked_ = place_ | {"round_id": 0, "result_types": "detection|labels"}
        rows = {"detection_file": "t0,0.9,0\nt1,0.9,0\nt2,0.9,1\n", "labels_file": "t0,1,w0\nt1,0,w1\nt2,0,w9\n"}
        coded = {name: text.encode("utf-16") for name, text in rows.items()}
        assert client.ask("POST", "/session/results", test_identification=json.dumps(asked_), **coded)[1] == b"OK"
        assert client.ask("GET", "/session/feedback", **place_, feedback_type="score")[1] == b"current_score,5\n"
        assert client.ask("GET", "/session/feedback", **place_, feedback_type="labels")[1] == b"t2,w2\n"
