"""Estimates over trials with 95 % intervals, from five trials on.

The conservative intervals (`bound_mean`, `bound_ratio`) are the default: they need a range of the values and hold in
every case tried. The usual ones are narrower and hold for scores with a single peak: there their simulated coverage is
93 to 97 %. Every rule of theirs is a textbook one: Student's interval on a suitable scale (the logit of a bounded mean,
the logarithm of a count), Hall's correction for skewness if there is no such scale, Jeffreys' interval for rates.
`design/intervals.md` says why, and where the usual ones fail.
The quantiles are computed here: importing SciPy for them would cost over a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

MIN_TRIALS = 5
"""The fewest trials with an interval; below it the coverage was not measured."""
FEW = f"fewer than {MIN_TRIALS} trials"
FEW_PEOPLE = f"fewer than {MIN_TRIALS} people"
NO_BOUND = "no conservative interval"
ASYMPTOTIC = "asymptotic"
"""The notes of estimates without an interval, or with one that holds in the limit of many trials."""
MIN_WHOLE = 100
"""From this value on, decimals are not shown."""
TAIL = 0.025
MAX_STAGES = 10_000
"""The number of steps up to which the law of a weighted mean is computed exactly."""
GRID = 400
"""Points of a quadrature: more change no third digit."""
NORMAL_QUANTILE = 1.959963984540054
MAX_STEPS, PRECISION = 150, 1e-12
"""When the search for a limit ends."""
MIN_SHARE = 1e-16
"""The least distance of a mean of unequal values from a bound, as a share of the range."""
MAX_DEGREES = 10**6
"""Above this many degrees of freedom two terms about the normal distribution are exact to 10^-12. The fraction would
take a time that grows with their root, and lose digits."""

Bounds = tuple[float, float]
Range = tuple[float, float | None]
"""Bounds of which the upper one may be missing."""
Intervals = Literal["conservative", "usual", "anytime"]
"""The rules that intervals are made by, the default first. Those of `anytime` are in `confidence_sequences`."""
KINDS_OF_INTERVALS: tuple[Intervals, ...] = get_args(Intervals)
Valid = Literal["fixed", "anytime"]
"""When intervals and p-values hold: once, when all planned trials are over, or at every look at a run that goes on."""
FROM_ZERO: Range = (0.0, None)
"""The bounds of a number that is never negative, such as a ratio or a time. Its interval is Hall's, cut at zero."""


class Estimate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number over trials, with its 95 % interval."""

    mean: float | None
    """None if no trial defines it."""
    low: float | None
    high: float | None
    """The interval; None if there are fewer than five trials, or no valid one."""
    n: int
    """The number of trials, or of people."""
    note: str = ""
    p: float | None = None
    """The p-value, for a number that has one."""
    p_holm: float | None = None
    """The same, corrected by Holm's rule for all agents of the scenario; printed in its place."""
    beyond: float | None = None
    """What the number exceeds, where only that is known."""
    people: bool = False
    """Whether it is over people instead of trials."""
    missing: int = 0
    """Trials that have no value and so are not among them, where a reader must know of that."""

    def __str__(self) -> str:
        """Return `0.62 [0.51, 0.72]`, or the value and why there is no interval."""
        if self.mean is None:
            return "–" if self.beyond is None else f"> {self.beyond:,.0f}{self.interval}"
        p = self.p if self.p_holm is None else self.p_holm
        return f"{self.figure}{self.interval}{'' if p is None else f', {format_p(p)}'}"

    @property
    def figure(self) -> str:
        """The value as text, with two decimals below 100 and none from there on."""
        return "" if self.mean is None else self._round(self.mean)

    def _round(self, value: float) -> str:
        return f"{value:z.{0 if self.mean is not None and abs(self.mean) >= MIN_WHOLE else 2}f}"

    @property
    def interval(self) -> str:
        """The interval as text after the value, or the number of trials or the reason why it is missing."""
        if self.low is not None and self.high is not None:
            limit = f" {ASYMPTOTIC}" if self.note == ASYMPTOTIC else ""
            return f" [{self._round(self.low)}, {self._round(self.high)}]{limit}"
        if self.n < MIN_TRIALS:
            return f", {format_units(self.n, self.people)}"
        return f" ({self.note})" if self.note else ""


