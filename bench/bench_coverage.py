"""How often the 95 % intervals of `openfield.metrics` and of objectives hold the truth, by simulation.

One JSON line per rule, family of distributions and number of trials. Families without a bar (0.93 to 0.97) show where
the usual rule ends; those of `UNSEEN_SCORES` and `UNSEEN_COUNTS` were chosen after the rules and before their coverage
was known (design/intervals.md says how that went). Conservative intervals, which are the default, and those of
concordance, have the bar 0.94 for every family. `python bench/bench_coverage.py 2000` is a quick look,
`python bench/bench_coverage.py objectives` plays only the worlds of `objective_worlds`, 500 times each, and
`python bench/bench_coverage.py anytime` looks at 2,000 experiments of each kind after every trial (`looks`).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import looks
from objective_worlds import SIZES, WORLDS, Recipe, Size, World
from openfield.metrics.concordance import Panel, count_pairs, mean_numbers
from openfield.metrics.stats import (
    TAIL,
    Estimate,
    Ratio,
    estimate_count,
    estimate_improvement,
    estimate_iqm,
    estimate_mean,
    estimate_paired_improvement,
    estimate_rate,
    estimate_ratio,
    interquartile_mean,
    score_limits,
    share_below,
)
from openfield.objectives.intervals import Estimates, estimate_counts, objectives_of_counted
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.table import make_table

TRIALS = (5, 10, 30)
MAX_SAMPLES = 600_000
"""Standard error 0.03 points at 93 %."""
PLAYED = 500
"""Simulations of each world."""
LOOKED_AT = 2_000
"""Experiments that are looked at after every trial."""
MIN_SHOWN = 20
"""Estimates that are printed from which their coverage is reported."""
Floats = NDArray[np.floating[Any]]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]


class Family(NamedTuple):
    """A distribution, and whether the rule answers for it."""

    draw: Draw
    mean: float
    held: bool = True


def _uniform(low: float, high: float) -> Family:
    return Family(lambda r, s: r.uniform(low, high, s), (low + high) / 2)


def _gamma(scale: float) -> Family:
    """Gamma with shape 2, cut at 1."""
    mean = 2 * scale - math.exp(-1 / scale) * (2 * scale + 1)
    return Family(lambda r, s: np.minimum(r.gamma(2, scale, s), 1.0), mean)


SCORES = {
    "normal": Family(lambda r, s: r.normal(0.5, 0.15, s), 0.5),
    "uniform": Family(lambda r, s: r.random(s), 0.5),
    "beta(2,5)": Family(lambda r, s: r.beta(2, 5, s), 2 / 7),
    "beta(8,2)": Family(lambda r, s: r.beta(8, 2, s), 0.8),
    "beta(.5,.5)": Family(lambda r, s: r.beta(0.5, 0.5, s), 0.5),
    "30 % at 1, else beta(2,2)": Family(lambda r, s: np.where(r.random(s) < 0.3, 1.0, r.beta(2, 2, s)), 0.65),
    "beta(1,5)": Family(lambda r, s: r.beta(1, 5, s), 1 / 6),
    "beta(8,1)": Family(lambda r, s: r.beta(8, 1, s), 8 / 9),
    "beta(.5,2)": Family(lambda r, s: r.beta(0.5, 2, s), 0.2),
    "beta(20,1)": Family(lambda r, s: r.beta(20, 1, s), 20 / 21),
    "70 % at 1, else uniform": Family(lambda r, s: np.where(r.random(s) < 0.7, 1.0, r.random(s)), 0.85, held=False),
    "25 % beta(2,8), else beta(8,2)": Family(
        lambda r, s: np.where(r.random(s) < 0.25, r.beta(2, 8, s), r.beta(8, 2, s)), 0.65, held=False
    ),
}

UNSEEN_SCORES = {
    "triangular(0,.2,1)": Family(lambda r, s: r.triangular(0, 0.2, 1, s), 0.4),
    "beta(3,1.2)": Family(lambda r, s: r.beta(3, 1.2, s), 3 / 4.2),
    "beta(1.5,6)": Family(lambda r, s: r.beta(1.5, 6, s), 0.2),
    "half beta(5,5), half uniform": Family(lambda r, s: np.where(r.random(s) < 0.5, r.beta(5, 5, s), r.random(s)), 0.5),
    "20 episodes, 70 % won": Family(lambda r, s: r.binomial(20, 0.7, s) / 20, 0.7),
    "20 episodes, 95 % won": Family(lambda r, s: r.binomial(20, 0.95, s) / 20, 0.95, held=False),
}

ALL_OR_NOTHING = {
    "85 % at .9, else .1": Family(lambda r, s: np.where(r.random(s) < 0.85, 0.9, 0.1), 0.78, held=False),
    "95 % at .95, else 0": Family(lambda r, s: np.where(r.random(s) < 0.95, 0.95, 0.0), 0.9025, held=False),
    "a quarter at 0, else beta(8,2)": Family(
        lambda r, s: np.where(r.random(s) < 0.25, 0.0, r.beta(8, 2, s)), 0.6, held=False
    ),
    "a tenth at 0, else .94 to 1": Family(
        lambda r, s: np.where(r.random(s) < 0.1, 0.0, r.uniform(0.94, 1, s)), 0.873, held=False
    ),
    "one in 20 at 0, else .94 to 1": Family(
        lambda r, s: np.where(r.random(s) < 0.05, 0.0, r.uniform(0.94, 1, s)), 0.9215, held=False
    ),
    "nine tenths at 0, else .94 to 1": Family(
        lambda r, s: np.where(r.random(s) < 0.9, 0.0, r.uniform(0.94, 1, s)), 0.097, held=False
    ),
}
"""Agents that recover or do not: their scores have two humps, and the usual interval does not answer for them."""

COUNTS = {
    "geometric(.1)": Family(lambda r, s: r.geometric(0.1, s) - 1.0, 9.0),
    "geometric(.2)": Family(lambda r, s: r.geometric(0.2, s) - 1.0, 4.0),
    "geometric(.3)": Family(lambda r, s: r.geometric(0.3, s) - 1.0, 7 / 3),
    "poisson(3)": Family(lambda r, s: r.poisson(3, s) * 1.0, 3.0),
    "uniform 0 to 9": Family(lambda r, s: r.integers(0, 10, s) * 1.0, 4.5),
    "geometric(.5)": Family(lambda r, s: r.geometric(0.5, s) - 1.0, 1.0, held=False),
    "geometric(.8)": Family(lambda r, s: r.geometric(0.8, s) - 1.0, 0.25, held=False),
    "2 + geometric(.3)": Family(lambda r, s: r.geometric(0.3, s) + 1.0, 13 / 3),
    "negative binomial(.5)": Family(lambda r, s: r.negative_binomial(0.5, 1 / 11, s) * 1.0, 5.0),
    "5 + geometric(.2)": Family(lambda r, s: r.geometric(0.2, s) + 4.0, 9.0),
}

UNSEEN_COUNTS = {
    "binomial(10,.4)": Family(lambda r, s: r.binomial(10, 0.4, s) * 1.0, 4.0),
    "1 + geometric(.5)": Family(lambda r, s: r.geometric(0.5, s) * 1.0, 2.0, held=False),
    "uniform 3 to 12": Family(lambda r, s: r.integers(3, 13, s) * 1.0, 7.5),
    "negative binomial(2)": Family(lambda r, s: r.negative_binomial(2, 0.25, s) * 1.0, 6.0),
    "80 % 0 to 2, else geometric(.1)": Family(
        lambda r, s: np.where(r.random(s) < 0.8, r.integers(0, 3, s), r.geometric(0.1, s) - 1) * 1.0, 2.6, held=False
    ),
}

STEPS = {
    "steps, gamma, cut": _gamma(0.3),
    "steps, exponential, cut": Family(lambda r, s: np.minimum(r.exponential(0.5, s), 1.0), 0.5 * (1 - math.exp(-2))),
    "steps, a tenth unsolved": Family(
        lambda r, s: np.where(r.random(s) < 0.1, 1.0, r.uniform(0.1, 0.4, s)), 0.325, held=False
    ),
    "steps, half unsolved": Family(
        lambda r, s: np.where(r.random(s) < 0.5, 1.0, r.uniform(0.1, 0.5, s)), 0.65, held=False
    ),
}
"""Steps to solve as a share of the budget, at which they are cut."""

RATIOS: dict[str, tuple[Family, Family, bool]] = {
    "uniform by uniform": (_uniform(0.1, 0.7), _uniform(0.1, 0.7), True),
    "gamma, cut, by gamma": (STEPS["steps, gamma, cut"], _gamma(0.15), True),
    "exponential, cut, by gamma": (STEPS["steps, exponential, cut"], _gamma(0.15), True),
    "half unsolved by a tenth unsolved": (STEPS["steps, half unsolved"], STEPS["steps, a tenth unsolved"], False),
    "uniform by a tenth unsolved": (_uniform(0.1, 0.4), STEPS["steps, a tenth unsolved"], False),
}
"""Steps alone divided by steps in the curriculum."""

PAIRS: dict[str, tuple[Draw, Draw, bool]] = {
    "equal normals": (lambda r, s: r.normal(0, 1, s), lambda r, s: r.normal(0, 1, s), True),
    "normals 0.7 apart": (lambda r, s: r.normal(0.7, 1, s), lambda r, s: r.normal(0, 1, s), True),
    "normals 1.5 apart": (lambda r, s: r.normal(1.5, 1, s), lambda r, s: r.normal(0, 1, s), True),
    "beta(8,2), beta(4,3)": (lambda r, s: r.beta(8, 2, s), lambda r, s: r.beta(4, 3, s), True),
    "ties: binomial(4), .7, .5": (
        lambda r, s: r.binomial(4, 0.7, s) * 1.0,
        lambda r, s: r.binomial(4, 0.5, s) * 1.0,
        True,
    ),
    "ties: 80 % at 1, 60 % at 1": (
        lambda r, s: np.where(r.random(s) < 0.8, 1.0, r.random(s)),
        lambda r, s: np.where(r.random(s) < 0.6, 1.0, r.random(s)),
        False,
    ),
    "normals, deviations 1, .3": (lambda r, s: r.normal(0.7, 1, s), lambda r, s: r.normal(0, 0.3, s), False),
}


TIES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
"""Shares of tied trials in paired comparisons. If fewer than three untied trials are likely, every rule is too wide."""

CONSERVATIVE: dict[str, tuple[Family, tuple[float, float]]] = {
    **{name: (family, (0.0, 1.0)) for name, family in (SCORES | UNSEEN_SCORES | ALL_OR_NOTHING | STEPS).items()},
    "delay, geometric(.2), at most 10": (
        Family(lambda r, s: np.minimum(r.geometric(0.2, s) - 1.0, 10), 4 * (1 - 0.8**10)),
        (0.0, 10.0),
    ),
    "delay, 80 % at once, else 20 left": (
        Family(lambda r, s: np.where(r.random(s) < 0.8, 0.0, 20.0), 4.0),
        (0.0, 20.0),
    ),
    "difference of beta(8,2), beta(2,2)": (Family(lambda r, s: r.beta(8, 2, s) - r.beta(2, 2, s), 0.3), (-1.0, 1.0)),
    "difference, 90 % 0, else -.9": (
        Family(lambda r, s: np.where(r.random(s) < 0.9, 0.0, -0.9), -0.09),
        (-1.0, 1.0),
    ),
}
"""Families of conservative intervals, with their range."""
del CONSERVATIVE["normal"]  # it has no range


EPISODES, WINDOW = 20, (5, 15)
Beliefs = Callable[[np.random.Generator, NDArray[np.bool_]], Floats]
"""Draws beliefs for a table that says of each trial and episode whether the world has changed."""


def latch(alarm: float, detection: float) -> Beliefs:
    """Beliefs of 0 until an alarm or a detection, then 1."""
    return lambda r, changed: np.maximum.accumulate(
        (r.random(changed.shape) < np.where(changed, detection, alarm)) * 1.0, axis=1
    )


def shift(size: float, between: float) -> Beliefs:
    """Normal beliefs that rise with the change; `between` is how much trials differ from each other as a whole."""
    return lambda r, changed: (
        size * changed + r.normal(0, 1, changed.shape) + between * r.normal(0, 1, (len(changed), 1))
    )


def all_or_none(share: float) -> Beliefs:
    """Beliefs of 1 from the change on in a share of the trials, else 0."""
    return lambda r, changed: changed * (r.random((len(changed), 1)) < share) * 1.0


CONCORDANT: dict[str, Beliefs] = {
    "latched, alarms .02, detections .3": latch(0.02, 0.3),
    "latched, alarms .05, detections .1": latch(0.05, 0.1),
    "latched, no use": latch(0.05, 0.05),
    "shift 1": shift(1, 0),
    "shift 1, trials differ": shift(1, 1),
    "shift 3, trials differ": shift(3, 1.5),
    "no shift, trials differ": shift(0, 1.5),
    "half noticed": all_or_none(0.5),
    "nine tenths noticed": all_or_none(0.9),
}


def share_covered(truth: float, estimates: Iterator[Estimate]) -> float:
    """How many of the intervals hold the truth, of those that exist."""
    held = [e.low - 1e-12 <= truth <= e.high + 1e-12 for e in estimates if e.low is not None and e.high is not None]
    return float(np.mean(held))


def cover_mean(family: Family, n: int, samples: int) -> float:
    random = np.random.default_rng(n)
    bounds = None if family is SCORES["normal"] else (0.0, 1.0)
    return share_covered(family.mean, (estimate_mean(row, bounds) for row in _rows(family.draw(random, (samples, n)))))


def cover_count(family: Family, n: int, samples: int) -> float:
    random = np.random.default_rng(n)
    return share_covered(family.mean, (estimate_count(row) for row in _rows(family.draw(random, (samples, n)))))


def cover_iqm(family: Family, n: int, samples: int) -> float:
    random = np.random.default_rng(n)
    bounds = None if family is SCORES["normal"] else (0.0, 1.0)
    truth = interquartile_mean(family.draw(random, (2_000_000,)))
    return share_covered(truth, (estimate_iqm(row, bounds) for row in _rows(family.draw(random, (samples, n)))))


def cover_ratio(first: Family, second: Family, n: int, samples: int) -> float:
    random = np.random.default_rng(n)
    rows = zip(first.draw(random, (samples, n)), second.draw(random, (samples, n)), strict=True)
    ratios = (estimate_ratio(Ratio(dict(enumerate(a)), dict(enumerate(b)))) for a, b in rows)
    return share_covered(first.mean / second.mean, ratios)


def cover_conservative_ratio(first: Family, second: Family, n: int, samples: int) -> float:
    """The coverage of `bound_ratio`, by one look at the truth."""
    random, truth = np.random.default_rng(n), first.mean / second.mean
    held = []
    for above, below in zip(first.draw(random, (samples, n)), second.draw(random, (samples, n)), strict=True):
        gaps = (above - truth * below).tolist()
        held.append(share_below([-truth, *gaps], 0.0) >= TAIL and share_below([1.0, *gaps], 0.0) <= 1 - TAIL)
    return float(np.mean(held))


def cover_improvement(first: Draw, second: Draw, n: int, samples: int) -> float:
    random = np.random.default_rng(n)
    truth = float(np.heaviside(first(random, (4_000_000,)) - second(random, (4_000_000,)), 0.5).mean())
    rows = zip(first(random, (samples, n)), second(random, (samples, n)), strict=True)
    return share_covered(truth, (estimate_improvement(a, b) for a, b in rows))


def cover_conservative(family: Family, bounds: tuple[float, float], n: int, samples: int) -> float:
    """The coverage of `bound_mean`, whose limits are where `share_below` crosses the tails: one look at the truth."""
    random = np.random.default_rng(n)
    held = [
        share_below([bounds[0], *row], family.mean) >= TAIL and share_below([bounds[1], *row], family.mean) <= 1 - TAIL
        for row in _rows(family.draw(random, (samples, n)))
    ]
    return float(np.mean(held))


def cover_paired(ties: float, n: int) -> float:
    """The exact coverage of a paired comparison, its mean over 99 shares of wins among the untied trials."""
    outcomes = np.array([(won, tied, n - won - tied) for won in range(n + 1) for tied in range(n + 1 - won)])
    found = [estimate_paired_improvement([1.0] * w + [0.5] * t + [0.0] * lost, [0.5] * n) for w, t, lost in outcomes]
    low, high = np.array([e.low for e in found], dtype=float), np.array([e.high for e in found], dtype=float)
    ways = np.array([math.factorial(n) / math.prod(map(math.factorial, row)) for row in outcomes.tolist()])
    coverage = []
    for share in np.linspace(0.01, 0.99, 99):
        chances = ways * (np.array([(1 - ties) * share, ties, (1 - ties) * (1 - share)]) ** outcomes).prod(axis=1)
        truth = (1 - ties) * share + ties / 2
        coverage.append(float(chances[(low <= truth + 1e-12) & (truth <= high + 1e-12)].sum()))
    return float(np.mean(coverage))


def draw_panel(random: np.random.Generator, beliefs: Beliefs, changed: int, unchanged: int) -> Panel:
    """Draw a blind set: onsets within a window, and unchanged twins of the first trials."""
    onsets = np.append(random.integers(WINDOW[0], WINDOW[1] + 1, changed), np.full(unchanged, EPISODES))
    differs = onsets[:, None] <= np.arange(EPISODES)
    courses, kinds = np.unique(differs, axis=0, return_inverse=True)
    table = beliefs(random, differs).astype(np.float64)
    present = np.ones(table.shape, dtype=bool)
    seeds = np.append(np.arange(changed), np.arange(unchanged))
    trials = np.arange(changed + unchanged)
    return Panel(table, courses, kinds, present, present, seeds, trials, trials)


def cover_concordance(beliefs: Beliefs, changed: int, samples: int) -> float:
    random = np.random.default_rng(changed)
    many = [draw_panel(random, beliefs, 100, 40) for _ in range(200)]
    sums = [count_pairs(panel, [panel.kinds[None]]) for panel in many]
    truth = sum(float(wins[0]) for wins, _ in sums) / sum(float(pairs[0]) for _, pairs in sums)
    held = []
    for _ in range(samples):
        panel = draw_panel(random, beliefs, changed, math.ceil(0.4 * changed))
        wins, pairs = count_pairs(panel, [panel.kinds[None]])
        low, high = score_limits(float(wins[0] / pairs[0]), *mean_numbers(panel))
        held.append(low - 1e-12 <= truth <= high + 1e-12)
    return float(np.mean(held))


def cover_rate(n: int) -> tuple[float, float]:
    """The exact coverage of a rate: its mean and its least over 999 true rates."""
    intervals = [estimate_rate([1.0] * hits + [0.0] * (n - hits)) for hits in range(n + 1)]
    low = np.array([e.low for e in intervals], dtype=float)
    high = np.array([e.high for e in intervals], dtype=float)
    ways = np.array([math.comb(n, hits) for hits in range(n + 1)], dtype=float)
    hits = np.arange(n + 1)
    coverage = [
        float((ways * p**hits * (1 - p) ** (n - hits))[(low <= p) & (p <= high)].sum())
        for p in np.linspace(0.001, 0.999, 999)
    ]
    return float(np.mean(coverage)), min(coverage)


class Held(NamedTuple):
    """How the estimates of a world did over many simulations."""

    entropy: list[bool]
    """Whether each interval of the entropy that is printed holds the truth."""
    excess: list[bool]
    errors: list[float]
    """How far the excess that is printed is from the truth, as shares of ln(actions)."""


def cover_world(recipe: Recipe, size: Size, samples: int) -> Held:
    """Play a world many times, in episodes."""
    world, random, held = World(recipe), np.random.default_rng(size.steps), Held([], [], [])
    for seed in range(samples):
        note_held(held, world, objectives_of_counted(world.play(size, random), recipe.inputs, seed=seed))
    return held


def cover_counts(recipe: Recipe, transitions: int, samples: int) -> Held:
    """Draw tables of independent transitions of a world."""
    world, random, held = World(recipe), np.random.default_rng(transitions), Held([], [], [])
    chances = (world.visits[:, None, None] * world.policy[:, :, None] * world.kernel).reshape(-1)
    for seed in range(samples):
        drawn = random.multinomial(transitions, chances / chances.sum())
        seen = np.flatnonzero(drawn)
        obs, action, then = np.unravel_index(seen, world.kernel.shape)
        note_held(held, world, estimate_counts(make_table([Rows(obs, action, then, drawn[seen])]), seed=seed))
    return held


def note_held(held: Held, world: World, found: Estimates) -> None:
    entropy, excess = found.values["input_entropy"], found.excess
    if entropy.low is not None and entropy.high is not None:
        held.entropy.append(entropy.low <= world.entropy <= entropy.high)
    if excess.value is not None and excess.low is not None and excess.high is not None:
        held.excess.append(excess.low <= world.empowerment <= excess.high)
        held.errors.append(abs(excess.value - world.empowerment) / math.log(world.actions))


def show_objectives(samples: int) -> None:
    """Show how often the intervals of objectives hold the truth, and how near to it the excess of empowerment is."""
    for name, recipe in WORLDS.items():
        for size in SIZES:
            told = f"{name}, {size.episodes} episodes of {size.steps} steps"
            show_held(told, cover_world(recipe, size, samples), samples)
        for transitions in (300, 5_000):
            told = f"{name}, {transitions:,} independent transitions"
            show_held(told, cover_counts(recipe, transitions, samples), samples)


def show_held(told: str, held: Held, samples: int) -> None:
    bar = (0.9, 1.0)
    for title, covered in (("input entropy", held.entropy), ("excess of empowerment", held.excess)):
        share = len(covered) / samples
        print_line(f"{title} has an interval, share of simulations, {told}", share, "higher")
        if len(covered) >= MIN_SHOWN:
            show(f"{title}, {told}", float(np.mean(covered)), True, bar)
    if len(held.errors) >= MIN_SHOWN:
        error = float(np.mean(held.errors))
        title = f"mean error of the excess that is printed, share of ln(actions), {told}"
        print_line(title, error, "lower", bar=0.05, ok=error <= 0.05)


def print_line(figure: str, value: float, better: str, **more: Any) -> None:
    line = {"subject": "coverage", "figure": figure, "value": round(value, 4), "better": better}
    print(json.dumps(line | more), flush=True)


def main(samples: int) -> None:
    for n in TRIALS:
        for name, family in (SCORES | UNSEEN_SCORES | ALL_OR_NOTHING | STEPS).items():
            settle(f"mean of {name}, n={n}", partial(cover_mean, family, n), family.held, samples)
        for name, family in (COUNTS | UNSEEN_COUNTS).items():
            settle(f"count of {name}, n={n}", partial(cover_count, family, n), family.held, samples)
        for name, (above, below, held) in RATIOS.items():
            settle(f"ratio of {name}, n={n}", partial(cover_ratio, above, below, n), held, samples)
            safe = partial(cover_conservative_ratio, above, below, n)
            settle(f"conservative ratio of {name}, n={n}", safe, True, samples, (0.94, 1.0))
        for name, family in SCORES.items():
            settle(f"iqm of {name}, n={n}", partial(cover_iqm, family, n), family.held, samples)
        for name, (first, second, held) in PAIRS.items():
            settle(f"improvement of {name}, n={n}", partial(cover_improvement, first, second, n), held, samples)
        for ties in TIES:
            held = n * (1 - ties) >= 2.5
            show(f"paired improvement, {ties:.0%} ties, mean over all shares, n={n}", cover_paired(ties, n), held)
        for name, (family, bounds) in CONSERVATIVE.items():
            cover = partial(cover_conservative, family, bounds, n)
            settle(f"conservative mean of {name}, n={n}", cover, True, samples, (0.94, 1.0))
        for name, beliefs in CONCORDANT.items():
            figure = f"concordance, {name}, n={n} and {math.ceil(0.4 * n)} unchanged"
            settle(figure, partial(cover_concordance, beliefs, n), True, max(1, samples // 5), (0.94, 1.0))
        mean, least = cover_rate(n)
        show(f"rate, mean over all true rates, n={n}", mean, True)
        show(f"rate, least over all true rates, n={n}", least, False)


def show_anytime(samples: int) -> None:
    """Show what looking after every trial costs, and what stopping saves."""
    families = SCORES | UNSEEN_SCORES | ALL_OR_NOTHING | STEPS
    pairs = {name: looks.apart(family.draw, family.mean) for name, family in families.items() if name != "normal"}
    for name, pair in {"hierarchical": looks.HIERARCHICAL, **pairs}.items():
        ratios = looks.compare_widths(pair)
        for number, missed in looks.miss_bounded(pair, samples).items():
            show_missed(f"{number} of {name}", missed)
            show_ratio(f"{number} of {name}", ratios[number])
    for name, (draw, mean) in looks.RETURNS.items():
        missed = looks.miss_unbounded(draw, mean, samples)
        print_line(f"ever missed from trial 30 on, asymptotic, {name}", missed, "lower")
        show_ratio(f"asymptotic, {name}", looks.compare_unbounded_width(draw))
    plan = looks.Blinded(EPISODES, WINDOW)
    for name, beliefs in CONCORDANT.items():
        show_missed(f"concordance, {name}", looks.miss_share(beliefs, plan, samples))
        ratio = looks.find_share_width(beliefs, plan) / mean_concordance_width(beliefs, 36, 14)
        show_ratio(f"concordance, {name}", ratio)
    show_savings(samples)


def show_savings(samples: int) -> None:
    for deviation in (0.15, 0.3):
        fixed = looks.find_fixed_trials(looks.draw_gaps(0.8, deviation))
        print_line(f"trials planned for 0.8 deviations of {deviation}, power 90 %", fixed, "lower")
        for effect in (0.8, 1.2, 1.6, 2.0):
            decided = looks.count_until_decided(looks.draw_gaps(effect, deviation), samples)
            bar = {"bar": fixed, "ok": decided <= fixed} if effect == 0.8 else {}
            print_line(f"mean trials until decided, {effect} deviations of {deviation}", decided, "lower", **bar)
    for name, lead in looks.RACES.items():
        dropped, saved = looks.race(lead, samples)
        print_line(f"race of eight: the best is judged worse, {name}", dropped, "lower", bar=0.06, ok=dropped <= 0.06)
        print_line(f"race of eight: share of 200 trials not played, {name}", saved, "higher")


def show_missed(figure: str, missed: float) -> None:
    bar = looks.MAX_MISSED
    print_line(f"ever missed in 500 looks, {figure}", missed, "lower", bar=bar, ok=missed <= bar)


def show_ratio(figure: str, ratio: float) -> None:
    bar = looks.MAX_RATIO
    print_line(f"anytime width over fixed at 50 trials, {figure}", ratio, "lower", bar=bar, ok=ratio <= bar)


def mean_concordance_width(beliefs: Beliefs, changed: int, unchanged: int) -> float:
    random, widths = np.random.default_rng(17), []
    for _ in range(looks.WIDTHS):
        panel = draw_panel(random, beliefs, changed, unchanged)
        wins, pairs = count_pairs(panel, [panel.kinds[None]])
        low, high = score_limits(float(wins[0] / pairs[0]), *mean_numbers(panel))
        widths.append(high - low)
    return float(np.mean(widths))


USUAL_BAR = (0.93, 0.97)


def settle(
    figure: str, cover: Callable[[int], float], held: bool, samples: int, bar: tuple[float, float] = USUAL_BAR
) -> None:
    """Show a simulated coverage, with more samples where the simulation's own error could decide about the bar."""
    value = cover(samples)
    while held and samples < MAX_SAMPLES and is_near(value, samples, bar):
        samples = min(4 * samples, MAX_SAMPLES)
        value = cover(samples)
    show(figure, value, held, bar, samples)


def is_near(value: float, samples: int, bar: tuple[float, float]) -> bool:
    """Whether the value is nearer to an end of the bar than three standard errors; no coverage exceeds 1."""
    error = math.sqrt(value * (1 - value) / samples)
    return any(abs(value - end) < 3 * error for end in bar if end < 1)


def show(
    figure: str, value: float, held: bool, bar: tuple[float, float] = USUAL_BAR, samples: int | None = None
) -> None:
    better = "nearer 0.95" if bar[1] < 1 else "higher"
    line = {"subject": "coverage", "figure": figure, "value": round(value, 4), "better": better}
    line |= {} if samples is None else {"samples": samples}
    print(json.dumps(line | ({"bar": bar, "ok": bar[0] <= value <= bar[1]} if held else {})), flush=True)


def _rows(samples: Floats) -> Iterator[Sequence[float]]:
    return iter(samples.tolist())


if __name__ == "__main__":
    if sys.argv[1:2] == ["objectives"]:
        show_objectives(int(sys.argv[2]) if len(sys.argv) > 2 else PLAYED)
    elif sys.argv[1:2] == ["anytime"]:
        show_anytime(int(sys.argv[2]) if len(sys.argv) > 2 else LOOKED_AT)
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
