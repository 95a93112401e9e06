from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from openfield.metrics.stats import (
    FROM_ZERO,
    Estimate,
    Ratio,
    beta_quantile,
    beta_share,
    bound_mean,
    bound_ratio,
    estimate_count,
    estimate_improvement,
    estimate_iqm,
    estimate_mean,
    estimate_paired_improvement,
    estimate_rate,
    estimate_ratio,
    interquartile_mean,
    share_below,
    t_quantile,
)

scores = st.lists(st.floats(0, 1), min_size=5, max_size=40)
counts = st.lists(st.integers(0, 50).map(float), min_size=5, max_size=40)
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


class TestText:
    def test_shows_mean_and_interval(self) -> None:
        assert str(Estimate(0.62, 0.514, 0.716, 12)) == "0.62 [0.51, 0.72]"

    @pytest.mark.parametrize(
        "estimate",
        [
            estimate_mean,
            estimate_count,
            estimate_rate,
            estimate_iqm,
            lambda v: estimate_improvement(v, v),
            lambda v: estimate_paired_improvement(v, v),
            lambda v: bound_mean(v, (0.0, 1.0)),
            lambda v: bound_ratio(Ratio(dict(enumerate(v)), dict.fromkeys(range(len(v)), 1.0))),
            lambda v: estimate_ratio(Ratio(dict(enumerate(v)), dict.fromkeys(range(len(v)), 1.0))),
        ],
    )
    @pytest.mark.parametrize(
        ("n", "text"),
        [(0, "–"), (1, "0.50, 1 trial"), (2, "0.50, 2 trials"), (3, "0.50, 3 trials"), (4, "0.50, 4 trials")],
    )
    def test_below_five_trials_there_is_a_value_and_no_interval(
        self, estimate: Callable[[list[float]], Estimate], n: int, text: str
    ) -> None:
        found = estimate([0.5] * n)
        assert str(found) == text
        assert (found.mean, found.low, found.high, found.n) == (0.5 if n else None, None, None, n)

    def test_shows_a_p_value(self) -> None:
        assert str(Estimate(0.9, 0.6, 0.98, 7, p=0.0123)) == "0.90 [0.60, 0.98], p=0.012"
        assert str(Estimate(0.9, None, None, 3, p=0.0001)) == "0.90, 3 trials, p<0.001"

    def test_shows_no_decimals_of_large_values(self) -> None:
        assert str(Estimate(1234.5678, 99.4, 2000.0, 12)) == "1235 [99, 2000]"
        assert str(Estimate(99.99, 1.0, 2000.0, 12)) == "99.99 [1.00, 2000.00]"

    def test_says_what_a_number_exceeds(self) -> None:
        assert str(Estimate(None, None, None, 6, beyond=30000.0)) == "> 30,000"
        assert str(Estimate(None, None, None, 2, beyond=500.0)) == "> 500, 2 trials"

    def test_says_when_there_is_no_interval(self) -> None:
        assert str(estimate_count([2.0] * 7)) == "2.00 (all 7 equal)"

    def test_survives_json(self) -> None:
        found = estimate_mean([0.1, 0.2, 0.3, 0.4, 0.6])
        assert msgspec.json.decode(msgspec.json.encode(found), type=Estimate) == found


