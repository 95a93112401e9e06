"""The words tasks draw from, read once per process from the text files beside this module.

The first 400 words are very common ones: micro6 and micro20 draw from these alone.
"""

from __future__ import annotations

import functools
from importlib import resources

_DATA = resources.files("openfield.domains.commai") / "data"


@functools.cache
def words(vocabulary: str = "common") -> tuple[str, ...]:
    """All words, the most common first; a `rare` vocabulary has none of the more common half."""
    every = tuple((_DATA / "words.txt").read_text().split())
    return every if vocabulary == "common" else every[len(every) // 2 :]


@functools.cache
def words_without(parts: tuple[str, ...], vocabulary: str = "common") -> tuple[str, ...]:
    """The words that contain none of these parts."""
    return tuple(word for word in words(vocabulary) if not any(part in word for part in parts))
