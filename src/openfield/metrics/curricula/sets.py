"""The play of each set of a configured trial: its training set, and each of its test sets.

A world that plays sets puts the number of the set into the detail of each episode: 0 is training, 1 the first test set.
The rates are of the attempts that were made. Failed episodes count in `performance`.
"""

from __future__ import annotations

import msgspec

from openfield.journal.reader import CellRecord, Episode
from openfield.metrics.metric import built_in, undefined
from openfield.metrics.performance import mean, performances

MAX_TEST_SETS = 9
"""Test sets with a row of their own; the tenth row has all later ones together."""


def split_sets(cell: CellRecord) -> dict[int, list[Episode]]:
    """Return the episodes of a cell by the number of their set; empty if they have none."""
    sets: dict[int, list[Episode]] = {}
    for episode in cell.episodes:
        if "set" in (episode.detail or {}):
            sets.setdefault(int(episode.detail["set"]), []).append(episode)
    return sets


def count_as_test(cell: CellRecord) -> CellRecord:
    """Return a cell whose training set counts as its test if no test is planned.

    The published trials are such a single set: normal levels, then novel ones.
    """
    if any(phase.name == "test" for phase in cell.trial.phases) or not split_sets(cell):
        return cell
    episodes = tuple(msgspec.structs.replace(episode, phase="test") for episode in cell.episodes)
    return msgspec.structs.replace(cell, episodes=episodes)


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