class TestMean:
    def test_is_students_interval_on_the_logit_scale(self) -> None:
        values = [0.3, 0.4, 0.5, 0.6, 0.95]
        mean = statistics.fmean(values)
        half = stats.t.ppf(0.975, 4) * stats.sem(values) / (mean * (1 - mean))
        found = estimate_mean(values)
        limits = special.expit([special.logit(mean) - half, special.logit(mean) + half])
        assert (found.mean, found.low, found.high) == pytest.approx((mean, *limits))

    def test_other_bounds_stretch_the_interval(self) -> None:
        values = [0.3, 0.4, 0.5, 0.6, 0.95]
        found, wider = estimate_mean(values), estimate_mean([2 * value - 1 for value in values], (-1.0, 1.0))
        assert (wider.low, wider.high) == pytest.approx((2 * (found.low or 0) - 1, 2 * (found.high or 0) - 1))

    def test_solves_halls_cubic_where_there_are_no_bounds(self) -> None:
        values = [0.1, 0.12, 0.2, 0.25, 0.6, 0.3]
        found = estimate_mean(values, bounds=None)
        mean, error = statistics.mean(values), statistics.stdev(values) / math.sqrt(6)
        want, a = stats.t.ppf(0.975, 5), stats.skew(values, bias=False) / math.sqrt(6)

        def cubic(t: float) -> float:
            return t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6

        assert found.low is not None
        assert found.high is not None
        assert cubic((mean - found.low) / error) == pytest.approx(want)
        assert cubic((mean - found.high) / error) == pytest.approx(-want)

    def test_values_beyond_their_bounds_have_none(self) -> None:
        values = [0.2, 0.4, 0.6, 0.8, 1.2]
        assert estimate_mean(values) == estimate_mean(values, bounds=None)

    def test_all_equal_is_not_certainty(self) -> None:
        found = estimate_mean([1.0] * 5)
        assert (found.mean, found.high) == (1.0, 1.0)
        assert found.low == pytest.approx(0.05**0.2)
        assert found.note == "all 5 equal"

    def test_what_is_never_negative_has_no_interval_below_zero(self) -> None:
        values = [0.0, 12.0, 90.0, 0.0, 73.0]
        free, found = estimate_mean(values, bounds=None), estimate_mean(values, bounds=FROM_ZERO)
        assert free.low is not None
        assert free.low < 0
        assert found == Estimate(free.mean, 0.0, free.high, 5)
        assert estimate_mean([-1.0, *values], FROM_ZERO) == estimate_mean([-1.0, *values], None)
        assert estimate_mean([3.0] * 5, FROM_ZERO) == estimate_mean([3.0] * 5, None)

    def test_all_equal_without_bounds_has_no_interval(self) -> None:
        assert estimate_mean([3.0] * 5, bounds=None) == Estimate(3.0, None, None, 5, "all 5 equal")

    @given(scores)
    def test_interval_holds_the_mean_and_stays_in_bounds(self, values: list[float]) -> None:
        found = estimate_mean(values)
        assert found.mean == pytest.approx(statistics.fmean(values))
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.mean + 1e-12
        assert found.mean - 1e-12 <= found.high <= 1

    @given(scores)
    def test_mirrored_values_have_the_mirrored_interval(self, values: list[float]) -> None:
        found, mirrored = estimate_mean(values), estimate_mean([1 - value for value in values])
        assert found.low == pytest.approx(1 - (mirrored.high or 0), abs=1e-6)


class TestCount:
    def test_is_students_interval_on_the_logarithm(self) -> None:
        values = [0.0, 1.0, 4.0, 5.0, 5.0]
        spread = stats.t.ppf(0.975, 4) * stats.sem(values) / 3
        found = estimate_count(values)
        assert (found.mean, found.low, found.high) == pytest.approx((3.0, 3 * math.exp(-spread), 3 * math.exp(spread)))

    def test_a_tail_far_from_zero_raises_the_upper_limit_to_halls(self) -> None:
        values = [20.0, 20.0, 21.0, 21.0, 35.0]
        found, halls = estimate_count(values), estimate_mean(values, bounds=None)
        mean = statistics.fmean(values)
        assert found.high == halls.high
        assert found.low == pytest.approx(mean * math.exp(-stats.t.ppf(0.975, 4) * stats.sem(values) / mean))

    @given(counts)
    def test_never_reaches_below_zero(self, values: list[float]) -> None:
        found = estimate_count(values)
        assert found.low is None or 0 <= found.low <= (found.mean or 0) <= (found.high or 0) < math.inf


class TestRate:
    @pytest.mark.parametrize(("hits", "n"), [(0, 5), (1, 5), (5, 5), (3, 10), (29, 30)])
    def test_is_jeffreys_interval(self, hits: int, n: int) -> None:
        found = estimate_rate([1.0] * hits + [0.0] * (n - hits))
        low, high = stats.beta.ppf([0.025, 0.975], hits + 0.5, n - hits + 0.5)
        assert found.mean == hits / n
        assert found.low == pytest.approx(low if hits else 0)
        assert found.high == pytest.approx(high if hits < n else 1)

    @pytest.mark.parametrize("n", [5, 10, 30])
    def test_mean_coverage_over_all_rates(self, n: int) -> None:
        intervals = [estimate_rate([1.0] * hits + [0.0] * (n - hits)) for hits in range(n + 1)]
        covered = [
            sum(stats.binom.pmf(hits, n, p) for hits, e in enumerate(intervals) if e.low <= p <= e.high)  # type: ignore[operator]
            for p in np.linspace(0.005, 0.995, 100)
        ]
        assert 0.93 <= statistics.fmean(covered) <= 0.97


