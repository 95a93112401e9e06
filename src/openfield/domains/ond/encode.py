"""What batches and answers look like from afar: for measures that count how often the same thing was seen and done.

Beside `domain.py`; from turns and replies to `openfield.objectives`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from openfield.domains.ond.actions import Scores, read_action
from openfield.objectives.frames.encode import downscale

SIDE = 2
STEPS = 8
"""The mean picture of a batch is seen as so many by so many pixels, each in so many steps of brightness."""


def coarse_batch(observation: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """The mean picture of a batch, small and in few steps; of a turn without pictures, only what kind it is.

    Ids and round numbers never occur twice, and what never occurs twice cannot be counted.
    """
    kind = tuple(sorted(observation or ()))
    if observation is None or observation.get("images") is None:
        return kind
    images = np.asarray(observation["images"])
    whole = np.iinfo(images.dtype).max if images.dtype.kind in "iu" else 1
    mean = images.reshape(*images.shape[:3], -1).mean((0, 3)) / whole if images.ndim > 2 else images.mean((0,))[None]
    (small,) = downscale(mean[None], SIDE)
    return *kind, *(np.clip(small, 0, 1) * STEPS).round().astype(int).ravel().tolist()


def coarse_action(action: Any) -> tuple[str, int]:
    """What kind of action it is and, of scores, how many quarters of the batch are called unknown."""
    read = read_action(action)
    kind = str(read.__struct_config__.tag)
    if not isinstance(read, Scores) or not read.p:
        return kind, 0
    return kind, round(4 * sum(row[0] == max(row) for row in read.p) / len(read.p))
