from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openfield.metrics.confidence_sequences import (
    MIN_ASYMPTOTIC,
    Blocks,
    asymptotic_width,
    bet_against,
    bet_on_share,
    follow_mean,
    follow_ratio,
    follow_share,
    is_within,
    trace_capital,
)
from openfield.metrics.stats import Ratio, bound_mean, bound_ratio

PUBLISHED: dict[str, Any] = json.loads(Path(__file__).with_name("confseq.json").read_bytes())
"""Figures of a published implementation, computed once."""
scores = st.lists(st.floats(0, 1), min_size=5, max_size=40)


class TestMeans:
    @pytest.mark.parametrize("case", PUBLISHED["limits"], ids=lambda case: f"{case['values']}, {case['first']}")
    def test_limits_and_capital_are_those_of_a_published_implementation(self, case: dict[str, Any]) -> None:
        values = PUBLISHED["values"][case["values"]][: case["first"]]
        found = follow_mean(values, (0.0, 1.0), case["level"])
        assert found.low == pytest.approx(case["low"], abs=1e-6)
        assert found.high == pytest.approx(case["high"], abs=1e-6)
        assert bet_against(values, 0.5, (0.0, 1.0)) == pytest.approx(min(1, 1 / case["capital_at_half"]), rel=1e-6)

    def test_the_capital_is_traced_bet_by_bet(self) -> None:
        gains = np.array([[0.2, -0.5, 1.0], [-1.0, 0.3, 0.0]])
        whole = trace_capital(gains)
        for row, one in zip(whole, gains, strict=True):
            assert row == pytest.approx([trace_capital(one[: n + 1])[-1] for n in range(3)])

    @given(scores, st.permutations(range(5)))
    def test_the_order_of_trials_changes_nothing(self, values: list[float], order: list[int]) -> None:
        assert follow_mean([*(values[:5][place] for place in order), *values[5:]]) == follow_mean(values)

    @given(scores)
    def test_the_interval_holds_the_mean_and_nearly_all_that_the_conservative_one_holds(self, v: list[float]) -> None:
        found, safe = follow_mean(v), bound_mean(v, (0.0, 1.0))
        assert 0 <= found.low <= found.mean <= found.high <= 1
        assert found.high - found.low > 0.95 * (safe.high - safe.low)

    @given(scores, st.floats(-5, 5), st.floats(0.1, 10))
    def test_other_bounds_are_the_same_interval_on_their_scale(
        self, v: list[float], start: float, reach: float
    ) -> None:
        plain = follow_mean(v)
        moved = follow_mean([start + reach * min(value, 0.999) for value in v], (start, start + reach))
        cut = follow_mean([min(value, 0.999) for value in v])
        assert plain.n == moved.n
        assert moved.low == pytest.approx(start + reach * cut.low, abs=1e-6 * reach)
        assert moved.high == pytest.approx(start + reach * cut.high, abs=1e-6 * reach)

    @pytest.mark.parametrize("level", [0.05, 0.01])
    def test_a_value_is_refuted_where_the_interval_does_not_hold_it(self, level: float) -> None:
        values = PUBLISHED["values"]["spread"]
        found = follow_mean(values, (0.0, 1.0), level)
        for value, holds in (
            (found.low - 1e-4, False),
            (found.low + 1e-4, True),
            (found.high - 1e-4, True),
            (found.high + 1e-4, False),
        ):
            p = bet_against(values, value, (0.0, 1.0))
            assert p is not None
            assert (p > level) is holds

    @pytest.mark.parametrize(("shift", "inside"), [(1e-4, True), (-1e-4, False)])
    def test_an_interval_is_within_limits_beyond_its_own(self, shift: float, inside: bool) -> None:
        values = PUBLISHED["values"]["spread"]
        found = follow_mean(values)
        assert is_within(values, (found.low - shift, found.high + shift), (0.0, 1.0), 0.05) is inside
        assert not is_within(values, (found.low + 1e-4, 0.99), (0.0, 1.0), 0.05)
        assert not is_within(values[:4], (0.01, 0.99), (0.0, 1.0), 0.05)

    def test_few_trials_have_neither_interval_nor_p_value(self) -> None:
        assert str(follow_mean([0.5] * 4)) == "0.50, 4 trials"
        assert follow_mean([]).mean is None
        assert bet_against([0.1] * 4, 0.5, (0.0, 1.0)) is None

    def test_one_that_is_looked_at_after_every_trial_seldom_misses(self) -> None:
        rng, missed = np.random.default_rng(3), 0
        for _ in range(200):
            scores = (rng.random(60) < 0.3) * 1.0
            gains = np.stack([scores / 0.3 - 1, (1 - scores) / 0.7 - 1])
            missed += bool(trace_capital(gains)[:, 4:].max() > math.log(2 / 0.05))
        assert missed <= 18  # 10 are allowed, and 2.5 standard deviations more