class TestRatio:
    def test_is_students_interval_on_the_logarithm_of_pairs(self) -> None:
        above, below = {1: 2.0, 2: 4.0, 3: 6.0, 4: 3.0, 5: 5.0}, {1: 1.0, 2: 3.0, 3: 2.0, 4: 2.0, 5: 2.0}
        gaps = [above[key] / 4 - below[key] / 2 for key in above]
        width = stats.t.ppf(0.975, 4) * statistics.stdev(gaps) / math.sqrt(5)
        found = estimate_ratio(Ratio(above, below))
        assert (found.mean, found.n) == (2.0, 5)
        assert (found.low, found.high) == pytest.approx((2 * math.exp(-width), 2 * math.exp(width)))

    def test_samples_without_pairs_add_their_errors(self) -> None:
        values = [2.0, 4.0, 6.0, 3.0, 5.0]
        apart = estimate_ratio(Ratio(dict(enumerate(values)), dict(enumerate(values, 10))))
        error = statistics.stdev(values) / 4 / math.sqrt(5)
        width = stats.t.ppf(0.975, 4) * math.sqrt(2 * error**2 * (4 / 5) * (10 / 9))
        assert (apart.low, apart.high) == pytest.approx((math.exp(-width), math.exp(width)))

    def test_has_no_interval_without_spread_and_no_value_without_a_divisor(self) -> None:
        same = dict.fromkeys(range(5), 2.0)
        assert estimate_ratio(Ratio(same, same)) == Estimate(1.0, None, None, 5, "all 5 equal")
        assert estimate_ratio(Ratio(dict.fromkeys(range(5), 0.0), same)).mean == 0.0
        assert estimate_ratio(Ratio(same, dict.fromkeys(range(5), 0.0))).mean is None
        assert estimate_ratio(Ratio({}, same)).mean is None


class TestInterquartileMean:
    def test_by_hand(self) -> None:
        # A quarter of 5 is 1.25: the lowest goes, three quarters of the next stay.
        assert interquartile_mean([9.0, 1.0, 2.0, 3.0, 4.0]) == pytest.approx((0.75 * 2 + 3 + 0.75 * 4) / 2.5)

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
    def test_equals_the_mean_of_the_middle_half_of_fourfold_values(self, values: list[float]) -> None:
        fourfold = sorted(value for value in values for _ in range(4))
        middle = fourfold[len(values) : 3 * len(values)]
        assert interquartile_mean(values) == pytest.approx(statistics.fmean(middle))

    @given(st.lists(st.floats(0, 1), min_size=2, max_size=10))
    def test_equals_scipys_trimmed_mean_where_nothing_is_split(self, values: list[float]) -> None:
        assert interquartile_mean(values * 4) == pytest.approx(stats.trim_mean(values * 4, 0.25))

    @given(scores)
    def test_interval_holds_the_estimate(self, values: list[float]) -> None:
        found = estimate_iqm(values)
        assert found.mean == pytest.approx(interquartile_mean(values))
        assert (found.low or 0) - 1e-12 <= (found.mean or 0) <= (found.high or 0) + 1e-12


def slow_improvement(first: Sequence[float], second: Sequence[float]) -> float:
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in itertools.product(first, second)]
    return sum(wins) / len(wins)


def slow_limits(chance: float, m: int, n: int) -> tuple[float, float]:
    """Newcombe's limits by trying every true value on a grid."""
    kept = []
    quantile = float(stats.norm.ppf(0.975))
    for true in np.linspace(0, 1, 20_001):
        more = (m + n) / 2 - 1
        variance = true * (1 - true) / (m * n) * (1 + more * (1 - true) / (2 - true) + more * true / (1 + true))
        if abs(chance - true) <= quantile * math.sqrt(variance) + 1e-12:
            kept.append(float(true))
    return min(kept), max(kept)


