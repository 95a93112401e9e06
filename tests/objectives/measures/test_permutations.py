"""The permutation null of empowerment, and when the excess over it is told."""

import math

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.objectives import empowerment
from openfield.objectives.measures import permutations
from openfield.objectives.measures.excess import TOLERANCE, describe_saturation, estimate_empowerment
from openfield.objectives.measures.permutations import permute_actions
from openfield.objectives.tables.counts import count_columns
from openfield.objectives.tables.rows import Columns


def make_columns(transitions, inputs, actions, nexts, *, control=0.0, seed=0):
    """Draw transitions in which the action decides the next input with a probability."""
    random = np.random.default_rng(seed)
    obs, action = random.integers(0, inputs, transitions), random.integers(0, actions, transitions)
    free = random.integers(0, nexts, transitions)
    then = np.where(random.random(transitions) < control, action % nexts, free)
    keys, counts = np.unique(np.stack((obs, then, action)), axis=1, return_counts=True)
    return Columns(*keys, counts)


def shuffle_by_hand(columns, draws, seed):
    """Shuffle a list of transitions input by input, with Python's and NumPy's plainest means."""
    random, found = np.random.default_rng(seed), []
    obs, then, action = (np.repeat(column, columns.counts) for column in columns[:3])
    for _ in range(draws):
        shuffled = action.copy()
        for each in np.unique(obs):
            shuffled[obs == each] = random.permutation(action[obs == each])
        table = {}
        for key in zip(obs.tolist(), shuffled.tolist(), then.tolist(), strict=True):
            table[key] = table.get(key, 0) + 1
        found.append(empowerment(table))
    return np.array(found)


def test_shuffles_are_those_of_transitions():
    columns = make_columns(600, 12, 4, 5, control=0.6)
    ours, theirs = permute_actions(columns), shuffle_by_hand(columns, 60, 1)
    assert ours.mean() == pytest.approx(theirs.mean(), abs=4 * theirs.std() / math.sqrt(60))
    assert 0.7 < ours.std() / theirs.std() < 1.4


def test_cells_may_be_drawn_instead(monkeypatch):
    columns = make_columns(20_000, 3, 3, 4)
    drawn = permute_actions(columns)
    monkeypatch.setattr(permutations, "CELL_VISITS", 10**9)
    shuffled = permute_actions(columns)
    assert not np.array_equal(drawn, shuffled)
    assert drawn.mean() == pytest.approx(shuffled.mean(), rel=0.1)
    assert 0.7 < drawn.std() / shuffled.std() < 1.4


def test_compiled_code_shuffles_alike(monkeypatch):
    pytest.importorskip("numba")
    columns = make_columns(3_000, 200, 6, 9, control=0.3)
    plain = permute_actions(columns, 20, seed=5)
    monkeypatch.setattr(permutations, "WORTH_COMPILING", 0)
    assert permute_actions(columns, 20, seed=5) == pytest.approx(plain, abs=1e-12)


def test_the_order_of_rows_and_the_number_at_once_change_nothing(monkeypatch):
    columns = make_columns(2_000, 50, 4, 6)
    found = permute_actions(columns, 30)
    order = np.random.default_rng(3).permutation(len(columns.obs))
    again = permute_actions(Columns(*(column[order] for column in columns)), 30)
    monkeypatch.setattr(permutations, "AT_ONCE", 1)
    assert np.array_equal(found, again)
    assert np.array_equal(found, permute_actions(columns, 30))
    assert not np.array_equal(found, permute_actions(columns, 30, seed=1))


def test_actions_that_say_nothing_have_no_excess():
    """The plug-in value is far from 0, but so is that of shuffled actions."""
    columns = make_columns(2_000, 60, 8, 20)
    found = estimate_empowerment(columns)
    assert found.value > 0.5
    assert found.band[0] <= found.value <= found.band[1]
    assert found.p > 0.05
    assert (found.excess, found.reason) == (None, "too few visits (4.2 per input-action pair)")


def test_an_excess_is_told_where_it_is_near_the_truth():
    columns = make_columns(6_000, 5, 4, 4, control=1.0)
    found = estimate_empowerment(columns)
    assert found.p == 1 / 201
    assert abs(found.excess - math.log(4)) < TOLERANCE * math.log(4)
    assert found.excess == found.value - found.null
    few = estimate_empowerment(make_columns(60, 5, 4, 4, control=1.0))
    assert few.excess is None


@pytest.mark.parametrize("visits", [1, 2])
def test_inputs_that_hardly_repeat_are_not_identifiable(visits):
    """Every input is met once or twice: value and null are 0 or equal, and nothing is known."""
    number = np.arange(400)
    columns = Columns(number // visits, number, number % 3, np.ones(400, int))
    found = estimate_empowerment(columns)
    assert found.excess is None
    assert "too few visits" in found.reason
    assert bool(describe_saturation(count_columns(columns))) is (visits == 1)


def test_what_cannot_be_shuffled_says_why():
    columns = make_columns(100, 5, 2, 2)
    halves = columns._replace(counts=columns.counts / 2)
    with pytest.raises(InvalidInput, match="Fractional"):
        permute_actions(halves)
    assert estimate_empowerment(halves).reason == "fractional counts cannot be shuffled"
    assert estimate_empowerment(columns, draws=0).null is None
    often = columns._replace(counts=columns.counts * 10**9)
    assert "visited more than 1,000,000,000 times" in estimate_empowerment(often).reason
    with pytest.raises(InvalidInput, match="no transitions"):
        estimate_empowerment(Columns(*(column[:0] for column in columns)))
