"""Comparisons of the agents of one scenario, two by two, by their test performance.

Scores of trials -> comparisons, for `summary`. Intervals are for one pair alone; p-values are corrected for the number
of pairs in the scenario.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from openfield.metrics.scenario import Key, Scenario
from openfield.metrics.significance import correct_by_holm, flip_signs, permute_labels
from openfield.metrics.stats import (
    MIN_TRIALS,
    Estimate,
    Intervals,
    bound_mean,
    estimate_improvement,
    estimate_mean,
    estimate_paired_improvement,
    share_wins,
    without_interval,
)

Scores = Mapping[str, float]
"""Trial id -> performance."""


class Comparison(msgspec.Struct, frozen=True):
    """Two agents in one scenario, by their test performance (after the onset if there is one)."""

    scenario: Scenario
    first: str
    second: str
    paired: bool
    """Whether the trials are compared one by one, because both agents played them."""
    difference: Estimate
    """The first's performance minus the second's, over shared trials; its interval is for this pair alone."""
    improvement: Estimate
    """The probability that the first does better, ties half; its interval is for this pair alone."""
    p: float | None = None
    """Two-sided, that both do equally well; None below five trials."""
    p_holm: float | None = None
    """The same, corrected by Holm's rule for all comparisons of the scenario."""
    family: int = 0
    """The number of comparisons that it is corrected for."""
    versions: str = ""
    """Which cells of the two the latest known version of an agent did not play, in words; empty if it played all."""


def compare_agents(scores: Mapping[Key, Scores], intervals: Intervals = "usual") -> Iterator[Comparison]:
    """Compare all agents of each scenario two by two; the p-values of a scenario are one family."""
    for _, members in itertools.groupby(scores, key=lambda key: key[0]):
        yield from _correct([_compare(one, two, scores, intervals) for one, two in itertools.combinations(members, 2)])


def _correct(comparisons: Sequence[Comparison]) -> list[Comparison]:
    tested = [one.p for one in comparisons if one.p is not None]
    corrected = iter(correct_by_holm(tested))
    return [
        one if one.p is None else msgspec.structs.replace(one, p_holm=next(corrected), family=len(tested))
        for one in comparisons
    ]


def _compare(one: Key, two: Key, scores: Mapping[Key, Scores], intervals: Intervals) -> Comparison:
    """Compare two agents over the trials they share, or all trials with all if only that is enough for an interval."""
    ours, theirs = scores[one], scores[two]
    shared = [trial for trial in ours if trial in theirs]
    first, second = [ours[trial] for trial in shared], [theirs[trial] for trial in shared]
    gaps = [a - b for a, b in zip(first, second, strict=True)]
    fewer, safe = min(len(ours), len(theirs)), intervals == "conservative"
    difference = bound_mean(gaps, (-1.0, 1.0)) if safe else estimate_mean(gaps, (-1.0, 1.0))
    if len(shared) >= MIN_TRIALS or (shared and fewer < MIN_TRIALS):
        p = flip_signs(gaps) if len(shared) >= MIN_TRIALS else None
        wins = bound_mean(share_wins(first, second), (0.0, 1.0)) if safe else estimate_paired_improvement(first, second)
        return Comparison(*one, two[1], True, difference, wins, p)
    all_ours, all_theirs = list(ours.values()), list(theirs.values())
    wins = estimate_improvement(all_ours, all_theirs)
    p = permute_labels(all_ours, all_theirs) if fewer >= MIN_TRIALS else None
    return Comparison(*one, two[1], False, difference, without_interval(wins) if safe else wins, p)
