"""When the numbers that a detector watches count as changed.

A rule is fitted to the rows of training episodes, and says after each later episode how likely a change is: 0.5 is an
alarm. What it has met decides what it says, so that it is saved as the rows it was given. OND's detectors judge single
samples of long streams, and are calibrated otherwise: `domains/ond/agents/change_detectors.py`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from openfield.agents.detectors.signals import Seen, Signal, reduce_rows
from openfield.agents.policy import Array
from openfield.errors import InvalidInput

MIN_TRAINING = 3
"""Training episodes that a rule needs: fewer do not show how much numbers vary."""
MAX_FOLDS = 20
"""In how many parts training episodes are left out of the fit to be read."""
DRIFT = 0.5
"""Subtracted from each standardised score before summing: sums respond to shifts of about one deviation."""
OVERSHOOT = 1.166
"""How far a sum of normal steps is beyond a bound on average when it crosses it, twice (Siegmund 1985)."""
MAX_REFERENCE = 200
"""Rows of training that are compared with new ones."""
MAX_RUNS = 500
"""Runs that are kept apart at a time; the least likely one beyond them is forgotten."""


class AlarmRule(Protocol):
    """Says whether numbers have changed."""

    min_training: int
    """Training episodes that it needs."""

    def fit(self, training: Sequence[Array], worse: int, /) -> None:
        """Learn from the rows of episodes in which nothing has changed.

        Args:
            training: The rows of each episode.
            worse: Which numbers are worse: 1 high ones, as of errors, -1 low ones, as of rewards, 0 neither.
        """
        ...

    def judge(self, values: Array, /) -> float:
        """Return how likely a change is after the rows of one more episode, from 0 to 1; 0.5 is an alarm."""
        ...


class ScoreDistribution(NamedTuple):
    """How the scores of unchanged episodes are spread."""

    mean: float
    deviation: float
    episodes: int

    def judge(self, score: float) -> float:
        """Return a score as a standard normal number, with the wider tails of few training episodes undone."""
        t = (score - self.mean) / (self.deviation * math.sqrt(1 + 1 / self.episodes))
        free = self.episodes - 1
        size = (8 * free + 1) / (8 * free + 3) * math.sqrt(free * math.log1p(t * t / free))  # Wallace 1959
        return math.copysign(size, t)

    @property
    def drift(self) -> float:
        """Subtracted from each standardised score: also one deviation of the mean, which training only estimates."""
        return DRIFT + 1 / math.sqrt(self.episodes)


def measure_scores(scores: Sequence[float]) -> ScoreDistribution:
    """Return how scores are spread."""
    mean = float(np.mean(scores))
    return ScoreDistribution(mean, max(float(np.std(scores, ddof=1)), 1e-6 * max(1.0, abs(mean))), len(scores))


def check_training(count: int, wanted: int = MIN_TRAINING) -> None:
    """Refuse too few training episodes."""
    if count < wanted:
        problem = f"A detector needs {wanted} training episodes, and saw {count}."
        more = f"or let it take the first of the test with 'warmup={max(6, wanted)}' in its brackets"
        raise InvalidInput(f"{problem} Make trials with more, such as --set training=20, {more}.")


def read_held_out(signal: Signal, episodes: Sequence[Seen]) -> list[Array]:
    """Fit a signal to training episodes, and return how it reads each when it was not fitted to it.

    Raises:
        InvalidInput: There are too few of them.
    """
    if not signal.learns:
        signal.fit(episodes)
        return [signal.read(each) for each in episodes]
    check_training(len(episodes))
    folds = min(len(episodes), MAX_FOLDS)
    found: dict[int, Array] = {}
    learn, parts = getattr(signal, "learn", signal.fit), list(map(getattr(signal, "summarise", _keep), episodes))
    for fold in range(folds):
        learn([each for number, each in enumerate(parts) if number % folds != fold])
        found |= {number: signal.read(episodes[number]) for number in range(fold, len(episodes), folds)}
    learn(parts)
    return [found[number] for number in range(len(episodes))]


def _keep(episode: Seen) -> Seen:
    return episode


def find_bound(false_alarms: float) -> float:
    """Return the bound that a sum crosses in this share of all unchanged episodes on average, by Siegmund's formula."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        reach = 2 * DRIFT * (middle + OVERSHOOT)
        wait = (math.exp(reach) - reach - 1) / (2 * DRIFT**2)
        low, high = (middle, high) if wait < 1 / false_alarms else (low, middle)
    return high


