"""Bad input and attacks: each is refused with the protocol's error object, and nothing of it is kept."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from pathlib import Path

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domains.ond.protocol import OTHER, TEST, Client, answers, refused, write_test
from openfield.domains.ond.rows import _read_usual, read_sheet
from openfield.domains.ond.sheet import Test
from openfield.errors import DiskFull, RunBusy
from openfield.groups import holding
from openfield.journal import Journal


def known(client: Client, test: str = TEST):
    return client.shelf.load("OND", "image_classification", test)[0]


def rows(client: Client, number: int = 0, value: object = 0.1) -> list[str]:
    return [f"{key},{value}" for key in known(client).ids[number * 10 : number * 10 + 10]]


BAD = {
    "text": lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",high"],
    "nan": lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",nan"],
    "infinite": lambda lines: [*lines[:-1], lines[-1].split(",")[0] + ",1e999"],
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
def test_bad_rows_are_refused_and_leave_no_trace(client: Client, fault: str) -> None:
    session = client.open()
    refused(client.post(session, 0, detection="\n".join(BAD[fault](rows(client)))), 400, "InvalidResults")
    assert client.post(session, 0, detection="\n".join(rows(client))).text == "OK"


def test_one_bad_part_refuses_the_whole_post(client: Client) -> None:
    session = client.open()
    good = answers(known(client), known(client).ids[:10])
    refused(client.post(session, 0, detection=good["detection"], classification="x,1"), 400, "InvalidResults")
    assert client.post(session, 0, **good).text == "OK"


def test_binary_uploads_unknown_types_and_missing_parts_are_refused(client: Client) -> None:
    session = client.open()
    refused(client.post(session, 0, detection=b"\x89PNG\xfe\xff\x80"), 400, "BadRequest")
    refused(client.post(session, 0, gossip="a,1"), 400, "InvalidResults")
    refused(client.post(session, 0, **{"../x": "a,1"}), 400, "InvalidResults")
    asked = {"session_id": session, "test_id": TEST, "round_id": 0, "result_types": "detection"}
    files = {"test_identification": msgspec.json.encode(asked)}
    refused(client.ask("POST", "/session/results", files=files), 400, "MissingParamsError")


def test_missing_newlines_do_not_merge_rounds_and_order_does_not_matter(client: Client) -> None:
    session, test = client.open(), known(client)
    for number in range(3):
        good = answers(test, test.ids[number * 10 : number * 10 + 10][::-1])
        assert client.post(session, number, **{kind: text.rstrip("\n") for kind, text in good.items()}).text == "OK"
    client.complete(session)
    found = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST}).json()
    assert found["m_acc"]["full_top1"] == 1


@pytest.mark.parametrize("again", [0, "0", "00"])
def test_a_round_posted_twice_is_refused(client: Client, again: object) -> None:
    session = client.open()
    assert client.post(session, 0, detection="\n".join(rows(client))).text == "OK"
    refused(client.post(session, again, detection="\n".join(rows(client))), 400, "DetectionRepost")
    refused(client.post(session, 0.0, detection="\n".join(rows(client))), 400, "BadRequest")


def test_old_clients_are_accepted_in_compat(compat: Client) -> None:
    test = known(compat)
    session = compat.open(TEST, OTHER, detection_threshold=0.5)
    six = "".join(f"{key},.5,0,0,0,0,0\n" for key in test.ids)  # the whole test as round 0
    assert compat.post(session, 0, detection=six).text == "OK"
    refused(compat.post(session, 0, detection=six), 400, "DetectionRepost")
    whole = answers(test, test.ids)["classification"]
    assert compat.post(session, 0, classification=whole).text == "OK"
    assert compat.post(session, 0, classification=whole + whole).text == "OK"  # the last of duplicates counts
    assert compat.post(session, 1, detection="\n".join(test.ids[:3])).text == "OK"  # ids without values
    refused(compat.post(session, 2, detection="nobody,0.5"), 400, "InvalidResults")
    compat.complete(session)
    found = compat.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST}).json()
    assert found["m_acc"]["full_top1"] == 1


def test_a_legacy_session_without_threshold_is_opened_in_compat_only(client: Client, compat: Client) -> None:
    asked = {"protocol": "OND", "novelty_detector_version": "1"}
    files = {"configuration": msgspec.json.encode(asked), "test_ids": TEST.encode()}
    refused(client.ask("POST", "/session", files=files), 400, "MissingParamsError")
    assert compat.ask("POST", "/session", files=files).status_code == 200


@pytest.mark.parametrize("version", ["v" * 5000, "a\nb", "\x1b[2J"])
def test_a_detector_is_called_by_a_name_that_can_be_read(client: Client, version: str) -> None:
    name = client.desk.groups[client.open(novelty_detector_version=version)].agent
    assert name.isprintable()
    assert len(name) <= 200


def test_ids_with_commas_bars_and_unicode_are_samples_like_any_other(client: Client, data: Path) -> None:
    odd = ["a,b.png", "ü|ñ.png", "雪.png", "x" * 4096]
    place = data / "OND/image_classification"
    sheet = "id,novel,class\n" + "".join(f"|{key.replace('|', '||')}|,0,1\n" for key in odd)
    (place / "OND.odd_single_df.csv").write_text(sheet)
    (place / "OND.odd_metadata.json").write_text('{"known_classes": 1, "round_size": 9, "protocol": "OND"}')
    session = client.open("OND.odd")
    posted = "".join(f"|{key.replace('|', '||')}|,0.25\n" for key in odd)
    assert client.post(session, 0, "OND.odd", detection=posted).text == "OK"


def test_oversized_bodies_are_refused_before_they_are_read(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openfield.domains.ond.http.MOST_BYTES", 1000)
    session = client.open()
    refused(client.post(session, 0, detection="x" * 2000), 400, "BadRequest")


def test_feedback_is_about_answered_samples_only(client: Client) -> None:
    session, test = client.open(), known(client)
    refused(client.feedback(session, "classification"), 400, "DetectionPostRequired")
    client.post(session, 0, **answers(test, test.ids[:10]))
    future = client.feedback(session, "classification", feedback_ids="|".join(test.ids[10:20]))
    assert (future.status_code, future.text) == (200, "")
    mixed = client.feedback(session, "classification", feedback_ids=f"{test.ids[25]}|nobody|{test.ids[2]}")
    assert mixed.text == f"{test.ids[2]},3\n"
    refused(client.feedback(session, "labels"), 400, "InvalidFeedbackType")
    refused(client.feedback(session, "classification|gossip"), 400, "InvalidFeedbackType")


@pytest.mark.parametrize("constrained", [True, False])
def test_labels_are_not_sold_before_the_classes_are_posted(client: Client, data: Path, constrained: bool) -> None:
    write_test(data, "OND.first", feedback_constrained=constrained)
    session, test = client.open("OND.first"), known(client, "OND.first")
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


def test_undeclared_novelty_sells_no_detection(client: Client) -> None:
    session, test = client.open(), known(client)
    client.post(session, 0, **answers(test, test.ids[:10]))
    assert client.feedback(session, "detection").text == ""
    assert client.feedback(session, "score").text == ""
    client.post(session, 1, **answers(test, test.ids[10:20]))
    assert client.feedback(session, "score").text == "accuracy,1.0\n"
    assert client.feedback(session, "detection").text.splitlines() == [f"{key},0" for key in test.ids[10:13]]


def test_budgets_are_kept_per_round_and_type_and_not_refunded(client: Client) -> None:
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


@pytest.mark.parametrize("budget", [0, None])
def test_no_budget_sells_nothing(client: Client, data: Path, budget: int | None) -> None:
    write_test(data, "OND.0", feedback_max_ids=budget)
    session = client.open("OND.0")
    test = known(client, "OND.0")
    client.post(session, 0, "OND.0", **answers(test, test.ids[:10]))
    refused(client.feedback(session, "classification", "OND.0"), 400, "FeedbackBudgetExceeded")


def test_a_red_light_declares_novelty_and_frees_detection(client: Client) -> None:
    session, test = client.open(hints=("red_light",)), known(client)
    low = "".join(f"{key},0.0\n" for key in test.ids[10:20])
    client.post(session, 1, detection=low)
    assert len(client.feedback(session, "detection").text.splitlines()) == 10


def test_several_kinds_of_feedback_come_as_parts_in_order(client: Client) -> None:
    session, test = client.open(), known(client)
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


def test_parallel_posts_are_all_recorded_or_refused(client: Client) -> None:
    session, test = client.open(), known(client)

    async def post_all() -> list[int]:
        jobs = []
        for _ in range(4):
            for number in range(3):
                asked = {"session_id": session, "test_id": TEST, "round_id": number, "result_types": "detection"}
                text = "\n".join(f"{key},0.2" for key in test.ids[number * 10 : number * 10 + 10])
                files = {"test_identification": msgspec.json.encode(asked), "detection_file": text.encode()}
                jobs.append(client.http.post("/session/results", files=files))
        return [answer.status_code for answer in await asyncio.gather(*jobs)]

    statuses = client.loop.run_until_complete(post_all())
    assert sorted(statuses) == [200] * 3 + [400] * 9
    world = client.desk.at_hand(client.desk.groups[session], TEST).rollout.world
    assert (world.ledger.p_world == 0.2).all()


def test_parallel_completions_are_recorded_once(client: Client) -> None:
    session = client.open()

    async def complete_all() -> list[int]:
        asked = {"session_id": session, "test_id": TEST}
        jobs = [client.http.delete("/test", params=asked) for _ in range(24)]
        return [answer.status_code for answer in await asyncio.gather(*jobs)]

    assert sorted(client.loop.run_until_complete(complete_all())) == [200] + [400] * 23


def test_a_full_disk_is_told_and_nothing_half_recorded(data: Path, tmp_path: Path, monkeypatch) -> None:
    client = Client(data, tmp_path / "full.sqlite")
    session = client.open()
    test = known(client)
    assert client.post(session, 0, **answers(test, test.ids[:10])).text == "OK"

    def fail(self: Journal, *entries: object) -> Future[None]:
        future: Future[None] = Future()
        future.set_exception(DiskFull("No room left."))
        return future

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add", fail)
        seat = client.desk.at_hand(client.desk.groups[session], TEST)
        patch.setattr(seat.rollout._recorder, "_emit", fail.__get__(client.journal))
        refused(client.post(session, 1, **answers(test, test.ids[10:20])), 500, "StorageError")
    client.close(at_once=True)
    again = Client(data, tmp_path / "full.sqlite")
    assert again.post(session, 1, **answers(test, test.ids[10:20])).text == "OK"
    again.close()


def test_two_servers_cannot_share_a_run_file(tmp_path: Path) -> None:
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "run.sqlite")
    for name in ("run.sqlite", "link.sqlite"):
        with holding(tmp_path / "run.sqlite"), pytest.raises(RunBusy), holding(tmp_path / name):
            pass


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


@pytest.mark.parametrize("columns", [1, 4, 6, 7])
def test_classes_have_as_many_columns_as_the_metadata_say(client: Client, compat: Client, columns: int) -> None:
    session, test = client.open(), known(client)
    wrong = "".join(f"{key}{',0.1' * columns}\n" for key in test.ids[:10])
    answer = client.post(session, 0, classification=wrong)
    refused(answer, 400, "InvalidResults")
    assert f"have 5 values (4 known classes and the unknown one), not {columns}" in answer.json()["message"]
    assert client.post(session, 0, **answers(test, test.ids[:10])).text == "OK"
    assert compat.post(compat.open(), 0, classification=wrong).text == "OK"


@pytest.mark.parametrize(
    ("facts", "columns"),
    [({"unknown_index": 4}, 5), ({"known_classes": "6"}, 7), ({"known_classes": None, "nonnovel_classes": 2}, 3)],
)
def test_the_columns_follow_from_what_the_metadata_say(client: Client, data: Path, facts, columns: int) -> None:
    write_test(data, "OND.wide", **facts)
    session, ids = client.open("OND.wide"), known(client, "OND.wide").ids[:10]
    for count in (columns - 1, columns + 1, columns):
        answer = client.post(session, 0, "OND.wide", classification="".join(f"{key}{',0' * count}\n" for key in ids))
        assert answer.status_code == (200 if count == columns else 400)


def test_where_the_classes_are_not_stated_rows_keep_the_columns_they_had_first(client: Client, data: Path) -> None:
    write_test(data, "OND.free", known_classes=None)
    session, ids = client.open("OND.free"), known(client, "OND.free").ids
    for number, width, status in ((0, 7, 200), (1, 5, 400), (1, 7, 200)):
        rows = "".join(f"{key}{',0' * width}\n" for key in ids[number * 10 : number * 10 + 10])
        assert client.post(session, number, "OND.free", classification=rows).status_code == status


def test_clusters_of_condda_have_a_column_for_every_known_class(client: Client, data: Path) -> None:
    ids = known(client).ids[:10]
    (data / "OND").rename(data / "CONDDA")
    session = client.open(protocol="CONDDA")
    answer = client.post(session, 0, characterization="".join(f"{key},0,1\n" for key in ids))
    refused(answer, 400, "InvalidResults")
    assert "5 values or more" in answer.json()["message"]
    assert client.post(session, 0, characterization="".join(f"{key},0,0,0,0,0,0,1\n" for key in ids)).text == "OK"
    refused(client.post(session, 1, characterization=f"{ids[0]},0,0,0,0,1\n"), 400, "InvalidResults")  # one fewer


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


def test_separators_among_digits_are_no_numbers(client: Client) -> None:
    refused(client.post(client.open(), 0, detection="\n".join(rows(client, 0, "0_1"))), 400, "InvalidResults")


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


@pytest.mark.parametrize("comma", ["", ","])
def test_ids_with_quotes_are_taken_as_a_round_shows_them(client: Client, data: Path, comma: str) -> None:
    names = ['"q".png', '"whole"', f'in"side{comma}.png', "plain.png"]
    place = data / "OND/image_classification"
    lines = [f"|{name}|,0,1\n" for name in names]
    (place / "quoted_single_df.csv").write_text("id,novel,class\n" + "".join(lines))
    (place / "quoted_metadata.json").write_text('{"known_classes": 1, "round_size": 4}')
    session = client.open("quoted")
    shown = client.dataset(session, 0, "quoted").text.splitlines()
    assert shown == names
    assert client.post(session, 0, "quoted", detection="".join(f"{key},0.6\n" for key in shown)).text == "OK"
    doubled = "".join(f"|{key}|,0,1\n" for key in shown)
    assert client.post(session, 0, "quoted", classification=doubled).text == "OK"
    client.complete(session, "quoted")
    asked = {"session_id": session, "test_id": "quoted"}
    assert client.ask("GET", "/session/evaluations", params=asked).json()["m_acc"]["full_top1"] == 1


def test_ids_with_commas_are_taken_as_a_round_shows_them(client: Client, data: Path) -> None:
    place = data / "OND/image_classification"
    (place / "OND.odd_single_df.csv").write_text("id,novel,class\n|a,b.png|,1,0\n|a|,0,1\n")
    (place / "OND.odd_metadata.json").write_text('{"known_classes": 1, "round_size": 9, "feedback_max_ids": 9}')
    session = client.open("OND.odd")
    shown = client.dataset(session, 0, "OND.odd").text.splitlines()
    assert shown == ["a,b.png", "a"]
    posted = {"detection": ",0.9", "classification": ",0.5,0.5"}
    rows = {kind: "".join(f"{line}{end}\n" for line in shown) for kind, end in posted.items()}
    assert client.post(session, 0, "OND.odd", **rows).text == "OK"
    assert client.feedback(session, "classification", "OND.odd").text == "|a,b.png|,0\na,1\n"


@pytest.mark.parametrize("sheet", ["id,novel,class\n", "id,novel,class\na,0,1\na,0,2\n"], ids=["empty", "twice"])
def test_tests_that_can_never_be_complete_are_refused(client: Client, data: Path, sheet: str) -> None:
    place = data / "OND/image_classification"
    (place / "OND.no_single_df.csv").write_text(sheet)
    (place / "OND.no_metadata.json").write_text('{"known_classes": 1, "round_size": 9}')
    asked = {"protocol": "OND", "novelty_detector_version": "1", "detection_threshold": 0.5}
    files = {"configuration": msgspec.json.encode(asked), "test_ids": b"OND.no"}
    refused(client.ask("POST", "/session", files=files), 500, "test_id_invalid")


@given(
    st.lists(
        st.sampled_from(["a", "b", "c", ",", "\n", "0.5", "1", "0", ".5", "1e-3", "true", "null", "-1", "x", "\\"])
    )
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_the_short_way_to_read_rows_reads_as_the_long_one(pieces: list[str]) -> None:
    test = Test("t", "image_classification", [(key, "0", "1") for key in "abc"], {"round_size": 3, "known_classes": 1})
    for content in ("".join(pieces), "a,0.5\nb,1\nc," + "".join(pieces)):
        short = _read_usual(content, test, range(3))
        if short is None:
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("openfield.domains.ond.rows._read_usual", lambda *_: None)
            sheet = read_sheet("detection", content, test, 0, False)
        assert sheet.numbers.tolist() == short.tolist()
        assert sheet.positions.tolist() == [0, 1, 2]
