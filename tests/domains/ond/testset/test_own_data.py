"""Data of one's own: images keep their shape, classes are said, and what does not fit is told in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import openfield as of
from openfield.cli import run_command
from openfield.core import Ask, Belief, Reply
from openfield.domains.ond import DOMAIN
from openfield.domains.ond.actions import NextBatch, Scores
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset.builder import write_tests
from openfield.errors import InvalidInput, UnknownName

pytest.importorskip("PIL")
from PIL import Image

SMALL = {"unknown": 1, "training": 20, "round_size": 5, "before": 2, "after": 3, "unchanged": 0}
NAMES = ("ant", "bee", "cat")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Coloured images of three classes, 12 x 10 pixels, with a table of files and labels."""
    rng, lines = np.random.default_rng(0), ["file,size,label"]
    (tmp_path / "mine").mkdir()
    for number in range(120):
        name = NAMES[number % 3]
        pixels = rng.integers(0, 80, (10, 12, 3), dtype=np.uint8)
        pixels[:, :, number % 3] += 120
        Image.fromarray(pixels).save(tmp_path / f"mine/{number}.png")
        lines.append(f"{number}.png,12,{name}")
    (tmp_path / "mine/labels.csv").write_text("\n".join(lines))
    return tmp_path / "mine"


def open_world(**settings: Any) -> Any:
    (trial,) = DOMAIN.trials(1, 3, settings.pop("novelty", "classes"), **SMALL | settings)
    return DOMAIN.world(trial)


