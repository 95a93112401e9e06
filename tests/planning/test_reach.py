from __future__ import annotations

import pytest

import openfield as of
from openfield.metrics.confidence_sequences import follow_mean
from openfield.metrics.stats import bound_mean
from openfield.planning.reach import count_by_scenario, find_least_difference, say_reach
from openfield.runner.plan import make_plan
from support.players import copycat
from support.worlds import TINY


@pytest.mark.parametrize("trials", [6, 10, 40])
@pytest.mark.parametrize(("stops", "rule"), [(False, bound_mean), (True, follow_mean)])
def test_the_least_difference_is_where_the_interval_begins_to_exclude_none(
    trials: int, stops: bool, rule: type
) -> None:
    least = find_least_difference(trials, stops)
    assert least is not None
    assert rule([least + 0.001] * trials, (-1.0, 1.0)).low > 0
    assert rule([least - 0.001] * trials, (-1.0, 1.0)).low <= 0


def test_few_trials_show_nothing() -> None:
    assert find_least_difference(5) is None
    assert find_least_difference(1) is None
    assert say_reach(5) == "5 trials: no difference between agents can be seen, below 6 trials none can"
    assert say_reach(10) == "10 trials: only differences above 0.45 can be seen"
    assert say_reach(10, stops=True) == "10 trials: only differences above 0.51 can be seen"


def test_trials_of_each_scenario_are_counted_without_twins() -> None:
    trials = [*of.trials(TINY, 10), *of.trials(TINY, 7, novelty="none")]
    assert sorted(count_by_scenario(make_plan(copycat, trials))) == [7, 10]
