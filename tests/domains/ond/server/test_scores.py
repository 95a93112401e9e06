"""Scores of sessions over HTTP: of rounds, and against a reaction baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ond.protocol import TEST, Client, answers, refused, write_test


def test_a_session_is_told_against_a_baseline_that_never_detects(client: Client) -> None:
    test = client.directory.load("OND", "image_classification", TEST)[0]
    agent, base = client.open(), client.open(novelty_detector_version="base")
    client.play(agent)
    for number in range(3):
        rows = "".join(f"{key},0.1,0.9,0,0,0\n" for key in test.ids[number * 10 : number * 10 + 10])
        assert client.post(base, number, classification=rows).text == "OK"
    asked = {"session_id": agent, "test_id": TEST, "baseline_session_id": base}
    refused(client.ask("GET", "/session/evaluations", params=asked), 400, "TestInProcess")
    client.complete(base)
    found = client.ask("GET", "/session/evaluations", params=asked).json()
    assert found["m_nrp"] == {"M_nrp_post_top1": pytest.approx(400), "M_nrp_post_top3": pytest.approx(100 / 0.5625)}
    refused(client.ask("GET", "/session/evaluations", params=asked | {"session_id": base}), 400, "ResultsIncomplete")
    refused(
        client.ask("GET", "/session/evaluations", params=asked | {"baseline_session_id": "x"}), 400, "TestInProcess"
    )


def test_a_test_without_novelty_is_told_against_no_baseline(client: Client, data: Path) -> None:
    write_test(data, "OND.calm", onset=30)
    agent, base = client.open("OND.calm"), client.open("OND.calm")
    for session in (agent, base):
        client.play(session, "OND.calm")
    asked = {"session_id": agent, "test_id": "OND.calm", "baseline_session_id": base}
    found = client.ask("GET", "/session/evaluations", params=asked).json()
    assert found["m_nrp"] == {"M_nrp_post_top1": None, "M_nrp_post_top3": None}


def test_rounds_are_scored_over_http(devmode: Client) -> None:
    client = devmode
    session, test = client.open(any_order=True), client.directory.load("OND", "image_classification", TEST)[0]
    asked = {"session_id": session, "test_id": TEST, "round_id": 1, "roundwise": "1"}
    client.post(session, 1, **answers(test, test.ids[10:20]))
    refused(client.ask("GET", "/session/evaluations", params=asked), 400, "TestInProcess")
    found = client.ask("GET", "/session/evaluations", params=asked | {"devmode": "1"}).json()
    assert found == {"m_acc_round_wise": {"top1_accuracy_round_1": 1.0, "top3_accuracy_round_1": 1.0}}
    for number, reason in ((0, "ResultsIncomplete"), (9, "ResultsIncomplete"), ("x", "BadRequest")):
        answer = client.ask("GET", "/session/evaluations", params=asked | {"devmode": "1", "round_id": number})
        refused(answer, 400, reason)
    client.post(session, 0, **answers(test, test.ids[:10]))
    client.post(session, 2, **answers(test, test.ids[20:]))
    client.complete(session)
    whole = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST, "more": "1"})
    assert set(whole.json()) >= {"m_acc", "m_acc_round_wise", "m_ndp_unknown", "m_accuracy_on_novel"}
    assert len(whole.json()["m_acc_round_wise"]) == 6
