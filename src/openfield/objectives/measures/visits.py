"""Visits to inputs as they are shuffled, and the random numbers of the shuffles.

What `permutations` and its compiled twin share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from openfield.objectives.tables.histograms import Array

STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of SplitMix64, which makes a random number of any place."""


class Visits(NamedTuple):
    """Visits to some inputs, one after the other, those to one input together and ordered by next input."""

    starts: Array
    """Where the visits of each input begin; one more for the end."""
    move: Array
    """The number of the move, an input and its next input, of each visit."""
    action: Array
    """The action of each visit before any shuffle, numbered from 0 within its input."""
    width: int
    """One more than the largest action."""
    terms: Array
    """v ln v for every v that a cell may have."""


def random_numbers(places: Array, seed: int) -> Array:
    """Return a random number of 64 bits for each place (SplitMix64)."""
    found: Array = np.uint64(seed) + places * np.uint64(STEP)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(FIRST)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(SECOND)
    found ^= found >> np.uint64(31)
    return found
