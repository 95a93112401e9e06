"""Number the observations of recorded runs: equal keys get equal numbers, and pictures are compared by their codes.

Pictures are downscaled as soon as they are read and discretized at the end, as the thresholds depend on all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.frames.encode import check_bins, downscale, encode_frames, find_bins, grey
from openfield.objectives.tables.codes import integers_of
from openfield.objectives.tables.histograms import Array

SIZE = 8
LEVELS = 4
"""Height, width and levels of small pictures: those of the paper."""


class SmallPicture(bytes):
    """A downscaled picture, as the bytes of its float64 values."""


def key_of(seen: Any, size: int) -> Hashable:
    """Return the key of an encoded observation: pictures are downscaled, everything else stays as it is.

    Raises:
        InvalidInput: The observation is neither hashable nor a picture.
    """
    if isinstance(seen, np.ndarray):
        return SmallPicture(downscale(grey(seen)[None], size).tobytes())
    if not isinstance(seen, Hashable):
        raise InvalidInput(f"a {type(seen).__name__} cannot be counted; a domain's encode() gives keys or pictures")
    return seen


def number_keys(
    keys: Sequence[Iterable[Hashable]], codes: Mapping[Hashable, Hashable] | None = None
) -> tuple[list[Array], int]:
    """Number the keys of several recordings together. Return the numbers of each, and how many there are.

    Args:
        keys: The keys of each recording.
        codes: Codes that replace some of the keys; equal codes get equal numbers.
    """
    numbers: dict[Hashable, int] = {}
    known = codes or {}
    maps = [[numbers.setdefault(known.get(key, key), len(numbers)) for key in each] for each in keys]
    return [np.array(each, np.int64) for each in maps], len(numbers)


def code_pictures(
    keys: Sequence[Iterable[Hashable]], size: int = SIZE, thresholds: Array | None = None
) -> dict[Hashable, Hashable]:
    """Encode all pictures among the keys of several recordings. Return the code of each picture.

    Without thresholds, the pictures are discretized by those that `discretize` finds for all of them together.
    """
    pictures = list({key: None for each in keys for key in each if isinstance(key, SmallPicture)})
    if not pictures:
        return {}
    frames = np.frombuffer(b"".join(pictures), np.float64).reshape(-1, size, size)
    bins = find_bins(frames, LEVELS) if thresholds is None else check_bins(thresholds, (size, size))
    coded = integers_of(encode_frames(frames, bins))
    return {picture: ("picture", code) for picture, code in zip(pictures, coded, strict=True)}
