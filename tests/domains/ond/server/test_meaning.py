"""Clients that detect nothing gain nothing: not by posting late, by asking for scores, nor by a light of another's."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from openfield.domains.ond.server.session_service import count_disclosures
from openfield.domains.ond.testset.test import Test
from openfield.journal.reader import Run
from openfield.report.export.rows import list_estimates
from openfield.report.terminal import render_summary
from openfield.result import Result
from support.ond.protocol import OTHER, TEST, Client, answers, known, refused
from support.ond.serving import announced


@pytest.fixture
def once(data: Path, tmp_path: Path) -> Iterator[Client]:
    """A server as it is by default: scores are told once, when a test is closed."""
    made = Client(data, tmp_path / "once.sqlite", scorings=1)
    yield made
    made.close()


def scores(client: Client, session: str, test: str = TEST) -> httpx.Response:
    return client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": test})


def sure(test: Test, ids: list[str]) -> dict[str, str]:
    """Right answers, and the belief that the world has changed."""
    return answers(test, ids) | {"detection": "".join(f"{key},0.9\n" for key in ids)}


def test_rounds_are_served_and_accepted_in_order(once: Client) -> None:
    """The attack `late`: see all rounds and buy all labels, then post beliefs."""
    session, test = once.open(), known(once)
    refused(once.dataset(session, 1), 400, "RoundOutOfOrder")
    assert once.dataset(session, 0).status_code == 200
    refused(once.dataset(session, 1), 400, "RoundOutOfOrder")  # before results of round 0
    refused(once.post(session, 1, **answers(test, test.ids[10:20])), 400, "RoundOutOfOrder")
    said = answers(test, test.ids[:10])
    assert once.post(session, 0, classification=said["classification"]).text == "OK"
    refused(once.feedback(session, "classification"), 400, "DetectionPostRequired")
    assert once.dataset(session, 1).status_code == 200
    refused(once.post(session, 0, detection=said["detection"]), 400, "RoundOutOfOrder")  # round 1 was shown


def test_a_rounds_belief_and_scores_come_before_its_feedback(once: Client) -> None:
    session, test = once.open(), known(once)
    sure = "".join(f"{key},0.9\n" for key in test.ids[:10])
    assert once.post(session, 0, detection=sure).text == "OK"
    for kind in ("detection", "classification", "score"):
        refused(once.feedback(session, kind), 400, "DetectionPostRequired")
    assert once.post(session, 0, classification=answers(test, test.ids[:10])["classification"]).text == "OK"
    assert once.feedback(session, "detection").text
    refused(once.post(session, 0, labels=f"{test.ids[0]},1"), 400, "RoundOutOfOrder")


def test_a_belief_after_feedback_on_a_changed_world_counts_no_more(once: Client) -> None:
    """The attack `buyer` over the wire: labels are bought in every round, and beliefs follow them."""
    session, test = once.open(), known(once)
    knows = False
    for number in range(3):
        ids = once.dataset(session, number).text.split()
        detection = "".join(f"{key},{0.95 if knows else 0.1}\n" for key in ids)
        once.post(session, number, **(answers(test, ids) | {"detection": detection}))
        told = once.feedback(session, "classification", feedback_ids="|".join(test.ids[14:17])).text
        knows = knows or any(line.endswith(",0") for line in told.split())
    assert knows
    once.complete(session)
    found = scores(once, session).json()
    assert found["m_num_stats"]["P_indx_0.175"] == 31  # never


def test_a_restarted_test_keeps_the_beliefs_of_the_first_attempt(once: Client) -> None:
    session, test = once.open(), known(once)
    for attempt in range(2):
        for number in range(3):
            ids = once.dataset(session, number).text.split()
            said = answers(test, ids)
            low = {"detection": "".join(f"{key},0\n" for key in ids)}
            assert once.post(session, number, **(said if attempt else said | low)).text == "OK"
    once.complete(session)
    assert scores(once, session).json()["m_num_stats"]["P_indx_0.175"] == 31


def test_scores_wait_until_everyone_has_played_and_close_the_test(once: Client) -> None:
    """The attack `scout`: read the onset from the scores of one session, and use it in another."""
    scout, player = once.open(), once.open()
    once.play(scout)
    refused(scores(once, scout), 400, "ScoresWithheld")
    once.play(player)
    assert scores(once, scout).status_code == 200
    assert scores(once, scout).status_code == 200  # the same again tells nothing new
    refused(scores(once, player), 400, "ScoresWithheld")  # once for a team
    files = {"configuration": b'{"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5}'}
    refused(once.ask("POST", "/session", files=files | {"test_ids": TEST.encode()}), 400, "TestClosed")
    assert once.ask("POST", "/session", files=files | {"test_ids": OTHER.encode()}).status_code == 200


def test_sessions_that_may_know_what_another_bought_are_marked(data: Path, tmp_path: Path) -> None:
    """The attack `scout` with labels in place of scores: buy in one session, and use it in another of the same team."""
    client = Client(data, tmp_path / "run.sqlite", scorings=1)
    client.open(novelty_detector_version="early")
    scout, test = client.open(), known(client)
    for number in range(2):
        client.dataset(scout, number)
        client.post(scout, number, **answers(test, test.ids[number * 10 : number * 10 + 10]))
        assert client.feedback(scout, "classification").text
    client.open(novelty_detector_version="late")
    client.open(OTHER, novelty_detector_version="elsewhere")
    client.close()
    again = Client(data, tmp_path / "run.sqlite", scorings=1)
    again.open(novelty_detector_version="later")
    told = [text for key, text in facts(tmp_path / "run.sqlite").items() if key.startswith("caution")]
    assert sorted(text.split()[1] for text in told) == ["early", "late", "later"]
    assert all("feedback on it in another session" in text for text in told)
    again.close()


def test_a_session_that_ended_is_not_waited_for(once: Client) -> None:
    first, left = once.open(), once.open()
    once.play(first)
    once.ask("DELETE", "/session", params={"session_id": left})
    assert scores(once, first).status_code == 200


def test_what_was_told_is_known_after_a_restart_of_the_server(once: Client, data: Path, tmp_path: Path) -> None:
    session = once.open()
    once.play(session)
    assert scores(once, session).status_code == 200
    again = Client(data, tmp_path / "copy.sqlite", scorings=1)
    again.dispatcher.groups.update(once.dispatcher.groups)  # as they would be read
    again.dispatcher._trials.update(once.dispatcher._trials)
    count_disclosures(again.dispatcher)
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5, "test_ids": [TEST]}
    refused(again.ask("POST", "/session", json={"configuration": asked}), 400, "TestClosed")
    again.close()


def test_teams_wait_for_each_other(data: Path, tmp_path: Path) -> None:
    client = Client(data, tmp_path / "teams.sqlite", teams={"r": "red", "b": "blue"}, scorings=1)
    sessions = {}
    for token in "rb":
        client.http.headers["authorization"] = f"Bearer {token}"
        sessions[token] = client.open()
        client.play(sessions[token])
        if token == "r":
            refused(scores(client, sessions["r"]), 400, "ScoresWithheld")
    for token, session in sessions.items():
        client.http.headers["authorization"] = f"Bearer {token}"
        assert scores(client, session).status_code == 200
    client.close()


def test_labels_cannot_be_read_out_by_scoring_again_and_again(once: Client) -> None:
    """A score is no oracle: the session that would try another label is refused."""
    test, told = known(once), 0
    for _ in range(28):
        asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5, "test_ids": [TEST]}
        opened = once.ask("POST", "/session", json={"configuration": asked})
        if opened.status_code != 200:
            refused(opened, 400, "TestClosed")
            continue
        session = opened.json()["session_id"]
        for number in range(3):
            once.post(session, number, **answers(test, test.ids[number * 10 : number * 10 + 10]))
        once.complete(session)
        told += scores(once, session).status_code == 200
    assert told == 1


def test_a_score_sold_as_feedback_is_a_scoring_of_the_test(data: Path, tmp_path: Path) -> None:
    """A score is no oracle, and neither are many sessions that stay open, also after a restart of the server."""
    client = Client(data, tmp_path / "run.sqlite", scorings=1)
    test, sessions = known(client), [client.open(novelty_detector_version=name) for name in ("one", "two", "three")]
    for session in sessions[:2]:
        assert client.post(session, 0, **sure(test, test.ids[:10])).text == "OK"
    assert client.feedback(sessions[0], "score").text == "accuracy,1.0\n"
    refused(client.feedback(sessions[1], "score"), 400, "ScoresWithheld")
    asked = {"session_id": sessions[2], "test_id": TEST, "round_id": 0, "result_types": ["detection", "classification"]}
    asked |= {"feedback_types": ["score"]}
    said = sure(test, test.ids[:10]).items()
    files = {"test_identification": json.dumps(asked).encode()} | {f"{kind}_file": text.encode() for kind, text in said}
    refused(client.ask("POST", "/session/resultsfeedback", files=files), 400, "ScoresWithheld")
    assert client.post(sessions[2], 0, **dict(said)).text == "OK"  # what was refused left no trace
    client.post(sessions[0], 1, **sure(test, test.ids[10:20]))
    assert client.feedback(sessions[0], "score").text  # of the same play
    count_disclosures(client.dispatcher)
    told = [
        text for key, text in facts(tmp_path / "run.sqlite").items() if key.startswith("caution") and "score" in text
    ]
    assert told == [f"one was given a score of test {TEST} as feedback; the test has been scored 1 time."]
    client.close()
    again = Client(data, tmp_path / "run.sqlite", scorings=1)
    count_disclosures(again.dispatcher)
    refused(again.feedback(sessions[1], "score"), 400, "ScoresWithheld")
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5, "test_ids": [TEST]}
    refused(again.ask("POST", "/session", json={"configuration": asked}), 400, "TestClosed")
    again.close()


def test_the_scores_of_a_session_that_was_sold_one_wait_for_the_others(once: Client) -> None:
    player, buyer = once.open(), once.open()
    test = known(once)
    for number in range(3):
        once.dataset(buyer, number)
        once.post(buyer, number, **sure(test, test.ids[number * 10 : number * 10 + 10]))
        assert once.feedback(buyer, "score").text
    once.complete(buyer)
    refused(scores(once, buyer), 400, "ScoresWithheld")  # they tell the onset
    once.play(player)
    assert scores(once, buyer).status_code == 200
    refused(scores(once, player), 400, "ScoresWithheld")  # one scoring, and it is spent


def test_sessions_that_may_know_what_another_bought_stand_below_the_line(once: Client, tmp_path: Path) -> None:
    """One that was ahead of the feedback learned nothing from it; one that starts again may use it."""
    test = known(once)
    names = ("ahead", "again", "behind", "scout")
    sessions = {name: once.open(novelty_detector_version=name) for name in names}

    def play(name: str, *rounds: int) -> None:
        for number in rounds:
            once.dataset(sessions[name], number)
            once.post(sessions[name], number, **sure(test, test.ids[number * 10 : number * 10 + 10]))

    play("ahead", 0, 1)
    play("again", 0, 1)
    play("behind", 0)
    play("scout", 0)
    assert once.feedback(sessions["scout"], "classification").text
    play("ahead", 2)
    play("again", 0, 1, 2)
    play("behind", 1, 2)
    play("scout", 1, 2)
    for session in sessions.values():
        once.complete(session)
    groups = Result([tmp_path / "once.sqlite"]).summary().groups
    assert {group.agent: group.scenario.loose for group in groups} == {
        "ahead": False, "scout": False, "again": True, "behind": True
    }  # fmt: skip


def test_more_scores_are_told_if_the_server_says_so_and_are_counted(data: Path, tmp_path: Path) -> None:
    client = Client(data, tmp_path / "more.sqlite", scorings=2)
    for count in (1, 2):
        session = client.open()
        client.play(session)
        assert scores(client, session).status_code == 200
        told = [text for key, text in facts(tmp_path / "more.sqlite").items() if key.startswith("caution")]
        assert [f"given {count} times" in text for text in told] == [True] * (count - 1)
    client.close()


def test_the_red_light_of_one_session_is_none_of_another(once: Client) -> None:
    dark = once.open()
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5, "test_ids": [TEST]}
    lit = {"configuration": asked | {"hints": ["red_light"]}}
    refused(once.ask("POST", "/session", json=lit), 400, "TestClosed")  # somebody plays without it
    once.play(dark)
    assert once.ask("POST", "/session", json=lit).status_code == 200
    refused(once.ask("POST", "/session", json={"configuration": asked}), 400, "TestClosed")


def test_the_originals_client_is_served_by_its_rules_and_marked(once: Client, tmp_path: Path) -> None:
    once.http.headers["user-agent"] = "python-requests/2.31.0"
    session = once.open()  # configuration and list as files, as it sends them
    assert "compat" in once.dispatcher.groups[session].facts
    test = known(once)
    assert once.dataset(session, 2).text.split() == test.ids[20:]
    for number in (2, 0, 1):
        ids = test.ids[number * 10 : number * 10 + 10]
        wide = "".join(f"{key},{','.join(['0.1'] * 9)}\n" for key in ids)  # more columns than classes
        assert once.post(session, number, detection=answers(test, ids)["detection"], classification=wide).text == "OK"
    once.complete(session)
    assert scores(once, session).status_code == 200
    told = [text for key, text in facts(tmp_path / "once.sqlite").items() if key.startswith("caution")]
    assert "by the original's rules" in told[0]
    del once.http.headers["user-agent"]
    asked = {"protocol": "OND", "novelty_detector_version": "x", "detection_threshold": 0.5, "test_ids": [TEST]}
    refused(once.ask("POST", "/session", json={"configuration": asked}), 400, "TestClosed")


def test_the_originals_client_learns_no_onset_for_a_session_under_way(once: Client) -> None:
    player, scout = once.open(), once.open(any_order=True)
    once.play(scout)
    refused(scores(once, scout), 400, "ScoresWithheld")
    once.play(player)
    assert scores(once, scout).status_code == 200


def facts(run: Path) -> dict[str, str]:
    with Run(run) as file:
        return dict(file.facts)


def test_a_strict_refusal_names_the_flag(once: Client) -> None:
    session, test = once.open(), known(once)
    wide = "".join(f"{key},{','.join(['0.1'] * 9)}\n" for key in test.ids[:10])
    answer = once.post(session, 0, classification=wide)
    refused(answer, 400, "InvalidResults")
    assert "--compat" in answer.json()["message"]


def test_the_status_of_an_unknown_session_is_empty(once: Client) -> None:
    once.open()
    answer = once.ask("GET", "/session/status", params={"session_id": "0f0e7a3c-0000-4000-8000-000000000001"})
    assert (answer.status_code, answer.content) == (200, b"")


def test_served_tests_are_sealed_unless_a_seed_is_given(tmp_path: Path) -> None:
    small = ["--trials", "1", "--set", "training=60", "--set", "before=1", "--set", "after=1", "--set", "unchanged=0"]
    found, said = [], []
    for number, words in enumerate([(), (), ("--seed", "3"), ("--seed", "3")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with announced(folder, *small, *words) as (line, _):
            said.append("sealed seed" in line)
        found.append({path.name for path in (folder / "served.data/OND/image_classification").glob("*.csv")})
    assert said == [True, True, False, False]
    assert found[0] & found[1] == {"test_ids.csv"}
    assert found[2] == found[3]


def test_numbers_by_the_originals_rules_stand_below_a_line(once: Client, tmp_path: Path) -> None:
    """Agents by our rules come first, though the name of the other comes earlier, and none is ranked with it."""
    for name, agent in (("httpx", "zoe"), ("python-requests/2.31.0", "abe")):
        once.http.headers["user-agent"] = name
        once.play(once.open(novelty_detector_version=agent))
    result = Result([tmp_path / "once.sqlite"])
    summary = result.summary()
    assert [(group.agent, group.scenario.loose) for group in summary.groups] == [("zoe", False), ("abe", True)]
    assert not summary.comparisons
    page = tmp_path / "page.html"
    result.page(page)
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(render_summary(summary, result.domains))
    for text in (console.export_text(), page.read_text().partition('<section class="scenario"')[2]):
        assert text.index("zoe") < text.index("Below this line") < text.rindex("abe")
    rows = [(row.agent, row.loose) for row in list_estimates(summary)]
    assert [*dict.fromkeys(rows)] == [("zoe", False), ("abe", True)]