class TestUnbounded:
    @pytest.mark.parametrize("case", PUBLISHED["asymptotic"], ids=lambda case: str(case["n"]))
    def test_the_width_is_that_of_a_published_implementation(self, case: dict[str, Any]) -> None:
        assert asymptotic_width(int(case["n"]), case["level"]) == pytest.approx(case["width"], abs=1e-6)

    def test_it_is_called_asymptotic_and_there_is_none_for_few_trials(self) -> None:
        values = [float(value) for value in range(MIN_ASYMPTOTIC)]
        found = follow_mean(values, None)
        assert str(found).endswith("] asymptotic")
        assert found.low < 14.5 < found.high
        assert follow_mean(values[1:], None).low is None
        assert "all 40 equal" in str(follow_mean([2.0] * 40, None))

    def test_it_is_cut_where_no_value_can_be(self) -> None:
        values = [0.0] * 35 + [9.0] * 5
        assert follow_mean(values, (0.0, None)).low == 0.0
        assert follow_mean(values, None).low < 0.0

    def test_a_value_out_of_bounds_makes_it_asymptotic(self) -> None:
        assert follow_mean([*([0.5] * 39), 1.5]).note == "asymptotic"


class TestRatios:
    @given(st.lists(st.tuples(st.floats(0.05, 1), st.floats(0.05, 1)), min_size=5, max_size=30))
    def test_it_holds_the_ratio_and_is_wider_than_the_conservative_interval(
        self, pairs: list[tuple[float, float]]
    ) -> None:
        found = Ratio(dict(enumerate(a for a, _ in pairs)), dict(enumerate(b for _, b in pairs)))
        ours, safe = follow_ratio(found), bound_ratio(found)
        assert ours.low <= ours.mean <= ours.high
        assert ours.high / max(ours.low, 1e-9) > 0.9 * safe.high / max(safe.low, 1e-9)

    def test_the_inverse_ratio_has_the_inverse_interval(self) -> None:
        above, below = {n: 0.2 + n / 20 for n in range(12)}, {n: 0.9 - (n % 5) / 8 for n in range(12)}
        found, inverse = follow_ratio(Ratio(above, below)), follow_ratio(Ratio(below, above))
        assert (inverse.low, inverse.high) == pytest.approx((1 / found.high, 1 / found.low), rel=1e-6)

    def test_nothing_above_is_a_ratio_of_nothing_with_an_upper_limit(self) -> None:
        found = follow_ratio(Ratio(dict.fromkeys(range(8), 0.0), dict.fromkeys(range(8), 0.5)))
        assert (found.mean, found.low) == (0.0, 0.0)
        assert 0 < found.high < math.inf

    def test_without_pairs_there_is_no_interval(self) -> None:
        found = follow_ratio(Ratio(dict.fromkeys(range(9), 0.5), dict.fromkeys(range(7), 0.5)))
        assert (found.mean, found.low) == (1.0, None)
        assert "while trials are missing" in str(found)


class TestShares:
    def test_limits_hold_the_share_and_exclude_where_the_bet_is_won(self) -> None:
        rng = np.random.default_rng(0)
        pairs = rng.integers(5, 30, 40).astype(float)
        wins = np.round(pairs * 0.8)
        found = Blocks(wins[None], (pairs - wins)[None], pairs[None], np.full((1, 40), 30.0))
        low, high = follow_share(found)
        assert 0.5 < low < wins.sum() / pairs.sum() < high < 1
        assert bet_on_share(found, 0.5) < 0.025 < bet_on_share(found, low + 1e-6)

    def test_blocks_that_are_all_won_exclude_no_higher_share(self) -> None:
        five = np.full((1, 10), 5.0)
        found = Blocks(five, np.zeros((1, 10)), five, five)
        low, high = follow_share(found)
        assert high == 1.0
        assert low == pytest.approx(math.exp(-math.log(40) / 10), abs=0.01)  # who bets everything on each block
