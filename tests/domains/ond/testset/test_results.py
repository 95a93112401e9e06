"""How posted rows are read: columns, ids of every kind, what old clients post."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.testset.evaluation import _short
from openfield.domains.ond.testset.results import format_rows, read_numbers
from support.ond.protocol import OTHER, TEST, Client, answers, known, refused, write_test

MANY = 2_000
"""How often rows are repeated to make a table so large that it is read in the faster way."""


def rows(client: Client, number: int = 0, value: object = 0.1) -> list[str]:
    return [f"{key},{value}" for key in known(client).ids[number * 10 : number * 10 + 10]]


def test_one_bad_part_refuses_the_whole_post(client: Client) -> None:
    session = client.open()
    good = answers(known(client), known(client).ids[:10])
    refused(client.post(session, 0, detection=good["detection"], classification="x,1"), 400, "InvalidResults")
    assert client.post(session, 0, **good).text == "OK"


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


def test_ids_with_commas_bars_and_unicode_are_samples_like_any_other(client: Client, data: Path) -> None:
    odd = ["a,b.png", "ü|ñ.png", "雪.png", "x" * 4096]
    place = data / "OND/image_classification"
    sheet = "id,novel,class\n" + "".join(f"|{key.replace('|', '||')}|,0,1\n" for key in odd)
    (place / "OND.odd_single_df.csv").write_text(sheet)
    (place / "OND.odd_metadata.json").write_text('{"known_classes": 1, "round_size": 9, "protocol": "OND"}')
    session = client.open("OND.odd")
    posted = "".join(f"|{key.replace('|', '||')}|,0.25\n" for key in odd)
    assert client.post(session, 0, "OND.odd", detection=posted).text == "OK"


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


def test_separators_among_digits_are_no_numbers(client: Client) -> None:
    refused(client.post(client.open(), 0, detection="\n".join(rows(client, 0, "0_1"))), 400, "InvalidResults")


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


@settings(deadline=None)
@given(st.integers(1, 15), st.integers(1, 5), st.data())
def test_numbers_are_read_to_the_last_bit(decimals: int, columns: int, data: st.DataObject) -> None:
    values = st.floats(0, 1, allow_nan=False).map(lambda value: f"{value:.{decimals}f}")
    table = data.draw(st.lists(st.lists(values, min_size=columns, max_size=columns), min_size=1, max_size=6))
    rests, expected = [",".join(row) for row in table], [[float(value) for value in row] for row in table]
    assert read_numbers([], rests, "classification")[0].tolist() == expected
    ids = [f"s{number}" for number in range(len(rests) * MANY)]
    numbers, packed = read_numbers(ids, rests * MANY, "classification")
    assert (numbers == np.array(expected * MANY)).all()
    if packed is not None:  # the record keeps what was posted to the last digit
        assert format_rows(packed) == "".join(f"{key},{row}\n" for key, row in zip(ids, rests * MANY, strict=True))


def test_numbers_may_be_written_in_many_ways() -> None:
    found, _ = read_numbers([], ["0,1,0.25", "1e-3,.5,0.1", "1,0,0"], "classification")
    assert found.tolist() == [[0, 1, 0.25], [0.001, 0.5, 0.1], [1, 0, 0]]


@pytest.mark.parametrize(
    "rests",
    [
        ["0.1,0.2,0.3", "0.1,0.2"],
        ["0.1,0.2", "0.1", "0.1,0.2,0.3"],  # as many in all as there should be
        ["0.1,0.2", "0.1;0.2"],
        ["0.1,0.2", "0.1,0:2"],
        ["0.1,0.2", "0.1,0/2"],
        ["0.1,0.2", "0.1,-.2"],
        ["0.1,0.2", "0.1,é.2"],
        ["0.1,0.2", "0.1,NaN"],
        ["0.1,0.2", "0.1,1.1"],
        ["0.1],[0.2", "0.1,0.2"],
        ["0.1,0.2", "0.1],[0.2"],
        ["0.1,[0.2]", "0.1,0.2"],
        ["0.1,1_0", "0.1,0.2"],
        ["0.1,١", "0.1,0.2"],  # digits of another script
    ],
)
def test_tables_that_are_not_all_numbers_from_0_to_1_are_refused(rests: list[str]) -> None:
    for times in (1, MANY):
        with pytest.raises(Refusal):
            read_numbers([], rests * times, "classification")


def test_rounds_are_described_with_nine_digits_and_nothing_for_what_was_not_said() -> None:
    assert _short(np.array([0.175, 1 / 3, 1.0])) == [0.175, 0.333333333, 1.0]
    assert _short(np.array([np.nan, 0.1])) == [None, 0.1]


def test_a_large_post_is_recorded_packed_and_read_again_alike(data: Path, tmp_path: Path) -> None:
    write_test(data, "OND.wide", known_classes=500)
    client = Client(data, tmp_path / "wide.sqlite")
    session = client.open("OND.wide")
    ids, rng, rows = (
        client.directory.load("OND", "image_classification", "OND.wide")[0].ids,
        np.random.default_rng(0),
        "",
    )
    for number in range(3):
        batch = ids[number * 10 : number * 10 + 10]
        detection = "".join(f"{key},0.5\n" for key in batch)
        table = "".join(f"{key},{','.join(f'{value:.8f}' for value in rng.random(501))}\n" for key in batch)
        assert client.post(session, number, "OND.wide", detection=detection, classification=table).text == "OK"
        rows += table
    client.complete(session, "OND.wide")
    asked = {"session_id": session, "test_id": "OND.wide"}
    scores = client.ask("GET", "/session/evaluations", params=asked).json()
    with zipfile.ZipFile(io.BytesIO(client.ask("GET", "/session/zip", params=asked).content)) as file:
        assert file.read(f"OND/image_classification/{session}.OND.wide_classification.csv").decode() == rows
    client.close()
    again = Client(data, tmp_path / "wide.sqlite")
    assert again.ask("GET", "/session/evaluations", params=asked).json() == scores
    again.close()
