"""Animated WebP files: every picture at its time, and only what differs is stored."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from openfield.files.webp import write_webp


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
