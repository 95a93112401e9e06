"""`openfield score ond`: numbers of the files of a test, and of folders of many tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from openfield.cli import run_command
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.metrics.openset import compat
from support.ond.protocol import OTHER, TEST, Client, answers, refused, write_test

SESSION = "0f0e7a3c-0000-4000-8000-000000000001"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results as a server keeps them (of a session that sees the change) and as precomputed agents have them."""
    folder = tmp_path / "results/OND/image_classification"
    folder.mkdir(parents=True)
    directory = DataDirectory(tmp_path / "data")
    for name in (TEST, OTHER):
        write_test(tmp_path / "data", name)
        test = directory.load("OND", "image_classification", name)[0]
        for kind, text in answers(test, test.ids).items():
            (folder / f"{SESSION}.{name}_{kind}.csv").write_text(text)
        guess = "".join(f"{key},0.1,0.9,0,0,0\n" for key in test.ids)  # always the first class
        (folder / f"{name}_base_classification.csv").write_text(guess)
    return tmp_path / "results"


def score(capsys: pytest.CaptureFixture[str], results: Path, *more: str) -> dict:
    words = [
        "score",
        "ond",
        "--results",
        str(results),
        "--data",
        str(results.parent / "data"),
        *more,
        "--format",
        "json",
    ]
    assert run_command(words) == 0
    return msgspec.json.decode(capsys.readouterr().out)


def test_a_folder_of_results_gives_the_programme_over_its_tests(results: Path, capsys) -> None:
    found = score(capsys, results, "--baseline", "base")
    assert set(found) == {SESSION}
    numbers = found[SESSION]
    assert set(numbers) == {"programme", TEST, OTHER}
    assert {name: value["mean"] for name, value in numbers["programme"].items()} == {
        "M1": 0,
        "M2": 1,
        "M2.1": 0,
        "M3": pytest.approx(1 / (4 / 15)),  # of the 15 samples before the onset the baseline names four
        "M5": pytest.approx(15 / 19),  # and four of the 15 after it
        "M6": pytest.approx(15 / 4),
    }
    known = numbers[TEST]["m_acc"]
    base = compat.m_nrp(known, {"pre_top1": 0.25, "pre_top3": 0.25})
    assert set(numbers[TEST]["m_nrp"]) == set(base)
    assert numbers[TEST]["m_nrp"]["M_nrp_post_top1"] == pytest.approx(100 / 0.25)


def test_performance_before_the_onset_is_none_after_it(results: Path, capsys) -> None:
    directory, folder = DataDirectory(results.parent / "data"), results / "OND/image_classification"
    for name in (TEST, OTHER):  # right on all samples before the onset, wrong on all from there on; the baseline right
        test = directory.load("OND", "image_classification", name)[0]
        right = answers(test, test.ids)["classification"].splitlines(keepends=True)
        wrong = [line.replace("0.05", "0.9") for line in right]
        (folder / f"{SESSION}.{name}_classification.csv").write_text("".join(right[:15] + wrong[15:]))
        (folder / f"{name}_base_classification.csv").write_text("".join(right))
    found = score(capsys, results, "--baseline", "base")[SESSION]
    assert {name: found["programme"][name]["mean"] for name in ("M3", "M5", "M6")} == {"M3": 0, "M5": 0, "M6": 0}


def test_what_is_not_whole_is_not_counted_as_wrong(results: Path, capsys) -> None:
    folder = results / "OND/image_classification"
    (folder / f"{SESSION}.{TEST}_classification.csv").unlink()
    lines = (folder / f"{SESSION}.{OTHER}_detection.csv").read_text().splitlines(keepends=True)
    (folder / f"{SESSION}.{OTHER}_detection.csv").write_text("".join(lines[1:]))
    found = score(capsys, results, "--baseline", "base")[SESSION]
    assert {name: found[name].keys() for name in (TEST, OTHER)} == {TEST: {"refused"}, OTHER: {"refused"}}
    assert found["programme"]["M2"]["n"] == 1  # of the other it is not known when the change was declared
    assert found["programme"]["M3"]["mean"] is None


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_text_tests_are_scored_from_files(tmp_path: Path, capsys, coding: str) -> None:
    place = tmp_path / "data/OND/nlt"
    place.mkdir(parents=True)
    sheet = "id,text\n" + "".join(f"t{n},|a text|,w0,w{n % 2},good,tea,{n // 2},0,{n}\n" for n in range(4))
    (place / "NL.1_single_df.csv").write_bytes(sheet.encode("utf-16"))
    (place / "NL.1_metadata.json").write_text('{"known_classes": 2, "round_size": 2}')
    (tmp_path / "results").mkdir()
    files = {"detection": "t0,0\nt1,0\nt2,0.9\nt3,0.9\n", "labels": "t0,1,w0\nt1,0,w1\nt2,1,w0\nt3,1,w0\n"}
    for kind, text in files.items():
        (tmp_path / f"results/NL.1_mine_{kind}.csv").write_bytes(text.encode(coding))
    folder = score(capsys, tmp_path / "results", "--area", "nlt")["mine"]
    assert folder["NL.1"]["m_acc"]["full_top1"] == 0.75
    assert folder["programme"]["M1"]["mean"] == 0
    words = ["score", "ond", "--data", str(tmp_path / "data"), "--area", "nlt", "--test", "NL.1", "--format", "json"]
    for flag, kind in (("--detection", "detection"), ("--classification", "labels")):
        words += [flag, str(tmp_path / f"results/NL.1_mine_{kind}.csv")]
    assert run_command(words) == 0
    assert msgspec.json.decode(capsys.readouterr().out) == folder["NL.1"]


