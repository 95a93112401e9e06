"""Agents that are looked at after every trial, for `bench_coverage`: how often an anytime interval ever misses.

Two agents do equally well in trials of many kinds. An interval that misses the truth at any of 496 looks has missed.
What stopping early saves, and what racing eight agents costs, is simulated with the same bets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openfield.metrics.confidence_sequences import (
    MIN_ASYMPTOTIC,
    Blocks,
    asymptotic_width,
    follow_mean,
    follow_share,
    trace_capital,
)
from openfield.metrics.stats import MIN_TRIALS, TAIL, bound_mean, estimate_mean, share_below

Floats = NDArray[np.floating[Any]]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
TRIALS, WIDTH_TRIALS = 500, 50
MAX_MISSED, MAX_RATIO = 0.06, 2.0
LEVEL = 0.05
CHUNK = 125
"""Experiments that are simulated at a time, so that memory is bounded."""
WIDTHS = 100
"""Intervals whose width is averaged."""
BATCH = 5
"""Trials between two looks of a run that stops by itself."""
POWER = 0.9
AGENTS = 8


class Pair(NamedTuple):
    """What two agents that do equally well score in the same trials."""

    draw: Callable[[np.random.Generator, tuple[int, ...]], tuple[Floats, Floats]]
    mean: float


def apart(draw: Draw, mean: float) -> Pair:
    """Two agents whose scores have nothing in common but their distribution."""
    return Pair(lambda r, s: (draw(r, s), draw(r, s)), mean)


def _draw_hierarchical(r: np.random.Generator, size: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Twenty episodes, won with a chance that an agent has in a trial, which depends on how hard the trial is."""
    hard = r.beta(2, 2, size)
    one, two = (r.binomial(20, r.beta(8 * hard + 0.01, 8 * (1 - hard) + 0.01)) / 20 for _ in range(2))
    return one, two


HIERARCHICAL = Pair(_draw_hierarchical, 0.5)

RETURNS: dict[str, tuple[Draw, float]] = {
    "Student's t with 3 degrees": (lambda r, s: r.standard_t(3, s), 0.0),
    "log-normal": (lambda r, s: r.lognormal(0, 1, s), math.exp(0.5)),
    "Pareto, finite variance": (lambda r, s: r.pareto(2.5, s), 1 / 1.5),
    "exponential": (lambda r, s: r.exponential(1, s), 1.0),
}
"""Returns without bounds, with heavy tails."""


def split(samples: int) -> Iterator[tuple[np.random.Generator, int]]:
    """Yield generators and numbers of experiments."""
    for first in range(0, samples, CHUNK):
        yield np.random.default_rng([7, first]), min(CHUNK, samples - first)


def exceeds(values: Floats, truth: float, bounds: tuple[float, float], level: float = LEVEL) -> NDArray[np.bool_]:
    """Whether the interval of a mean excludes a value after each trial."""
    above, below = (values - bounds[0]) / (truth - bounds[0]) - 1, (bounds[1] - values) / (bounds[1] - truth) - 1
    won = np.maximum(trace_capital(above), trace_capital(below)) > math.log(2 / level)
    won[..., : MIN_TRIALS - 1] = False
    return np.asarray(won)


def miss_bounded(pair: Pair, samples: int) -> dict[str, float]:
    """How often the intervals of a mean, a difference and P(better) ever miss."""
    missed = {"mean": 0, "paired difference": 0, "P(better)": 0}
    for random, count in split(samples):
        one, two = pair.draw(random, (count, TRIALS))
        wins = np.heaviside(one - two, 0.5)
        missed["mean"] += int(exceeds(one, pair.mean, (0, 1)).any(-1).sum())
        missed["paired difference"] += int(exceeds(one - two, 0.0, (-1, 1)).any(-1).sum())
        missed["P(better)"] += int(exceeds(wins, 0.5, (0, 1)).any(-1).sum())
    return {name: count / samples for name, count in missed.items()}


