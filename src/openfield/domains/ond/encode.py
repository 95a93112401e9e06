"""Coarse codes of batches and answers, for objectives that count how often the same was seen and done.

From turns and replies to `openfield.objectives`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from openfield.domains.ond.actions import Scores, read_action
from openfield.objectives.frames.encode import downscale

SIDE = 2
STEPS = 8
"""The mean picture of a batch is reduced to SIDE by SIDE pixels, each in STEPS steps of brightness."""


def coarse_batch(observation: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """Return the mean picture of a batch, small and in few steps; of a turn without pictures, only its kind.

    Ids and round numbers are left out: they never occur twice, so counting them is pointless.
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
    """Return the kind of an action and, of scores, how many quarters of the batch are called unknown."""
    read = read_action(action)
    kind = str(read.__struct_config__.tag)
    if not isinstance(read, Scores) or not read.p:
        return kind, 0
    return kind, round(4 * sum(row[0] == max(row) for row in read.p) / len(read.p))