class Ratio(NamedTuple):
    """The values of which a ratio of two means is estimated. Values with the same key, such as a trial, are a pair."""

    above: Mapping[Any, float]
    below: Mapping[Any, float]
    most: tuple[float, float] = (1.0, 1.0)
    """The upper bounds of values above and below; none is negative."""
    missing: int = 0
    """Trials in which one of the two has no value."""


def format_units(count: int, people: bool = False) -> str:
    """Return a number of trials, or of people, in words."""
    one, many = ("person", "people") if people else ("trial", "trials")
    return f"{count} {one if count == 1 else many}"


def format_p(p: float) -> str:
    """Return a p-value as text, with three digits."""
    return f"p={p:.3f}" if p >= 0.0005 else "p<0.001"


def estimate_mean(values: Sequence[float], bounds: Range | None = (0.0, 1.0)) -> Estimate:
    """Estimate a mean, with Student's interval on the logit scale between bounds, or Hall's without bounds."""
    n = len(values)
    if n < MIN_TRIALS:
        return _few(values)
    sample = np.asarray(values, dtype=float)
    if bounds is not None and bounds[1] is None:
        return _cut_below(estimate_mean(values, None), bounds[0], float(sample.min()))
    both = two_sided(bounds)
    if np.ptp(sample) <= 1e-12:
        return _all_equal(float(sample[0]), n, both)
    if both is None or sample.min() < both[0] or sample.max() > both[1]:
        return Estimate(float(sample.mean()), *_skewed_limits(sample), n)
    mean, error = float(sample.mean()), float(sample.std(ddof=1)) / math.sqrt(n)
    return Estimate(mean, *_bounded_limits(mean, t_quantile(n - 1) * error, both), n)


def two_sided(bounds: Range | None) -> Bounds | None:
    """Return the bounds if there are two."""
    return None if bounds is None or bounds[1] is None else (bounds[0], bounds[1])


def estimate_count(values: Sequence[float]) -> Estimate:
    """Estimate the mean of counts such as delays, with Student's interval on the logarithm of the mean.

    The upper limit is Hall's if that is higher: the logarithm misses the tail of delays that are never 0.
    """
    n = len(values)
    if n < MIN_TRIALS:
        return _few(values)
    sample = np.asarray(values, dtype=float)
    if np.ptp(sample) <= 1e-12:
        return _all_equal(float(sample[0]), n, None)
    mean, error = float(sample.mean()), float(sample.std(ddof=1)) / math.sqrt(n)
    factor = math.exp(t_quantile(n - 1) * error / mean)
    return Estimate(mean, mean / factor, max(mean * factor, _skewed_limits(sample)[1]), n)


def estimate_ratio(found: Ratio) -> Estimate:
    """Estimate a ratio of means with Student's interval on its logarithm; the error is that of the pairs."""
    above, below = found.above, found.below
    n = min(len(above), len(below))
    if not n:
        return _few(())
    over, under = (math.fsum(sample.values()) / len(sample) for sample in (above, below))
    if not under:
        return Estimate(None, None, None, n)
    if n < MIN_TRIALS:
        return Estimate(over / under, None, None, n, FEW)
    if not over:
        return Estimate(0.0, None, None, n, f"all {n} equal")
    shares = {key: (value / over - 1) / len(above) for key, value in above.items()}
    for key, value in below.items():
        shares[key] = shares.get(key, 0.0) - (value / under - 1) / len(below)
    error = math.sqrt(math.fsum(share**2 for share in shares.values()) * len(shares) / (len(shares) - 1))
    if error <= 1e-12:
        return Estimate(over / under, None, None, n, f"all {n} equal")
    factor = math.exp(t_quantile(n - 1) * error)
    return Estimate(over / under, over / under / factor, over / under * factor, n)