def compare_widths(pair: Pair) -> dict[str, float]:
    """How much wider the intervals are than those of a fixed number of trials."""
    one, two = pair.draw(np.random.default_rng(11), (WIDTHS, WIDTH_TRIALS))
    shown = {"mean": (one, (0.0, 1.0)), "paired difference": (one - two, (-1.0, 1.0))}
    shown["P(better)"] = (np.heaviside(one - two, 0.5), (0.0, 1.0))
    ratios = {}
    for name, (values, bounds) in shown.items():
        pairs = [(follow_mean(row, bounds), bound_mean(row, bounds)) for row in values.tolist()]
        ours, theirs = (sum((e.high or 0) - (e.low or 0) for e in side) for side in zip(*pairs, strict=True))
        ratios[name] = ours / theirs
    return ratios


def miss_unbounded(draw: Draw, mean: float, samples: int) -> float:
    """How often an asymptotic interval misses at some look from the first trial on that has one."""
    half = np.array([asymptotic_width(n) for n in range(MIN_ASYMPTOTIC, TRIALS + 1)])
    counts, missed = np.arange(1, TRIALS + 1), 0
    for random, count in split(samples):
        values = draw(random, (count, TRIALS))
        means = values.cumsum(-1) / counts
        spread = np.sqrt(np.maximum((values**2).cumsum(-1) - counts * means**2, 0) / np.maximum(counts - 1, 1))
        far = abs(means - mean)[:, MIN_ASYMPTOTIC - 1 :] > half * spread[:, MIN_ASYMPTOTIC - 1 :]
        missed += int(far.any(-1).sum())
    return missed / samples


def compare_unbounded_width(draw: Draw) -> float:
    """How much wider an asymptotic interval is than the usual one."""
    rows = draw(np.random.default_rng(11), (WIDTHS, WIDTH_TRIALS)).tolist()
    pairs = [(follow_mean(row, None), estimate_mean(row, None)) for row in rows]
    ours, theirs = (sum((e.high or 0) - (e.low or 0) for e in side) for side in zip(*pairs, strict=True))
    return ours / theirs


@dataclass(frozen=True)
class Blinded:
    """Blocks of two changed trials and an unchanged one: beliefs over episodes, and onsets."""

    length: int
    window: tuple[int, int]
    weight: float

    @property
    def most(self) -> float:
        """The most pairs that a block can have."""
        least, latest = (self.length - onset for onset in self.window)
        both = (
            soon * least + (2 - soon) * latest + self.weight * soon * (2 - soon) * (least - latest) for soon in range(3)
        )
        return max(both)

    def draw(self, beliefs: Any, random: np.random.Generator, blocks: int) -> tuple[Floats, Floats]:
        """Draw blocks and return the wins and pairs of each."""
        onsets = random.integers(self.window[0], self.window[1] + 1, (blocks, 3))
        onsets[:, 2] = self.length
        changed = onsets[..., None] <= np.arange(self.length)
        said = beliefs(random, changed.reshape(-1, self.length)).reshape(changed.shape)
        wins, pairs = np.zeros(blocks), np.zeros(blocks)
        for one, two in ((0, 1), (1, 0), (0, 2), (1, 2)):
            met = changed[:, one] & ~changed[:, two]
            weight = 1.0 if two == 2 else self.weight
            wins += weight * (met * np.heaviside(said[:, one] - said[:, two], 0.5)).sum(-1)
            pairs += weight * met.sum(-1)
        return wins, pairs


