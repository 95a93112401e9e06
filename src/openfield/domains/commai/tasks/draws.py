"""Random choices, and the words and texts to choose from.

The choices take a third of the time of `random.Random`'s and are as uniform as 53 bits allow. Tasks make one or more
per question, always with the environment's generator. The words come from `data/words.txt`, read once per process, the
most common first: micro6 and micro20 draw from the first 400. The texts come from `data/texts.toml`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import resources
from random import Random
from typing import Any, TypeVar

import msgspec

from openfield.files.data import read_data

T = TypeVar("T")


def pick(rng: Random, options: Sequence[T]) -> T:
    """Return one of the options."""
    return options[int(rng.random() * len(options))]


def between(rng: Random, least: int, most: int) -> int:
    """Return a random whole number, both ends included."""
    return least + int(rng.random() * (most - least + 1))


def sample(rng: Random, options: Sequence[T], count: int) -> list[T]:
    """Return some of the options in random order, each at most once. The options must all differ."""
    random, size = rng.random, len(options)
    if count * 3 <= size:  # few of many: drawing again after a collision is cheaper than copying all
        chosen: dict[T, None] = {}
        while len(chosen) < count:
            chosen[options[int(random() * size)]] = None
        return list(chosen)
    left = list(options)
    for done in range(count):
        at = done + int(random() * (len(left) - done))
        left[done], left[at] = left[at], left[done]
    return left[:count]


_DATA = resources.files("openfield.domains.commai") / "data"


@functools.cache
def load_words(vocabulary: str = "common") -> tuple[str, ...]:
    """Return all words, the most common first. The `rare` vocabulary is the less common half."""
    every = tuple((_DATA / "words.txt").read_text().split())
    return every if vocabulary == "common" else every[len(every) // 2 :]


@functools.cache
def load_words_without(parts: tuple[str, ...], vocabulary: str = "common") -> tuple[str, ...]:
    """Return the words that contain none of these parts."""
    return tuple(word for word in load_words(vocabulary) if not any(part in word for part in parts))


class Phrasebook(msgspec.Struct, frozen=True):
    """What tasks say and talk about: the table of `data/texts.toml`."""

    congratulations: tuple[str, ...]
    failed: tuple[str, ...]
    timeout: tuple[str, ...]
    numbers: tuple[str, ...]
    phrases: tuple[str, ...]
    promises: tuple[str, ...]
    verbs: dict[str, str]
    countable: tuple[str, ...]
    sequences: tuple[str, ...]
    shapes: dict[str, Any]
    synonyms: dict[str, tuple[str, ...]]
    feedback: dict[str, str]
    short_names: dict[str, str]
    baskets: dict[str, dict[str, tuple[str, ...]]]


@functools.cache
def load_phrasebook() -> Phrasebook:
    """Read the table of the package."""
    return read_data("openfield.domains.commai", "texts.toml", Phrasebook)


def praise(rng: Random) -> str:
    """Draw the words said to a success."""
    return pick(rng, load_phrasebook().congratulations)


def blame(rng: Random) -> str:
    """Draw the words said to a failure."""
    return pick(rng, load_phrasebook().failed)
