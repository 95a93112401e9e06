"""Hints: what an arena trial may tell of its novelty, in the published words.

Used by the world for the first vector of an episode and by the scores for what agents say of a novelty.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any

import msgspec

WORDS = ("entity", "attribute", "change")


def hints_of(novelty: tuple[str, ...], level: int) -> list[dict[str, Any]]:
    """The hints of the novelties in force: -1 tells nothing, 0 the level, 1 to 3 one word more each."""
    told = novelty if level >= 0 else ()  # how many there are would tell something, too
    known = [hint for name in told for hint in describe_novelty(name)] or [{}]
    granted = ("level", *WORDS)[: level + 1]
    return [{word: hint.get(word) if word in granted else None for word in ("level", *WORDS)} for hint in known]


def describe_novelty(name: str) -> list[dict[str, Any]]:
    """Level, entity, attribute and change of a novelty by its number; nothing if it has none."""
    number = name.partition(":")[0]
    return [dict(zip(("level", *WORDS), (int(number) % 50, *words), strict=True)) for words in _table().get(number, ())]


@functools.cache
def _table() -> dict[str, list[list[str]]]:
    content = (files(__package__) / "content" / "hints.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, list[list[str]]])
