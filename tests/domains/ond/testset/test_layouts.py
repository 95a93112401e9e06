"""Arrays with labels become tests of images, videos and documents alike; tests of texts are brought."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from openfield.cli import run_command
from openfield.core import Reply
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.actions import Buy, Scores
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.agent_answers import AgentAnswers
from openfield.domains.ond.testset.builder import Built, build_test, write_tests
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.domains.ond.testset.evaluation import describe_round
from openfield.domains.ond.testset.samples import load_digits, make_samples
from openfield.domains.ond.world import TestWorld
from openfield.errors import InvalidInput

AREAS = ("image_classification", "activity_recognition", "transcripts")


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Features of digits, and what each shows in words."""
    digits, path = load_digits(), tmp_path / "features.npz"
    texts = np.array([f"a {label}, or |{label}|" for label in digits.labels])
    np.savez(path, features=digits.images.reshape(len(digits.labels), -1), labels=digits.labels, texts=texts)
    return path


def settings(features: Path, area: str, **changes: object) -> tuple[OndSettings, OndSettings]:
    before = OndSettings(data=str(features), area=area, training=100, round_size=10, before=2, after=3, **changes)
    return before, msgspec.structs.replace(before, new_classes=True)


def build(features: Path, area: str, **changes: object) -> Built:
    return build_test(*settings(features, area, **changes), seed=4)


@pytest.mark.parametrize("area", AREAS)
def test_the_same_samples_make_a_test_of_every_kind(features: Path, area: str) -> None:
    built, usual = build(features, area).test, build(features, AREAS[0]).test
    assert built.ids == usual.ids
    assert built.novel.tolist() == usual.novel.tolist()
    assert np.array_equal(built.images, usual.images)
    last = area != AREAS[0]
    assert built.unknown_index == (6 if last else 0)
    assert built.labels.tolist() == [(label - 1) % 7 if last else label for label in usual.labels.tolist()]


@pytest.mark.parametrize("area", AREAS)
def test_what_is_written_is_read_back(features: Path, tmp_path: Path, area: str) -> None:
    (name,) = write_tests(tmp_path / "data", *settings(features, area), [4])
    read, built = DataDirectory(tmp_path / "data").load("OND", area, name)[0], build(features, area).test
    assert list(read.rows) == list(built.rows)
    assert read.shown(red_light=True) == built.shown(red_light=True)
    assert np.array_equal(read.images, built.images)
    words = ["run", "ond", "--server", "here", "-a", "knn", "--set", f"data={tmp_path / 'data'}"]
    assert run_command([*words, "--set", f"area={area}", "-o", str(tmp_path / "r.sqlite")]) == 0


def test_videos_name_the_classes_that_are_most_like_their_own(features: Path) -> None:
    built = build(features, "activity_recognition")
    world = TestWorld(built, settings(features, "activity_recognition")[0], red_light=False)
    world.step(Reply())
    world.step(Reply(Scores([[1.0] + [0.0] * 6] * 10), None))
    world.answers.declared = True
    (line,) = world.step(Reply(Buy("classification", world.test.ids[:1]))).feedback["lines"]
    named = [row[6:11] for row in built.test.rows]
    assert line == ",".join([world.test.ids[0], *named[0]])
    assert all(set(classes) <= set("012345") and len(set(classes)) == 5 for classes in named)
    right = [row[3] == row[6] for row in built.test.rows if row[3] != "6"]
    assert np.mean(right) > 0.7  # digits lie near the mean of their own class
    few = build(features, "activity_recognition", known=2).test
    assert {len(row[6:11]) for row in few.rows} == {5}


def test_documents_have_their_texts(features: Path) -> None:
    written = [row[1] for row in build(features, "transcripts").test.rows]
    assert all(text.startswith("a ") and text.endswith("|") for text in written)
    assert {row[1] for row in build(Path("digits"), "transcripts").test.rows} == {""}
    with pytest.raises(InvalidInput, match="2 texts for 3 samples"):
        make_samples(np.zeros((3, 2)), [0, 1, 2], ["a", "b"])


@pytest.mark.parametrize("area", AREAS)
def test_clusters_are_held_against_the_unknown_classes_there_are(features: Path, area: str) -> None:
    test = build(features, area).test
    kept = AgentAnswers(test)
    kept.cluster[:] = 0
    classes = [name for number in range(test.rounds) for name in describe_round(kept, number)[1]["class"]]
    novel = {name for name, new in zip(classes, test.novel, strict=True) if new}
    assert len(novel) == 4
    assert not novel & {name for name, new in zip(classes, test.novel, strict=True) if not new} or area == AREAS[0]


def test_tests_of_texts_are_not_built(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_command(["run", "ond", "--set", "area=nlt", "-o", str(tmp_path / "r.sqlite")]) == 2
    assert "Name a data directory: --set data=DIR" in capsys.readouterr().err
    assert DOMAIN.trials(1, area="transcripts", unchanged=0)
