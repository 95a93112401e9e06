"""Pictures in recorded runs: made again by replay, made small, discretised; and runs that cannot be used."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

import openfield as of
from openfield.capabilities import Film
from openfield.errors import Cancelled, InvalidInput
from openfield.objectives import dense_indices, discretize, downscale, encode, evaluate, load_table
from openfield.objectives.frames.table_of_episodes import Recipe, build_table, episodes_of_arrays
from openfield.objectives.runs.evaluate import evaluate_runs
from openfield.objectives.runs.recordings import read_human, read_recording
from openfield.record import is_picture
from openfield.registry import use_domain
from openfield.settings import Settings
from support.objectives.save import save_table

LENGTH = 9


class LampSettings(Settings, frozen=True):
    """How a lamp is seen."""

    bright: int = 200
    nested: bool = False


class Lamp:
    """One episode: a lamp on a dark strip that goes left or right, seen as a picture of three colours."""

    reward, performance = 0.0, 1.0

    def __init__(self, settings: LampSettings, rng: Any) -> None:
        self.settings, self.at, self.left = settings, rng.randrange(8), LENGTH
        self.ended: Any = None
        self.observation = self._see()

    def move(self, action: int) -> None:
        self.at, self.left = (self.at + action) % 8, self.left - 1
        self.ended = None if self.left else "terminated"
        self.observation = self._see()

    def look(self, query: str) -> Any:
        """What is drawn: nothing once the episode has ended."""
        return None if self.ended else self._draw()

    def _see(self) -> Any:
        return {"eye": self._draw()} if self.settings.nested else self._draw()

    def _draw(self) -> Any:
        picture = np.full((20, 32, 3), 10, np.uint8)
        picture[5:15, 4 * self.at : 4 * self.at + 4] = (self.settings.bright, 50, self.left)
        return picture


class LampDomain(of.Domain[LampSettings]):
    """Two phases of lamps."""

    name, title, settings = "lamp", "A lamp that goes", LampSettings
    novelties = (of.Novelty("dim", 1, "objects", "dim", lambda s: msgspec.structs.replace(s, bright=90)),)
    default_novelty = "dim"
    version: ClassVar[int] = 1

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Go.")

    def phases(self, settings: LampSettings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        return of.Phase("test", 6), of.Phase("test", 6, novelty)

    def world(self, trial: of.Trial) -> of.World:
        return of.EpisodicWorld(self, trial, Lamp)

    def film(self, trial: of.Trial) -> Film:
        return Film(self.world(trial), tuple, 100)


class Walker:
    """Goes a way of its own and keeps what it saw and did."""

    def __init__(self, book: list[Any], seed: int, acts: tuple[int, ...] = (1, 2, -1)) -> None:
        self.rng, self.book, self.acts = np.random.default_rng(seed % 1000), book, acts

    def __call__(self, turn: of.Turn) -> of.Reply:
        action = int(self.rng.choice(self.acts))
        self.book.append((turn.observation, None if turn.last else action))
        return of.Reply(action)


@pytest.fixture
def lamp() -> LampDomain:
    domain = LampDomain()
    use_domain(domain)
    return domain


@pytest.fixture
def seen(lamp: LampDomain, path: Path) -> list[Any]:
    """A run of one agent, and what it saw and did."""
    book: list[Any] = []
    of.run({"walker": lambda spec, seed: Walker(book, seed)}, lamp.trials(1, onset=6, unchanged=0), path)
    return book


def by_hand(book: list[Any], bins: Any = None) -> tuple[list[dict[Any, int]], Any]:
    """A table for every stage, made with the functions for frames; and the thresholds."""
    grey = np.stack([picture.astype(int).sum(axis=2) // 3 for picture, _ in book]).astype(np.uint8)
    small = downscale(grey, 8)
    if bins is None:
        _, bins = discretize(small, 4, return_bins=True)
    inputs = dense_indices(encode(discretize(small, color_bins=bins), 4))
    tables: list[dict[Any, int]] = [{} for _ in range(0, len(book), 6 * (LENGTH + 1))]
    for number, ((one, (_, action)), (two, _)) in enumerate(pairwise(zip(inputs, book, strict=True))):
        if action is not None:
            table = tables[number // (6 * (LENGTH + 1))]
            table[one, action, two] = table.get((one, action, two), 0) + 1
    return tables, bins


def values_of(found: Any) -> list[dict[str, Any]]:
    return [{name: interval.value for name, interval in one.values.items()} for one in found]


def test_pictures_are_made_again_and_discretised(seen: list[Any], path: Path) -> None:
    run = read_recording(path)
    found = evaluate_runs([run])
    tables, _ = by_hand(seen)
    num_obs = len({key for table in tables for one, _, two in table for key in (one, two)})
    assert values_of(found) == [evaluate(table, num_obs=num_obs).values for table in tables]
    assert [one.transitions for one in found] == [6 * LENGTH] * 2
    # The third colour tells how long the episode still goes: as digests, no two pictures of an episode are the same.
    assert run.pictures > num_obs
    assert {one.group.stage for one in found} == {"before", "after"}


def test_thresholds_may_be_those_of_a_table(run: Any, seen: list[Any], path: Path, tmp_path: Path) -> None:
    frames = np.random.default_rng(3).integers(0, 256, (60, 20, 32), np.uint8)
    episodes = episodes_of_arrays(frames, np.zeros(60, int), np.arange(60) == 59)
    save_table(build_table(episodes, Recipe(size=8, levels=4)), tmp_path / "frames.parquet")
    bins = np.array(load_table(tmp_path / "frames.parquet").meta.bins)
    status, output, _ = run(path, "--thresholds", tmp_path / "frames.parquet", "--json", "--only", "input_entropy")
    tables, _ = by_hand(seen, bins)
    assert status == 0
    assert [group["values"] for group in json.loads(output)["groups"]] == [
        evaluate(table, only=["input_entropy"]).values for table in tables
    ]
    assert "no thresholds" in run(path, "--thresholds", path)[2]


def test_a_human_is_compared_by_common_thresholds(
    lamp: LampDomain, seen: list[Any], path: Path, tmp_path: Path
) -> None:
    book: list[Any] = []
    other = tmp_path / "played.sqlite"
    of.run({"ada": lambda spec, seed: Walker(book, seed, (2,))}, lamp.trials(1, seed=1, onset=6, unchanged=0), other)
    found = evaluate_runs([read_recording(path)], human=read_recording(other))
    tables, _ = by_hand(seen + book)
    stages = {"before": (tables[0], tables[2]), "after": (tables[1], tables[3])}
    for one in found:
        mine, theirs = ({source for source, _, _ in table} for table in stages[one.group.stage])
        assert one.values["jaccard"].value == len(mine & theirs) / len(mine | theirs)
        assert 0 < one.values["jsd_nats"].value < math.log(2)
    assert evaluate_runs([read_recording(path)], human=read_recording(path))[0].values["jaccard"].value == 1


def test_what_a_person_played_counts_though_they_left(
    lamp: LampDomain, seen: list[Any], path: Path, tmp_path: Path
) -> None:
    class Leaver(Walker):
        may_leave = True

        def __call__(self, turn: of.Turn) -> of.Reply:
            if len(self.book) > 25:
                raise Cancelled("enough")
            return super().__call__(turn)

    other = tmp_path / "left.sqlite"
    with pytest.raises(Cancelled):
        of.run({"ada": lambda spec, seed: Leaver([], seed)}, lamp.trials(1, unchanged=0), other, workers=0)
    with pytest.raises(InvalidInput, match="no agent has finished"):
        read_recording(other)
    human = read_human(other)
    assert human.episodes == 3
    before, after = evaluate_runs([read_recording(path)], human=human)
    assert 0 < before.values["jaccard"].value <= 1
    assert after.values["jaccard"].value is None


def test_a_picture_inside_a_mapping_counts_as_itself_or_another(lamp: LampDomain, path: Path) -> None:
    of.run({"walker": lambda spec, seed: Walker([], seed)}, lamp.trials(1, nested=True, onset=6, unchanged=0), path)
    before, _ = evaluate_runs([read_recording(path)])
    assert before.values["input_entropy"].value > math.log(LENGTH)


def test_what_the_world_looks_like_may_count_instead(run: Any, lamp: LampDomain, path: Path) -> None:
    book: list[Any] = []
    of.run({"walker": lambda spec, seed: Walker(book, seed)}, lamp.trials(1, nested=True, onset=6, unchanged=0), path)
    status, output, _ = run(path, "--pictures", "--json", "--only", "input_entropy", "--only", "empowerment")
    drawn, last = [], None
    for observation, action in book:
        last = observation["eye"] if action is not None else last  # nothing is drawn at the end: the last is seen on
        drawn.append((last, action))
    tables, _ = by_hand(drawn)
    assert status == 0
    assert [group["values"] for group in json.loads(output)["groups"]] == [
        evaluate(table, only=["input_entropy", "empowerment"]).values for table in tables
    ]


def test_worlds_that_cannot_be_drawn_say_so(run: Any, maze: of.Domain[Any], path: Path) -> None:
    of.run(
        {"compass": maze.agents["compass"]}, maze.trials(1, size=3, training=1, before=1, after=1, unchanged=0), path
    )
    status, _, errors = run(path, "--pictures")
    assert (status, "draws no pictures." in errors) == (2, True)


def test_the_number_of_inputs_is_said(run: Any, maze: of.Domain[Any], path: Path) -> None:
    of.run(
        {"compass": maze.agents["compass"]}, maze.trials(1, size=3, training=1, before=1, after=1, unchanged=0), path
    )
    groups = json.loads(run(path, "--json")[1])["groups"]
    (seen,) = {group["num_obs"] for group in groups}
    assert json.loads(run(path, "--json", "--num-obs", seen)[1])["groups"] == groups
    assert run(path, "--num-obs", seen - 1)[0] == 2
    assert {group["num_obs"] for group in json.loads(run(path, "--json", "--num-obs", 900)[1])["groups"]} == {900}


def test_what_a_picture_is() -> None:
    shapes = ((5, 5), (5, 5, 1), (5, 5, 3), (5, 5, 4))
    assert all(is_picture(np.zeros(shape, np.uint8)) for shape in shapes)
    assert not any(is_picture(np.zeros(shape, np.uint8)) for shape in ((5,), (5, 5, 2), (2, 5, 5, 3)))
    assert not is_picture(np.zeros((5, 5)))
    assert not is_picture([[1]])


def test_a_world_that_changed_since_is_told_and_others_are_computed(
    run: Any, maze: of.Domain[Any], seen: list[Any], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, foreign = tmp_path / "good.sqlite", tmp_path / "text.sqlite"
    of.run(
        {"compass": maze.agents["compass"]}, maze.trials(1, size=3, training=1, before=1, after=1, unchanged=0), good
    )
    foreign.write_text("no run")
    alone = json.loads(run(good, "--json")[1])
    monkeypatch.setattr(Lamp, "_see", lambda self: np.zeros((20, 32, 3), np.uint8))
    status, output, errors = run(path, good, foreign, "--json")
    record = json.loads(output)
    assert status == 2
    assert [entry["run"] for entry in record["runs"]] == [str(path), str(good), str(foreign)]
    assert "differs from the recorded one" in record["runs"][0]["error"]
    assert "is not a run" in record["runs"][2]["error"]
    assert record["groups"] == alone["groups"]
    assert len(errors.strip().splitlines()) == 2
    assert run(good, foreign)[1] == run(good)[1]


def test_what_cannot_be_counted_is_told(lamp: LampDomain, seen: list[Any], path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(LampDomain, "encode", lambda self, observation: observation["nothing"], raising=False)
    with pytest.raises(InvalidInput, match=r"run.sqlite: cell \w+, turn 0 cannot be counted"):
        read_recording(path)
    monkeypatch.setattr(LampDomain, "encode", lambda self, observation: {}, raising=False)
    with pytest.raises(InvalidInput, match="dict cannot be counted"):
        read_recording(path)