class Standardised:
    """A rule on the mean of an episode's numbers, standardised by those of training."""

    min_training = MIN_TRAINING

    def __init__(self, *, false_alarms: float = 0.01) -> None:
        self.false_alarms = check_share(false_alarms)

    def fit(self, training: Sequence[Array], worse: int) -> None:
        """Learn how the mean of an episode varies."""
        self._ways = (1,) if worse == 1 or training[0].shape[1] > 1 else (1, -1)  # low errors and distances are usual
        self._scores = measure_scores([average_rows(each) for each in training])

    def standardise(self, values: Array) -> float:
        """Return the mean of an episode as a standard normal number."""
        return self._scores.judge(average_rows(values))


class Cusum(Standardised):
    """Sums up how far the means of episodes are from that of training (CUSUM): of errors only upwards."""

    def fit(self, training: Sequence[Array], worse: int) -> None:
        """Learn how the mean of an episode varies, and choose the bound of the sums."""
        super().fit(training, worse)
        self._bound = find_bound(self.false_alarms / len(self._ways))
        self._sums = [0.0] * len(self._ways)

    def judge(self, values: Array) -> float:
        """Return 0.5 where a sum crosses its bound, and 1 at twice the bound, beyond which it does not grow."""
        score = self.standardise(values)
        steps = zip(self._sums, self._ways, strict=True)
        self._sums = [min(2 * self._bound, max(0.0, old + way * score - self._scores.drift)) for old, way in steps]
        return max(self._sums) / (2 * self._bound)


class Threshold(Standardised):
    """Judges each episode for itself: is its mean beyond what so few unchanged episodes reach?"""

    def judge(self, values: Array) -> float:
        """Return 0.5 where an episode is as strange as the share of false alarms allows, and more beyond."""
        score = self.standardise(values)
        return weigh_score(score if len(self._ways) == 1 else abs(score), self.false_alarms, len(self._ways))


class BayesianChangePoint(Standardised):
    """Bayesian online change-point detection (Adams and MacKay 2007) on standardised means of episodes.

    Each run of alike episodes is normal with an unknown mean and variance. The first run is that of training.
    """

    def __init__(self, *, hazard: float = 0.01) -> None:
        super().__init__()
        self.hazard = check_share(hazard, "hazard", 1.0)

    def fit(self, training: Sequence[Array], worse: int) -> None:
        """Learn how the mean of an episode varies: the first run."""
        super().fit(training, worse)
        self._runs = np.array([_PRIOR])
        for values in training:
            self._runs = _update_runs(self._runs, self.standardise(values))
        self._weights = np.ones(1)

    def judge(self, values: Array) -> float:
        """Return the probability that the run of training is over."""
        score = self.standardise(values)
        likely = self._weights * _predict(self._runs, score)
        new = self.hazard * self._weights.sum() * _predict(np.array([_PRIOR]), score)
        weights = np.concatenate([likely * (1 - self.hazard), new])
        self._runs = _update_runs(np.vstack([self._runs, _PRIOR]), score)
        kept = [0, *(1 + np.sort(np.argsort(weights[1:])[-MAX_RUNS:]))]
        self._runs, self._weights = self._runs[kept], weights[kept] / weights[kept].sum()
        return float(1.0 - self._weights[0])


_PRIOR = (0.0, 0.1, 1.0, 1.0)
"""A new run: the mean and its weight in episodes, and the shape and scale of the variance."""


def _predict(runs: Array, score: float) -> Array:
    """Return how likely each run makes a score: the density of Student's t."""
    mean, weight, shape, scale = runs.T
    width = scale * (weight + 1) / (shape * weight)
    gammas = np.array([math.lgamma(each + 0.5) - math.lgamma(each) for each in shape])
    exponent = gammas - 0.5 * np.log(2 * math.pi * shape * width)
    density = np.exp(exponent - (shape + 0.5) * np.log1p((score - mean) ** 2 / (2 * shape * width)))
    return np.asarray(np.maximum(density, 1e-300))


def _update_runs(runs: Array, score: float) -> Array:
    mean, weight, shape, scale = runs.T
    moved = scale + weight * (score - mean) ** 2 / (2 * (weight + 1))
    return np.column_stack([(weight * mean + score) / (weight + 1), weight + 1, shape + 0.5, moved])


