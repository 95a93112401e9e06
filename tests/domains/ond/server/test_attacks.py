"""The issue's list of bad input and attacks, case by case, in process and against a server process over a real socket.

Each is refused with the protocol's error object, nothing of it is kept, and a bystander's session is none the worse.
"""

from __future__ import annotations

import http.client
import json
import uuid

import httpx
import msgspec
import pytest

from openfield.cli import run_command
from openfield.errors import RunBusy
from openfield.journal.leases import holding
from support.ond.protocol import OTHER, REQUESTS, TEST, Caller, Requests, answers, known, refused, write_test
from support.ond.targets import Target

UNKNOWN = "00000000-0000-4000-8000-000000000000"
STRANGERS = (UNKNOWN, "../../etc/passwd", "..%2f..%2fx", "x" * 4096, "a b\n", "\x00")
ESCAPES = (f"../image_classification/{TEST}", f"./{TEST}", f"/{TEST}", "..", "", "\x00", f"{TEST}/../{TEST}")


def fresh(client: Requests, **facts: object) -> str:
    """A test that no other case has seen."""
    name = f"OND.{uuid.uuid4().hex[:8]}"
    write_test(client.directory.root, name, **facts)
    return name


def rows(client: Requests, number: int = 0) -> list[str]:
    return [f"{key},0.1" for key in known(client).ids[number * 10 : number * 10 + 10]]


@pytest.fixture
def client(target: Target) -> Requests:
    return target.client


@pytest.mark.parametrize(("method", "path", "extra"), REQUESTS, ids=lambda value: str(value)[:20])
def test_unknown_sessions_and_paths_for_ids_are_refused_and_no_file_is_made(
    target: Target, method, path, extra
) -> None:
    before = target.files()
    for stranger in STRANGERS:
        asked = {"session_id": stranger, "test_id": TEST} | extra
        refused(target.client.ask(method, path, params=asked), 400, "session_id_invalid")
    identification = {"session_id": STRANGERS[1], "test_id": TEST, "round_id": 0, "result_types": "detection"}
    files = {"test_identification": msgspec.json.encode(identification), "detection_file": b"a,0.1"}
    refused(target.client.ask("POST", "/session/results", files=files), 400, "session_id_invalid")
    asked = {"session_id": STRANGERS[1], "test_id": TEST}
    refused(target.client.ask("GET", "/session/evaluations", params=asked), 400, "TestInProcess")
    assert target.files() == before


@pytest.mark.parametrize("escape", ESCAPES, ids=repr)
def test_paths_for_tests_protocols_and_domains_lead_nowhere(target: Target, escape: str) -> None:
    client, before = target.client, target.files()
    session = client.open()
    for asked in ({"protocol": escape}, {"protocol": "OND", "domain": escape or "x"}):
        refused(client.ask("GET", "/test/ids", params=asked), 400, "BadDomain")
    for changes in ({"protocol": escape or "x"}, {"domain": escape or "x"}):
        asked = {"protocol": "OND", "novelty_detector_version": "1", "detection_threshold": 0.5} | changes
        files = {"configuration": msgspec.json.encode(asked), "test_ids": TEST.encode()}
        refused(client.ask("POST", "/session", files=files), 400, "BadDomain")
    if escape:
        for answer in (client.dataset(session, 0, escape), client.complete(session, escape)):
            refused(answer, 500, "test_id_invalid")
        packed = client.ask("GET", "/session/zip", params={"session_id": session, "test_id": escape})
        assert b"red_light" not in packed.content
    assert target.files() == before


def test_tests_outside_the_session_are_refused(client: Requests) -> None:
    session = client.open(TEST)
    refused(client.dataset(session, 0, OTHER), 400, "test_id_invalid")
    refused(client.post(session, 0, OTHER, detection="a,0.1"), 400, "test_id_invalid")
    refused(client.feedback(session, "classification", OTHER), 400, "test_id_invalid")
    refused(client.complete(session, OTHER), 400, "test_id_invalid")
    refused(
        client.ask("GET", "/test/metadata", params={"session_id": session, "test_id": OTHER}), 400, "test_id_invalid"
    )


def test_feedback_is_about_answered_samples_only(client: Requests) -> None:
    session, test = client.open(), known(client)
    refused(client.feedback(session, "classification"), 400, "DetectionPostRequired")
    client.post(session, 0, **answers(test, test.ids[:10]))
    future = client.feedback(session, "classification", feedback_ids="|".join(test.ids[10:20]))
    assert (future.status_code, future.text) == (200, "")
    mixed = client.feedback(session, "classification", feedback_ids=f"{test.ids[25]}|nobody|{test.ids[2]}")
    assert mixed.text == f"{test.ids[2]},3\n"
    refused(client.feedback(session, "labels"), 400, "InvalidFeedbackType")
    refused(client.feedback(session, "classification|gossip"), 400, "InvalidFeedbackType")


