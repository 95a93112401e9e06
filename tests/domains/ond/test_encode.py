"""What measures that count see of batches and answers."""

from __future__ import annotations

import numpy as np
import pytest

from openfield.domains.ond.encode import coarse_batch


@pytest.mark.parametrize("images", [np.full((5, 8, 8), 0.5, np.float32), np.full((5, 8, 8, 3), 128, np.uint8)])
def test_like_batches_are_the_same_whatever_they_are_called(images: np.ndarray) -> None:
    one = coarse_batch({"round": 1, "ids": ["a"], "images": images})
    assert (
        one
        == coarse_batch({"round": 2, "ids": ["b"], "images": images.copy()})
        == ("ids", "images", "round", 4, 4, 4, 4)
    )
    assert one != coarse_batch(
        {"round": 2, "ids": ["b"], "images": images // 4 if images.dtype == "u1" else images / 4}
    )


def test_turns_without_pictures_are_told_apart_by_kind() -> None:
    assert coarse_batch({"round": 3, "answered": True}) == coarse_batch({"round": 4, "answered": True})
    assert coarse_batch({"round": 3, "ids": ["a"]}) != coarse_batch({"round": 3, "answered": True})
    assert coarse_batch(None) == ()
