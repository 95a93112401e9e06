from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import openfield as of
from openfield.metrics.stats import bound_mean
from openfield.planning.sample_size import (
    count_until_decided,
    draw_gaps,
    find_needs,
    find_trials,
    find_widths,
    measure_spending,
)
from support.players import copycat
from support.worlds import TINY


@pytest.mark.parametrize(("deviation", "detect"), [(0.15, 0.12), (0.3, 0.3)])
def test_the_trials_that_are_needed_show_the_difference_as_often_as_asked(deviation: float, detect: float) -> None:
    needed = find_trials(deviation, detect, 0.9)
    assert needed is not None
    rows = draw_gaps(deviation, detect, needed + 1, 200).tolist()  # other runs than those it was found with
    seen = np.mean([bound_mean(row, (-1.0, 1.0)).low > 0 for row in rows])
    assert 0.82 <= seen <= 0.98


def test_a_smaller_difference_needs_more_trials_and_a_tiny_one_too_many() -> None:
    assert find_trials(0.2, 0.1, 0.9) > find_trials(0.2, 0.2, 0.9) > 5
    assert find_trials(0.2, 0.2, 0.95) >= find_trials(0.2, 0.2, 0.8)
    assert find_trials(0.9, 0.001, 0.9) is None


def test_stopping_when_it_is_decided_takes_fewer_trials_on_average() -> None:
    planned = find_trials(0.3, 0.24, 0.9)
    assert count_until_decided(0.3, 0.24, planned) < planned
    assert count_until_decided(0.3, 0.24, None) is None
    assert count_until_decided(0.3, 0.24, 300) is None


def test_intervals_become_narrower() -> None:
    widths = list(find_widths(0.2, 0.1, (10, 20, 50)).values())
    assert widths == sorted(widths, reverse=True)


def test_agents_of_a_run_need_what_their_differences_say(tmp_path: Path) -> None:
    agents = {"copycat": copycat, "random": "random"}
    result = of.run(agents, of.trials(TINY, 10), tmp_path / "run.sqlite")
    (need,) = find_needs(result, 0.2, 0.9)
    assert (need.first, need.second, need.measured) == ("copycat", "random", 10)
    assert need.difference < 0
    assert need.deviation < need.highest_deviation < 2 * need.deviation
    assert need.trials < need.trials_at_most
    spending = measure_spending(result)
    assert set(spending) == {"copycat", "random"}
    assert spending["copycat"].seconds > 0
    assert spending["copycat"].cost is None