class TestImprovement:
    @given(scores, scores)
    def test_equals_the_slow_count_and_mann_whitney(self, first: list[float], second: list[float]) -> None:
        found = estimate_improvement(first, second).mean
        assert found == pytest.approx(slow_improvement(first, second))
        assert found == pytest.approx(stats.mannwhitneyu(first, second).statistic / len(first) / len(second))

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ([5, 6, 7, 8, 9], [1, 2, 3, 4, 4.5]),
            ([1, 2, 3, 4, 4.5], [5, 6, 7, 8, 9]),
            ([1, 3, 5, 7, 9, 11], [2, 3.5, 4, 6, 8]),
            (range(30), [number + 0.5 for number in range(3, 23)]),
        ],
    )
    def test_limits_equal_the_slow_ones(self, first: Sequence[float], second: Sequence[float]) -> None:
        found = estimate_improvement(first, second)
        slow = slow_limits(slow_improvement(first, second), len(first), len(second))
        assert (found.low, found.high) == pytest.approx(slow, abs=1e-4)

    @given(scores, scores)
    def test_exchanged_agents_have_the_mirrored_interval(self, first: list[float], second: list[float]) -> None:
        one, other = estimate_improvement(first, second), estimate_improvement(second, first)
        assert one.low == pytest.approx(1 - (other.high or 0), abs=1e-9)

    def test_paired_counts_trial_by_trial(self) -> None:
        found = estimate_paired_improvement([0.5, 0.5, 0.5, 0.9, 0.1], [0.4, 0.6, 0.6, 0.8, 0.0])
        assert found == estimate_rate([1, 0, 0, 1, 1])

    @pytest.mark.parametrize(("won", "tied", "lost"), [(3, 1, 1), (0, 5, 0), (0, 9, 1), (30, 40, 10)])
    def test_paired_with_ties_is_jeffreys_interval_for_three_outcomes(self, won: int, tied: int, lost: int) -> None:
        drawn = np.random.default_rng(0).dirichlet((won + 0.5, tied + 0.5, lost + 0.5), 400_000)
        low, high = np.quantile(drawn[:, 0] + drawn[:, 1] / 2, (0.025, 0.975))
        found = estimate_paired_improvement([1.0] * won + [0.5] * tied + [0.0] * lost, [0.5] * (won + tied + lost))
        assert found.mean == (won + tied / 2) / (won + tied + lost)
        assert (found.low, found.high) == pytest.approx((low, high), abs=2e-3)

    @pytest.mark.slow
    @pytest.mark.parametrize(("n", "ties"), [(5, 0.3), (10, 0.3), (10, 0.7), (20, 0.5), (30, 0.9)])
    def test_paired_mean_coverage_with_ties(self, n: int, ties: float) -> None:
        often = stats.binom.pmf(range(n + 1), n, ties) > 1e-9  # what hardly happens adds nothing to the sums
        outcomes = [(won, tied, n - won - tied) for won in range(n + 1) for tied in range(n + 1 - won) if often[tied]]
        limits = []
        for won, tied, lost in outcomes:
            found = estimate_paired_improvement([1.0] * won + [0.5] * tied + [0.0] * lost, [0.5] * n)
            limits.append((found.low or 0.0, found.high or 0.0))
        covered = []
        for share in np.linspace(0.02, 0.98, 25):
            chances = stats.multinomial.pmf(outcomes, n, ((1 - ties) * share, ties, (1 - ties) * (1 - share)))
            truth = (1 - ties) * share + ties / 2
            covered.append(sum(p for p, (a, b) in zip(chances, limits, strict=True) if a <= truth <= b))
        assert 0.93 <= statistics.fmean(covered) <= 0.97

    def test_ties_between_agents_narrow_the_interval(self) -> None:
        first, second = [0.0, 0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0, 1.0]
        found = estimate_improvement(first, second)
        slow = slow_limits(0.6, 5, 5)
        assert slow[0] < (found.low or 0) < (found.high or 1) < slow[1]
        all_tied = estimate_improvement([1.0] * 5, [1.0] * 5)
        assert 0.2 < (all_tied.low or 0) < (all_tied.high or 1) < 0.8


