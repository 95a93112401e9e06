from __future__ import annotations

import numpy as np
import pytest

from openfield.metrics.comparison import AgentScores, compare_agents, measure_gain
from openfield.metrics.scenario import Scenario
from openfield.report.words import describe_basis

SCENARIO = Scenario("tiny", ("flipped",), False, "")


def draw_pairs(shared: float, own: float, n: int) -> list[tuple[float, float]]:
    """Draw scores of two agents: what a world makes of both, and what is each agent's own."""
    random = np.random.default_rng(0)
    world, one, two = (random.normal(0, size, n) for size in (shared, own, own))
    return list(zip((world + one).tolist(), (world + two).tolist(), strict=True))


@pytest.mark.parametrize(("shared", "gain"), [(0.0, 1.0), (1.0, 2.0), (2.0, 5.0)])
def test_the_gain_of_pairing_is_what_worlds_do_to_both_agents(shared: float, gain: float) -> None:
    assert measure_gain(draw_pairs(shared, 1.0, 20_000)) == pytest.approx(gain, rel=0.05)


def test_there_is_no_gain_of_few_trials_or_of_equal_differences() -> None:
    assert measure_gain(draw_pairs(1.0, 1.0, 9)) is None
    assert measure_gain([(score / 10 + 0.3, score / 10) for score in range(12)]) is None


@pytest.mark.parametrize("is_open", [False, True])
def test_a_comparison_says_what_pairing_is_worth(is_open: bool) -> None:
    pairs = [(0.5 + one / 20, 0.4 + two / 20) for one, two in draw_pairs(2.0, 1.0, 12)]
    scores = {
        (SCENARIO, name): AgentScores({str(at): pair[side] for at, pair in enumerate(pairs)}, {}, is_open)
        for side, name in enumerate(("one", "two"))
    }
    (found,) = compare_agents(scores)
    assert found.gain == measure_gain([(one, two) for one, two in pairs])
    assert found.gain > 2
    assert describe_basis(found) == f"12 shared trials, worth {12 * found.gain:.0f} apart"


def test_trials_that_are_not_shared_have_no_gain() -> None:
    scores = {
        (SCENARIO, name): AgentScores({f"{name} {at}": at / 10 for at in range(6)}, {}) for name in ("one", "two")
    }
    (found,) = compare_agents(scores)
    assert not found.paired
    assert found.gain is None
    assert "worth" not in describe_basis(found)
