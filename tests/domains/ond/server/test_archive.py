"""Sessions as files: what a server packs another takes over with the same state; old directories are understood."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from openfield.domains.ond import DOMAIN
from openfield.domains.ond.server.import_results import import_sessions, split_by_round
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.domains.ond.testset.test import Test
from support.ond.protocol import OTHER, TEST, Client, answers, known, refused, write_test

SID = "0f0e7a3c-0000-4000-8000-00000000000d"
WHEN = "2021-03-04 05:06:07.000000"


def unpack(client: Client, session: str, folder: Path) -> dict[str, Any]:
    """Writes a session's zip into a folder; returns its JSON files."""
    packed = client.ask("GET", "/session/zip", params={"session_id": session}).content
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        file.extractall(folder)
        return {n: msgspec.json.decode(file.read(n)) for n in file.namelist() if n.endswith(".json")}


def moved(data: Path, run: Path, results: Path) -> Client:
    """Another server, which takes over what lies in a folder."""
    client = Client(data, run)
    import_sessions(results, client.directory, client.dispatcher, DOMAIN.version)
    return client


def state(client: Client, session: str) -> dict[str, Any]:
    asked: dict[str, Any] = {"session_id": session}
    both = asked | {"include_tests": "1", "test_ids": f"{TEST}|{OTHER}"}
    scores = client.ask("GET", "/session/evaluations", params=asked | {"test_id": TEST})
    return {
        "latest": client.ask("GET", "/session/latest", params=asked | {"rounds": "1"}).json(),
        "status": client.ask("GET", "/session/status", params=both).text,
        "scores": scores.json(),
        "metadata": client.ask("GET", "/test/metadata", params=asked | {"test_id": OTHER}).json(),
    }


def test_what_a_server_packs_another_takes_over_with_the_same_state(data: Path, tmp_path: Path) -> None:
    first = Client(data, tmp_path / "a.sqlite")
    session = first.open(TEST, OTHER, hints=("red_light", "feedback_max_ids=5"))
    first.play(session)
    test = first.directory.load("OND", "image_classification", OTHER)[0]
    for number in (0, 1):
        both = answers(test, test.ids[number * 10 : number * 10 + 10])
        for kind, text in both.items():
            assert first.post(session, number, OTHER, **{kind: text}).text == "OK"
        first.feedback(session, "classification", OTHER, feedback_ids=test.ids[number * 10])
    assert first.feedback(session, "score", OTHER).text == "accuracy,1.0\n"
    first.post(session, 0, OTHER, characterization="".join(f"{key},1,0\n" for key in test.ids))
    files = unpack(first, session, tmp_path / "packed")
    asked = files[f"{session}.{OTHER}.json"]["data_request"]
    assert (list(asked["rounds"]), asked["last round"]) == (["0", "1"], "1")
    second = moved(data, tmp_path / "b.sqlite", tmp_path / "packed")
    assert state(second, session) == state(first, session)
    assert state(second, session)["latest"]["next_rounds"] == {OTHER: 2}
    assert unpack(second, session, tmp_path / "again") == files
    for client in (first, second):
        for number in (0, 1):
            ids = test.ids[number * 10 : number * 10 + 10]
            refused(client.post(session, number, OTHER, **answers(test, ids)), 400, "DetectionRepost")
        two = client.feedback(session, "classification", OTHER, feedback_ids="|".join(test.ids[10:20]))
        assert len(two.text.splitlines()) == 4  # one of five was bought before
        refused(client.feedback(session, "classification", OTHER), 400, "FeedbackBudgetExceeded")
        assert client.post(session, 2, OTHER, **answers(test, test.ids[20:])).text == "OK"
        assert client.complete(session, OTHER).text == "OK"
        client.close()