def estimate_rate(values: Sequence[float]) -> Estimate:
    """Estimate the share of trials in which something happened (1, 0, or 0.5 for a tie), with Jeffreys' interval."""
    n = len(values)
    if n < MIN_TRIALS:
        return _few(values)
    hits = math.fsum(values)
    low = beta_quantile(0.025, hits + 0.5, n - hits + 0.5) if hits > 0 else 0.0
    high = beta_quantile(0.975, hits + 0.5, n - hits + 0.5) if hits < n else 1.0
    return Estimate(hits / n, low, high, n)


def estimate_iqm(values: Sequence[float], bounds: Bounds | None = (0.0, 1.0)) -> Estimate:
    """Estimate the interquartile mean, with Tukey and McLaughlin's interval, on the logit scale between bounds."""
    n = len(values)
    if n < MIN_TRIALS:
        return Estimate(interquartile_mean(values) if n else None, None, None, n, FEW)
    sample = np.sort(np.asarray(values, dtype=float))
    cut = n // 4
    winsorised = np.clip(sample, sample[cut], sample[n - 1 - cut])
    mean, error = interquartile_mean(sample), float(winsorised.std(ddof=1)) / (0.5 * math.sqrt(n))
    if error <= 1e-12:
        return _all_equal(mean, n, bounds)
    width = t_quantile(n - 2 * cut - 1) * error
    if bounds is None or sample[0] < bounds[0] or sample[-1] > bounds[1]:
        return Estimate(mean, mean - width, mean + width, n)
    return Estimate(mean, *_bounded_limits(mean, width, bounds), n)


def interquartile_mean(values: Sequence[float] | NDArray[np.floating[Any]]) -> float:
    """Return the mean of the middle half; values on its border count with the part inside."""
    sample = np.sort(np.asarray(values, dtype=float))
    edges = np.linspace(0, 1, len(sample) + 1)
    inside = np.clip(np.minimum(edges[1:], 0.75) - np.maximum(edges[:-1], 0.25), 0, None)
    return float(sample @ inside / inside.sum())