class OnlineMmd(Standardised):
    """Compares the rows of the last episodes with those of training by the maximum mean discrepancy (MMD)."""

    def __init__(self, *, window: int = 3, false_alarms: float = 0.01) -> None:
        super().__init__(false_alarms=false_alarms)
        if isinstance(window, bool) or not isinstance(window, int) or not 1 <= window <= 1000:
            raise InvalidInput(f"'window' is a number of episodes from 1 to 1000, not {window!r}.")
        self.min_training = max(MIN_TRAINING, 2 * window)
        self._window: deque[Array] = deque(maxlen=window)

    def fit(self, training: Sequence[Array], worse: int) -> None:
        """Keep rows of training, and learn how much windows of it differ from the rest."""
        size = self._window.maxlen or 1
        self._reference = thin(np.concatenate(training))
        self._width = _find_width(self._reference)
        starts = range(len(training) - size + 1)
        rest = [[*training[:start], *training[start + size :]] for start in starts]
        pairs = [(training[start : start + size], others) for start, others in zip(starts, rest, strict=True)]
        self._scores = measure_scores([self._compare(some, thin(np.concatenate(others))) for some, others in pairs])
        self._window.clear()

    def judge(self, values: Array) -> float:
        """Return 0.5 where the last episodes differ as much as the share of false alarms allows."""
        self._window.append(values)
        if len(self._window) < (self._window.maxlen or 1):
            return 0.0
        return weigh_score(self._scores.judge(self._compare(list(self._window), self._reference)), self.false_alarms)

    def _compare(self, rows: Sequence[Array], reference: Array) -> float:
        some = thin(np.concatenate(rows))
        same = sum(_mean_kernel(each, each, self._width) for each in (some, reference))
        return math.log(max(same - 2 * _mean_kernel(some, reference, self._width), 0.0) + 1e-6)


class Deedee(Standardised):
    """Two statistics of each number: the mean of an episode, and its likeness to the mean of training.

    After DEEDEE (Aljaafari and others 2025). Likeness is the mean of a Gaussian kernel. How far both are from those of
    training episodes, in standard deviations, is the score.
    """

    def fit(self, training: Sequence[Array], worse: int) -> None:
        """Learn the summary of training, and how the statistics of its episodes vary."""
        rows = np.concatenate(training)
        self._centre, self._spread = rows.mean(0), np.maximum(rows.std(0), 1e-3)
        found = np.array([self._describe(each) for each in training])
        others = [np.delete(found, number, axis=0) for number in range(len(found))]
        self._usual = found
        self._scores = measure_scores([_measure_distance(*pair) for pair in zip(found, others, strict=True)])

    def judge(self, values: Array) -> float:
        """Return 0.5 where an episode is as strange as the share of false alarms allows."""
        distance = _measure_distance(self._describe(values), self._usual)
        return weigh_score(self._scores.judge(distance), self.false_alarms)

    def _describe(self, values: Array) -> Array:
        if not len(values):
            return np.concatenate([self._centre, np.ones_like(self._centre)])
        kernel = np.exp(-(((values - self._centre) / self._spread) ** 2) / 2)
        return np.concatenate([values.mean(0), kernel.mean(0)])


def _measure_distance(statistics: Array, usual: Array) -> float:
    distance = (statistics - usual.mean(0)) / np.maximum(usual.std(0), 1e-3)
    return float(np.log(np.mean(distance**2) + 1e-6)) if distance.size else 0.0


def average_rows(values: Array) -> float:
    """Return the mean of an episode's numbers, one for each row; 0 without rows."""
    numbers = reduce_rows(values)
    return float(numbers.mean()) if numbers.size else 0.0


def weigh_score(score: float, false_alarms: float, ways: int = 1) -> float:
    """Return a belief: 0.5 where a standard normal number is as high, or as far away, as in this share of all cases."""
    tail = ways * math.erfc(score / math.sqrt(2)) / 2
    return false_alarms / (false_alarms + tail)


def check_share(value: float, name: str = "false_alarms", high: float = 0.5) -> float:
    """Return a share.

    Raises:
        InvalidInput: It is not above 0, or too large.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= high:
        raise InvalidInput(f"'{name}' is a number above 0 and up to {high:g}, not {value!r}.")
    return float(value)


def thin(rows: Array, count: int = MAX_REFERENCE) -> Array:
    """Return at most this many rows, evenly spread."""
    return rows if len(rows) <= count else rows[np.linspace(0, len(rows) - 1, count).astype(int)]


def _find_width(rows: Array) -> float:
    """Return the median distance of rows, at which a kernel tells most."""
    distances = _square_distances(rows, rows)
    away = distances[distances > 0]
    return float(np.median(away)) if away.size else 1.0


def _mean_kernel(some: Array, others: Array, width: float) -> float:
    return float(np.exp(-_square_distances(some, others) / width).mean()) if len(some) and len(others) else 0.0


def _square_distances(some: Array, others: Array) -> Array:
    square = (some**2).sum(1)[:, None] + (others**2).sum(1)[None, :] - 2 * some @ others.T
    return np.asarray(np.maximum(square, 0.0))