def test_a_text_tests_score_is_taken_over(data: Path, tmp_path: Path) -> None:
    place = data / "OND/nlt"
    place.mkdir(parents=True)
    sheet = "id,text\n" + "".join(f"t{n},|a text|,w0,w{n},good,tea,{n // 2},0,{n}\n" for n in range(4))
    (place / "NL.1_single_df.csv").write_bytes(sheet.encode("utf-16"))
    (place / "NL.1_metadata.json").write_text('{"known_classes": 2, "round_size": 2, "feedback_max_ids": 9}')
    first = Client(data, tmp_path / "a.sqlite")
    session = first.open("NL.1", domain="nlt")
    first.post(session, 0, "NL.1", detection="t0,0.9\nt1,0.9\n", labels="t0,1,w0\nt1,1,w9\n")
    assert first.feedback(session, "score", "NL.1").text == "current_score,2\n"
    assert first.feedback(session, "labels", "NL.1").text == "t1,w1\n"
    assert unpack(first, session, tmp_path / "packed")[f"{session}.NL.1.json"]["current_score"] == {"score": 1.0}
    second = moved(data, tmp_path / "b.sqlite", tmp_path / "packed")
    for client in (first, second):  # and a round is scored once
        assert client.feedback(session, "score", "NL.1").text == "current_score,1\n"
        client.close()


def test_a_budget_that_a_hint_lowered_stays_so(data: Path, tmp_path: Path) -> None:
    first = Client(data, tmp_path / "a.sqlite")
    session, test = first.open(hints=("red_light", "feedback_max_ids=2")), known(first)
    first.post(session, 0, **answers(test, test.ids[:10]))
    assert len(first.feedback(session, "classification").text.split()) == 2
    unpack(first, session, tmp_path / "packed")
    second = moved(data, tmp_path / "b.sqlite", tmp_path / "packed")
    for client in (first, second):
        refused(client.feedback(session, "classification", feedback_ids=test.ids[5]), 400, "FeedbackBudgetExceeded")
        client.post(session, 1, **answers(test, test.ids[10:20]))
        assert len(client.feedback(session, "classification").text.split()) == 2
        client.close()


def test_answers_that_go_on_to_count_are_taken_over(data: Path, tmp_path: Path) -> None:
    first = Client(data, tmp_path / "a.sqlite")
    session, test = first.open(), known(first)
    poor = {"detection": "".join(f"{key},0.9\n" for key in test.ids[:10])}
    poor["classification"] = "".join(f"{key},1,0,0,0,0\n" for key in test.ids[:10])
    first.post(session, 0, **poor)
    assert first.feedback(session, "score").text == "accuracy,0.0\n"
    first.feedback(session, "classification")
    first.dataset(session, 0)  # which starts again
    for number in (0, 1):
        first.post(session, number, **answers(test, test.ids[number * 10 : number * 10 + 10]))
    first.feedback(session, "detection", feedback_ids=test.ids[15])
    first.post(session, 0, characterization="".join(f"{key},1,0\n" for key in test.ids))
    files = unpack(first, session, tmp_path / "packed")
    second = moved(data, tmp_path / "b.sqlite", tmp_path / "packed")
    assert unpack(second, session, tmp_path / "again") == files  # times and purchases included
    assert files[f"{session}.{TEST}.json"]["get_feedback"]["rounds"].keys() == {"0", "1"}
    found = []
    for client in (first, second):
        scored = client.feedback(session, "score").text
        assert scored == "accuracy,0.5\n"  # ten wrong, ten right
        client.dataset(session, 0)
        for number in range(3):
            ids = test.ids[number * 10 : number * 10 + 10]
            client.post(session, number, **(answers(test, ids) | {"detection": "".join(f"{key},0\n" for key in ids)}))
        client.complete(session)
        asked = {"session_id": session, "test_id": TEST}
        found.append(client.ask("GET", "/session/evaluations", params=asked).json())
        client.close()
    assert found[0] == found[1]
    assert found[0]["m_acc"]["full_top1"] == 0.9  # three were told and stay wrong
    assert found[0]["m_num_stats"]["P_indx_0.5"] == 1  # as it was said in the first attempt


MISFITS = [[99, [0, 0, 0.5, 0, 0.5], None], [1, [None] * 5], [2, [0]]]