@pytest.mark.parametrize("budget", [0, None])
def test_no_budget_sells_nothing(client: Requests, budget: int | None) -> None:
    name = fresh(client, feedback_max_ids=budget)
    session, test = client.open(name), known(client, name)
    client.post(session, 0, name, **answers(test, test.ids[:10]))
    refused(client.feedback(session, "classification", name), 400, "FeedbackBudgetExceeded")


def test_budgets_are_kept_per_round_and_type_and_not_refunded(client: Requests) -> None:
    session, test = client.open(), known(client)
    client.post(session, 0, **answers(test, test.ids[:10]))
    assert len(client.feedback(session, "classification").text.splitlines()) == 3
    refused(client.feedback(session, "classification"), 400, "FeedbackBudgetExceeded")
    assert client.dataset(session, 0).status_code == 200  # the test starts again
    refused(client.feedback(session, "classification"), 400, "DetectionPostRequired")
    assert client.post(session, 0, **answers(test, test.ids[:10])).text == "OK"
    refused(client.feedback(session, "classification"), 400, "FeedbackBudgetExceeded")
    client.post(session, 1, **answers(test, test.ids[10:20]))
    two = "|".join(test.ids[10:12])
    assert len(client.feedback(session, "classification", feedback_ids=two).text.splitlines()) == 2
    assert len(client.feedback(session, "classification").text.splitlines()) == 1


def test_hints_change_the_budget_of_their_session_up_to_a_limit_and_nothing_else(client: Requests) -> None:
    hinted = client.open(hints=("round_size=1", "feedback_max_ids=1", "known_classes=9"))
    more, most = client.open(hints=("feedback_max_ids=6",)), client.open(hints=("feedback_max_ids=99999",))
    odd, plain = client.open(hints=("feedback_max_ids=-1", "x")), client.open()
    seen = [
        client.ask("GET", "/test/metadata", params={"session_id": s, "test_id": TEST}).json()
        for s in (hinted, more, most, odd, plain)
    ]
    assert [one["feedback_max_ids"] for one in seen] == [1, 6, 1000, 3, 3]
    assert all(one["round_size"] == 10 and one["known_classes"] == 4 for one in seen)
    assert len(client.dataset(hinted, 0).text.split()) == 10
    test = known(client)
    for session, count in ((hinted, 1), (more, 6), (plain, 3)):
        client.post(session, 0, **answers(test, test.ids[:10]))
        assert len(client.feedback(session, "classification").text.splitlines()) == count


@pytest.mark.parametrize("number", ["-1", "1.0", "x", "0x1", "1e2", "99999999999999", "٣", "1_0"])
def test_rounds_that_are_no_numbers_are_refused_and_poison_nothing(client: Requests, number: str) -> None:
    session, test = client.open(), known(client)
    refused(client.dataset(session, number), 400, "BadRequest")
    refused(client.post(session, number, detection="a,0.1"), 400, "BadRequest")
    assert client.post(session, 0, **answers(test, test.ids[:10])).text == "OK"
    assert len(client.feedback(session, "classification").text.splitlines()) == 3


@pytest.mark.parametrize("again", [0, "0", "00", 0.0])
def test_a_round_posted_twice_is_refused(client: Requests, again: object) -> None:
    session = client.open()
    assert client.post(session, 0, detection="\n".join(rows(client))).text == "OK"
    reason = "BadRequest" if isinstance(again, float) else "DetectionRepost"
    refused(client.post(session, again, detection="\n".join(rows(client))), 400, reason)


def test_missing_newlines_do_not_merge_rounds_and_order_does_not_matter(client: Requests) -> None:
    session, test = client.open(), known(client)
    for number in range(3):
        good = answers(test, test.ids[number * 10 : number * 10 + 10][::-1])
        assert client.post(session, number, **{kind: text.rstrip("\n") for kind, text in good.items()}).text == "OK"
    client.complete(session)
    found = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST}).json()
    assert found["m_acc"]["full_top1"] == 1


