"""Requests about one test that come at once: whoever is second finds what the first one left."""

from __future__ import annotations

from support.ond.protocol import TEST, Client, answers, known, refused


def request(session: str, method: str, path: str, **more: object) -> tuple[str, str, dict[str, object]]:
    return method, path, {"params": {"session_id": session, "test_id": TEST} | more}


def test_what_is_bought_while_a_test_starts_again_is_paid_for(client: Client) -> None:
    session, test = client.open(), known(client)
    first = test.ids[:10]
    for labels in (first[:3], first[3:6]):
        assert client.post(session, 0, **answers(test, first)).text == "OK"
        again = request(session, "GET", "/session/dataset", round_id=0)
        buying = request(
            session, "GET", "/session/feedback", feedback_type="classification", feedback_ids="|".join(labels)
        )
        restarted, bought = client.ask_at_once([again, buying])
        assert restarted.status_code == 200
        refused(bought, 400, "DetectionPostRequired")  # in the new attempt nothing was posted yet
    assert client.post(session, 0, **answers(test, first)).text == "OK"
    assert len(client.feedback(session, "classification", feedback_ids="|".join(first)).text.split()) == 3
    refused(client.feedback(session, "classification", feedback_ids="|".join(first)), 400, "FeedbackBudgetExceeded")


def test_a_test_that_is_completed_is_not_started_again(client: Client) -> None:
    session, test = client.open(), known(client)
    for number in range(test.rounds):
        ids = client.dataset(session, number).text.split()
        assert client.post(session, number, **answers(test, ids)).text == "OK"
    completing = request(session, "DELETE", "/test")
    completed, again = client.ask_at_once([completing, request(session, "GET", "/session/dataset", round_id=0)])
    assert completed.text == "OK"
    refused(again, 400, "TestCompleted")
    assert "m_acc" in client.ask("GET", "/session/evaluations", **completing[2]).json()
