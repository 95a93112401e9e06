"""The words tasks draw from, read once per process from the text files beside this module.

The first 400 words are very common ones: micro6 and micro20 draw from these alone.
"""

from __future__ import annotations

import functools
from importlib import resources

_DATA = resources.files("openfield.domains.commai") / "data"


@functools.cache
def words() -> tuple[str, ...]:
    """All words, the most common first."""
    return tuple((_DATA / "words.txt").read_text().split())


@functools.cache
def words_without(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The words that contain none of these parts."""
    return tuple(word for word in words() if not any(part in word for part in parts))
