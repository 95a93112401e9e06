"""Intervals and p-values that hold however often a run is looked at, and wherever it is stopped.

They stand in for those of `stats` and `significance` as long as trials are missing. Bounded numbers have betting
confidence sequences (Waudby-Smith and Ramdas, 2024): a gambler who bets on trial after trial that the mean is not m
gains money only by luck if it is, so that m is excluded once the capital has grown by a factor of 40. The share of the
capital that is bet is not fixed: the capital is divided among forty bettors with one share each, which makes the
interval the same in whatever order the trials came. Numbers without bounds have asymptotic confidence sequences
(Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, 2024). `design/intervals.md` has the figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openfield.metrics.stats import (
    ASYMPTOTIC,
    FEW,
    MIN_TRIALS,
    Estimate,
    Intervals,
    Range,
    Ratio,
    bound_ratio,
    estimate_ratio,
    find_border,
    two_sided,
    without_interval,
)

LEVEL = 0.05
"""How often an interval may miss the true value, at any of all looks."""
FRACTIONS = 1 - (1 - (np.arange(40) + 0.5) / 40) ** 4
"""The shares of their capital that the bettors bet: quantiles of Beta(1, 1/4). Most bet nearly all, because scores of
trials differ little compared with their range."""
SHARE_FRACTIONS = 1 - (1 - (np.arange(40) + 0.5) / 40) ** 20
"""The same for shares of pairs, quantiles of Beta(1, 1/20): a block of pairs is won or lost nearly as a whole."""
BEST_TRIALS = 100
"""The number of trials at which the asymptotic sequence is narrowest."""
MIN_ASYMPTOTIC = 30
"""The fewest trials with an asymptotic interval: below, nothing speaks for its coverage."""
TOO_FEW = f"no interval below {MIN_ASYMPTOTIC} trials while trials are missing"
NO_SEQUENCE = "no interval while trials are missing"
"""Notes of estimates without an interval."""
MIN_SHARE_OF_MEAN = 1e-12
"""A limit is sought down to this share of the mean."""
RATIOS: Mapping[Intervals, Callable[[Ratio], Estimate]]
"""What estimates a ratio of means, by the rule of the interval."""

Floats = NDArray[np.floating[Any]]


def trace_capital(gains: Floats, fractions: Floats = FRACTIONS) -> Floats:
    """Return the logarithm of the capital after each bet.

    Args:
        gains: What each bet returns for one unit of money, -1 if that is lost; bets follow each other along the last
            axis.
        fractions: The shares of their capital that the bettors bet.
    """
    with np.errstate(divide="ignore"):  # who bets everything can lose everything
        capitals = np.log1p(fractions[:, None] * gains[..., None, :]).cumsum(axis=-1)
    return average_capital(capitals, -2)


def average_capital(capitals: Floats, axis: int) -> Floats:
    """Return the logarithm of the mean of capitals that are given as logarithms."""
    highest = capitals.max(axis=axis, keepdims=True)
    shares: Floats = np.exp(capitals - highest)
    return np.asarray(highest.squeeze(axis) + np.log(shares.mean(axis=axis)))


def follow_mean(values: Sequence[float], bounds: Range | None = (0.0, 1.0), level: float = LEVEL) -> Estimate:
    """Estimate a mean with an interval that holds at every look.

    Args:
        values: One value for each trial, of all trials up to a moment.
        bounds: What the values lie between. Without two bounds the interval is asymptotic.
        level: How often the interval may miss the mean.
    """
    n, both = len(values), two_sided(bounds)
    if n < MIN_TRIALS:
        return Estimate(math.fsum(values) / n if n else None, None, None, n, FEW)
    sample = np.sort(np.asarray(values, dtype=float))  # the order of trials must not change the last digit
    if both is None or sample[0] < both[0] or sample[-1] > both[1]:
        return _follow_unbounded(sample, None if bounds is None else bounds[0], level)
    reach, mean = both[1] - both[0], math.fsum(values) / n
    below, above = (sample - both[0]) / reach, (both[1] - sample) / reach
    low = find_limit(lambda point: below / point - 1, float(below.mean()), level)
    high = find_limit(lambda point: above / point - 1, float(above.mean()), level)
    return Estimate(mean, both[0] + reach * low, both[1] - reach * high, n)


def bet_against(values: Sequence[float], null: float, bounds: tuple[float, float]) -> float | None:
    """Return the two-sided p-value that a bounded mean has a value: one over the capital won against it.

    It is below a level where the interval of `follow_mean` at this level does not hold the value.

    Args:
        values: One value for each trial.
        null: The value of the mean.
        bounds: What the values lie between.
    """
    if len(values) < MIN_TRIALS:
        return None
    sample = np.sort(np.asarray(values, dtype=float))
    above, below = (sample - bounds[0]) / (null - bounds[0]) - 1, (bounds[1] - sample) / (bounds[1] - null) - 1
    return min(1.0, 2 * math.exp(-max(_win(above), _win(below))))


def is_within(values: Sequence[float], limits: tuple[float, float], bounds: tuple[float, float], level: float) -> bool:
    """Return whether the interval of `follow_mean` lies within limits: one look at each, where it takes many.

    Args:
        values: One value for each trial.
        limits: What the interval is to lie between.
        bounds: What the values lie between.
        level: How often the interval may miss the mean.
    """
    if len(values) < MIN_TRIALS:
        return False
    sample, allowed = np.sort(np.asarray(values, dtype=float)), math.log(2 / level)
    above = (sample - bounds[0]) / (limits[0] - bounds[0]) - 1
    below = (bounds[1] - sample) / (bounds[1] - limits[1]) - 1
    return _win(above) > allowed and _win(below) > allowed


def follow_ratio(found: Ratio, level: float = LEVEL) -> Estimate:
    """Estimate a ratio of means with an interval that holds at every look.

    If r is the ratio, the mean of x - r y is 0: the interval holds every r against which too little is won.
    """
    usual, most = estimate_ratio(found), found.most
    if usual.mean is None or usual.n < MIN_TRIALS:
        return usual
    pairs = sorted((above, found.below.get(key, math.inf)) for key, above in found.above.items())
    if len(found.below) > usual.n or any(above > most[0] or below > most[1] for above, below in pairs):
        return without_interval(usual, NO_SEQUENCE)
    above, below = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    start = 1 / usual.mean if usual.mean else 1.0

    def bet_on_less(inverse: float) -> Floats:
        return np.asarray(below / (inverse * most[0]) - above / most[0])

    while _win(bet_on_less(start)) > math.log(2 / level):
        start *= 2
    low = find_limit(lambda ratio: above / (ratio * most[1]) - below / most[1], usual.mean, level)
    high = find_limit(bet_on_less, start, level)
    return Estimate(usual.mean, low, 1 / high if high else math.inf, usual.n)


class Blocks(NamedTuple):
    """Blocks of trials in which pairs are compared: a row for each way to deal them, with no trial in two blocks."""

    wins: Floats
    losses: Floats
    due: Floats
    """The pairs that wins are held against: those that a block has, or where their mean is known this."""
    most: Floats
    """The most that can be lost against one win: the pairs that a block can have, or their mean."""

    def bet(self, won: Floats, share: float) -> Floats:
        """Return what bets that pairs are won more often than a share return."""
        return np.asarray(won / (share * self.most) - self.due / self.most)


def follow_share(found: Blocks) -> tuple[float, float]:
    """Return the limits of the share of pairs that are won, which hold at every look."""
    limits = []
    for won in (found.wins, found.losses):
        fair = won.sum(axis=-1) / np.maximum(found.due.sum(axis=-1), 1e-300)  # nothing is won against the highest
        limits.append(find_limit(partial(found.bet, won), float(fair.max()), LEVEL, trace_blocks))
    return limits[0], 1 - limits[1]


def bet_on_share(found: Blocks, null: float) -> float:
    """Return the one-sided p-value that no more than a share of the pairs is won."""
    return min(1.0, math.exp(-float(trace_blocks(found.bet(found.wins, null))[-1])))


def trace_blocks(gains: Floats) -> Floats:
    """Return the logarithm of the capital after each block, the mean over the ways to deal trials.

    Args:
        gains: What each bet returns for one unit of money; rows of ways, bets along the last axis.
    """
    return average_capital(trace_capital(gains, SHARE_FRACTIONS), -2)


def _win(gains: Floats) -> float:
    """Return the logarithm of the capital after all bets."""
    return float(trace_capital(gains)[-1])


def find_limit(
    bet: Callable[[float], Floats],
    within: float,
    level: float,
    trace: Callable[[Floats], Floats] = trace_capital,
) -> float:
    """Return the least value that is not excluded: bets against every lower one win 2 / level for 1.

    Args:
        bet: What each bet against a value returns for one unit of money; less, the higher the value is.
        within: A value that is not excluded.
        level: How often the interval may miss the true value.
        trace: What the bets make of the capital.
    """
    if within <= 0:
        return 0.0
    allowed, least = math.log(2 / level), within * MIN_SHARE_OF_MEAN

    def margin(point: float) -> float:
        return allowed - float(trace(bet(point))[-1])

    return 0.0 if margin(least) >= 0 else find_border(margin, within, least)


def _follow_unbounded(sample: Floats, least: float | None, level: float) -> Estimate:
    """Estimate a mean without two bounds: the interval is asymptotic, and cut where no value can be."""
    n, mean, deviation = len(sample), float(sample.mean()), float(sample.std(ddof=1))
    if n < MIN_ASYMPTOTIC:
        return Estimate(mean, None, None, n, TOO_FEW)
    if deviation <= 1e-12:
        return Estimate(mean, None, None, n, f"all {n} equal")
    half = deviation * asymptotic_width(n, level)
    cut = least is not None and float(sample[0]) >= least > mean - half
    return Estimate(mean, float(least) if cut and least is not None else mean - half, mean + half, n, ASYMPTOTIC)


def asymptotic_width(n: int, level: float = LEVEL) -> float:
    """Return half the width of an asymptotic confidence sequence after n trials, in standard deviations."""
    scale = (-2 * math.log(level) + math.log1p(-2 * math.log(level))) / BEST_TRIALS
    spread = n * scale + 1
    return math.sqrt(2 * spread / scale * math.log(math.sqrt(spread) / level)) / n


RATIOS = {"conservative": bound_ratio, "usual": estimate_ratio, "anytime": follow_ratio}
