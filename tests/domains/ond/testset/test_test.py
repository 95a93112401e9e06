"""Files of tests: what their metadata may say, and what makes no test."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.ond.protocol import Client, answers, known, refused, write_test


def test_metadata_may_be_texts_or_missing(client: Client, data: Path) -> None:
    write_test(data, "OND.texts", round_size="10", feedback_max_ids="2", known_classes="4", threshold="0.7")
    session, test = client.open("OND.texts"), known(client, "OND.texts")
    assert len(client.dataset(session, 0, "OND.texts").text.split()) == 10
    assert client.post(session, 0, "OND.texts", **answers(test, test.ids[:10])).text == "OK"
    assert len(client.feedback(session, "classification", "OND.texts").text.splitlines()) == 2
    write_test(data, "OND.huge", round_size=10**8, known_classes=None, feedback_max_ids=None)
    huge, test = client.open("OND.huge"), known(client, "OND.huge")
    assert (test.known, test.unknown_index) == (4, 0)  # the classes of images begin with 1
    assert len(client.dataset(huge, 0, "OND.huge").text.split()) == 30
    assert client.post(huge, 0, "OND.huge", **answers(test, test.ids)).text == "OK"


WRONG = [
    {"known_classes": "many"},
    {"known_classes": True},
    {"feedback_max_ids": -1},
    {"feedback_max_ids": "x"},
    {"unknown_index": True},
    {"unknown_index": 99},
    {"unknown_index": -1},
    {"round_size": "ten"},
    {"round_size": 1.5},
    {"round_size": 10**30},
    {"max_novel_classes": 10**30},
    {"threshold": "high"},
    {"threshold": 7},
]


@pytest.mark.parametrize("facts", WRONG, ids=str)
def test_metadata_that_count_nothing_make_no_test(client: Client, data: Path, facts: dict[str, object]) -> None:
    write_test(data, "OND.vague", **facts)
    assert client.open()  # other tests are none the worse for it
    asked = {"protocol": "OND", "novelty_detector_version": "1", "detection_threshold": 0.5}
    files = {"configuration": msgspec.json.encode(asked), "test_ids": b"OND.vague"}
    refused(client.ask("POST", "/session", files=files), 500, "test_id_invalid")


@pytest.mark.parametrize("sheet", ["id,novel,class\n", "id,novel,class\na,0,1\na,0,2\n"], ids=["empty", "twice"])
def test_tests_that_can_never_be_complete_are_refused(client: Client, data: Path, sheet: str) -> None:
    place = data / "OND/image_classification"
    (place / "OND.no_single_df.csv").write_text(sheet)
    (place / "OND.no_metadata.json").write_text('{"known_classes": 1, "round_size": 9}')
    asked = {"protocol": "OND", "novelty_detector_version": "1", "detection_threshold": 0.5}
    files = {"configuration": msgspec.json.encode(asked), "test_ids": b"OND.no"}
    refused(client.ask("POST", "/session", files=files), 500, "test_id_invalid")


@pytest.mark.parametrize("light", ["im/99.jpg", ["a"], 7, None])
def test_a_red_light_that_is_no_sample_is_the_first_novel_one(client: Client, data: Path, light: object) -> None:
    write_test(data, "OND.light")
    path = data / "OND/image_classification/OND.light_metadata.json"
    path.write_bytes(msgspec.json.encode(msgspec.json.decode(path.read_bytes()) | {"red_light": light}))
    session = client.open("OND.light", hints=("red_light",))
    asked = {"session_id": session, "test_id": "OND.light"}
    assert client.ask("GET", "/test/metadata", params=asked).json()["red_light"] == "OND.light-15.png"


@pytest.mark.parametrize("value", [False, "false", "False", 0])
def test_feedback_on_all_rounds_may_be_granted_by_a_text(client: Client, data: Path, value: object) -> None:
    write_test(data, "OND.free", feedback_constrained=value)
    session, test = client.open("OND.free"), known(client, "OND.free")
    for number in range(2):
        client.post(session, number, "OND.free", **answers(test, test.ids[number * 10 : number * 10 + 10]))
    assert client.feedback(session, "classification", "OND.free", feedback_ids=test.ids[0]).text


def test_metadata_as_python_writes_them_can_be_read(client: Client, data: Path) -> None:
    write_test(data, "OND.odd")
    path = data / "OND/image_classification/OND.odd_metadata.json"
    path.write_text("\ufeff" + path.read_text().replace("{", '{"degree": NaN, "max_novel_classes": NaN, ', 1))
    asked = {"session_id": client.open("OND.odd"), "test_id": "OND.odd"}
    shown = client.ask("GET", "/test/metadata", params=asked).json()
    assert shown == {"protocol": "OND", "known_classes": 4, "round_size": 10, "feedback_max_ids": 3}