BAD = {
    "text": lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",high"],
    "nan": lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",nan"],
    "infinite": lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",inf"],
    "too large to be finite": lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",1e999"],
    "negative": lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",-0.1"],
    "above one": lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",1.1"],
    "ragged": lambda lines: [*lines[:-1], lines[-1] + ",0.5"],
    "trailing comma": lambda lines: [*lines[:-1], lines[-1] + ","],
    "duplicate": lambda lines: [*lines, lines[0]],
    "stranger": lambda lines: [*lines, "elsewhere.png,0.5"],
    "header": lambda lines: ["id,P_world_changed", *lines],
    "a part": lambda lines: lines[:3],
    "empty": lambda lines: [],
    "no values": lambda lines: [line.split(",")[0] for line in lines],
    "six columns": lambda lines: [line + ",0,0,0,0" for line in lines],
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_rows_are_refused_and_leave_no_trace(client: Requests, fault: str) -> None:
    session = client.open()
    refused(client.post(session, 0, detection="\n".join(BAD[fault](rows(client)))), 400, "InvalidResults")
    assert client.post(session, 0, detection="\n".join(rows(client))).text == "OK"


def test_binary_uploads_unknown_types_and_missing_parts_are_refused(client: Requests) -> None:
    session = client.open()
    refused(client.post(session, 0, detection=b"\x89PNG\xfe\xff\x80"), 400, "BadRequest")
    refused(client.post(session, 0, gossip="a,1"), 400, "InvalidResults")
    refused(client.post(session, 0, **{"../x": "a,1"}), 400, "InvalidResults")
    asked = {"session_id": session, "test_id": TEST, "round_id": 0, "result_types": "detection"}
    files = {"test_identification": msgspec.json.encode(asked)}
    refused(client.ask("POST", "/session/results", files=files), 400, "MissingParamsError")
    refused(client.ask("POST", "/session", files={"configuration": b"\xff\xfe\x00"}), 400, "BadRequest")


@pytest.mark.parametrize("chunked", [False, True])
def test_oversized_bodies_are_refused(client: Requests, monkeypatch: pytest.MonkeyPatch, chunked: bool) -> None:
    if isinstance(client, Caller):  # the size is only announced, or sent until the server has had enough
        refused_over_a_socket(client, chunked)
        return
    monkeypatch.setattr("openfield.domains.ond.server.parameters.MAX_BODY", 1000)
    session = client.open(detection_threshold=0.5)
    refused(client.post(session, 0, detection="x" * 2000), 400, "BadRequest")


def refused_over_a_socket(client: Caller, chunked: bool) -> None:
    address = httpx.URL(client.url)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=60)
    try:
        if chunked:
            block = b"x" * (1 << 20)
            body = iter([block] * 66)
            connection.request("POST", "/session/results", body, encode_chunked=True)
        else:
            connection.putrequest("POST", "/session/results")
            connection.putheader("Content-Length", str(65 << 20))
            connection.endheaders()
        answer = connection.getresponse()
        told = json.loads(answer.read())
        assert (answer.status, told["reason"], told["stack_trace"]) == (400, "BadRequest", "")
    finally:
        connection.close()


def test_two_servers_cannot_share_a_run_file(target: Target, capfd: pytest.CaptureFixture[str]) -> None:
    run = target.folder / "served.sqlite"
    link = target.folder / f"{uuid.uuid4().hex}.sqlite"
    link.symlink_to(run)
    for name in (run, link):
        if target.log is None:
            with holding(run), pytest.raises(RunBusy), holding(name):
                pass
        else:
            words = ["serve", "ond", "--port", "0", "--data", str(target.folder / "data"), "-o", str(name)]
            assert run_command(words) == 2
            assert "Another server" in capfd.readouterr().err
    link.unlink()


def test_parallel_posts_are_all_recorded_or_refused(client: Requests) -> None:
    session, test = client.open(any_order=True), known(client)
    requests = []
    for number in [0, 1, 2] * 4:
        asked = {"session_id": session, "test_id": TEST, "round_id": number, "result_types": "detection"}
        text = "\n".join(f"{key},0.2" for key in test.ids[number * 10 : number * 10 + 10])
        files = {"test_identification": msgspec.json.encode(asked), "detection_file": text.encode()}
        requests.append(("POST", "/session/results", {"files": files}))
    found = client.ask_at_once(requests)
    assert sorted(answer.status_code for answer in found) == [200] * 3 + [400] * 9
    for answer in found:
        if answer.status_code == 400:
            refused(answer, 400, "DetectionRepost")
    latest = client.ask("GET", "/session/latest", params={"session_id": session, "rounds": "1"}).json()
    assert latest["next_rounds"] == {TEST: 3}


def test_parallel_completions_are_recorded_once(client: Requests) -> None:
    asked = {"session_id": client.open(), "test_id": TEST}
    found = client.ask_at_once([("DELETE", "/test", {"params": asked})] * 24)
    assert sorted(answer.status_code for answer in found) == [200] + [400] * 23
