"""Folders of OpenOOD's score files are read as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.ood.resampling import compare_detectors
from openfield.metrics.ood.score_files import score_folders


def write(folder: Path, shift: float = 1.0, **sizes: int) -> Path:
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, size in {"cifar10": 60, "cifar100": 40, "tin": 30, "svhn": 20, "mine": 10, **sizes}.items():
        known = name == "cifar10"
        label = rng.integers(0, 10, size) if known else np.full(size, -1)
        conf = rng.normal(shift if known else 0, 1, size)
        np.savez(folder / name, pred=rng.integers(0, 10, size), conf=conf, label=label)
    return folder


def test_near_and_far_sets_of_a_benchmark_are_known(tmp_path: Path) -> None:
    folders = {"msp": write(tmp_path / "run/scores").parent, "knn": write(tmp_path / "knn", 2.0)}
    table, scored = score_folders(folders)
    assert table.id == "cifar10"
    assert table.columns == ["mine", "cifar100", "tin", "near average", "svhn", "far average"]
    assert table.rows["knn"]["near average"]["auroc"] > table.rows["msp"]["near average"]["auroc"]
    assert table.rows["msp"]["tin"]["oscr"] is not None
    assert len(scored["msp"].known) == 60
    chosen, _ = score_folders(folders, "cifar10", ["svhn"], ["tin"])
    assert chosen.columns == ["svhn", "near average", "tin", "far average"]


def test_folders_that_cannot_be_scored_are_refused(tmp_path: Path) -> None:
    first = write(tmp_path / "a")
    with pytest.raises(UnknownName, match="Unknown set 'svnh'"):
        score_folders({"a": first}, None, ["svnh"])
    with pytest.raises(InvalidInput, match="the same samples; tin has 5 and 30"):
        score_folders({"a": first, "b": write(tmp_path / "b", tin=5)})
    with pytest.raises(InvalidInput, match="in-distribution set tin has samples with label -1"):
        score_folders({"a": first}, "tin")
    with pytest.raises(InvalidInput, match="is not a folder"):
        score_folders({"a": tmp_path / "gone"})
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/scores.pkl").touch()
    with pytest.raises(InvalidInput, match=r"convert scores\.pkl with numpy\.savez"):
        score_folders({"a": tmp_path / "empty"})
    np.savez(first / "other", pred=[1], conf=[0.5], label=[1])
    with pytest.raises(InvalidInput, match=r"Which set is in-distribution.*cifar10, other"):
        score_folders({"a": first})
    np.savez(first / "other", pred=[1])
    with pytest.raises(InvalidInput, match="a score file holds pred, conf and label"):
        score_folders({"a": first})


def test_seeds_of_a_detector_are_averaged(tmp_path: Path) -> None:
    first, second = write(tmp_path / "s0"), write(tmp_path / "s1", 2.0)
    apart, _ = score_folders({"s0": first, "s1": second})
    together, scored = score_folders({"msp": [first, second]})
    for column in together.columns:
        pair = [apart.rows[name][column]["auroc"] for name in ("s0", "s1")]
        assert together.rows["msp"][column]["auroc"] == pytest.approx(sum(pair) / 2)
    found = compare_detectors(together, scored, "msp", resamples=20)
    interval = found.intervals["msp"]["svhn"]["auroc"]
    assert interval.low <= interval.value <= interval.high