class TestConservative:
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0, 1))
    def test_share_below_equals_the_divided_difference(self, values: list[float], point: float) -> None:
        spread = sorted({round(value, 1) for value in values} | {0.05})
        want = sum(max(x - point, 0) ** (len(spread) - 1) / math.prod(x - y for y in spread if y != x) for x in spread)
        want = 1 - want if len(spread) > 1 else float(point >= 0.05)
        assert share_below(spread, point) == pytest.approx(want, abs=1e-6)

    @pytest.mark.parametrize(("hits", "n"), [(0, 5), (3, 5), (5, 5), (7, 30)])
    def test_is_clopper_and_pearsons_for_a_rate(self, hits: int, n: int) -> None:
        found = bound_mean([1.0] * hits + [0.0] * (n - hits), (0.0, 1.0))
        low = stats.beta.ppf(0.025, hits, n - hits + 1) if hits else 0.0
        high = stats.beta.ppf(0.975, hits + 1, n - hits) if hits < n else 1.0
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)

    def test_is_the_quantile_of_dirichlet_means(self) -> None:
        values = [0.1, 0.3, 0.3, 0.6, 0.9, 0.95]
        weights = np.random.default_rng(0).dirichlet(np.ones(7), 400_000)
        low = np.quantile(weights @ np.array([0.0, *values]), 0.025)
        high = np.quantile(weights @ np.array([1.0, *values]), 0.975)
        found = bound_mean(values, (0.0, 1.0))
        assert (found.low, found.high) == pytest.approx((low, high), abs=2e-3)

    @pytest.mark.parametrize("tail", [0.8, 0.3, 0.02])
    def test_many_values_have_nearly_the_exact_law(self, tail: float, monkeypatch: pytest.MonkeyPatch) -> None:
        values = [0.0, *sorted(np.random.default_rng(0).beta(8, 2, 205))]
        point = float(np.mean(values)) - float(np.std(values)) / 205**0.5 * statistics.NormalDist().inv_cdf(1 - tail)
        monkeypatch.setattr("openfield.metrics.stats.MAX_STAGES", 10**9)
        exact = share_below(values, point)
        monkeypatch.setattr("openfield.metrics.stats.MAX_STAGES", 0)
        assert share_below(values, point) == pytest.approx(exact, rel=0.04)

    def test_other_ranges_stretch_it(self) -> None:
        values = [0.1, 0.3, 0.3, 0.6, 0.9]
        found, wider = bound_mean(values, (0.0, 1.0)), bound_mean([20 * value - 5 for value in values], (-5.0, 15.0))
        assert (wider.low, wider.high) == pytest.approx((20 * (found.low or 0) - 5, 20 * (found.high or 0) - 5))

    @pytest.mark.parametrize("bounds", [None, FROM_ZERO, (0.0, 0.5)])
    def test_without_a_range_there_is_none(self, bounds: tuple[float, float | None] | None) -> None:
        found = bound_mean([0.1, 0.3, 0.3, 0.6, 0.9], bounds)
        assert str(found) == "0.44 (no conservative interval)"

    def test_a_ratio_holds_what_its_differences_allow(self) -> None:
        """Fieller's way: r is inside if the conservative interval of the mean of x - r y holds 0."""
        above, below = [0.2, 0.9, 0.4, 0.7, 0.6, 0.1], [0.3, 0.5, 0.8, 0.4, 0.6, 0.2]
        found = bound_ratio(Ratio(dict(enumerate(above)), dict(enumerate(below))))
        assert found.mean == pytest.approx(sum(above) / sum(below))
        for ratio, inside in ((found.low * 0.99, False), (found.low * 1.01, True)):  # type: ignore[operator]
            gaps = [x - ratio * y for x, y in zip(above, below, strict=True)]
            assert (bound_mean(gaps, (-ratio, 1.0)).low <= 0) is inside  # type: ignore[operator]
        for ratio, inside in ((found.high * 1.01, False), (found.high * 0.99, True)):  # type: ignore[operator]
            gaps = [x - ratio * y for x, y in zip(above, below, strict=True)]
            assert (bound_mean(gaps, (-ratio, 1.0)).high >= 0) is inside  # type: ignore[operator]

    @pytest.mark.parametrize("n", [5, 10, 30])
    def test_a_ratio_covers_all_or_nothing(self, n: int) -> None:
        random, covered = np.random.default_rng(n), 0
        for _ in range(300):
            one, two = (np.where(random.random(n) < 0.2, 0.0, random.uniform(0.5, 1.0, n)).tolist() for _ in range(2))
            found = bound_ratio(Ratio(dict(enumerate(one)), dict(enumerate(two))))
            covered += found.mean is not None and found.low <= 1.0 <= found.high  # type: ignore[operator]
        assert covered >= 0.95 * 300

    def test_a_ratio_without_pairs_or_beyond_its_range_has_no_interval(self) -> None:
        values = dict(enumerate([0.1, 0.2, 0.3, 0.4, 0.5]))
        apart = {key + 10: value for key, value in values.items()}
        for other, most in ((apart, (1.0, 1.0)), (values, (1.0, 0.4)), (values | apart, (1.0, 1.0))):
            assert bound_ratio(Ratio(values, other, most)).note == "no conservative interval"

    def test_a_ratio_of_nothing_has_an_upper_limit(self) -> None:
        found = bound_ratio(Ratio(dict.fromkeys(range(10), 0.0), dict.fromkeys(range(10), 1.0)))
        assert (found.mean, found.low) == (0.0, 0.0)
        assert found.high == pytest.approx(1 - 0.025 ** (1 / 10), abs=0.15)

    @given(scores)
    def test_holds_the_mean_and_stays_in_range(self, values: list[float]) -> None:
        found = bound_mean(values, (0.0, 1.0))
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= statistics.fmean(values) + 1e-9
        assert statistics.fmean(values) - 1e-9 <= found.high <= 1

    @pytest.mark.parametrize("n", [5, 10, 30])
    @pytest.mark.parametrize(("share", "high", "low"), [(0.85, 0.9, 0.1), (0.95, 0.95, 0.0), (0.75, 1.0, 0.0)])
    def test_covers_all_or_nothing(self, share: float, high: float, low: float, n: int) -> None:
        truth, covered = share * high + (1 - share) * low, 0.0
        for hits in range(n + 1):
            found = bound_mean([high] * hits + [low] * (n - hits), (0.0, 1.0))
            inside = (found.low or 0) <= truth <= (found.high or 0)
            covered += inside * float(stats.binom.pmf(hits, n, share))
        assert covered >= 0.94


