import math
from itertools import pairwise

import numpy as np
import pytest
from tests.support.objectives.episodes import compare_episodes, objectives_of_episodes

from openfield.objectives.intervals import bootstrap_counts


def walk(random, steps, stickiness):
    at, found = 0, []
    for _ in range(steps):
        action = int(random.integers(0, 3))
        found.append((f"place {at}", action))
        if random.random() > stickiness:
            at = (at + action - 1) % 9
    return [*found, (f"place {at}", None)]


def test_intervals_over_episodes():
    random = np.random.default_rng(0)
    groups = {name: [walk(random, 60, how) for _ in range(30)] for name, how in (("free", 0.1), ("stuck", 0.9))}
    found = objectives_of_episodes(groups, draws=100)
    for intervals in found.values():
        for interval in intervals.values():
            assert interval.low <= interval.value <= interval.high
    assert found["free"]["empowerment"].low > found["stuck"]["empowerment"].high
    assert objectives_of_episodes(groups, draws=100) == found
    rows = [(a, action, b) for steps in groups["free"] for (a, action), (b, _) in pairwise(steps)]
    names = {name: number for number, name in enumerate({row[0] for row in rows} | {row[2] for row in rows})}
    table = {}
    for a, action, b in rows:
        key = names[a], action, names[b]
        table[key] = table.get(key, 0) + 1
    from openfield.objectives import empowerment, input_entropy

    assert found["free"]["empowerment"].value == empowerment(table)
    assert found["free"]["input_entropy"].value == input_entropy(table)


def test_few_or_empty_episodes_have_no_interval():
    steps = [("a", 0), ("b", 1), ("a", None)]
    found = objectives_of_episodes({"few": [steps] * 4, "none": [[("a", None)]], "nothing": []})
    assert found["few"]["input_entropy"].low is None
    assert "fewer than 5 episodes" in found["few"]["input_entropy"].note
    assert found["none"]["input_entropy"].value is None
    assert found["nothing"]["empowerment"].note == "no transitions"


def test_intervals_over_counts_say_what_they_ignore():
    table = {(o, a, (o + a) % 9): 20 + o for o in range(9) for a in range(3)}
    found = bootstrap_counts(table, num_obs=20, draws=100)
    assert found["input_entropy"].low < found["input_entropy"].value < found["input_entropy"].high
    assert found["empowerment"].high == pytest.approx(np.log(3))
    assert "ignores time dependence" in found["empowerment"].note
    assert bootstrap_counts(table, draws=5)["info_gain_dirichlet"].value is None


def test_intervals_over_counts_hold_the_truth():
    """A known distribution, redrawn: its entropy lies in nearly all of the intervals."""
    random = np.random.default_rng(1)
    chances = random.dirichlet(np.ones(12))
    truth, held = float(-(chances * np.log(chances)).sum()), 0
    for seed in range(60):
        drawn = random.multinomial(2000, chances)
        table = {(place, 0, 0): int(count) for place, count in enumerate(drawn) if count}
        interval = bootstrap_counts(table, draws=100, seed=seed)["input_entropy"]
        held += interval.low <= truth <= interval.high
    assert held >= 51


def test_intervals_over_episodes_hold_what_other_episodes_give():
    """The mean of the same statistic over many sets of ten episodes lies in nearly all of their intervals."""
    random = np.random.default_rng(2)
    sets = [[walk(random, 20, 0.3) for _ in range(10)] for _ in range(60)]
    person = [walk(random, 20, 0.6) for _ in range(10)]
    found = [
        objectives_of_episodes({0: episodes}, num_obs=30, draws=60)[0] | compare_episodes(person, episodes, draws=60)
        for episodes in sets
    ]
    for name in found[0]:
        mean = np.mean([each[name].value for each in found])
        assert sum(each[name].low <= mean <= each[name].high for each in found) >= 50, name


def test_intervals_stay_within_what_can_be():
    """Every transition is met once: no other episodes could give more."""
    steps = [[((episode, step), 0) for step in range(4)] for episode in range(8)]
    found = objectives_of_episodes({0: steps}, num_obs=32, draws=60)[0]
    assert found["info_gain_sqrt_counts"].high == 1
    assert found["info_gain_log_counts"].high == pytest.approx(math.log(2))
    assert found["input_entropy"].high <= math.log(24) + 1e-12
    assert found["empowerment"].high == 0
    stuck = objectives_of_episodes({0: [[("a", 0)] * 5] * 6}, num_obs=32, draws=60)[0]
    assert stuck["info_gain_sqrt_counts"].low == pytest.approx(24**-0.5)
    assert stuck["info_gain_log_counts"].low == pytest.approx(math.log(25) / 24)


@pytest.mark.parametrize("count", [2**53 + 2, 2**63 - 2, 2**70])
def test_counts_of_any_size_are_redrawn(count):
    found = bootstrap_counts({(1, 0, 2): count, (2, 0, 1): count}, draws=50)["input_entropy"]
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(math.log(2))
    assert found.high - found.low < 1e-6


def test_where_nothing_can_be_redrawn_values_have_no_interval():
    found = bootstrap_counts({(1, 0, 2): 1e-9}, num_obs=5, draws=50)
    assert all(interval.value is not None and interval.low is None for interval in found.values())
    assert found["empowerment"].note == "too few transitions to draw from"
