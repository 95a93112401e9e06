"""What the names of built tests and samples tell: nothing; and which data directory belongs to which trials."""

from __future__ import annotations

import socket
import stat
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.builder import build_test, build_trial, write_trials
from openfield.domains.ond.testset.data_directory import DataDirectory, load_arrays
from openfield.errors import InvalidInput

SHORT = OndSettings(training=20, before=3, after=4)
NEW = msgspec.structs.replace(SHORT, new_classes=True)
SEED = 7_654_321


def small_trials(seed: int = 0, novelty: str = "classes", count: int = 2, **settings: object) -> list:
    return DOMAIN.trials(count=count, seed=seed, novelty=novelty, training=20, before=3, after=4, **settings)


def test_ids_tell_neither_labels_nor_the_order_nor_the_seed() -> None:
    test, calm = build_test(SHORT, NEW, SEED).test, build_test(SHORT, SHORT, SEED).test
    assert test.ids == calm.ids, "they do not depend on labels"
    assert test.labels.tolist() != calm.labels.tolist()
    assert len(set(test.ids)) == len(test.ids) == 140
    for key in (str, lambda text: text[::-1]):
        places = [sorted(test.ids, key=key).index(one) for one in test.ids]
        assert abs(np.corrcoef(places, range(140))[0, 1]) < 0.3
    assert not any(str(SEED) in text or f"{SEED:x}" in text for text in (test.name, *test.ids))
    assert build_test(SHORT, NEW, SEED + 1).test.name != test.name


def test_twins_and_onsets_cannot_be_told_by_name(tmp_path: Path) -> None:
    trials = DOMAIN.trials(count=3, training=20, unchanged="all")
    names = [build_trial(DOMAIN, trial, trials[0].seed).test.name for trial in trials]
    assert len({trial.seed for trial in trials}) == 3
    assert len(set(names)) == 6
    root = write_trials(DOMAIN, trials, tmp_path / "x.data")
    directory, arrays = DataDirectory(root), load_arrays(root)
    assert directory.list_file("OND", "image_classification").decode().split() == sorted(names)
    assert arrays["ids"].tolist() == sorted(arrays["ids"].tolist())
    for name in names:
        test, _ = directory.load("OND", "image_classification", name)
        assert test.images is not None
        known = build_trial(DOMAIN, trials[names.index(name)], trials[0].seed).test
        assert np.array_equal(test.images, known.images), "each id still leads to its own image"


@pytest.mark.parametrize("fixed", [{"before": 6, "after": 5}, {"onset": 3}, {"onset": 0}, {"onset": "2-8"}])
def test_metadata_do_not_tell_twins_apart(fixed: dict[str, Any]) -> None:
    """An agent that looks at no image must not know whether its world will change, also where the onset is fixed."""
    trials = DOMAIN.trials(count=2, novelty="classes", training=20, unchanged="all", **fixed)
    tests = [build_trial(DOMAIN, trial).test for trial in trials]
    shown = [test.shown(False) for test in tests]
    assert shown[1:] == shown[:-1]
    first = min(int(test.novel.argmax()) // (test.round_size or 1) for test in tests if test.novel.any())
    assert shown[0]["pre_novelty_batches"] <= first, "none of these batches is novel"


def test_a_data_directory_belongs_to_its_trials(tmp_path: Path) -> None:
    folder = write_trials(DOMAIN, small_trials(), tmp_path / "x.data")
    assert write_trials(DOMAIN, small_trials(), folder) == folder
    for other in (
        small_trials(seed=1),
        small_trials(novelty="rotation:hard"),
        small_trials(count=3),
        small_trials(share=0.25),
    ):
        with pytest.raises(InvalidInput, match=r"was made from other trials\. Give the same --trials, --seed"):
            write_trials(DOMAIN, other, folder)
    (folder / "origins.json").unlink()
    assert write_trials(DOMAIN, small_trials(seed=1), folder) == folder, "published ones say nothing of trials"
    assert [path.name for path in tmp_path.iterdir()] == ["x.data"]


def test_only_its_owner_reads_a_data_directory(tmp_path: Path) -> None:
    folder = write_trials(DOMAIN, small_trials(), tmp_path / "x.data")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_sealed_server_goes_on_after_a_port_was_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = ["--trials", "1", "--sealed", "--port", str(taken.getsockname()[1]), "-o", str(tmp_path / "run.sqlite")]
        for _ in range(2):
            assert run_command(["serve", "ond", *words]) == 2
            assert "Address already in use" in capsys.readouterr().err, "not that the data are of other trials"


def test_the_command_refuses_another_seed_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_trials(DOMAIN, DOMAIN.trials(), tmp_path / "run.data")
    for words in (["--seed", "1"], ["--novelty", "blur"]):
        assert run_command(["serve", "ond", *words, "--port", "0", "-o", str(tmp_path / "run.sqlite")]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "run.data was made from other trials" in said


@pytest.mark.parametrize("novelty", ["blur every 2", "classes for 1", "classes then none"])
def test_changes_that_go_away_are_not_served(novelty: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its files know one onset: false alarms in a world that is normal again would count as detections."""
    words = ["--novelty", novelty, "--port", "0", "-o", str(tmp_path / "run.sqlite"), "--set", "before=2"]
    assert run_command(["serve", "ond", *words, "--set", "after=4", "--set", "training=20"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"change once and for good, and '{novelty}' goes away again" in said
    assert not (tmp_path / "run.data").exists()
    write_trials(DOMAIN, small_trials(novelty="classes over 3"), tmp_path / "grows.data")


def test_altered_samples_are_classified_as_well_as_packaged_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alteration must stop tables of samples, and nobody who looks at the images."""
    trials = of.trials("ond", count=4, novelty="classes", unchanged=0, seed=3)

    def classify(name: str) -> dict[str, float]:
        result = of.run({"knn": "knn", "msp": "msp"}, trials, tmp_path / name)
        accuracies: dict[str, list[float]] = {"knn": [], "msp": []}
        for cell, numbers in result.numbers(["openset"]):
            accuracies[cell.agent].append(float(numbers["closed_accuracy"] or 0))
        return {agent: float(np.mean(each)) for agent, each in accuracies.items()}

    altered = classify("altered.sqlite")
    monkeypatch.setattr("openfield.domains.ond.testset.builder.alter_images", lambda images, rng: images)
    assert classify("packaged.sqlite") == pytest.approx(altered, abs=0.01)