Rule = Callable[[Sequence[float]], Estimate]
FAMILIES: dict[str, tuple[Rule, Draw, float]] = {
    "normal": (lambda v: estimate_mean(v, None), lambda r, s: r.normal(0.5, 0.15, s), 0.5),
    "uniform": (estimate_mean, lambda r, s: r.random(s), 0.5),
    "beta(2,5)": (estimate_mean, lambda r, s: r.beta(2, 5, s), 2 / 7),
    "beta(8,2)": (estimate_mean, lambda r, s: r.beta(8, 2, s), 0.8),
    "beta(.5,2)": (estimate_mean, lambda r, s: r.beta(0.5, 2, s), 0.2),
    "geometric(.2)": (estimate_count, lambda r, s: r.geometric(0.2, s) - 1.0, 4.0),
    "5 + geometric(.2)": (estimate_count, lambda r, s: r.geometric(0.2, s) + 4.0, 9.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 10, 30])
@pytest.mark.parametrize("name", FAMILIES)
def test_coverage(name: str, n: int) -> None:
    rule, draw, truth = FAMILIES[name]
    found = [rule(row) for row in draw(np.random.default_rng(n), (10_000, n)).tolist()]
    covered = [e.low <= truth <= e.high for e in found if e.low is not None and e.high is not None]
    assert 0.93 <= statistics.fmean(covered) <= 0.97


@pytest.mark.parametrize("degrees", [1, 1.5, 2, 3, 4, 9, 29, 99, 1000, 20_000])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_t_quantile_equals_scipy(degrees: float, level: float) -> None:
    assert t_quantile(degrees, level) == pytest.approx(stats.t.ppf((1 + level) / 2, degrees), rel=1e-10)


@pytest.mark.parametrize("degrees", [1e6, 1e6 + 1, 1e7, 99_954_555.0, 1e12, 2.0**63, 2.0**70])
def test_t_quantile_of_any_number_of_degrees_equals_scipy_in_a_moment(degrees: float) -> None:
    expected = stats.norm.ppf(0.975) if degrees > 1e15 else stats.t.ppf(0.975, degrees)
    assert t_quantile(degrees) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("share", [0.025, 0.5, 0.975])
@pytest.mark.parametrize("a", [0.5, 1, 3.5, 30.5, 500.5, 5000.0])
@pytest.mark.parametrize("b", [0.5, 2, 5.5, 70.5, 3000.5])
def test_beta_quantile_equals_scipy(share: float, a: float, b: float) -> None:
    assert beta_quantile(share, a, b) == pytest.approx(stats.beta.ppf(share, a, b), abs=1e-12)


@given(st.floats(1e-9, 1 - 1e-9), st.floats(0.5, 300), st.floats(0.5, 300))
def test_beta_share_equals_scipy(point: float, a: float, b: float) -> None:
    # Not nearer to 1: at 1 - 1e-16 and a = b = 0.5 SciPy is off by 3e-9 from the arcsine law.
    assert beta_share(point, a, b) == pytest.approx(special.betainc(a, b, point), abs=1e-11)


def test_beta_share_at_and_beyond_the_ends() -> None:
    assert [beta_share(point, 2.0, 3.0) for point in (-1.0, 0.0, 1.0, 2.0)] == [0, 0, 1, 1]
    assert 1 - beta_share(1 - 2**-53, 0.5, 0.5) == pytest.approx(2 / math.pi * math.asin(2**-26.5), rel=1e-6)