def estimate_improvement(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Estimate the chance that a trial of the first beats one of the second, ties half, with Newcombe's interval.

    Its variance is corrected for ties.
    """
    fewer = min(len(first), len(second))
    if fewer == 0:
        return _few(())
    difference = np.subtract.outer(np.asarray(first, dtype=float), np.asarray(second, dtype=float))
    chance = float(np.heaviside(difference, 0.5).mean())
    if fewer < MIN_TRIALS:
        return Estimate(chance, None, None, fewer, FEW)
    return Estimate(chance, *score_limits(chance, len(first), len(second), _untied([*first, *second])), fewer)


def estimate_paired_improvement(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Estimate the share of shared trials in which the first beats the second, ties half.

    The interval is Jeffreys', for two outcomes if there are no ties, otherwise for three.
    """
    results = share_wins(first, second)
    won, tied = results.count(1.0), results.count(0.5)
    found = estimate_rate(results)
    if not tied or found.low is None:
        return found
    low, high = _three_outcome_limits(won, tied, len(results) - won - tied)
    return Estimate(found.mean, low, high, found.n)


def share_wins(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return 1 for each pair in which the first is higher, 0.5 for a tie, 0 otherwise."""
    return [float(np.heaviside(a - b, 0.5)) for a, b in zip(first, second, strict=True)]


def bound_mean(values: Sequence[float], bounds: Range | None) -> Estimate:
    """Estimate a mean with the conservative interval: it needs a range, and no law of the values.

    The lower limit is the 2.5 % point of a random weighted mean of the values and the lower end of the range, with
    weights from the flat Dirichlet distribution (Gaffke's bound). The upper limit mirrors it.
    """
    n, both = len(values), two_sided(bounds)
    if n < MIN_TRIALS:
        return _few(values)
    mean = math.fsum(values) / n
    if both is None or min(values) < both[0] or max(values) > both[1]:
        return without_interval(Estimate(mean, None, None, n))
    low, high = ([end, *sorted(values)] for end in both)  # sorted: the order of trials must not change the last digit
    return Estimate(
        mean,
        find_border(lambda point: share_below(low, point) - TAIL, mean, both[0]),
        find_border(lambda point: 1 - TAIL - share_below(high, point), mean, both[1]),
        n,
    )


def bound_ratio(found: Ratio) -> Estimate:
    """Estimate a ratio of means with the conservative interval, as Fieller did with Student's.

    If r is the ratio, the mean of x - r y is 0. So the interval holds every r for which the conservative interval of
    that mean holds 0. There is none unless all values are in pairs.
    """
    usual, most = estimate_ratio(found), found.most
    mean, n = usual.mean, usual.n
    pairs = [(above, found.below.get(key, math.inf)) for key, above in found.above.items()]
    pairs.sort()
    if mean is None or n < MIN_TRIALS:
        return usual
    if len(found.below) > n or any(above > most[0] or below > most[1] for above, below in pairs):
        return without_interval(usual)

    def test_low(ratio: float) -> float:
        gaps = [above - ratio * below for above, below in pairs]
        return share_below([-ratio * most[1], *gaps], 0.0) - TAIL

    def test_high(inverse: float) -> float:
        gaps = [inverse * above - below for above, below in pairs]
        return 1 - TAIL - share_below([inverse * most[0], *gaps], 0.0)

    start = 1 / mean if mean else 1.0
    while test_high(start) < 0:
        start *= 2
    return Estimate(mean, find_border(test_low, mean, 0.0), 1 / find_border(test_high, start, 0.0), n)


def without_interval(found: Estimate, note: str = NO_BOUND) -> Estimate:
    """Return an estimate of a number for which there is no conservative interval, or none at all for another reason."""
    if found.n < MIN_TRIALS or found.mean is None:
        return found
    return msgspec.structs.replace(found, low=None, high=None, note=note)


def share_below(values: Sequence[float], point: float) -> float:
    """Return the probability that a weighted mean of values, with flat Dirichlet weights, is at most a point.

    The weights are exponential variables divided by their sum. So the question is whether the exponential stages above
    the point end before those below it. One stage of each runs at a time, and its rate decides which ends first.
    """
    above = [value - point for value in values if value > point]
    below = [point - value for value in values if value < point]
    if not above or not below:
        return float(not above)
    if len(above) * len(below) > MAX_STAGES:
        return _saddlepoint(np.subtract(values, point))
    row = [1.0] * len(below)
    for far in above:
        left = 0.0
        for index, near in enumerate(below):
            left = row[index] = (near * row[index] + far * left) / (near + far)
    return row[-1]


def _saddlepoint(gaps: NDArray[np.float64]) -> float:
    """Return the probability that a sum of gaps with exponential weights is at most 0, by Lugannani and Rice's formula.

    From two hundred values on it is within 4 % of the exact tail, and takes as many steps as there are values.
    """
    low, high = 1 / float(gaps.min()), 1 / float(gaps.max())  # between them the cumulants exist
    for _ in range(60):
        tilt = (low + high) / 2
        if float((gaps / (1 - tilt * gaps)).sum()) > 0:
            high = tilt
        else:
            low = tilt
    rates = 1 - tilt * gaps
    depth, spread = 2 * float(np.log(rates).sum()), float(((gaps / rates) ** 2).sum())
    if depth < 1e-8:  # the mean itself: only the skewness is left
        skewness = float((gaps**3).sum()) / (spread * math.sqrt(spread))
        return 0.5 + skewness / (3 * math.sqrt(2 * math.pi))
    root, slope = math.copysign(math.sqrt(depth), tilt), tilt * math.sqrt(spread)
    density = math.exp(-depth / 2) / math.sqrt(2 * math.pi)
    return 0.5 * math.erfc(-root / math.sqrt(2)) + density * (1 / root - 1 / slope)


def mark_people(found: Estimate, people: bool) -> Estimate:
    """Return an estimate that says whether it is over people."""
    if not people:
        return found
    return msgspec.structs.replace(found, people=True, note=FEW_PEOPLE if found.note == FEW else found.note)


def _cut_below(found: Estimate, bound: float, least: float) -> Estimate:
    """Cut off the part of an interval below a bound, where no true value can lie."""
    below = found.low is not None and found.low < bound <= least
    return msgspec.structs.replace(found, low=bound) if below else found


def _few(values: Sequence[float]) -> Estimate:
    """Return the mean of too few values for an interval."""
    return Estimate(math.fsum(values) / len(values) if values else None, None, None, len(values), FEW)


def _all_equal(value: float, n: int, bounds: Bounds | None) -> Estimate:
    """Estimate from n equal values: at 95 %, at most a share of 1 - 0.05^(1/n) of all trials differs from them."""
    note = f"all {n} equal"
    if bounds is None:
        return Estimate(value, None, None, n, note)
    elsewhere = 1 - 0.05 ** (1 / n)
    low, high = value - elsewhere * (value - bounds[0]), value + elsewhere * (bounds[1] - value)
    return Estimate(value, low, high, n, note)


def _bounded_limits(mean: float, width: float, bounds: Bounds) -> tuple[float, float]:
    """Return the limits of an interval made on the logit scale, where a bound is infinitely far."""
    reach = bounds[1] - bounds[0]
    below, above = (max(part / reach, MIN_SHARE) for part in (mean - bounds[0], bounds[1] - mean))
    centre, half = math.log(below / above), width / reach / (below * above)
    low, high = (0.5 + 0.5 * math.tanh((centre + side) / 2) for side in (-half, half))
    return bounds[0] + reach * low, bounds[0] + reach * high


def _skewed_limits(sample: NDArray[np.floating[Any]]) -> tuple[float, float]:
    """Return Student's limits after Hall's correction for the sample's skewness."""
    n, mean, deviation = len(sample), float(sample.mean()), float(sample.std())
    width, error = t_quantile(n - 1), deviation / math.sqrt(n - 1)
    unbiased = math.sqrt(n * (n - 1)) / (n - 2)
    skewness = unbiased * float(((sample - mean) ** 3).mean()) / deviation**3
    return mean - _unskewed(width, skewness, n) * error, mean - _unskewed(-width, skewness, n) * error


def _unskewed(width: float, skewness: float, n: int) -> float:
    """Invert Hall's cubic: return the t statistic of a skewed sample that corresponds to a symmetric one's."""
    bend = skewness / (3 * math.sqrt(n))
    shifted = width - bend / 2
    return (math.cbrt(1 + 3 * bend * shifted) - 1) / bend if abs(bend) > 1e-9 else shifted


def score_limits(chance: float, m: float, n: float, untied: float = 1.0) -> tuple[float, float]:
    """Return the limits of an observed probability that one of m values exceeds one of n (Newcombe 2006, method 5).

    Args:
        chance: The observed probability.
        m: How many values the first sample has.
        n: How many values the second sample has.
        untied: The share of the variance that is left if there are ties.
    """
    more = (m + n) / 2 - 1

    def margin(true: float) -> float:
        shared = 1 + more * ((1 - true) / (2 - true) + true / (1 + true))
        return NORMAL_QUANTILE**2 * untied * true * (1 - true) * shared / (m * n) - (chance - true) ** 2

    low = 0.0 if chance == 0 else find_border(margin, chance, 0.0)
    return low, 1.0 if chance == 1 else find_border(margin, chance, 1.0)


def _untied(values: Sequence[float]) -> float:
    """Return the share of the variance of the Mann-Whitney statistic that ties leave.

    The textbook's factor is 0 if all values are equal. As if one value in n were free of ties, it keeps 1/n.
    """
    n, counts = len(values), np.unique(values, return_counts=True)[1].astype(float)
    factor = 1 - float((counts**3 - counts).sum()) / (n**3 - n)
    return (factor * (n - 1) + 1) / n


@lru_cache(maxsize=4096)
def _three_outcome_limits(won: int, tied: int, lost: int) -> tuple[float, float]:
    """Return the limits of P(win) + P(tie) / 2 by Jeffreys' prior for three outcomes, by quadrature over both shares.

    The share of ties, and the share of wins among the rest, have independent beta distributions.
    """
    ties, tie_weights = _beta_grid(tied + 0.5, won + lost + 1.0)
    wins, win_weights = _beta_grid(won + 0.5, lost + 0.5)
    points = np.add.outer(ties / 2, np.zeros_like(wins)) + np.outer(1 - ties, wins)
    order = np.argsort(points, axis=None)
    shares = np.cumsum(np.outer(tie_weights, win_weights).ravel()[order])
    low, high = np.interp((TAIL, 1 - TAIL), shares, points.ravel()[order])
    return float(low), float(high)


def _beta_grid(a: float, b: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights of a beta distribution, evenly spaced on a scale where its density has no pole."""
    angles = (np.arange(GRID) + 0.5) * (math.pi / 2 / GRID)
    points = np.sin(angles) ** 2
    logs = (2 * a - 1) * np.log(np.sin(angles)) + (2 * b - 1) * np.log(np.cos(angles))
    weights = np.exp(logs - logs.max())
    return points, weights / weights.sum()


def find_border(margin: Callable[[float], float], within: float, beyond: float) -> float:
    """Return where a margin becomes negative between a value inside and one beyond.

    A third of the steps are bisections, so that the others, which follow the slope, cannot creep.
    """
    left, right = margin(within), margin(beyond)
    for step in range(MAX_STEPS):
        if right >= 0 or abs(beyond - within) <= PRECISION * max(abs(within), abs(beyond)):
            break
        share = 0.5 if step % 3 == 2 or left <= 0 else min(max(left / (left - right), 0.001), 0.999)
        middle = within + share * (beyond - within)
        if (value := margin(middle)) >= 0:
            within, left = middle, value
        else:
            beyond, right = middle, value
    return beyond if right >= 0 else within


@lru_cache(maxsize=4096)
def t_quantile(degrees: float, level: float = 0.95) -> float:
    """Return the half-width, in standard errors, of a two-sided interval at this level."""
    if degrees > MAX_DEGREES:
        from statistics import NormalDist  # 30 ms that few need

        normal = NormalDist().inv_cdf((1 + level) / 2)
        return normal + (normal**3 + normal) / (4 * degrees)
    tail = beta_quantile(1 - level, degrees / 2, 0.5)
    return math.sqrt(degrees * (1 - tail) / tail)


@lru_cache(maxsize=4096)
def beta_quantile(share: float, a: float, b: float) -> float:
    """Return the point below which this share of a beta distribution lies, by bisection to one rounding step."""
    low, high = 0.0, 1.0
    middle = 0.5
    while low < middle < high:
        low, high = (middle, high) if beta_share(middle, a, b) < share else (low, middle)
        middle = (low + high) / 2
    return middle


def beta_share(point: float, a: float, b: float) -> float:
    """Return the share of a beta distribution below a point: the regularised incomplete beta function."""
    if point <= 0 or point >= 1:
        return float(point >= 1)
    if point > (a + 1) / (a + b + 2):  # the fraction converges fast only on this side of the mean
        return 1 - beta_share(1 - point, b, a)
    log_front = a * math.log(point) + b * math.log1p(-point) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_front) / (a * _fraction(point, a, b))


def _fraction(point: float, a: float, b: float) -> float:
    """Return the continued fraction 1 + d1/(1 + d2/(1 + ...)) of DLMF 8.17.22, from its far end inwards."""
    value = 1.0
    for m in range(20 + int(2 * math.sqrt(max(a, b))), 0, -1):  # error below 1e-13 for a, b up to 10,000
        odd = -(a + m) * (a + b + m) * point / ((a + 2 * m) * (a + 2 * m + 1))
        even = m * (b - m) * point / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1 + even / (1 + odd / value)
    return 1 - (a + b) * point / (a + 1) / value
