"""Pass rates of sets are over attempts, and sets without a row of their own share the last one."""

import msgspec

from openfield.metrics.curricula.sets import MAX_TEST_SETS, SETS
from support.records import make_cell


def played(*attempts):
    """Return a cell with these attempts: the set, the level in it, and whether it passed."""
    cell = make_cell([float(passed) for _, _, passed in attempts])
    episodes = (
        msgspec.structs.replace(episode, detail={"set": number, "index": index})
        for episode, (number, index, _) in zip(cell.episodes, attempts, strict=True)
    )
    return msgspec.structs.replace(cell, episodes=tuple(episodes))


def test_every_attempt_counts_and_levels_count_once():
    found = SETS.take(played((0, 0, False), (0, 0, True), (1, 0, True), (2, 0, False), (2, 1, True)))
    assert {name: value for name, value in found.items() if value is not None} == {
        "set_levels": 4,
        "set_attempts": 5,
        "set_training": 0.5,
        "set_1": 1.0,
        "set_2": 0.5,
    }


def test_later_sets_are_together():
    found = SETS.take(played(*((number, 0, number % 2) for number in range(1, MAX_TEST_SETS + 5))))
    assert found["set_later"] == 0.5
    assert (found["set_9"], found["set_levels"]) == (1.0, 13)


def test_trials_without_sets_have_no_numbers():
    assert set(SETS.take(make_cell([1.0], [1.0], [0.0])).values()) == {None}
