import math
from itertools import pairwise

import numpy as np
import pytest
from tests.support.objectives.episodes import compare_episodes, objectives_of_episodes

from openfield.objectives import empowerment, input_entropy
from openfield.objectives.intervals import GROWS, count_episode, estimate_counts, objectives_at


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
    for each in found.values():
        for interval in (each.values["input_entropy"], each.excess):
            assert interval.low < interval.value < interval.high
            assert interval.note == "episode bootstrap"
        assert each.values["empowerment"].low is None
        assert {each.values[name].note for name in each.values if name.startswith("info_gain")} == {GROWS}
    assert found["free"].excess.low > found["stuck"].excess.high
    assert objectives_of_episodes(groups, draws=100) == found
    rows = [(a, action, b) for steps in groups["free"] for (a, action), (b, _) in pairwise(steps)]
    names = {name: number for number, name in enumerate({row[0] for row in rows} | {row[2] for row in rows})}
    table = {}
    for a, action, b in rows:
        key = names[a], action, names[b]
        table[key] = table.get(key, 0) + 1
    assert found["free"].values["empowerment"].value == empowerment(table)
    assert found["free"].values["input_entropy"].value == input_entropy(table)
    distinct = found["free"].distinct
    assert (distinct["sources"], distinct["actions"], distinct["transitions"]) == (9, 3, len(table))


def test_few_or_empty_episodes_have_no_interval():
    steps = [("a", 0), ("b", 1), ("a", None)]
    found = objectives_of_episodes({"few": [steps] * 4, "none": [[("a", None)]], "nothing": []})
    assert found["few"].values["input_entropy"].low is None
    assert "fewer than 5 episodes" in found["few"].values["input_entropy"].note
    assert found["none"].values["input_entropy"].value is None
    assert found["nothing"].values["empowerment"].note == "no transitions"
    assert found["nothing"].empowerment is None


def test_entropy_of_inputs_that_hardly_repeat_has_no_interval_and_says_so():
    steps = [[((episode, step), step % 2) for step in range(4)] for episode in range(8)]
    found = objectives_of_episodes({0: steps})[0]
    assert found.values["input_entropy"].low is None
    assert found.values["input_entropy"].note == "no interval: only 0% of what would be met was seen"
    assert found.saturation.startswith("all 24 inputs are distinct")
    assert (found.excess.value, found.excess.note) == (None, "too few visits (1 per input-action pair)")


def test_intervals_over_counts_say_what_they_ignore():
    table = {(o, a, (o + a) % 9): 40 + o for o in range(9) for a in range(3)}
    found = estimate_counts(table, num_obs=20, draws=100)
    assert found.values["input_entropy"].low < found.values["input_entropy"].value < found.values["input_entropy"].high
    assert found.excess.high == pytest.approx(np.log(3))
    assert "ignores time dependence" in found.excess.note
    assert estimate_counts(table, draws=5).values["info_gain_dirichlet"].value is None
    assert estimate_counts(table, draws=0).values["input_entropy"].low is None


def test_intervals_over_counts_hold_the_truth():
    """A known distribution, redrawn: its entropy lies in nearly all of the intervals."""
    random = np.random.default_rng(1)
    chances = random.dirichlet(np.ones(12))
    truth, held = float(-(chances * np.log(chances)).sum()), 0
    for seed in range(60):
        drawn = random.multinomial(2000, chances)
        table = {(place, 0, 0): int(count) for place, count in enumerate(drawn) if count}
        interval = estimate_counts(table, draws=100, seed=seed).values["input_entropy"]
        held += interval.low <= truth <= interval.high
    assert held >= 54


def test_intervals_over_episodes_hold_the_truth():
    """On a ring, with actions that work two times in three, all places are alike and the truth is known."""
    random = np.random.default_rng(2)
    held = 0
    for _ in range(40):
        episodes = [walk(random, 100, 1 / 3) for _ in range(10)]
        excess = objectives_of_episodes({0: episodes}, num_obs=30, draws=60)[0].excess
        held += excess.low <= truth_of_ring(1 / 3) <= excess.high
    assert held >= 36


def truth_of_ring(stickiness):
    """I(A; P) of a walk that does not move with this probability, and otherwise by the action - 1 of 3."""
    moved = 1 - stickiness
    after = np.array([moved / 3, stickiness + moved / 3, moved / 3])
    given = [np.array([moved, stickiness]), np.array([1.0]), np.array([moved, stickiness])]
    entropy = lambda chances: -float((chances * np.log(chances)).sum())  # noqa: E731
    return entropy(after) - sum(map(entropy, given)) / 3


def test_values_at_equal_numbers_lie_below_those_of_all_transitions():
    random = np.random.default_rng(3)
    inputs, actions = {}, {}
    episodes = [count_episode(walk(random, 30, 0.1), inputs, actions) for _ in range(20)]
    every, some = objectives_at(episodes, 600, 9), objectives_at(episodes, 45, 9)
    assert some["input_entropy"] < every["input_entropy"]
    assert some["info_gain_dirichlet"] < every["info_gain_dirichlet"]
    assert some["info_gain_sqrt_counts"] > every["info_gain_sqrt_counts"]
    assert "empowerment" not in some
    assert objectives_at(episodes, 45, 9) == some
    assert objectives_at(episodes, 10**6, 9) == every


def test_similarity_has_no_interval():
    random = np.random.default_rng(2)
    found = compare_episodes([walk(random, 20, 0.3)] * 6, [walk(random, 20, 0.6)] * 6)
    assert all(0 < each.value < 1 and each.low is None and each.note == GROWS for each in found.values())


@pytest.mark.parametrize("count", [2**53 + 2, 2**63 - 2, 2**70])
def test_counts_of_any_size_are_redrawn(count):
    found = estimate_counts({(1, 0, 2): count, (2, 0, 1): count}, draws=50).values["input_entropy"]
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(math.log(2))
    assert found.high - found.low < 1e-6


def test_where_nothing_can_be_redrawn_values_have_no_interval():
    found = estimate_counts({(1, 0, 2): 1e-9}, num_obs=5, draws=50)
    assert all(interval.value is not None and interval.low is None for interval in found.values.values())
    assert found.values["input_entropy"].note == "too few transitions to draw from"
    assert found.excess.note == "fractional counts cannot be shuffled"