@pytest.mark.parametrize("told", [*MISFITS, [0, [10**30, 0, 0.5, 0, 0.5]], "x"], ids=str)
def test_told_answers_that_cannot_be_stop_no_import(data: Path, tmp_path: Path, told: Any) -> None:
    legacy(tmp_path / "old", 30, {"told_answers": {"answers": {"classification": [told], "nonsense": []}}})
    client = moved(data, tmp_path / "n.sqlite", tmp_path / "old")
    if told not in MISFITS:  # not even of the right type
        assert not client.dispatcher.groups
    else:
        assert client.complete(SID).text == "OK"
        found = client.ask("GET", "/session/evaluations", params={"session_id": SID, "test_id": TEST}).json()
        assert found["m_acc"]["full_top1"] == 1
    client.close()


def test_what_comes_after_an_import_goes_by_the_servers_rules(data: Path, tmp_path: Path) -> None:
    legacy(tmp_path / "old", 20, {})
    rows = tmp_path / f"old/OND/image_classification/{SID}.{TEST}_classification.csv"
    rows.write_text(rows.read_text().replace("\n", ",0\n"))  # a column too many, as old servers took it
    client = moved(data, tmp_path / "n.sqlite", tmp_path / "old")
    test = known(client)
    late = answers(test, test.ids[20:])
    refused(
        client.post(SID, 2, detection=late["detection"], classification=f"{test.ids[20]},1,0"), 400, "InvalidResults"
    )
    client.close(at_once=True)
    client = Client(data, tmp_path / "n.sqlite")  # and what was taken is still there
    latest = client.ask("GET", "/session/latest", params={"session_id": SID, "rounds": "1"}).json()
    assert latest["next_rounds"] == {TEST: 2}
    client.close()


def test_rows_are_split_by_round_as_they_are() -> None:
    rows = [(f"p{n}", "a text", "0", "0", "0", "1", "1", "2", "3", "4", "0") for n in range(3)] + [
        ("a,b", *"x00011234")
    ]
    test = Test("t", "transcripts", rows, {"round_size": 2})
    text = "p2,|so, he said|,\np0,hello,\n|a,b|,last\np1\n"
    assert split_by_round(text, test, set()) == {0: "p0,hello,\np1\n", 1: "p2,|so, he said|,\n|a,b|,last\n"}
    assert split_by_round(text, test, {0}) == {0: "p2,|so, he said|,\n|a,b|,last\np0,hello,\np1\n"}


def legacy(folder: Path, rows: int, state: dict[str, Any], **session: Any) -> None:
    """A session as the original server leaves it, with the results of a test's first samples."""
    (folder / "OND/image_classification").mkdir(parents=True)
    created = {"time": [WHEN], "protocol": "OND", "domain": "image_classification", "detector": "veteran"}
    facts = {"created": created | {"detection_threshold": 0.5}, "tests": {"completed_tests": []}} | session
    (folder / f"{SID}.json").write_bytes(msgspec.json.encode(facts))
    (folder / f"{SID}.{TEST}.json").write_bytes(msgspec.json.encode(state))
    test = DataDirectory(folder.parent / "data").load("OND", "image_classification", TEST)[0]
    for kind, text in answers(test, test.ids[:rows]).items():
        (folder / f"OND/image_classification/{SID}.{TEST}_{kind}.csv").write_text(text)


BOTH = {"time": [WHEN], "types": ["detection", "classification"]}
ROUNDS = {
    "with types": ({"0": BOTH, "1": BOTH}, 2, (400, 400, 200)),
    "without types": ({"0": {"time": WHEN}, "1": {"time": WHEN}}, 2, (400, 400, 200)),
    "not told": ({}, 2, (400, 400, 200)),
    "all as round 0": ({"0": BOTH}, 1, (400, 200, 200)),
}


