"""A domain of one's own is filmed from its record, whichever process wrote that."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from PIL import Image

import openfield as of
from openfield.capabilities import Film
from openfield.journal.reader import Run
from openfield.registry import find_domain, use_domain
from openfield.report.film import EpisodeReplay, write_film, write_webp
from support.places import MAZE

maze: Any = find_domain(MAZE)


class FilmedMaze(type(maze)):  # type: ignore[misc]
    """The maze with a picture of every cell reached, made as the guide says."""

    name = "filmed-maze"

    def film(self, trial: of.Trial) -> Film:
        start, playing = self.world(trial)._start, list[Any]()

        def begin(settings: Any, rng: random.Random) -> Any:
            playing[:] = [start(settings, rng)]
            return playing[0]

        def pictures() -> list[Any]:
            picture = np.zeros((20, 20, 3), np.uint8)
            picture[playing[0].at] = 255
            return [picture]

        return Film(of.EpisodicWorld(self, trial, begin), pictures, 100)


def test_a_record_of_another_process_is_filmed(tmp_path: Path) -> None:
    domain = use_domain(FilmedMaze())
    (trial,) = pickle.loads(pickle.dumps(domain.trials(1, training=0, before=2, after=1, unchanged=0)))
    of.run(lambda turn: of.Reply("left"), trial, tmp_path / "x.sqlite")
    with Run(tmp_path / "x.sqlite") as run:
        (cell,) = run.cells()
        count = write_film(run, cell, 1, tmp_path / "x.gif")
        playing = msgspec.structs.replace(cell, outcome=None, episodes=cell.episodes[:1])  # one that is under way
        assert write_film(run, playing, 1, tmp_path / "y.gif") == count
    with Image.open(tmp_path / "x.gif") as film:
        assert film.n_frames <= count == cell.episodes[1].turns


def test_a_page_shows_a_film_of_each_domain_that_draws(tmp_path: Path) -> None:
    """The page is the same however often it is written, and needs no file beside it."""
    runs = [tmp_path / "filmed.sqlite", tmp_path / "plain.sqlite"]
    for domain, path in zip((use_domain(FilmedMaze()), maze), runs, strict=True):
        trials = domain.trials(2, training=0, before=2, after=1, unchanged=0, patience=5)
        of.run(lambda turn: of.Reply("left"), trials, path)
    result = of.Result(runs)
    films = result.films()
    (film,) = films
    assert film.change == "left and right are swapped"
    assert film.caption.endswith(", episodes 1 and 2")
    assert [clip.title[:30] for clip in film.clips] == [
        "Before the change, performance",
        "After the change, performance ",
    ]
    pages = [result.page(tmp_path / name, films=result.films()).read_text() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1]
    assert pages[0].count("data:image/webp;base64,") == 2
    assert pages[0].index("data:image/webp") < pages[0].index('class="scenario"')
    assert "data:image" not in result.page(tmp_path / "c.html").read_text()


class SeenMaze(type(maze)):  # type: ignore[misc]
    """A maze whose agents are shown pictures, and which draws none for people."""

    name = "seen-maze"

    def world(self, trial: of.Trial) -> Any:
        def begin(settings: Any, rng: random.Random) -> Any:
            play = start(settings, rng)
            play.observation = np.full((9, 12, 1), 7, np.uint8)
            return play

        world = super().world(trial)
        start, world._start = world._start, begin
        return world


def test_what_agents_see_is_filmed_where_a_domain_draws_nothing(tmp_path: Path) -> None:
    domain = use_domain(SeenMaze())
    (trial,) = domain.trials(1, training=0, before=2, after=1, unchanged=0)
    of.run(lambda turn: of.Reply("left"), trial, tmp_path / "x.sqlite")
    with Run(tmp_path / "x.sqlite") as run:
        (cell,) = run.cells()
        (picture, *_) = EpisodeReplay(run, cell, 1).pictures()
    assert (picture.turn, picture.pixels.shape) == (cell.episodes[0].turns, (9, 12, 3))


def picture(x: int) -> Image.Image:
    array = np.full((48, 64, 3), 200, np.uint8)
    array[20:30, x : x + 9] = (200, 30, 30)
    return Image.fromarray(array)


def test_pictures_come_back_in_place_and_time(tmp_path: Path) -> None:
    path, shown = tmp_path / "x.webp", [picture(x) for x in (3, 3, 10, 31)]
    assert write_webp(shown, path, 1000 / 30, 500) == 4
    assert int.from_bytes(path.read_bytes()[4:8], "little") == path.stat().st_size - 8
    with Image.open(path) as film:
        assert (film.n_frames, film.size, film.info["loop"]) == (3, (64, 48), 0)  # two alike are one, shown longer
        times = []
        for number, expected in enumerate((shown[0], shown[2], shown[3])):
            film.seek(number)
            times.append(film.info.get("duration") if film.load() else None)
            off = np.abs(np.asarray(film.convert("RGB"), int) - np.asarray(expected, int))
            assert off.mean() < 3
    assert times == [67, 33, 500]


def test_a_film_without_pictures_is_empty(tmp_path: Path) -> None:
    assert write_webp([], tmp_path / "x.webp", 30, 500) == 0


@pytest.mark.parametrize("count", [2, 40])
def test_stillness_costs_nothing(tmp_path: Path, count: int) -> None:
    write_webp([picture(5)] * count, tmp_path / "x.webp", 30, 500)
    assert (tmp_path / "x.webp").stat().st_size < 1_000
