"""What may be bought about which samples, and that it cannot be had for less."""

from __future__ import annotations

from pathlib import Path

import httpx
import msgspec
import pytest

from support.ond.protocol import TEST, Client, answers, known, refused, write_test


@pytest.mark.parametrize("constrained", [True, False])
def test_labels_are_not_sold_before_the_classes_are_posted(client: Client, data: Path, constrained: bool) -> None:
    write_test(data, "OND.first", feedback_constrained=constrained)
    session, test = client.open("OND.first", any_order=True), known(client, "OND.first")
    for number in range(2):
        ids = test.ids[number * 10 : number * 10 + 10]
        client.post(session, number, "OND.first", detection="".join(f"{key},0.9\n" for key in ids))
    for kind in ("classification", "score"):
        answer = client.feedback(session, kind, "OND.first", feedback_ids=test.ids[10])
        refused(answer, 400, "DetectionPostRequired")
        assert "Post classification results" in answer.json()["message"]
    client.post(session, 1, "OND.first", classification=answers(test, test.ids[10:20])["classification"])
    asked = "|".join([test.ids[0], *test.ids[10:12]])
    told = client.feedback(session, "classification", "OND.first", feedback_ids=asked).text.splitlines()
    assert [line.split(",")[0] for line in told] == test.ids[10:12]
    assert client.feedback(session, "detection", "OND.first").text


@pytest.mark.parametrize("way", ["again", "restart"])
def test_labels_are_not_found_by_trying_until_the_score_rises(data: Path, tmp_path: Path, way: str) -> None:
    client = Client(data, tmp_path / "s.sqlite", compat=way == "again")
    session, test, told = client.open(), known(client), []
    for guess in range(5):
        rows = "".join(f"{key}{''.join(f',{int(at == guess)}' for at in range(5))}\n" for key in test.ids[:10])
        if way == "restart":
            client.dataset(session, 0)
        if way == "restart" or not guess:
            client.post(session, 0, detection="\n".join(f"{key},0.9" for key in test.ids[:10]))
        assert client.post(session, 0, classification=rows).text == "OK"
        told.append(client.feedback(session, "score").text)
    assert len(set(told)) == 1  # that of the first answers
    assert client.post(session, 1, **answers(test, test.ids[10:20])).text == "OK"
    client.close(at_once=True)
    client = Client(data, tmp_path / "s.sqlite", compat=way == "again")
    assert client.feedback(session, "score").text == "accuracy,0.5\n"  # all new ones are right
    assert client.post(session, 2, **answers(test, test.ids[20:])).text == "OK"
    client.complete(session)
    found = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST}).json()
    named = sum(int(test.labels[at] == 4) for at in range(10))
    assert found["m_acc"]["full_top1"] == round((20 + named) / 30, 5)  # the last answers are scored
    client.close()


def first_class(ids: list[str]) -> dict[str, str]:
    """The change seen at once, and everything taken for the first known class."""
    return {
        "detection": "".join(f"{key},0.9\n" for key in ids),
        "classification": "".join(f"{key},0,1,0,0,0\n" for key in ids),
    }


@pytest.mark.parametrize("way", ["restart", "crash", "two restarts", "again"])
def test_bought_labels_cannot_be_posted_as_own_answers(data: Path, tmp_path: Path, way: str) -> None:
    client = Client(data, tmp_path / "s.sqlite", compat=way == "again")
    session, test = client.open(), known(client)
    for number in range(3):
        assert client.post(session, number, **first_class(test.ids[number * 10 : number * 10 + 10])).text == "OK"
        assert len(client.feedback(session, "classification").text.split()) == 3
    if way == "crash":
        client.close(at_once=True)
        client = Client(data, tmp_path / "s.sqlite")
    for _ in range({"again": 0, "two restarts": 2}.get(way, 1)):
        client.dataset(session, 0)
        assert client.post(session, 0, **answers(test, test.ids[:10])).text == "OK"
    for number in range(1 - (way == "again"), 3):
        right = answers(test, test.ids[number * 10 : number * 10 + 10])
        posted = right if way != "again" else {"classification": right["classification"]}
        assert client.post(session, number, **posted).text == "OK"
    client.complete(session)
    found = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST}).json()
    told = [at for at in range(30) if at % 10 < 3]
    wrong = sum(int(test.labels[at] != 1) for at in told)
    assert found["m_acc"]["full_top1"] == round((30 - wrong) / 30, 5)
    client.close()


def test_bought_detections_cannot_be_posted_as_own_answers(client: Client) -> None:
    session, test = client.open(), known(client)
    for attempt in range(2):
        for number in range(3):
            ids = test.ids[number * 10 : number * 10 + 10]
            early = {"detection": "".join(f"{key},0.9\n" for key in ids)}
            assert client.post(session, number, **(answers(test, ids) | ({} if attempt else early))).text == "OK"
            if not attempt:
                assert len(client.feedback(session, "detection").text.split()) == 3
        if not attempt:
            client.dataset(session, 0)
    client.complete(session)
    found = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST}).json()
    assert found["m_num_stats"]["P_indx_0.5"] == 1  # as it was said before the truth was told
    assert found["m_acc"]["full_top1"] == 1  # of which nothing was told


def test_a_score_is_about_what_was_posted_since_the_test_began_again(client: Client) -> None:
    session, test = client.open(), known(client)
    for number in range(3):
        client.post(session, number, **first_class(test.ids[number * 10 : number * 10 + 10]))
    whole = client.feedback(session, "score").text
    client.dataset(session, 0)
    shares = []
    for number in range(3):
        client.post(session, number, **answers(test, test.ids[number * 10 : number * 10 + 10]))
        shares.append(client.feedback(session, "score").text)
    first = [float((test.labels[: end * 10] == 1).mean()) for end in (1, 2, 3)]
    assert shares == ["", *(f"accuracy,{share!r}\n" for share in first[1:])]  # not declared in the first round
    assert shares[-1] == whole


