"""`openfield score`: tables for people, papers and programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from openfield.cli import run_command
from openfield.metrics.ood.benchmark import MEASURES
from openfield.report.export.paper_table import escape_latex


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    weight, middle = rng.normal(0, 1, (3, 6)), rng.normal(0, 2, (3, 6))
    np.savez("fc.npz", weight=weight, bias=np.zeros(3))
    for name, known in {"train": 1, "test": 1, "near": 0, "far": 0}.items():
        labels = rng.integers(0, 3, 60)
        features = middle[labels] * known + rng.normal(0, 1, (60, 6))
        np.savez(name, logits=features @ weight.T, features=features, labels=labels if known else -np.ones(60))
    return ["--train", "train.npz", "--id", "test.npz", "--near", "c_100=near.npz", "--far", "svhn=far.npz"]


def run(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert run_command(["score", *words]) == status
    said = capsys.readouterr()
    return said.out if not status else said.err


def test_json_has_every_measure_of_every_detector(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found: Any = msgspec.json.decode(run(capsys, *files, "--head", "fc.npz", "--format", "json", "--resamples", "20"))
    assert len(found["rows"]) == 11
    assert all(set(values) == set(MEASURES) for row in found["rows"].values() for values in row.values())
    assert found["groups"] == {"near": ["c_100"], "far": ["svhn"]}
    assert found["comparison"]["reference"] == "msp"
    assert set(found["comparison"]["differences"]) == set(found["rows"]) - {"msp"}
    assert found["accuracy"] > 0.5


def test_tables_name_what_is_missing(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, *files, "--resamples", "20", "--compare", "knn", "--measure", "oscr", "--measure", "auroc")
    assert "OSCR, higher is better" in said
    assert "FPR95 (" not in said
    assert "Not scored: ViM needs the last layer (--head)." in said
    assert "Differences from kNN" in said
    assert "near average" in said
    assert "Not scored: MSP" not in said


def test_tables_for_papers(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    one = ["--detector", "msp", "--detector", "knn(k=3)", "--digits", "6", "--resamples", "0", "--measure", "auroc"]
    said = run(capsys, *files, *one, "--format", "markdown")
    assert "| detector | c_100 | near average | svhn | far average |\n|---|---:|---:|---:|---:|\n| MSP | " in said
    assert "| kNN(k=3) | " in said
    assert "**0." in said
    paper = run(capsys, *files, *one, "--format", "latex")
    assert r"\toprule" in paper
    assert r"detector & c\_100 & near average & svhn & far average \\" in paper
    assert r"\textbf{0." in paper
    assert paper.splitlines()[-1].startswith("% ")
    assert escape_latex(r"a_b\{%~") == r"a\_b\textbackslash{}\{\%\textasciitilde{}"


def test_folders_of_score_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for name, shift in {"msp": 1, "knn": 2}.items():
        Path(name).mkdir()
        for each, label in {"cifar10": 3, "tin": -1}.items():
            conf = np.linspace(0, 1, 30) + shift * (label >= 0)
            np.savez(Path(name, each), pred=np.full(30, 3), conf=conf, label=np.full(30, label))
    said = run(capsys, "MSP=msp", "knn", "--format", "json", "--resamples", "20")
    found: Any = msgspec.json.decode(said)
    assert list(found["rows"]) == ["MSP", "knn"]
    assert found["rows"]["knn"]["near average"]["auroc"] == 1
    assert "leave out --train" in run(capsys, "msp", "--train", "x.npz", status=2)
    assert "Two folders have the same name" in run(capsys, "msp", "./msp", status=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Give the in-distribution samples with --id"),
        (["--id", "test.npz"], "at least one set of unknown ones"),
        (["--id", "test.pt"], "Convert it to arrays yourself"),
        (["--id", "gone.npz"], "cannot be read as arrays"),
        (["--id", "test.npz", "--far", "far.npz", "--detector", "mps"], "Did you mean 'msp'"),
        (["--id", "test.npz", "--far", "far.npz", "--measure", "auc"], "Unknown measure 'auc'"),
        (["--id", "test.npz", "--far", "far.npz", "--compare", "vim"], "Unknown detector 'vim'"),
    ],
)
def test_mistakes_are_one_line(files: list[str], capsys, words: list[str], message: str) -> None:
    said = run(capsys, *words, status=2)
    assert message in said
    assert said.count("\n") == 1
