"""The play of each set of a configured trial: its training set, and each of its test sets.

A world that plays sets puts the number of the set into the detail of each episode: 0 is training, 1 the first test set.
The rates are of the attempts that were made. Failed episodes count in `performance`.
"""

from __future__ import annotations

from openfield.journal.reader import CellRecord, Episode
from openfield.metrics.metric import built_in, undefined
from openfield.metrics.performance import mean, performances, split_sets

MAX_TEST_SETS = 9
"""Test sets with a row of their own; the tenth row has all later ones together."""


def count_levels(episodes: list[Episode]) -> int:
    """Return how many different levels were played; a level may be attempted more than once."""
    return len({episode.detail["index"] for episode in episodes})


def measure_sets(cell: CellRecord) -> dict[str, float | None]:
    """Return how much was played, and the pass rate of each set over all attempts."""
    sets = split_sets(cell)
    if not sets:
        return undefined(SETS)
    rows: dict[str, list[Episode]] = {}
    for number, episodes in sets.items():
        name = "set_training" if number == 0 else f"set_{number}" if number <= MAX_TEST_SETS else "set_later"
        rows.setdefault(name, []).extend(episodes)
    return undefined(SETS) | {
        "set_levels": float(sum(map(count_levels, sets.values()))),
        "set_attempts": float(sum(map(len, sets.values()))),
        **{name: mean(performances(episodes)) for name, episodes in rows.items()},
    }


SETS = built_in("sets", measure_sets, counts_failures=True)
