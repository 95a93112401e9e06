"""The other kinds of tests: activity recognition, transcription, text; their formats and what feedback they sell."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from openfield.cli import run_command
from openfield.domains.ond.testset.feedback import edit_distance
from openfield.metrics.openset import compat
from support.ond.protocol import Client, refused

NAMES = {"activity_recognition": "AR.1", "transcripts": "DT.1", "nlt": "NL.1"}
HEADER = "id,a,b,c,d,e,f,g,h,i,j\n"


def rows(area: str) -> list[str]:
    if area == "activity_recognition":
        return [f"v{n}.mp4,{int(n > 3)},{int(n > 3)},{n % 3},0,0,k1,k2,k3,k4,k5" for n in range(8)]
    if area == "transcripts":
        return [f"p{n}.png,|the cat, sat {n}|,{int(n > 3)},0,{int(n > 3)},{n % 6},1,2,3,4,0" for n in range(8)]
    return [f"t{n},|a, text {n}|,w{n % 2},w{n % 3},good,tea,{int(n > 3)},{int(n > 3)},{n}" for n in range(8)]


@pytest.fixture(params=NAMES)
def area(request: pytest.FixtureRequest, data: Path) -> str:
    place = data / "OND" / request.param
    place.mkdir(parents=True)
    coding = "utf-16" if request.param == "nlt" else "utf-8"
    text = HEADER + "".join(f"{row}\n" for row in rows(request.param))
    (place / f"{NAMES[request.param]}_single_df.csv").write_bytes(text.encode(coding))
    facts = {"protocol": "OND", "known_classes": 3, "round_size": 4, "feedback_max_ids": 2}
    (place / f"{NAMES[request.param]}_metadata.json").write_bytes(msgspec.json.encode(facts))
    return str(request.param)


def ids(area: str, number: int) -> list[str]:
    return [row.split(",")[0] for row in rows(area)][number * 4 : number * 4 + 4]


def test_a_round_is_posted_and_feedback_bought(client: Client, area: str) -> None:
    name = NAMES[area]
    session = client.open(name, domain=area, any_order=True)
    body = client.dataset(session, 1, name).content
    if area == "nlt":
        assert body[:2] in (b"\xff\xfe", b"\xfe\xff")
        assert body.decode("utf-16").splitlines()[0] == "t4,w0,|a, text 4|,good,tea"
    else:
        assert body.decode().split() == ids(area, 1)
    said = {"detection": "".join(f"{key},0.9,0.1\n" for key in ids(area, 1))}
    if area == "nlt":
        said["labels"] = "".join(f"{key},1,w0\n" for key in ids(area, 1))
    else:
        said["classification"] = "".join(f"{key},1,0,0,0\n" for key in ids(area, 1))
    if area == "transcripts":
        said["transcription"] = "".join(f"{key},|the cat, sat|\n" for key in ids(area, 1))
    assert client.post(session, 1, name, **said).text == "OK"

    def bought(kind: str) -> list[str]:
        return client.feedback(session, kind, name).text.splitlines()

    if area == "activity_recognition":  # samples 4..7 have classes 1, 2, 0, 1 and are all novel
        assert bought("labels") == ["v4.mp4,1", "v5.mp4,2"]
        assert bought("classification") == ["v4.mp4,k1,k2,k3,k4,k5", "v5.mp4,k1,k2,k3,k4,k5"]
        assert bought("score") == ["accuracy,0.25"]
        assert bought("detection") == ["v4.mp4,1", "v5.mp4,1"]
        refused(client.feedback(session, "labels", name), 400, "FeedbackBudgetExceeded")
    elif area == "transcripts":
        assert bought("classification") == ["p4.png,3", "p5.png,3"]
        assert bought("transcription") == ["p4.png,3", "p5.png,3"]  # a blank counts as a piece of its own
        assert bought("score") == ["accuracy,0.25"]
    else:  # real writers of 4..7: w1, w2, w0, w1; reported: w0, w1, w0, w1
        assert bought("score") == ["current_score,3"]
        assert bought("labels") == ["t4,w1", "t5,w2", "t7,w1"]
        assert bought("score") == ["current_score,0"]
        assert bought("detection") == ["t4,1", "t5,1"]
    assert client.complete(session, name).text == "OK"


def test_wrong_tuples_and_undeclared_novelty(client: Client, area: str) -> None:
    name = NAMES[area]
    session = client.open(name, domain=area)
    low = "".join(f"{key},0.1\n" for key in ids(area, 0))
    assert client.post(session, 0, name, detection=low).text == "OK"
    kind = {"activity_recognition": "labels", "transcripts": "transcription", "nlt": "score"}[area]
    assert client.feedback(session, kind, name).text == ""
    high = "".join(f"{key},0.9\n" for key in ids(area, 1))
    assert client.post(session, 1, name, detection=high).text == "OK"
    if area == "nlt":
        client.post(session, 1, name, labels="".join(f"{key},maybe,w1\n" for key in ids(area, 1)))
        refused(client.feedback(session, "score", name), 400, "InvalidTuple")


def test_distances_forget_signs_and_spaces() -> None:
    assert edit_distance('a  "cat"; sat', "a cat sat") == 0
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "ab") == 2


def said_of(area: str, number: int, right: bool) -> dict[str, str]:
    """Results of a round: classes as they are, or always the first; the change declared with the second round."""
    keys, belief = ids(area, number), 0.9 if number else 0.1
    said = {"detection": "".join(f"{key},{belief},0.5\n" for key in keys)}
    if area == "nlt":
        said["labels"] = "".join(f"{key},1,w{int(key[1:]) % 3 if right else 0}\n" for key in keys)
        return said
    rows = []
    for key in keys:
        scores = ["0.1"] * 7
        scores[LABELS[area](int(key[1])) if right else 0] = "0.4"
        rows.append(f"{key},{','.join(scores)}\n")
    return said | {"classification": "".join(rows)}


@pytest.mark.parametrize("area", ["activity_recognition", "transcripts"], indirect=True)
def test_novel_classes_beyond_the_columns_are_never_hit_and_hinder_nothing(
    client: Client, area: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    column, name = {"activity_recognition": 3, "transcripts": 5}[area], "far"
    fields = [row.replace(", ", " ").split(",") for row in rows(area)]
    for at, row in enumerate(fields):
        row[column] = str(at % 3 if at < 4 else at + 3)  # known are 0 to 2, novel 7 to 10
    place = data / "OND" / area
    (place / f"{name}_single_df.csv").write_text(HEADER + "".join(",".join(row) + "\n" for row in fields))
    (place / f"{name}_metadata.json").write_bytes((place / f"{NAMES[area]}_metadata.json").read_bytes())
    session, posted = client.open(name, domain=area), {"detection": "", "classification": ""}
    for number in range(2):
        beliefs = "".join(f"{key},{0.9 if number else 0.1}\n" for key in ids(area, number))
        named = "".join(f"{key},0.4,0.3,0.2,0.1\n" for key in ids(area, number))
        assert client.post(session, number, name, detection=beliefs, classification=named).text == "OK"
        posted = {"detection": posted["detection"] + beliefs, "classification": posted["classification"] + named}
    client.complete(session, name)
    found = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": name}).json()
    assert len(found) == 8
    assert (found["m_acc"]["full_top1"], found["m_acc"]["full_top3"], found["m_acc"]["post_top3"]) == (0.25, 0.5, 0)
    assert found["m_num"]["0.5"] == 1
    assert found["m_ndp"]["accuracy_0.5"] == 1
    for kind, text in posted.items():
        (tmp_path / f"{kind}.csv").write_text(text)
    words = ["score", "ond", "--data", str(data), "--area", area, "--test", name, "--format", "json"]
    words += [word for kind in posted for word in (f"--{kind}", str(tmp_path / f"{kind}.csv"))]
    assert run_command(words) == 0
    told = msgspec.json.decode(capsys.readouterr().out)
    assert told["m_acc"] == found["m_acc"]
    assert told["openset"]["closed_accuracy"]["mean"] == 0.5  # of the four known, two are of the first class


LABELS = {"activity_recognition": lambda n: n % 3, "transcripts": lambda n: n % 6}


@pytest.mark.parametrize("right", [True, False], ids=["right", "first class"])
def test_a_whole_test_of_every_area_is_scored(client: Client, area: str, data: Path, right: bool) -> None:
    facts = data / "OND" / area / f"{NAMES[area]}_metadata.json"
    facts.write_text('{"known_classes": 6, "round_size": 4}')  # a column for every writer
    session, name = client.open(NAMES[area], domain=area), NAMES[area]
    for number in range(2):
        assert client.post(session, number, name, **said_of(area, number, right)).text == "OK"
    assert client.complete(session, name).text == "OK"
    asked = {"session_id": session, "test_id": name, "more": "1"}
    found = client.ask("GET", "/session/evaluations", params=asked).json()
    labels = [n % 3 for n in range(8)] if area != "transcripts" else [n % 6 for n in range(8)]
    share = sum(label == 0 for label in labels) / 8
    assert found["m_acc"]["full_top1"] == (1 if right else round(share, 5))
    assert found["m_num_stats"]["GT_indx"] == found["m_num_stats"]["P_indx_0.5"] == 5
    assert found["m_is_cdt_and_is_early"] == {"Is CDT": True, "Is Early": False}
    novel = [0] * 4 + [1] * 4
    assert found["m_ndp"] == compat.m_ndp([0.1] * 4 + [0.9] * 4, novel)
    assert found["m_acc_round_wise"]["top1_accuracy_round_1"] == (
        1 if right else round(sum(label == 0 for label in labels[4:]) / 4, 5)
    )
    if area != "nlt":
        p = np.full((8, 7), 0.1)
        p[np.arange(8), labels if right else 0] = 0.4
        wanted = compat.m_acc(novel, p, labels)
        assert found["m_acc"] == {key: None if np.isnan(value) else value for key, value in wanted.items()}
        assert found["m_acc_failed"] == compat.m_ndp_failed_reaction([0.1] * 4 + [0.9] * 4, novel, p, labels)


def test_told_writers_cannot_be_posted_as_own_answers(client: Client, data: Path) -> None:
    place = data / "OND/nlt"
    place.mkdir(parents=True)
    text = HEADER + "".join(f"{row}\n" for row in rows("nlt"))
    (place / "NL.1_single_df.csv").write_bytes(text.encode("utf-16"))
    (place / "NL.1_metadata.json").write_text('{"known_classes": 3, "round_size": 4, "feedback_max_ids": 2}')
    session, told = client.open("NL.1", domain="nlt"), dict[str, str]()
    for number in range(2):
        beliefs = "".join(f"{key},0.9\n" for key in ids("nlt", number))
        junk = "".join(f"{key},1,zzz\n" for key in ids("nlt", number))
        assert client.post(session, number, "NL.1", detection=beliefs, labels=junk).text == "OK"
        told |= dict(line.split(",") for line in client.feedback(session, "labels", "NL.1").text.split())
    assert len(told) == 8
    scores = [client.feedback(session, "score", "NL.1").text]
    client.dataset(session, 0, "NL.1")
    for number in range(2):
        beliefs = "".join(f"{key},0.9\n" for key in ids("nlt", number))
        bought = "".join(f"{key},1,{told[key]}\n" for key in ids("nlt", number))
        assert client.post(session, number, "NL.1", detection=beliefs, labels=bought).text == "OK"
        scores.append(client.feedback(session, "score", "NL.1").text)
    assert client.complete(session, "NL.1").text == "OK"
    found = client.ask("GET", "/session/evaluations", params={"session_id": session, "test_id": "NL.1"}).json()
    assert found["m_acc"]["full_top1"] == 0
    assert [float(line.partition(",")[2]) for line in scores] == [-6.0, -4.0, -4.0]  # same or other, and no writer