def test_without_a_baseline_what_needs_one_is_not_defined(results: Path, capsys) -> None:
    found = score(capsys, results, "--redlight")
    assert set(found) == {SESSION, "base"}
    assert found[SESSION]["programme"]["M4"]["mean"] is None
    assert "detection results cover 0 of the 30" in found["base"][TEST]["refused"]
    assert run_command(["score", "ond", "--results", str(results), "--data", str(results.parent / "data")]) == 0
    assert "post_top1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--results", "nowhere", "--data", "data"], "no directory"),
        (["--results", "results"], "Give --results and --data"),
        (["--results", "results", "--data", "data", "--area", "nlt"], "holds no results"),
        (["--results", "results", "--data", "data", "--baseline", "bas"], "Did you mean 'base'"),
        (["--results", "alone", "--data", "data", "--baseline", "base"], "results of the baseline base only"),
    ],
)
def test_folders_that_cannot_be_scored_are_told(results: Path, capsys, monkeypatch, words, said: str) -> None:
    monkeypatch.chdir(results.parent)
    Path("alone").mkdir()
    shutil.copy(f"results/OND/image_classification/{TEST}_base_classification.csv", "alone")
    assert run_command(["score", "ond", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_damaged_file_is_named(results: Path, capsys) -> None:
    (results / f"OND/image_classification/{TEST}_base_classification.csv").write_bytes(b"\xff\xfe\x00")
    words = ["score", "ond", "--results", str(results), "--data", str(results.parent / "data")]
    assert run_command(words) == 2
    assert f"{TEST}_base_classification.csv" in capsys.readouterr().err


def test_clusters_are_scored_by_the_server_and_from_files(devmode: Client, data: Path, tmp_path: Path, capsys) -> None:
    client = devmode
    test = client.directory.load("OND", "image_classification", TEST)[0]
    (data / "OND").rename(data / "CONDDA")
    session = client.open(protocol="CONDDA")
    asked = {"session_id": session, "test_id": TEST, "more": "1"}
    novel = [key for key, new in zip(test.ids, test.novel, strict=True) if new]
    clusters = "".join(f"{key},{'0,0,0,0,1,0,0' if key in novel[::2] else '0,0,0,0,0,1,0'}\n" for key in test.ids)
    (tmp_path / "results").mkdir()
    for number in range(3):
        rows = answers(test, test.ids[number * 10 : number * 10 + 10])["detection"]
        client.post(session, number, detection=rows)
        with (tmp_path / f"results/{TEST}_mine_detection.csv").open("a") as file:
            file.write(rows)
    refused(client.ask("GET", "/session/evaluations", params=asked | {"devmode": "1"}), 400, "ResultsIncomplete")
    client.post(session, 0, characterization=clusters)
    client.complete(session)
    found = client.ask("GET", "/session/evaluations", params=asked).json()
    assert found["m_clusters"] == {"nmi": 0, "ari": 0, "purity": 1, "accuracy": 0.5}  # one class in two halves
    assert found["m_is_cdt_and_is_early"] == {"Is CDT": True, "Is Early": False}
    (tmp_path / f"results/{TEST}_mine_characterization.csv").write_text(clusters)
    assert score(capsys, tmp_path / "results", "--protocol", "CONDDA")["mine"][TEST] == found


def test_scores_from_files_of_one_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_test(tmp_path / "data")
    test = DataDirectory(tmp_path / "data").load("OND", "image_classification", TEST)[0]
    for kind, text in answers(test, test.ids).items():
        (tmp_path / f"{kind}.csv").write_text(text)
    files = ["--detection", str(tmp_path / "detection.csv"), "--classification", str(tmp_path / "classification.csv")]
    words = ["score", "ond", *files, "--data", str(tmp_path / "data"), "--test", TEST, "--format", "json"]
    assert run_command(words) == 0
    found = msgspec.json.decode(capsys.readouterr().out)
    assert found["m_acc"]["full_top1"] == 1
    assert found["openset"]["auroc"]["mean"] > 0.9
    assert "macro_f1_threshold_on_test" in found["openset"]
    assert run_command(["score", "ond"]) == 2
    assert "Arrays are scored without a domain" in capsys.readouterr().err
    assert run_command(["score", "ond", "--data", str(tmp_path / "data"), "--detector", "msp", *files]) == 2
    assert "leave out other folders, samples, detectors and --device" in capsys.readouterr().err


@pytest.mark.parametrize(("form", "mark"), [("text", "M2.1"), ("markdown", "| agent | test |"), ("latex", "toprule")])
def test_result_files_and_arrays_have_one_table_writer(results: Path, capsys, form: str, mark: str) -> None:
    words = ["score", "ond", "--results", str(results), "--data", str(results.parent / "data"), "--format", form]
    assert run_command([*words, "--baseline", "base"]) == 0
    out = capsys.readouterr().out
    assert mark in out
    assert out.count("M_nrp_post_top1" if form != "latex" else r"M\_nrp\_post\_top1") == 2