@pytest.mark.parametrize("shape", [(8, 8), (8, 6, 3), (3, 32, 32), (7,), (4, 4, 1)])
def test_arrays_keep_their_shape(shape: tuple[int, ...], tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((150, *shape), dtype=np.float32)
    np.savez(tmp_path / "mine.npz", images=images, labels=np.arange(150) % 3)
    w = open_world(data=str(tmp_path / "mine.npz"), known=2)
    assert w.reset().observation["images"].shape == (20, *shape)
    assert w.step(Reply()).observation["images"].shape == (5, *shape)
    table = {image.tobytes() for image in images}
    assert all(image.tobytes() in table for image in w.test.images)  # as they were


@pytest.mark.parametrize("shape", [(8, 6, 3), (3, 8, 6)])
def test_coloured_images_can_become_novel(shape: tuple[int, ...], tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((150, *shape), dtype=np.float32)
    np.savez(tmp_path / "mine.npz", images=images, labels=np.arange(150) % 3)
    w = open_world(data=str(tmp_path / "mine.npz"), known=2, novelty="blur")
    inside = [image.tobytes() in {one.tobytes() for one in images} for image in w.test.images]
    assert inside == (~w.test.novel).tolist()
    assert w.test.images.shape[1:] == shape


def test_a_folder_with_a_table_is_read_in_size_and_colour(folder: Path) -> None:
    w = open_world(data=str(folder), known=2)
    ready = w.reset().observation
    assert ready["images"].shape == (20, 10, 12, 3)
    first, second = ready["metadata"]["classes"]
    assert {first, second} < set(NAMES)
    for label, name in ((1, first), (2, second)):  # the labels are columns, and the names say of which class
        brightest = ready["images"][ready["labels"] == label].mean((0, 1, 2)).argmax()
        assert NAMES[brightest] == name
    assert open_world(data=str(folder), known=2, side=6).reset().observation["images"].shape == (20, 6, 6, 3)


def test_images_of_16_bits_are_scaled_and_not_cut_off(folder: Path) -> None:
    pixels = np.linspace(0, 65535, 120).astype(np.uint16).reshape(10, 12)
    for number in range(120):
        Image.fromarray(pixels).save(folder / f"{number}.png")
    images = open_world(data=str(folder), known=2).reset().observation["images"]
    assert np.array_equal(images[0], (pixels >> 8).astype(np.float32) / 255)
    Image.fromarray(pixels.astype(np.float32)).save(folder / "0.tif")
    (folder / "labels.csv").write_text("file,label\n0.tif,ant")
    with pytest.raises(InvalidInput, match=r"0\.tif has pixels that are not of 8 or 16 bits"):
        open_world(data=str(folder), known=2)


def test_labels_between_two_classes_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", images=np.zeros((4, 3, 3)), labels=[0.0, 1.0, 1.5, 2.0])
    with pytest.raises(InvalidInput, match="Labels must be whole numbers"):
        open_world(data=str(tmp_path / "mine.npz"), known=2)


def test_the_known_classes_can_be_chosen(folder: Path) -> None:
    w = open_world(data=str(folder), classes="cat+ant")
    assert w.reset().observation["metadata"]["classes"] == ["cat", "ant"]
    assert w.test.known == 2
    with pytest.raises(UnknownName, match="cow"):
        open_world(data=str(folder), classes="cow+ant")
    with pytest.raises(InvalidInput, match="names 2 classes"):
        open_world(data=str(folder), classes="cat+ant", known=3)


def test_a_classifier_of_ones_own_is_told_its_classes_and_scores(folder: Path, tmp_path: Path) -> None:
    def make(spec: Any, seed: int) -> Any:
        order: list[str] = []

        def agent(turn: Any) -> Reply:
            if turn.ask is Ask.READY:
                order[:] = turn.observation["metadata"]["classes"]
            if turn.ask is not Ask.ACT or turn.observation.get("answered"):
                return Reply(NextBatch())
            named = [NAMES[at] for at in turn.observation["images"].mean((1, 2)).argmax(axis=1)]
            columns = [order.index(name) + 1 if name in order else 0 for name in named]
            return Reply(Scores.of(np.eye(3)[columns]), Belief(0.0))

        return agent

    trials = DOMAIN.trials(2, 3, **SMALL | {"data": str(folder), "known": 2, "training": 0})
    result = of.run({"mine": make}, trials, tmp_path / "run.sqlite")
    assert [episode.performance for cell in result.cells for episode in cell.episodes] == [1.0] * 10


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / "labels.csv").write_text("a,b\n1,2\n"), "names the columns file and label"),
        (lambda folder: (folder / "labels.csv").write_text("file,label\nnone.png,ant\n"), "line 2: there is no file"),
        (lambda folder: (folder / "labels.csv").write_bytes(b"file,label\n\xff.png,ant\n"), "line 2: there is no file"),
        (lambda folder: (folder / "labels.csv").write_text("file,label\n" + 200_000 * "a"), "line 2: field larger"),
        (lambda folder: (folder / "labels.csv").unlink(), "neither folders with images"),
        (lambda folder: Image.new("L", (3, 3)).save(folder / "7.png"), "different sizes, 12 x 10 and 3 x 3"),
    ],
)
def test_folders_that_cannot_be_used_are_told(folder: Path, change: Any, said: str) -> None:
    change(folder)
    with pytest.raises(InvalidInput, match=said):
        open_world(data=str(folder), known=2)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"data": "nothere"}, "There is no file or folder nothere"),
        ({"known": 6}, "The data have 3 classes; 6 known ones leave none unknown. .*--set known=2"),
        ({"known": 2, "training": 500}, "80 samples of the known classes, too few for training=500.*--set training=26"),
        (
            {"known": 2, "training": 20, "round_size": 8, "before": 15, "after": 15},
            "too few for training=20.* Take fewer: --set before=3 --set after=3",
        ),
    ],
)
def test_what_does_not_fit_is_said_with_what_would(folder: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        open_world(**{"data": str(folder)} | settings)


def test_an_array_that_is_missing_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", images=np.zeros((9, 4, 4)))
    with pytest.raises(InvalidInput, match=r"mine.npz has no array 'labels'"):
        open_world(data=str(tmp_path / "mine.npz"), known=2)


def test_a_folder_is_played_over_the_protocol_by_the_same_settings(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {**SMALL, "unchanged": 0, "classes": "cat+ant", "data": "mine"}
    words = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
    assert run_command(["ond", "visit", "here", "-a", "msp", "--trials", "1", "-o", "v.sqlite", *words]) == 0
    assert "m_num_stats" in capsys.readouterr().out
    arrays = np.load("v.data/arrays.npz")
    assert arrays["images"].shape == (25, 10, 12, 3)
    (table,) = Path("v.data").rglob("*_metadata.json")
    name = table.name.removesuffix("_metadata.json")
    (trial,) = DOMAIN.trials(data="v.data", test=name)
    shown = DOMAIN.world(trial).reset().observation["metadata"]
    assert shown["classes"] == ["cat", "ant"]  # as clients of the protocol are shown them


def test_tests_of_another_kind_are_pointed_at(folder: Path, tmp_path: Path) -> None:
    settings = OndSettings(**SMALL | {"unchanged": ""}, known=2, data=str(folder), area="activity_recognition")
    (name,) = write_tests(tmp_path / "data", settings, settings, [1])
    with pytest.raises(InvalidInput, match=f"--set test={name} --set protocol=OND --set area=activity_recognition"):
        DOMAIN.trials(data=str(tmp_path / "data"))
    with pytest.raises(InvalidInput, match="There is one: --set protocol=OND --set area=activity_recognition"):
        DOMAIN.trials(data=str(tmp_path / "data"), test=name)


def test_built_in_agents_play_a_data_directory_in_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = OndSettings(training=100, round_size=10, before=2, after=3)
    changed = OndSettings(training=100, round_size=10, before=2, after=3, new_classes=True)
    names = write_tests(tmp_path / "data", settings, changed, [1, 2])
    data = ["--set", f"data={tmp_path / 'data'}"]
    assert run_command(["run", "ond", "-a", "knn", *data]) == 2
    told = capsys.readouterr().err
    assert all(name in told for name in names)
    words = ["run", "ond", "-a", "knn", *data, "--set", f"test={names[0]}", "--set", "training=500"]
    assert run_command([*words, "-o", str(tmp_path / "run.sqlite")]) == 0


def test_a_visit_refuses_what_it_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["ond", "visit", "here", "-a", "knn", "--set", "protocl=CONDDA"]) == 2
    assert "Did you mean 'protocol'" in capsys.readouterr().err
    settings = OndSettings(training=100, round_size=10, before=1, after=1)
    write_tests("data", settings, settings, [1])
    arrays = dict(np.load("data/arrays.npz"))
    np.savez("data/arrays.npz", **{key: value for key, value in arrays.items() if key != "train_labels"})
    assert run_command(["ond", "visit", "here", "-a", "knn", "--set", "data=data"]) == 2
    assert "arrays.npz lacks train_labels" in capsys.readouterr().err
    assert run_command(["ond", "visit", "http://127.0.0.1:9", "-a", "knn", "--set", "data=pictures"]) == 2
    assert "a data directory with an arrays.npz; pictures has none" in capsys.readouterr().err


@pytest.mark.parametrize("more", ["area=activity_recognition", "protocol=CONDDA"])
def test_a_visit_here_has_other_tests_too(tmp_path: Path, capsys, monkeypatch, more: str) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["ond", "visit", "here", "-a", "msp", "--trials", "1", "--set", more, "-o", "r.sqlite"]
    assert run_command(words) == 0
    assert "m_num_stats" in capsys.readouterr().out
