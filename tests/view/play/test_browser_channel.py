"""Pictures for a browser: without loss where a loss would show, and quick where they follow each other."""

from __future__ import annotations

import io
import time
from typing import Any

import numpy as np
import pytest

import openfield as of
from openfield.cell import Cell
from openfield.registry import find_domain
from openfield.view.play.browser_channel import encode_picture, write_data_address
from openfield.view.play.open_trial import OpenTrial
from support.places import MAZE

image = pytest.importorskip("PIL.Image")


def show(domain: str) -> Any:
    """Return the picture of the first turn of a domain."""
    (trial, *_) = of.trials(domain, count=1)
    return OpenTrial(find_domain(domain), Cell("human", trial), None).show()["picture"]


def test_a_maze_has_no_halos() -> None:
    picture = show(MAZE)
    seen = np.asarray(image.open(io.BytesIO(encode_picture(picture))))
    assert np.array_equal(seen, picture)
    assert write_data_address(picture).startswith("data:image/png;")


@pytest.mark.parametrize("shape", [(300, 400), (300, 400, 1), (300, 400, 3), (300, 400, 4)])
def test_pictures_of_any_shape_are_flat_or_not(shape: tuple[int, ...]) -> None:
    flat = np.zeros(shape, np.uint8)
    flat[100:200] = 200
    noise = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    assert encode_picture(flat).startswith(b"\x89PNG")
    assert encode_picture(noise).startswith(b"\xff\xd8")
    assert encode_picture(noise[:20, :20]).startswith(b"\x89PNG")


def test_views_of_doom_are_quick_to_send() -> None:
    pytest.importorskip("vizdoom")
    picture = show("doom")
    assert encode_picture(picture).startswith(b"\xff\xd8")
    began = time.process_time()
    for _ in range(20):
        encode_picture(picture)
    assert time.process_time() - began < 0.5  # of a second in which twenty are shown
