"""What was seen in recorded runs, as numbers: equal ones for what a domain counts as the same, pictures by their codes.

Between `recordings`, which meets observations one at a time, and `runs`, which counts. Pictures are made small at once
and discretised at the end, since thresholds follow from all of them.
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


class Small(bytes):
    """A picture made small; its numbers as float64."""


def key_of(seen: Any, size: int) -> Hashable:
    """What a domain made of an observation as a key: pictures small, everything else as it is.

    Raises:
        InvalidInput: It can neither be counted nor be made small.
    """
    if isinstance(seen, np.ndarray):
        return Small(downscale(grey(seen)[None], size).tobytes())
    if not isinstance(seen, Hashable):
        raise InvalidInput(f"a {type(seen).__name__} cannot be counted; a domain's encode() gives keys or pictures")
    return seen


def number_keys(
    keys: Sequence[Iterable[Hashable]], codes: Mapping[Hashable, Hashable] | None = None
) -> tuple[list[Array], int]:
    """Common numbers for the keys of several recordings, in the order each has them, and how many there are.

    Args:
        keys: Those of each recording.
        codes: What stands for some of them; equal codes get equal numbers.
    """
    numbers: dict[Hashable, int] = {}
    known = codes or {}
    maps = [[numbers.setdefault(known.get(key, key), len(numbers)) for key in each] for each in keys]
    return [np.array(each, np.int64) for each in maps], len(numbers)


def code_pictures(
    keys: Sequence[Iterable[Hashable]], size: int = SIZE, thresholds: Array | None = None
) -> dict[Hashable, Hashable]:
    """The codes of all pictures among the keys of several recordings.

    They are discretised by the thresholds given, or by those `discretize` finds for all of them together.
    """
    pictures = list({key: None for each in keys for key in each if isinstance(key, Small)})
    if not pictures:
        return {}
    frames = np.frombuffer(b"".join(pictures), np.float64).reshape(-1, size, size)
    bins = find_bins(frames, LEVELS) if thresholds is None else check_bins(thresholds, (size, size))
    coded = integers_of(encode_frames(frames, bins))
    return {picture: ("picture", code) for picture, code in zip(pictures, coded, strict=True)}
