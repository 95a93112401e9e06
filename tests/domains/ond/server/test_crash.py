"""Nothing acknowledged is lost and nothing counted twice, whenever the server is killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from openfield.cli import run_command
from openfield.domains.ond.client.rest_client import RestClient as Remote
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.errors import OpenfieldError
from support.ond.protocol import TEST, Client, answers, write_test
from support.ond.serving import server


@pytest.mark.slow
@pytest.mark.parametrize("acknowledged", [0, 1, 7, 23])
def test_kill_during_posts_loses_nothing_acknowledged(tmp_path: Path, acknowledged: int) -> None:
    data = tmp_path / "data"
    write_test(data, count=400, onset=100)
    test = DataDirectory(data).load("OND", "image_classification", TEST)[0]
    told: list[int] = []
    with server(tmp_path, "--data", str(data)) as (url, process), Remote(url) as client:
        asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5}
        session = client.open(asked, [TEST])
        for number in range(40):
            if len(told) == acknowledged:  # a post is under way when the server dies
                threading.Timer(0.002, os.kill, (process.pid, signal.SIGKILL)).start()
            try:
                client.post(session, TEST, number, answers(test, test.ids[number * 10 : number * 10 + 10]))
                told.append(number)
            except OpenfieldError:
                break
    again = Client(data, tmp_path / "served.sqlite")
    kept = again.ask("GET", "/session/latest", params={"session_id": session})
    assert kept.status_code == 200
    for number in range(40):
        answer = again.post(session, number, **answers(test, test.ids[number * 10 : number * 10 + 10]))
        if number in told:
            assert answer.json()["reason"] == "DetectionRepost"
        else:  # at most the one under way may have been kept
            assert answer.status_code == 200 or number == len(told)
    again.complete(session)
    asked = {"session_id": session, "test_id": TEST}
    found = again.ask("GET", "/session/evaluations", params=asked).json()
    assert found["m_acc"]["full_top1"] == 1
    again.close()
    assert run_command(["verify", str(tmp_path / "served.sqlite")]) == 0


def test_two_servers_on_one_run_file_are_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    write_test(data)
    with server(tmp_path, "--data", str(data)):
        words = ["serve", "ond", "--port", "0", "--data", str(data), "-o", str(tmp_path / "served.sqlite")]
        assert run_command(words) == 2
    assert "Another server" in capfd.readouterr().err


def test_old_results_are_taken_over(tmp_path: Path) -> None:
    data, old, sid = tmp_path / "data", tmp_path / "old", "0f0e7a3c-0000-4000-8000-000000000001"
    write_test(data)
    write_test(data, "OND.open")
    (old / "OND/image_classification").mkdir(parents=True)
    test = DataDirectory(data).load("OND", "image_classification", TEST)[0]
    when = "2021-03-04 05:06:07.000000"
    facts = {"protocol": "OND", "domain": "image_classification", "detector": "veteran", "detection_threshold": "0.5"}
    session = {"created": {"time": [when]} | facts, "tests": {"completed_tests": [TEST]}}
    (old / f"{sid}.json").write_bytes(msgspec.json.encode(session))
    state = {"post_results": {"time": when, "last round": "2", "rounds": {}}, "completion": {"time": [when]}}
    (old / f"{sid}.{TEST}.json").write_bytes(msgspec.json.encode(state))
    (old / f"{sid}.OND.open.json").write_bytes(b'{"data_request": {"time": ["2021-03-04 05:06:08"]}}')
    (old / "broken.json").write_text("{")
    for kind, text in answers(test, test.ids).items():
        (old / f"OND/image_classification/{sid}.{TEST}_{kind}.csv").write_text(text)
    with server(tmp_path, "--data", str(data), "--import-legacy", str(old)) as (url, _), Remote(url) as client:
        assert client.latest(sid).finished_tests == (TEST,)
        assert client.evaluate(sid, TEST)["m_acc"]["full_top1"] == 1
        assert len(client.dataset(sid, "OND.open", 1).split()) == 10


def test_a_program_of_the_protocol_plays_a_cell(tmp_path: Path) -> None:
    import openfield as of
    from openfield.domains.ond import DOMAIN

    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "from openfield.domains.ond.client.rest_client import RestClient\n"
        "from openfield.domains.ond.testset.results import read_ids\n"
        "with RestClient(sys.argv[1]) as client:\n"
        "    tests = client.test_ids('OND', 'image_classification')\n"
        "    asked = {'protocol': 'OND', 'novelty_detector_version': 'p', 'detection_threshold': 0.5}\n"
        "    session = client.open(asked, tests)\n"
        "    for number in range(99):\n"
        "        content = client.dataset(session, tests[0], number)\n"
        "        if content is None:\n"
        "            break\n"
        "        ids = read_ids(content)\n"
        "        row = ',0.4,0.1,0.1,0.1,0.1,0.1,0.1\\n'\n"
        "        both = {'detection': ''.join(i + ',0.2\\n' for i in ids)}\n"
        "        both['classification'] = ''.join(i + row for i in ids)\n"
        "        client.post(session, tests[0], number, both)\n"
        "    client.complete(session, tests[0])\n"
    )
    command = f"wire:{sys.executable} {program} http://{{host}}:{{port}}"
    trials = DOMAIN.trials(1, training=10, before=1, after=2, unchanged=0)
    result = of.run({"program": command}, trials, tmp_path / "w.sqlite", workers=0)
    (cell,) = result.cells
    assert (cell.outcome, cell.note) == ("done", "")
    assert len([episode for episode in cell.episodes if episode.phase == "test"]) == 3


def legacy_session(folder: Path, sid: str, done: list[str], **facts: object) -> None:
    (folder / "OND/image_classification").mkdir(parents=True, exist_ok=True)
    created = {"time": ["2021-03-04 05:06:07.000000"], "protocol": "OND", "domain": "image_classification"}
    created |= {"detector": "veteran", "detection_threshold": 0.5} | facts
    session = {"created": created, "tests": {"completed_tests": done}}
    (folder / f"{sid}.json").write_bytes(msgspec.json.encode(session))


def test_closed_and_finished_are_told_apart_and_nothing_is_refunded(tmp_path: Path) -> None:
    data, old = tmp_path / "data", tmp_path / "old"
    write_test(data)
    test = DataDirectory(data).load("OND", "image_classification", TEST)[0]
    usable, closed = "0f0e7a3c-0000-4000-8000-00000000000b", "0f0e7a3c-0000-4000-8000-00000000000c"
    legacy_session(old, usable, [TEST])
    legacy_session(old, closed, [])
    legacy_session(old, "oops", [TEST], detection_threshold="oops")
    legacy_session(old, "list", [TEST], hints=7)
    (old / "notalist.json").write_text('{"created": []}')
    for sid, rows, completion in ((usable, 20, {}), (closed, 30, {"completion": {"time": ["2021-03-05 00:00:00"]}})):
        bought = {"get_feedback": {"rounds": {"1": {"classification": 3, "feedback_budget": 3}}}}
        state = {"post_results": {"time": "2021-03-04", "last round": "1"}} | completion | bought
        (old / f"{sid}.{TEST}.json").write_bytes(msgspec.json.encode(state))
        for kind, text in answers(test, test.ids[:rows]).items():
            (old / f"OND/image_classification/{sid}.{TEST}_{kind}.csv").write_bytes(text.encode("utf-16"))
    with server(tmp_path, "--data", str(data), "--import-legacy", str(old)) as (url, _), Remote(url) as client:
        assert client.latest(usable).finished_tests == (TEST,)
        with pytest.raises(Refusal, match="FeedbackBudgetExceeded"):
            client.feedback(usable, TEST, "classification", test.ids[10:12], 1)
        client.post(usable, TEST, 2, answers(test, test.ids[20:]))
        assert client.evaluate(usable, TEST)["m_acc"]["full_top1"] == 1
        assert client.latest(closed).finished_tests == ()
        with pytest.raises(Refusal, match="TestInProcess"):
            client.evaluate(closed, TEST)
        with pytest.raises(Refusal, match="TestCompleted"):
            client.post(closed, TEST, 2, answers(test, test.ids[20:]))
