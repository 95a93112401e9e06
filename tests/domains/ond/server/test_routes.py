"""Every request and every refusal of the protocol."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from openfield.domains.ond.server.archive import finished_tests
from openfield.serving.sessions import Session
from support.ond.protocol import OTHER, REQUESTS, TEST, Client, answers, known, refused, write_test

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def test_lists_of_tests_come_as_published_or_as_found(client: Client, data: Path) -> None:
    asked = {"test_requirements": '{"protocol":"OND","domain":"image_classification","detector_seed":"5"}'}
    answer = client.ask("GET", "/test/ids", files={key: (None, value) for key, value in asked.items()})
    assert answer.text.split() == [TEST, OTHER]
    assert "OND_image_classification_1234.csv" in answer.headers["content-disposition"]
    (data / "OND/image_classification/test_ids.csv").write_text("b\na\n")
    assert client.ask("GET", "/test/ids", params={"protocol": "OND"}).text == "b\na\n"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({}, "MissingRequestValue"),
        ({"test_requirements": '{"protocol":"OND"}'}, "MissingParamsError"),
        ({"protocol": "../data"}, "BadDomain"),
        ({"protocol": "OND", "domain": "../../OND"}, "BadDomain"),
        ({"test_requirements": "{"}, "BadRequest"),
    ],
)
def test_lists_of_tests_are_refused(client: Client, asked: dict[str, str], reason: str) -> None:
    refused(client.ask("GET", "/test/ids", params=asked), 400, reason)


def test_a_session_is_opened_in_every_way_parameters_may_come(client: Client) -> None:
    asked = {"protocol": "OND", "novelty_detector_version": "1", "detection_threshold": "0.5", "test_ids": [TEST]}
    text = msgspec.json.encode(asked).decode()
    ways = [{"json": {"configuration": asked}}, {"json": {"configuration": text}}, {"data": {"configuration": text}}]
    ways += [{"params": {"configuration": text}}, {"files": {"configuration": ("c.json", text)}}]
    ids = {client.ask("POST", "/session", **way).json()["session_id"] for way in ways}
    assert len(ids) == len(ways)


def test_lists_with_carriage_returns_quotes_and_commas_are_read(client: Client) -> None:
    session = client.open(f' "{TEST}",\r', f"'{OTHER}'\r", "")
    assert client.dataset(session, 0, OTHER).status_code == 200


@pytest.mark.parametrize(
    ("changes", "tests", "status", "reason"),
    [
        ({"protocol": None}, TEST, 400, "MissingParamsError"),
        ({"detection_threshold": None}, TEST, 400, "MissingParamsError"),
        ({"detection_threshold": "x"}, TEST, 400, "BadRequest"),
        ({"domain": "cooking"}, TEST, 400, "BadDomain"),
        ({"protocol": "../OND"}, TEST, 400, "BadDomain"),
        ({"hints": "red_light"}, TEST, 400, "BadRequest"),
        ({}, "\n\n", 400, "EmptyFile"),
        ({}, "OND.9.9.9", 500, "test_id_invalid"),
        ({}, f"../image_classification/{TEST}", 500, "test_id_invalid"),
    ],
)
def test_sessions_are_refused(client: Client, changes, tests: str, status: int, reason: str) -> None:
    asked = {"protocol": "OND", "novelty_detector_version": "1", "detection_threshold": 0.5} | changes
    asked = {key: value for key, value in asked.items() if value is not None}
    files = {"configuration": msgspec.json.encode(asked), "test_ids": tests.encode()}
    refused(client.ask("POST", "/session", files=files), status, reason)
    assert not client.dispatcher.groups


def test_malformed_json_and_unknown_addresses_are_answered_with_error_objects(client: Client) -> None:
    refused(client.ask("POST", "/session", files={"configuration": b"{", "test_ids": b"x"}), 400, "BadRequest")
    refused(client.ask("GET", "/nowhere"), 404, "NotFound")
    refused(client.ask("PUT", "/session"), 405, "MethodNotAllowed")
    headers = {"content-type": "multipart/form-data; boundary=x"}
    refused(client.ask("POST", "/session", content=b"junk", headers=headers), 400, "BadRequest")


def test_metadata_shows_only_what_clients_may_know(client: Client) -> None:
    asked = {"session_id": client.open(), "test_id": TEST}
    shown = client.ask("GET", "/test/metadata", params=asked).json()
    assert shown == {"protocol": "OND", "known_classes": 4, "round_size": 10, "feedback_max_ids": 3}
    given = {"session_id": client.open(hints=("red_light",)), "test_id": TEST}
    assert client.ask("GET", "/test/metadata", params=given).json()["red_light"] == f"{TEST}-15.png"


def test_rounds_end_with_204_and_may_be_asked_in_any_order_by_the_originals_rules(client: Client) -> None:
    session = client.open(any_order=True)
    assert client.dataset(session, 2).text.splitlines() == known(client).ids[20:]
    assert client.dataset(session, "1").text.endswith("\n")
    past = client.dataset(session, 3)
    assert (past.status_code, past.content) == (204, b"")


def test_a_test_without_rounds_or_metadata_says_so(client: Client, data: Path) -> None:
    write_test(data, "OND.1.2.3", round_size=None)
    write_test(data, "OND.1.2.4")
    (data / "OND/image_classification/OND.1.2.4_metadata.json").unlink()
    session = client.open("OND.1.2.3", "OND.1.2.4")  # both are new: no restart was needed
    refused(client.dataset(session, 0, "OND.1.2.3"), 400, "no_defined_rounds")
    asked = {"session_id": session, "test_id": "OND.1.2.4"}
    refused(client.ask("GET", "/test/metadata", params=asked), 500, "metadata_not_found")


@pytest.mark.parametrize(("method", "path", "extra"), REQUESTS)
def test_ended_sessions_are_refused_everywhere(client: Client, method, path: str, extra) -> None:
    session = client.open()
    assert client.ask("DELETE", "/session", params={"session_id": session}).text == "OK"
    if path != "/session/zip":
        asked = {"session_id": session, "test_id": TEST} | extra
        refused(client.ask(method, path, params=asked), 400, "SessionEnded")
    refused(client.ask(method, path), 400, "MissingParamsError")
    assert set(client.dispatcher.groups) == {session}


def test_tests_outside_the_session_are_refused(client: Client) -> None:
    session = client.open(TEST)
    refused(client.dataset(session, 0, OTHER), 400, "test_id_invalid")
    refused(client.post(session, 0, OTHER, detection="a,0.1"), 400, "test_id_invalid")
    refused(client.complete(session, f"../{TEST}"), 500, "test_id_invalid")
    refused(client.dataset(session, 0, "OND.nowhere"), 500, "test_id_invalid")


def test_a_whole_test_is_scored_with_the_eight_families(client: Client) -> None:
    session = client.open()
    refused(
        client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST}), 400, "TestInProcess"
    )
    client.play(session)
    answer = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST})
    found = answer.json()
    assert list(found) == sorted(found)
    families = "m_acc m_acc_failed m_is_cdt_and_is_early m_ndp m_ndp_post m_ndp_pre m_num m_num_stats"
    assert set(found) == set(families.split())
    assert found["m_acc"]["full_top1"] == 1
    assert found["m_num_stats"]["GT_indx"] == found["m_num_stats"]["P_indx_0.5"] == 16
    assert found["m_is_cdt_and_is_early"] == {"Is CDT": True, "Is Early": False}
    assert "NaN" not in answer.text
    refused(client.dataset(session, 0), 400, "TestCompleted")
    refused(client.post(session, 0, detection="a,0.1"), 400, "TestCompleted")
    refused(client.complete(session), 400, "TestCompleted")
    assert client.ask("GET", "/session/latest", params={"session_id": session}).json()["finished_tests"] == [TEST]
    client.ask("DELETE", "/session", params={"session_id": session})
    again = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": TEST})
    assert again.json() == found


def test_incomplete_results_are_not_scored(client: Client) -> None:
    session = client.open()
    client.complete(session)
    asked = {"session_id": session, "test_id": TEST}
    refused(client.ask("GET", "/session/evaluations", params=asked), 400, "ResultsIncomplete")
    refused(client.ask("GET", "/session/evaluations", params=asked | {"session_id": UNKNOWN}), 400, "TestInProcess")


def test_devmode_scores_a_test_in_process_and_marks_the_session(devmode: Client) -> None:
    client = devmode
    session, test = client.open(), known(client)
    for number in range(3):
        ids = test.ids[number * 10 : number * 10 + 10]
        assert client.post(session, number, **answers(test, ids[::-1])).text == "OK"
    asked = {"session_id": session, "test_id": TEST, "devmode": "false"}
    assert client.ask("GET", "/session/evaluations", params=asked).json()["m_acc"]["full_top1"] == 1
    assert client.dispatcher.groups[session].facts["devmode"] is True


def test_status_lists_sessions_and_their_tests(client: Client) -> None:
    first, second = client.open(novelty_detector_version="b"), client.open(novelty_detector_version="a")
    lines = client.ask("GET", "/session/status").text.splitlines()
    assert [line.split(",")[:2] for line in lines] == [[second, "a"], [first, "b"]]
    assert lines[0].endswith(",Incomplete")
    client.play(first)
    with_tests = client.ask("GET", "/session/status", params={"include_tests": "1"}).text.splitlines()
    assert [line.split(",")[2] for line in with_tests] == [" NA", TEST]
    client.ask("DELETE", "/session", params={"session_id": first})
    late = client.ask("GET", "/session/status", params={"after": "2020-01-01 00:00:00"}).text
    assert late.startswith(first)
    assert client.ask("GET", "/session/status", params={"after": "2120-01-01"}).text == "\n"  # as the original's
    refused(client.ask("GET", "/session/status", params={"after": "soon"}), 400, "BadRequest")


def test_the_server_says_which_metadata_hints_may_change(data: Path, tmp_path: Path) -> None:
    client = Client(data, tmp_path / "t.sqlite", hint_limits={"round_size": 12})
    hinted, plain = client.open(hints=("round_size=20", "feedback_max_ids=4")), client.open()
    metadata = client.ask("GET", "/test/metadata", params={"session_id": hinted, "test_id": TEST}).json()
    assert (metadata["round_size"], metadata["feedback_max_ids"]) == (12, 3)
    shown = client.open(hints=("round_size=20",), any_order=True)
    assert [len(client.dataset(shown, number).text.split()) for number in range(4)] == [12, 12, 6, 0]
    assert len(client.dataset(plain, 0).text.split()) == 10
    client.play(plain)
    client.close()


def test_a_token_keeps_strangers_out(data: Path, tmp_path: Path) -> None:
    client = Client(data, tmp_path / "t.sqlite", token="secret")
    refused(client.ask("GET", "/session/status"), 400, "BadRequest")
    assert client.ask("GET", "/session/status", headers={"Authorization": "Bearer secret"}).status_code == 200
    assert client.ask("GET", "/secret/session/status").status_code == 200  # all an existing client can show
    refused(client.ask("GET", "/secrets/session/status"), 400, "BadRequest")
    client.close()


def test_the_server_describes_itself(client: Client) -> None:
    paths = client.ask("GET", "/openapi.json").json()["paths"]
    assert sum(len(methods) for methods in paths.values()) == 14  # the thirteen, and feedback by POST


def test_the_description_comes_from_the_handlers(client: Client) -> None:
    paths = client.ask("GET", "/openapi.json").json()["paths"]
    asked = {one["name"]: one for one in paths["/session/dataset"]["get"]["parameters"]}
    assert [name for name, one in asked.items() if one["required"]] == ["session_id", "test_id", "round_id"]
    assert asked["round_id"]["schema"] == {"type": "integer", "minimum": 0, "maximum": 10**9}
    parts = paths["/session/results"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert parts["required"] == ["test_identification"]
    assert "detection_file" in parts["properties"]
    assert all(operation["summary"].endswith(".") for one in paths.values() for operation in one.values())


def test_the_page_of_the_description_needs_nothing_from_elsewhere(data: Path, tmp_path: Path) -> None:
    client = Client(data, tmp_path / "t.sqlite", token="secret")
    page = client.ask("GET", "/secret/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert 'fetch("openapi.json"' in page.text
    assert "//" not in page.text
    refused(client.ask("GET", "/docs"), 400, "BadRequest")
    assert client.ask("GET", "/docs", params={"token": "secret"}).status_code == 200
    client.close()


def test_names_of_parts_are_found_wherever_they_stand(client: Client) -> None:
    session = client.open()
    asked = {"session_id": session, "test_id": TEST, "round_id": 0, "result_types": "detection"}
    rows = "".join(f"{key},0.1\n" for key in known(client).ids[:10])
    body = (
        "--x\r\nContent-Disposition: form-data; name=test_identification\r\n\r\n"
        f"{msgspec.json.encode(asked).decode()}\r\n"
        '--x\r\nContent-Disposition: form-data; filename="a; name=b.csv"; name="detection_file"\r\n\r\n'
        f"{rows}\r\n--x--\r\n"
    )
    headers = {"content-type": "multipart/form-data; boundary=x"}
    assert client.ask("POST", "/session/results", content=body.encode(), headers=headers).text == "OK"


def test_a_detector_cannot_write_lines_about_others(client: Client) -> None:
    session = client.open(novelty_detector_version="a,b\nc")
    (line,) = client.ask("GET", "/session/status").text.splitlines()
    assert line.split(",")[:2] == [session, "a_b_c"]


def test_a_legacy_session_without_threshold_is_opened_in_compat_only(client: Client, compat: Client) -> None:
    asked = {"protocol": "OND", "novelty_detector_version": "1"}
    files = {"configuration": msgspec.json.encode(asked), "test_ids": TEST.encode()}
    refused(client.ask("POST", "/session", files=files), 400, "MissingParamsError")
    assert compat.ask("POST", "/session", files=files).status_code == 200


@pytest.mark.parametrize("version", ["v" * 5000, "a\nb", "\x1b[2J"])
def test_a_detector_is_called_by_a_name_that_can_be_read(client: Client, version: str) -> None:
    name = client.dispatcher.groups[client.open(novelty_detector_version=version)].agent
    assert name.isprintable()
    assert len(name) <= 200


@pytest.mark.parametrize("wrong", [[], ["x"], {}, {"a": 1}, 5, 1.5, True], ids=repr)
def test_parameters_that_are_no_text_are_refused(client: Client, wrong: object) -> None:
    session = client.open()
    good = {"session_id": session, "test_id": TEST, "round_id": 0, "feedback_type": "score"}
    wanted = {
        "GET /test/metadata": ("session_id", "test_id"),
        "GET /session/dataset": ("session_id", "test_id"),
        "GET /session/feedback": ("session_id", "test_id", "feedback_type"),
        "POST /session/feedback": ("session_id", "test_id", "feedback_type"),
        "GET /session/evaluations": ("session_id", "test_id"),
        "GET /session/latest": ("session_id",),
        "GET /session/zip": ("session_id",),
        "DELETE /test": ("session_id", "test_id"),
        "DELETE /session": ("session_id",),
    }
    for request, names in wanted.items():
        method, path = request.split()
        for name in names:
            reason = "MissingParamsError" if wrong in ("", None) else "BadRequest"
            refused(client.ask(method, path, json=good | {name: wrong}), 400, reason)
    assert client.dataset(session, 0).status_code == 200


def test_tests_are_finished_in_the_order_of_their_completion_whatever_the_clock_says() -> None:
    facts = {"test b": {"completed": "2026-01-02"}, "test a": {"completed": "2026-01-01"}}
    assert list(finished_tests(Session("s", "x", 0, {}, facts))) == ["b", "a"]