@pytest.mark.parametrize("told", ROUNDS)
def test_posted_rounds_are_known_after_an_import(data: Path, tmp_path: Path, told: str) -> None:
    rounds, following, statuses = ROUNDS[told]
    post = {"time": WHEN, "last round": "1", "rounds": rounds}
    asked = {"time": [WHEN], "rounds": {"0": {"time": [WHEN]}, "1": {"time": [WHEN]}}, "last round": "1"}
    legacy(tmp_path / "old", 20, {"post_results": post, "data_request": asked}, psuedo_labels={"a": [1]})
    client = moved(data, tmp_path / "n.sqlite", tmp_path / "old")
    latest = client.ask("GET", "/session/latest", params={"session_id": SID, "rounds": "1"}).json()
    assert latest["next_rounds"] == {TEST: following}
    files = unpack(client, SID, tmp_path / "again")
    assert files[f"{SID}.json"]["psuedo_labels"] == {"a": [1]}
    assert files[f"{SID}.{TEST}.json"]["data_request"] == asked
    test = client.directory.load("OND", "image_classification", TEST)[0]
    for number, status in enumerate(statuses):
        ids = test.ids[number * 10 : number * 10 + 10]
        assert client.post(SID, number, **answers(test, ids)).status_code == status
    assert client.dataset(SID, 0, OTHER).status_code == 200  # the original keeps no list: any test may be played
    client.close()


def test_a_test_that_is_listed_and_not_closed_stays_so_from_server_to_server(data: Path, tmp_path: Path) -> None:
    legacy(tmp_path / "old", 30, {"post_results": {"time": WHEN}}, tests={"completed_tests": [TEST]})
    results = tmp_path / "old"
    for number in range(3):
        client = moved(data, tmp_path / f"{number}.sqlite", results)
        assert client.ask("GET", "/session/latest", params={"session_id": SID}).json()["finished_tests"] == [TEST]
        found = client.ask("GET", "/session/evaluations", params={"session_id": SID, "test_id": TEST}).json()
        assert found["m_acc"]["full_top1"] == 1
        assert client.dataset(SID, 1).status_code == 200  # and can still be gone on with
        results = tmp_path / f"packed {number}"
        unpack(client, SID, results)
        client.close()


@pytest.mark.parametrize("broken", [{"post_results": {"rounds": [1]}}, {"get_feedback": {"rounds": {"0": {"x": "y"}}}}])
def test_what_cannot_be_read_leaves_no_half_of_a_session(data: Path, tmp_path: Path, broken, caplog) -> None:
    legacy(tmp_path / "old", 10, broken)
    client = moved(data, tmp_path / "n.sqlite", tmp_path / "old")
    assert not client.dispatcher.groups
    assert f"{SID}.json is left out" in caplog.text
    client.close()


@pytest.mark.parametrize("ended", [True, False])
def test_open_sessions_of_the_original_may_play_any_test(data: Path, tmp_path: Path, ended: bool) -> None:
    legacy(tmp_path / "old", 10, {}, **({"termination": {"time": [WHEN]}} if ended else {}))
    write_test(data, "OND.new")
    client = moved(data, tmp_path / "n.sqlite", tmp_path / "old")
    assert set(client.dispatcher.groups[SID].trials) == ({TEST} if ended else {TEST, OTHER, "OND.new"})
    client.close()


def test_the_zip_holds_posted_rows_and_nothing_else(client: Client) -> None:
    session = client.open(TEST, OTHER)
    client.play(session)
    answer = client.ask("GET", "/session/zip", params={"session_id": session, "test_id": f"{TEST}|../data/x"})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as file:
        names = set(file.namelist())
        rows = file.read(f"OND/image_classification/{session}.{TEST}_detection.csv").decode().splitlines()
    folder = f"OND/image_classification/{session}.{TEST}"
    assert names == {
        f"{session}.json",
        f"{session}.{TEST}.json",
        f"{folder}_detection.csv",
        f"{folder}_classification.csv",
    }
    assert len(rows) == 30


def test_the_zip_tells_what_was_bought_and_where_rows_lie(client: Client) -> None:
    session, test = client.open(), known(client)
    client.post(session, 0, **answers(test, test.ids[:10]))
    client.feedback(session, "classification", feedback_ids="|".join(test.ids[:2]))
    client.dataset(session, 0)  # the test starts again; what was bought stays bought
    client.post(session, 0, **answers(test, test.ids[:10]))
    client.feedback(session, "classification")
    answer = client.ask("GET", "/session/zip", params={"session_id": session})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as file:
        state = msgspec.json.decode(file.read(f"{session}.{TEST}.json"))
        assert state["post_results"]["detection file path"] in file.namelist()
    assert state["get_feedback"]["rounds"] == {"0": {"classification": 3}}
