"""`openfield detect`: detectors of change on streams from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from openfield.agents.detectors.stream import Stream, find_alarms
from openfield.cli import run_command
from openfield.files.database import Database
from openfield.metrics import score_alarms


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(4)
    values = rng.normal(0, 1, 900) + 3.0 * (np.arange(900) // 300 % 2)
    Path("stream.csv").write_text(
        "day,x\n" + "\n".join(f"2020-{row},{value!r}" for row, value in enumerate(values.tolist()))
    )
    Path("onsets.csv").write_text("onset\n300\n600\n")
    return ["stream.csv", "--truth", "onsets.csv", "--training", "100", "--max-delay", "50"]


def run(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert run_command(["detect", *words]) == status
    said = capsys.readouterr()
    return said.err if status else said.out


def test_scores_are_those_of_the_alarms(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for name in ("cusum", "mmd(window=20)", "deedee") for word in ("--detector", name)]
    found: Any = msgspec.json.decode(run(capsys, *files, *words, "--format", "json"))
    assert list(found) == ["cusum", "mmd(window=20)", "deedee"]
    for scores in found.values():
        alarms = scores.pop("alarms")
        assert scores == score_alarms(alarms, [300, 600], 900, 50)._asdict()
    assert found["cusum"]["episode_recall"] == 1.0


def test_alarms_of_river_are_its_own_on_a_stream(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    drift = pytest.importorskip("river.drift")
    found: Any = msgspec.json.decode(run(capsys, *files, "--detector", "river:ADWIN", "--format", "json"))
    own, alarms = drift.ADWIN(), []
    for row, line in enumerate(Path("stream.csv").read_text().splitlines()[1:]):
        own.update(float(line.partition(",")[2]))
        if own.drift_detected and row >= 100:
            alarms.append(row)
    assert found["river:ADWIN"]["alarms"] == alarms
    assert alarms


def test_parquet_is_read_as_csv_is(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    source = Path("stream.csv").read_text().splitlines()[1:]
    numbers = np.array([float(line.partition(",")[2]) for line in source])
    with Database(Path("stream.parquet")) as base:
        base.run("CREATE TABLE rows (x DOUBLE, day VARCHAR, more DECIMAL(9, 2)[])")
        base.insert("rows", {"x": numbers, "day": np.array(["-"] * 900), "more": np.array([None] * 900)})
        base.write_parquet("SELECT * FROM rows", Path("stream.parquet"))
    both = [
        run(capsys, name, *files[1:], "--detector", "cusum", "--format", "json")
        for name in (files[0], "stream.parquet")
    ]
    assert both[0] == both[1]


def test_a_table_fits_a_terminal(files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = run(capsys, *files, "--detector", "cusum").splitlines()
    assert said[0].split() == ["detector", "alarms", "precision", "recall", "found", "F1", "delay", "norm.", "false/1k"]
    assert said[-1] == "900 rows, 2 changes, max_delay 50 rows."
    assert max(map(len, said)) <= 80


def test_batches_and_features_are_what_a_detector_sees() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 3))
    rows[400:, 2] += 4.0
    stream = Stream(rows, 200, 10)
    assert find_alarms(stream, "threshold(watch=observation, features=2)")[0] == 409
    assert all(alarm % 10 == 9 for alarm in find_alarms(stream, "cusum(watch=observation)"))
    with pytest.raises(Exception, match=r"Rows have no feature 3\. They have places 0 to 2\."):
        find_alarms(stream, "mmd(features=3)")


@pytest.mark.parametrize("batch", [1, 7])
def test_transitions_are_those_between_rows(batch: int) -> None:
    rows = np.random.default_rng(0).normal(size=(400, 2))
    rows[250:] *= 6.0
    alarms = find_alarms(Stream(rows, 200, batch), "surprise")
    assert 250 <= alarms[0] < 300


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("stream.csv --truth onsets.csv --batch 10", "'mmd(window=50)' needs 100 batches of training, and has 20"),
        ("stream.csv --truth onsets.csv --detector ADWIN", "Did you mean 'river:ADWIN'?"),
        ("stream.csv --truth late.csv", "late.csv: the change from 900 to 900 is not within 900 rows."),
        ("stream.csv --truth early.csv", "the change at row 20 is within the 200 rows of training"),
        ("stream.csv --truth turned.csv", "turned.csv: changes are not in order."),
        ("stream.csv --truth words.csv", "words.csv has no column of numbers."),
        ("stream.csv --truth gap.csv", "gap.csv: column onset has no number in row 1; rows count from 0."),
        ("stream.csv --truth two.csv", "two.csv: no column onset. Its columns of numbers are a, b."),
        ("stream.csv --truth onsets.csv --column y", "Unknown column 'y'. Columns of stream.csv: x."),
        ("stream.csv --truth onsets.csv --training 900", "no batch is left after 900 rows of training"),
        ("stream.csv --truth onsets.csv --detector cusm", "Unknown detector 'cusm'. Did you mean 'cusum'"),
        ("stream.csv --truth onsets.csv --detector threshold(watch=action)", "watches actions, and a stream has none"),
        ("stream.csv --truth onsets.csv --batch 0", "--batch"),
        ("stream.txt --truth onsets.csv", "stream.txt: a table of numbers is a .csv or a .parquet file."),
        ("nothing.csv --truth onsets.csv", "nothing.csv"),
        ("bad.parquet --truth onsets.csv", "bad.parquet: it cannot be read as Parquet"),
    ],
)
def test_mistakes_are_one_line(words: str, told: str, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tables = {"late": "900", "early": "20", "turned": "600\n300", "words": "soon", "gap": "300\nsoon"}
    for name, body in tables.items():
        Path(f"{name}.csv").write_text(f"onset\n{body}\n")
    Path("two.csv").write_text("a,b\n300,400\n")
    Path("bad.parquet").write_bytes(b"PAR1 but not really PAR1")
    said = run(capsys, *words.split(), status=2)
    assert told in " ".join(said.split()), said
    assert "Traceback" not in said
