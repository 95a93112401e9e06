"""The texts of the legacy tasks: what the teacher says, and what it talks about.

They are read once from `data/legacy.toml`. The task modules contain rules only.
"""

from __future__ import annotations

import functools
from importlib import resources
from random import Random

import msgspec

from openfield.domains.commai.tasks.draws import pick


class Phrasebook(msgspec.Struct, frozen=True):
    """The table of `data/legacy.toml`."""

    congratulations: tuple[str, ...]
    failed: tuple[str, ...]
    timeout: tuple[str, ...]
    numbers: tuple[str, ...]
    phrases: tuple[str, ...]
    promises: tuple[str, ...]
    verbs: tuple[str, ...]
    countable: tuple[str, ...]
    portable: tuple[str, ...]
    baskets: dict[str, dict[str, tuple[str, ...]]]


@functools.cache
def load_phrasebook() -> Phrasebook:
    """Read the table of the package."""
    text = (resources.files("openfield.domains.commai") / "data" / "legacy.toml").read_bytes()
    return msgspec.toml.decode(text, type=Phrasebook)


def praise(rng: Random) -> str:
    """Draw the words said to a success."""
    return pick(rng, load_phrasebook().congratulations)


def blame(rng: Random) -> str:
    """Draw the words said to a failure."""
    return pick(rng, load_phrasebook().failed)


def time_is_out(rng: Random) -> str:
    """Draw the words said when the time is up."""
    return pick(rng, load_phrasebook().timeout)


def number_word(number: int) -> str:
    """Return a number from zero to ten in letters."""
    return load_phrasebook().numbers[number]


def any_number(rng: Random, number: int) -> str:
    """Return a number from zero to ten in letters or digits."""
    return number_word(number) if rng.random() < 0.5 else str(number)
