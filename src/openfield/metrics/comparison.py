"""Comparisons of the agents of one scenario, two by two, by their test performance.

Scores of trials -> comparisons, for `summary`. Intervals are for one pair alone; p-values are corrected for the number
of pairs in the scenario. People are compared with an agent person by person, each in the trials they played.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import variance
from typing import NamedTuple

import msgspec

from openfield.metrics.confidence_sequences import NO_SEQUENCE, bet_against, follow_mean
from openfield.metrics.scenario import Key, Scenario
from openfield.metrics.significance import correct_by_holm, flip_signs, permute_labels
from openfield.metrics.stats import (
    MIN_TRIALS,
    Estimate,
    Intervals,
    Valid,
    bound_mean,
    estimate_improvement,
    estimate_mean,
    estimate_paired_improvement,
    mark_people,
    share_wins,
    without_interval,
)

Scores = Mapping[str, float]
"""Trial id -> performance."""
MIN_GAIN_TRIALS = 10
"""The fewest trials that say what pairing is worth: a ratio of variances of fewer is mostly chance."""
MIN_VARIANCE = 1e-12
"""Differences that vary by less are all equal but for rounding."""
APART = "no interval: different people"


class AgentScores(NamedTuple):
    """The performance of an agent in each trial of a scenario."""

    trials: Scores
    people: Mapping[str, Scores]
    """The same for each person; empty if the agent is not people."""
    is_open: bool = False
    """Whether further trials may come, or came when some had been seen."""

    @property
    def units(self) -> list[float]:
        """The performance of each person, or in each trial."""
        return [_mean(own.values()) for own in self.people.values()] if self.people else list(self.trials.values())


class Comparison(msgspec.Struct, frozen=True):
    """Two agents in one scenario, by their test performance (after the onset if there is one)."""

    scenario: Scenario
    first: str
    second: str
    paired: bool
    """Whether the trials are compared one by one, because both agents played them; people one by one."""
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
    valid: Valid = "fixed"
    """Whether the intervals and the p-value hold once, or at every look."""
    gain: float | None = None
    """How many times as many trials, of other seeds for each agent, would know the difference as well; None if the
    trials are not paired, are fewer than ten, or differ all by the same."""
    versions: str = ""
    """Which cells of the two the latest known version of an agent did not play, in words; empty if it played all."""


def compare_agents(scores: Mapping[Key, AgentScores], intervals: Intervals = "conservative") -> Iterator[Comparison]:
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


def pair_scores(ours: AgentScores, theirs: AgentScores) -> list[tuple[float, float]]:
    """Return the performances of two agents in each trial that both played.

    If one of them is people, there is a pair for each person: the mean over the trials that the person and the agent
    played. Two groups of people have no pairs.
    """
    if theirs.people:
        return [] if ours.people else [(one, two) for two, one in pair_scores(theirs, ours)]
    if not ours.people:
        return [(score, theirs.trials[trial]) for trial, score in ours.trials.items() if trial in theirs.trials]
    shared = [
        {trial: score for trial, score in unit.items() if trial in theirs.trials} for unit in ours.people.values()
    ]
    return [(_mean(unit.values()), _mean(theirs.trials[trial] for trial in unit)) for unit in shared if unit]


def _compare(one: Key, two: Key, scores: Mapping[Key, AgentScores], intervals: Intervals) -> Comparison:
    """Compare two agents over the trials they share, or all trials with all if only that is enough for an interval."""
    ours, theirs = scores[one], scores[two]
    if ours.is_open or theirs.is_open:
        return _follow(one, two, ours, theirs)
    pairs, all_ours, all_theirs = pair_scores(ours, theirs), ours.units, theirs.units
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    gaps = [a - b for a, b in pairs]
    fewer, safe = min(len(all_ours), len(all_theirs)), intervals == "conservative"
    people = bool(ours.people or theirs.people)
    difference = bound_mean(gaps, (-1.0, 1.0)) if safe else estimate_mean(gaps, (-1.0, 1.0))
    if len(pairs) >= MIN_TRIALS or (pairs and fewer < MIN_TRIALS):
        p = flip_signs(gaps) if len(pairs) >= MIN_TRIALS else None
        wins = bound_mean(share_wins(first, second), (0.0, 1.0)) if safe else estimate_paired_improvement(first, second)
        made = Comparison(*one, two[1], True, mark_people(difference, people), mark_people(wins, people), p)
        return msgspec.structs.replace(made, gain=None if people else measure_gain(pairs))
    if ours.people and theirs.people and fewer:
        difference = Estimate(_mean(all_ours) - _mean(all_theirs), None, None, fewer, APART)
    wins = estimate_improvement(all_ours, all_theirs)
    p = permute_labels(all_ours, all_theirs) if fewer >= MIN_TRIALS else None
    wins = without_interval(wins) if safe else wins
    return Comparison(*one, two[1], False, mark_people(difference, people), mark_people(wins, people), p)


def _follow(one: Key, two: Key, ours: AgentScores, theirs: AgentScores) -> Comparison:
    """Compare two agents of which trials are missing, over the trials they share."""
    pairs, people = pair_scores(ours, theirs), bool(ours.people or theirs.people)
    gaps, bounds = [a - b for a, b in pairs], (-1.0, 1.0)
    difference = follow_mean(gaps, bounds)
    if pairs:
        wins = follow_mean(share_wins([a for a, _ in pairs], [b for _, b in pairs]))
    else:
        wins = without_interval(estimate_improvement(ours.units, theirs.units), NO_SEQUENCE)
    difference, wins = mark_people(difference, people), mark_people(wins, people)
    p, gain = bet_against(gaps, 0.0, bounds), None if people else measure_gain(pairs)
    return Comparison(*one, two[1], bool(pairs), difference, wins, p, valid="anytime", gain=gain)


def measure_gain(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return how many times as many trials agents need if they do not meet the same worlds; None if that is not known.

    What both find hard or easy in a world cancels in their difference: its variance, beside the sum of theirs, says how
    much that is.
    """
    if len(pairs) < MIN_GAIN_TRIALS:
        return None
    apart = sum(variance(side) for side in zip(*pairs, strict=True))
    together = variance([one - two for one, two in pairs])
    return apart / together if together > MIN_VARIANCE else None


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return math.fsum(known) / len(known)
