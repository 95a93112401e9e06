"""What a server has taken is there when it starts again, also where the disk was full in between."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from pathlib import Path

import httpx
import msgspec
import pytest

from openfield.domains.ond.actions import Post
from openfield.domains.ond.server.session_service import SessionService
from openfield.domains.ond.testset.results import ResultTable
from openfield.domains.ond.trials import find_directory
from openfield.domains.ond.world import TestWorld
from openfield.errors import DiskFull
from openfield.journal.reader import Run
from openfield.journal.receipt import Receipt
from openfield.journal.writer import Journal
from openfield.serving.remote import RemoteRollout
from openfield.serving.sessions import SessionDispatcher
from support.ond.protocol import OTHER, TEST, Client, answers, known, refused, write_test


def test_a_full_disk_is_told_and_nothing_half_recorded(data: Path, tmp_path: Path, monkeypatch) -> None:
    client = Client(data, tmp_path / "full.sqlite")
    session = client.open()
    test = known(client)
    assert client.post(session, 0, **answers(test, test.ids[:10])).text == "OK"

    def fail(self: Journal, *entries: object) -> Receipt[None]:
        receipt: Receipt[None] = Receipt()
        receipt.settle(None, DiskFull("No room left."))
        return receipt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", fail)
        remote = client.dispatcher.at_hand(client.dispatcher.groups[session], TEST)
        patch.setattr(remote.rollout._recorder, "_emit", fail.__get__(client.journal))
        refused(client.post(session, 1, **answers(test, test.ids[10:20])), 500, "StorageError")
    client.close(at_once=True)
    again = Client(data, tmp_path / "full.sqlite")
    assert again.post(session, 1, **answers(test, test.ids[10:20])).text == "OK"
    again.close()


def test_a_session_that_was_ended_holds_nothing_in_memory(data: Path, tmp_path: Path) -> None:
    """A server that opened and ended sessions without completing their tests kept a world for each of them."""
    client = Client(data, tmp_path / "ended.sqlite")
    session, test = client.open(), known(client)
    client.post(session, 0, **answers(test, test.ids[:10]))
    assert client.dispatcher.at_hand(client.dispatcher.groups[session], TEST) is not None
    client.ask("DELETE", "/session", params={"session_id": session})
    assert client.dispatcher.at_hand(client.dispatcher.groups[session], TEST) is None
    client.close()
    with Run(tmp_path / "ended.sqlite") as run:
        assert ([cell.outcome for cell in run.cells()], run.verify()) == (["cancelled"], [])


def test_sessions_survive_a_restart_at_any_point(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.sqlite"
    client = Client(data, path)
    session, test = client.open(TEST, OTHER), known(client)
    client.post(session, 0, **answers(test, test.ids[:10]))
    client.feedback(session, "classification")
    client.close(at_once=True)
    client = Client(data, path)
    refused(client.post(session, 0, **answers(test, test.ids[:10])), 400, "DetectionRepost")
    refused(client.feedback(session, "classification"), 400, "FeedbackBudgetExceeded")
    client.post(session, 1, **answers(test, test.ids[10:20]))
    client.close()
    client = Client(data, path)
    client.post(session, 2, **answers(test, test.ids[20:]))
    client.complete(session)
    client.close(at_once=True)
    client = Client(data, path)
    assert client.ask("GET", "/session/latest", params={"session_id": session}).json()["finished_tests"] == [TEST]
    found = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST}).json()
    assert found["m_acc"]["full_top1"] == 1
    client.ask("DELETE", "/session", params={"session_id": session})
    client.close()
    client = Client(data, path)
    refused(client.dataset(session, 0, OTHER), 400, "SessionEnded")
    client.close()


@pytest.mark.parametrize("change", ["removed", "shorter"])
def test_a_test_whose_files_are_no_longer_what_they_were_is_refused_and_no_other(
    data: Path, tmp_path: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(data, tmp_path / "r.sqlite")
    session, test = client.open(TEST, OTHER), known(client)
    for name in (TEST, OTHER):
        ids = known(client, name).ids[:10]
        assert client.post(session, 0, name, **answers(known(client, name), ids)).text == "OK"
    client.close()
    sheet = data / f"OND/image_classification/{TEST}_single_df.csv"
    sheet.write_text("".join(sheet.read_text().splitlines(keepends=True)[:-1]))
    if change == "removed":
        sheet.unlink()
    find_directory.cache_clear()  # as in a server started anew
    client = Client(data, tmp_path / "r.sqlite", devmode=True)
    asked = {"session_id": session, "test_id": TEST}
    for answer in (
        client.dataset(session, 1),
        client.post(session, 1, **answers(test, test.ids[10:20])),
        client.feedback(session, "classification"),
        client.ask("GET", "/session/evaluations", params=asked | {"devmode": "1"}),
        client.complete(session),
    ):
        refused(answer, 500, "test_id_invalid")
    latest = client.ask("GET", "/session/latest", params={"session_id": session, "rounds": "1"}).json()
    assert latest["next_rounds"] == {OTHER: 1}
    both = {"session_id": session, "include_tests": "1", "test_ids": f"{TEST}|{OTHER}"}
    assert client.ask("GET", "/session/status", params=both).text.count("\n") == 2
    assert client.dataset(session, 1, OTHER).status_code == 200
    assert "Traceback" not in caplog.text
    client.close()


def test_a_crash_between_the_last_round_and_the_outcome_is_mended(data: Path, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "r.sqlite"
    client = Client(data, path)
    session, test = client.open(), known(client)
    for number in range(3):
        client.post(session, number, **answers(test, test.ids[number * 10 : number * 10 + 10]))
    with monkeypatch.context() as patch:
        patch.setattr(SessionDispatcher, "finish", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        refused(client.complete(session), 500, "ServerError")
    client.close(at_once=True)
    client = Client(data, path)
    assert client.complete(session).text == "OK"
    client.close(at_once=True)
    with Run(path) as run:
        assert [cell.outcome for cell in run.cells()] == ["done"]


def test_a_crash_while_a_test_starts_again_refunds_nothing(data: Path, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "r.sqlite"
    client = Client(data, path)
    session, test = client.open(), known(client)
    first = test.ids[:10]
    assert client.post(session, 0, **answers(test, first)).text == "OK"
    client.feedback(session, "classification", feedback_ids="|".join(first[:3]))
    with monkeypatch.context() as patch:
        patch.setattr(RemoteRollout, "take", lambda *_: (_ for _ in ()).throw(RuntimeError("killed")))
        refused(client.dataset(session, 0), 500, "ServerError")
    client.close(at_once=True)
    client = Client(data, path)
    assert client.dataset(session, 0).status_code == 200
    assert client.post(session, 0, **answers(test, first)).text == "OK"
    more = client.feedback(session, "classification", feedback_ids="|".join(first[3:6]))
    refused(more, 400, "FeedbackBudgetExceeded")
    client.close(at_once=True)


def test_where_a_session_stands_is_told_after_a_restart_too(data: Path, tmp_path: Path) -> None:
    client = Client(data, tmp_path / "r.sqlite")
    session, test = client.open(TEST, OTHER), known(client)
    for number in range(3):
        client.post(session, number, **answers(test, test.ids[number * 10 : number * 10 + 10]))
    client.post(session, 0, characterization="".join(f"{key},1,0\n" for key in test.ids))
    asked = {"session_id": session}
    wanted = {"finished_tests": [], "next_rounds": {TEST: 3}}
    assert client.ask("GET", "/session/latest", params=asked | {"rounds": "1"}).json() == wanted
    assert client.ask("GET", "/session/latest", params=asked).json() == {"finished_tests": []}  # as the original's
    client.close(at_once=True)
    client = Client(data, tmp_path / "r.sqlite")
    assert client.ask("GET", "/session/latest", params=asked | {"rounds": "1"}).json() == wanted
    listed = client.ask("GET", "/session/status", params=asked | {"include_tests": "1", "test_ids": f"{TEST}|{OTHER}"})
    first, second = [line.split(",") for line in listed.text.splitlines()]
    assert first[3].startswith("20")
    assert (second[3], second[4]) == ("N/A", "Incomplete")
    client.close()


def test_others_are_answered_while_a_test_is_booked(data: Path, tmp_path: Path, monkeypatch) -> None:
    client = Client(data, tmp_path / "r.sqlite")
    session, other = client.open(), client.open()
    answered, close = threading.Event(), SessionService._close

    def slow(service: SessionService, remote: RemoteRollout) -> object:
        assert answered.wait(60)
        return close(service, remote)

    async def ask_both() -> list[httpx.Response]:
        asked = {"session_id": session, "test_id": TEST}
        booking = asyncio.ensure_future(client.http.delete("/test", params=asked))
        await asyncio.sleep(0)
        found = [await client.http.get("/test/metadata", params=asked | {"session_id": other})]
        late = {"params": asked | {"round_id": 0}}
        found += [await client.http.get("/session/dataset", **late), await client.http.delete("/test", params=asked)]
        answered.set()
        return [*found, await booking]

    monkeypatch.setattr(SessionService, "_close", slow)
    metadata, dataset, again, booked = client.loop.run_until_complete(ask_both())
    assert metadata.status_code == 200
    refused(dataset, 400, "TestCompleted")
    refused(again, 400, "TestCompleted")
    assert booked.text == "OK"
    client.close()


@pytest.mark.parametrize("meanwhile", ["nothing", "posted", "restarted", "completed", "ended"])
def test_others_are_answered_while_a_large_post_is_read(data: Path, tmp_path: Path, monkeypatch, meanwhile) -> None:
    client = Client(data, tmp_path / "r.sqlite", compat=True)
    session, other = client.open(), client.open()
    test, place = known(client), {"session_id": session, "test_id": TEST}
    answered, reading, read = threading.Event(), threading.Event(), TestWorld.read
    monkeypatch.setattr("openfield.domains.ond.server.session_service.LARGE_POST", 1000)

    def slow(world: TestWorld, post: Post) -> dict[str, ResultTable]:
        if len(post.results["detection"]) > 1000:
            reading.set()
            assert answered.wait(60)
        return read(world, post)

    def parts(ids: list[str]) -> dict[str, bytes]:
        asked = place | {"round_id": 0, "result_types": "detection"}
        return {"test_identification": msgspec.json.encode(asked), "detection_file": answers(test, ids)["detection"]}

    async def ask() -> httpx.Response:
        posting = asyncio.ensure_future(client.http.post("/session/results", files=parts(test.ids * 2)))
        await asyncio.to_thread(reading.wait, 20)
        assert (await client.http.get("/test/metadata", params=place | {"session_id": other})).status_code == 200
        if meanwhile == "posted":
            assert (await client.http.post("/session/results", files=parts(test.ids[:10]))).text == "OK"
        if meanwhile == "restarted":
            assert (await client.http.get("/session/dataset", params=place | {"round_id": 0})).status_code == 200
        if meanwhile == "completed":
            assert (await client.http.delete("/test", params=place)).text == "OK"
        if meanwhile == "ended":
            assert (await client.http.delete("/session", params=place)).text == "OK"
        answered.set()
        return await posting

    monkeypatch.setattr(TestWorld, "read", slow)
    answer = client.loop.run_until_complete(ask())
    reasons = {"posted": "DetectionRepost", "completed": "TestCompleted", "ended": "SessionEnded"}
    if meanwhile in reasons:
        refused(answer, 400, reasons[meanwhile])
    else:
        assert answer.text == "OK"
    client.close()


def test_a_long_test_is_replayed_without_being_in_memory_as_a_whole(tmp_path: Path) -> None:
    write_test(tmp_path / "data", count=600, size=20, known_classes=400)
    client = Client(tmp_path / "data", tmp_path / "r.sqlite")
    session, test, posted = client.open(), known(client), 0
    for number in range(30):
        ids = test.ids[number * 20 : number * 20 + 20]
        rows = "".join(f"{key}{',0.00249376' * 401}\n" for key in ids)
        assert client.post(session, number, detection="".join(f"{key},0.5\n" for key in ids)).text == "OK"
        assert client.post(session, number, classification=rows).text == "OK"
        posted += len(rows)
    client.close(at_once=True)
    client = Client(tmp_path / "data", tmp_path / "r.sqlite")
    tracemalloc.start()
    latest = client.ask("GET", "/session/latest", params={"session_id": session, "rounds": "1"}).json()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert latest["next_rounds"] == {TEST: 30}
    assert client.complete(session).text == "OK"  # and it goes on where it was
    client.close()
    assert most < posted