def test_undeclared_novelty_sells_no_detection(client: Client) -> None:
    session, test = client.open(), known(client)
    client.post(session, 0, **answers(test, test.ids[:10]))
    assert client.feedback(session, "detection").text == ""
    assert client.feedback(session, "score").text == ""
    client.post(session, 1, **answers(test, test.ids[10:20]))
    assert client.feedback(session, "score").text == "accuracy,1.0\n"
    assert client.feedback(session, "detection").text.splitlines() == [f"{key},0" for key in test.ids[10:13]]


def test_a_red_light_declares_novelty_and_frees_detection(client: Client) -> None:
    session, test = client.open(hints=("red_light",), any_order=True), known(client)
    low = "".join(f"{key},0.0\n" for key in test.ids[10:20])
    client.post(session, 1, detection=low)
    assert len(client.feedback(session, "detection").text.splitlines()) == 10


def test_several_kinds_of_feedback_come_as_parts_in_order(client: Client) -> None:
    session, test = client.open(any_order=True), known(client)
    client.post(session, 1, **answers(test, test.ids[10:20]))
    answer = client.feedback(session, "score|classification")
    assert answer.headers["content-type"].startswith("multipart/form-data")
    assert answer.text.index('name="score"') < answer.text.index('name="classification"')
    assert f"{session}.{TEST}.last_score.csv" in answer.text


def test_results_and_feedback_in_one_request(client: Client) -> None:
    session, test = client.open(), known(client)
    asked = {"session_id": session, "test_id": TEST, "round_id": 0}
    parts = {f"{kind}_file": text.encode() for kind, text in answers(test, test.ids[:10]).items()}
    wrong = {"test_identification": msgspec.json.encode(asked | {"result_types": "detection"})} | parts
    refused(client.ask("POST", "/session/resultsfeedback", files=wrong), 400, "MissingParamsError")
    listed = asked | {"result_types": ["detection", "classification"]}
    more = {"feedback_types": ["classification"], "feedback_ids": test.ids[:2]}
    files = {"test_identification": msgspec.json.encode(listed | more)} | parts
    assert client.ask("POST", "/session/resultsfeedback", files=files).text == f"{test.ids[0]},1\n{test.ids[1]},2\n"
    listed["round_id"] = 1
    parts = {f"{kind}_file": text.encode() for kind, text in answers(test, test.ids[10:20]).items()}
    files = {"test_identification": msgspec.json.encode(listed)} | parts
    assert client.ask("POST", "/session/resultsfeedback", files=files).text == "OK"


def test_results_are_not_kept_where_the_feedback_asked_with_them_is_refused(client: Client) -> None:
    session, test = client.open(), known(client)

    def ask(number: int, kinds: list[str], feedback: list[str], ids: list[str]) -> httpx.Response:
        asked = {"session_id": session, "test_id": TEST, "round_id": number, "result_types": kinds}
        asked |= {"feedback_types": feedback, "feedback_ids": ids}
        rows = answers(test, test.ids[number * 10 : number * 10 + 10])
        rows["characterization"] = "".join(f"{key},1,0\n" for key in test.ids)
        files = {f"{kind}_file": rows[kind].encode() for kind in kinds}
        files["test_identification"] = msgspec.json.encode(asked)
        return client.ask("POST", "/session/resultsfeedback", files=files)

    both = ["detection", "classification"]
    refused(ask(0, both, ["classification", "nonsense"], test.ids[:2]), 400, "InvalidFeedbackType")
    refused(ask(0, ["classification"], ["classification"], test.ids[:2]), 400, "DetectionPostRequired")
    assert len(ask(0, both, ["classification"], test.ids[:3]).text.split()) == 3
    refused(ask(0, ["characterization"], ["classification"], test.ids[3:6]), 400, "FeedbackBudgetExceeded")
    assert ask(0, ["characterization"], [], []).text == "OK"
    assert len(ask(1, both, ["classification"], test.ids[10:12]).text.split()) == 2


def test_long_lists_of_ids_may_be_posted(client: Client) -> None:
    session, test = client.open(), known(client)
    client.post(session, 0, **answers(test, test.ids[:10]))
    asked = {"session_id": session, "test_id": TEST, "feedback_type": "classification"}
    asked["feedback_ids"] = "|".join(["x" * 70_000, test.ids[0]])
    assert client.ask("POST", "/session/feedback", data=asked).text == f"{test.ids[0]},1\n"


def test_made_up_rounds_buy_nothing_more(client: Client) -> None:
    session, test = client.open(), known(client)
    client.post(session, 0, **answers(test, test.ids[:10]))
    assert len(client.feedback(session, "classification").text.splitlines()) == 3
    refused(client.post(session, 7, x_more=f"{test.ids[0]},1"), 400, "InvalidResults")  # there is no round 7
    assert client.post(session, 2, x_more=f"{test.ids[0]},1").text == "OK"
    assert client.post(session, 1, characterization=f"{test.ids[0]},1").text == "OK"
    refused(client.feedback(session, "classification", feedback_ids=test.ids[5]), 400, "FeedbackBudgetExceeded")


def test_rows_posted_under_other_rounds_buy_nothing_more(compat: Client) -> None:
    session, test = compat.open(), known(compat)
    for number in range(3):  # the same samples, under the number of every round
        compat.post(session, number, **answers(test, test.ids[:10]))
        bought = compat.feedback(session, "classification", feedback_ids="|".join(test.ids[:10])).text.splitlines()
        assert len(bought) == (0 if number else 3)