def miss_share(beliefs: Any, shape: Blinded, samples: int) -> float:
    """How often the interval of concordance ever misses, over as many blocks as 500 changed trials have."""
    wins, pairs = shape.draw(beliefs, np.random.default_rng(1), 400_000)
    truth, most, missed = float(wins.sum() / pairs.sum()), shape.most, 0
    for random, count in split(samples):
        wins, pairs = (each.reshape(count, -1) for each in shape.draw(beliefs, random, count * TRIALS // 2))
        above = trace_capital(wins / (truth * most) - pairs / most)
        below = trace_capital((pairs - wins) / ((1 - truth) * most) - pairs / most) if truth < 1 else above
        missed += int((np.maximum(above, below) > math.log(2 / LEVEL)).any(-1).sum())
    return missed / samples


def find_share_width(beliefs: Any, shape: Blinded, blocks: int) -> float:
    """The mean width of the interval of concordance after a number of blocks."""
    random, widths = np.random.default_rng(13), []
    for _ in range(WIDTHS):
        wins, pairs = shape.draw(beliefs, random, blocks)
        low, high = follow_share(Blocks(wins, pairs, np.full(blocks, shape.most)))
        widths.append(high - low)
    return float(np.mean(widths))


def draw_gaps(effect: float, deviation: float) -> Draw:
    """Differences of two agents, of which one is better by some standard deviations."""
    return lambda r, s: np.clip(r.normal(effect * deviation, deviation, s), -1, 1)


def find_fixed_trials(draw: Draw) -> int:
    """The number of trials at which the fixed design shows the difference with the wanted power."""

    def shows(n: int) -> float:
        rows = draw(np.random.default_rng([5, n]), (1000, n)).tolist()
        return float(np.mean([share_below([-1.0, *sorted(row)], 0.0) < TAIL for row in rows]))

    low, high = MIN_TRIALS, 16
    while shows(high) < POWER:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) >= POWER else (middle, high)
    return high


def count_until_decided(draw: Draw, samples: int, batch: int = BATCH) -> float:
    """The mean number of trials until the interval of the difference excludes 0, looked at after each batch."""
    counts = []
    for random, count in split(samples):
        done = exceeds(draw(random, (count, TRIALS)), 0.0, (-1, 1))[:, batch - 1 :: batch]
        counts += list(np.where(done.any(-1), (done.argmax(-1) + 1) * batch, TRIALS))
    return float(np.mean(counts))


def race(lead: float, samples: int, trials: int = 200) -> tuple[float, float]:
    """How often the best of eight agents is judged worse than another, and the share of trials that is not played.

    An agent is not played further once its difference from each other agent is settled, with intervals corrected for
    the number of pairs.
    """
    pairs = list(combinations(range(AGENTS), 2))
    dropped, saved = 0, 0.0
    for random, count in split(samples):
        hard = random.normal(0, 0.1, (count, 1, trials))
        skill = np.array([0.5 + lead, *(0.5 - 0.06 * rank for rank in range(AGENTS - 1))])[None, :, None]
        scores = np.clip(skill + hard + random.normal(0, 0.15, (count, AGENTS, trials)), 0, 1)
        settled = np.stack(
            [
                exceeds(scores[:, a] - scores[:, b], 0.0, (-1, 1), LEVEL / len(pairs))[:, BATCH - 1 :: BATCH]
                for a, b in pairs
            ]
        )
        gaps = np.stack([(scores[:, a] - scores[:, b]).cumsum(-1)[:, BATCH - 1 :: BATCH] for a, b in pairs])
        for one in range(count):
            lost, left = run_race(settled[:, one], gaps[:, one], pairs)
            dropped, saved = dropped + lost, saved + left / samples
    return dropped / samples, saved


def run_race(settled: NDArray[np.bool_], gaps: Floats, pairs: list[tuple[int, int]]) -> tuple[bool, float]:
    """Play one race, batch by batch: whether the best was judged worse than another, and the share not played."""
    looks, playing, known = settled.shape[1], set(range(AGENTS)), dict[tuple[int, int], bool]()
    played = 0
    for look in range(looks):
        played += len(playing)
        for number, pair in enumerate(pairs):
            if pair not in known and playing >= set(pair) and settled[number, look]:
                known[pair] = bool(gaps[number, look] > 0)
        done = {agent for agent in playing if sum(agent in pair for pair in known) == AGENTS - 1}
        playing -= done
        if len(playing) < 2:
            break
    lost = any(pair[0] == 0 and not first for pair, first in known.items())
    return lost, 1 - played / (looks * AGENTS)


RACES = {"the best leads by 0.1 deviations": 0.015, "by one deviation": 0.15}
"""How far the best is ahead of 0.5, where the second is."""
