"""Agents that are looked at after every trial, for `bench_coverage`: how often an anytime interval ever misses.

Two agents do equally well in trials of many kinds. An interval that misses the truth at any of 496 looks has missed.
What stopping early saves, and what racing eight agents costs, is found by the code that runs are stopped by, on
simulated cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openfield.cell import Cell
from openfield.metrics.comparison import AgentScores
from openfield.metrics.concordance import (
    WAYS,
    BlockShape,
    arrange_blocks,
    compare_all,
    count_block,
    deal_blocks,
    mean_pairs,
)
from openfield.metrics.confidence_sequences import (
    MIN_ASYMPTOTIC,
    asymptotic_width,
    follow_mean,
    follow_share,
    trace_blocks,
    trace_capital,
)
from openfield.metrics.stats import MIN_TRIALS, TAIL, bound_mean, estimate_mean, share_below
from openfield.planning.interim import judge_scores
from openfield.runner.stopping.batches import Batches, Dropped, Verdict, in_batches
from openfield.runner.stopping.rule import BATCH, DECIDED, StoppingRule
from openfield.trial import Phase, Trial

Floats = NDArray[np.floating[Any]]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
TRIALS, WIDTH_TRIALS = 500, 50
MAX_MISSED, MAX_RATIO = 0.06, 2.0
LEVEL = 0.05
CHUNK = 125
"""Experiments that are simulated at a time, so that memory is bounded."""
WIDTHS = 100
"""Intervals whose width is averaged."""
DOMAIN = "simulated"
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


def split(samples: int, size: int = CHUNK) -> Iterator[tuple[np.random.Generator, int]]:
    """Yield generators and numbers of experiments."""
    for first in range(0, samples, size):
        yield np.random.default_rng([7, first]), min(size, samples - first)


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


SHAPE = BlockShape(2, 1, 2.5)


class Place(NamedTuple):
    """A trial by its number in the plan."""

    number: int
    seed: int
    is_unchanged_twin: bool


@dataclass(frozen=True)
class Blinded:
    """A blind plan, in batches of five changed trials and two unchanged ones."""

    length: int
    window: tuple[int, int]
    batches: int = 72
    shape: BlockShape = SHAPE

    @property
    def mean(self) -> float:
        """How many pairs a block has on average."""
        return mean_pairs(self.length, self.window, self.shape)

    @cached_property
    def rounds(self) -> list[list[list[list[Place]]]]:
        """The trials as reports deal them: rounds, ways, blocks, trials."""
        random, places = np.random.default_rng(3), list[Place]()
        for number in range(self.batches):
            kinds = [(5 * number + at, False) for at in range(5)] + [(2 * number + at, True) for at in range(2)]
            random.shuffle(kinds)
            places += [Place(len(places) + at, int(seed), bool(twin)) for at, (seed, twin) in enumerate(kinds)]
        return list(deal_blocks(places, self.shape))

    def play(self, beliefs: Any, random: np.random.Generator, count: int) -> Iterator[tuple[int, int, Floats]]:
        """Yield for each block its way, when its last trial is over, and its wins and pairs in each experiment."""
        for ways in self.rounds:
            places = list(dict.fromkeys(place for blocks in ways for block in blocks for place in block))
            numbers = {place: number for number, place in enumerate(places)}
            onsets = random.integers(self.window[0], self.window[1] + 1, (count, len(places)))
            onsets[:, [place.is_unchanged_twin for place in places]] = self.length
            changed = onsets[..., None] <= np.arange(self.length)
            said = beliefs(random, changed.reshape(-1, self.length)).reshape(changed.shape)
            there = np.ones(changed.shape, dtype=bool)
            tables = compare_all(said, changed, there, there)
            for way, blocks in enumerate(ways):
                for block in blocks:
                    found = count_block(tables, [numbers[place] for place in block], self.shape)
                    yield way, max(place.number for place in block), found

    def find_truth(self, beliefs: Any) -> float:
        """Return the share of pairs that are won, over many blocks."""
        found = sum(each.sum(axis=-1) for _, _, each in self.play(beliefs, np.random.default_rng(1), 1000))
        return float(found[0] / found[1])


def miss_share(beliefs: Any, plan: Blinded, samples: int) -> float:
    """How often the interval of concordance ever misses, looked at after each of 504 trials."""
    truth, missed, total = plan.find_truth(beliefs), 0, 7 * plan.batches
    for random, count in split(samples, 25):
        gains = np.zeros((2, count, WAYS, total))
        for way, at, (wins, pairs) in plan.play(beliefs, random, count):
            gains[0, :, way, at] = wins / (truth * plan.mean) - 1
            gains[1, :, way, at] = (pairs - wins) / ((1 - truth) * plan.mean) - 1
        won = trace_blocks(gains) > math.log(2 / LEVEL)
        missed += int(won.any(axis=(0, -1)).sum())
    return missed / samples


def find_share_width(beliefs: Any, plan: Blinded) -> float:
    """The mean width of the interval of concordance after 50 trials."""
    ways: list[list[Any]] = [[] for _ in range(WAYS)]
    for way, at, found in plan.play(beliefs, np.random.default_rng(13), WIDTHS):
        if at < WIDTH_TRIALS:
            ways[way].append(found)
    widths = []
    for one in range(WIDTHS):
        low, high = follow_share(arrange_blocks([[each[:, one] for each in way] for way in ways], 0.0, plan.mean))
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


def make_run(rule: StoppingRule, agents: Sequence[str], trials: int) -> list[Cell]:
    """Return the cells of a run that stops by itself, in batches."""
    phases = (Phase("test", 5), Phase("test", 5, ("change",)))
    planned = [Trial(domain=DOMAIN, version=1, seed=seed, phases=phases) for seed in range(trials)]
    return [Cell(agent, trial) for trial in in_batches(planned, rule.batches[DOMAIN]) for agent in agents]


def play_run(rule: StoppingRule, cells: Sequence[Cell], scores: Mapping[str, Floats]) -> tuple[int, list[str]]:
    """Play cells as the scheduler does, batch by batch, and look between them.

    Args:
        rule: The rule of the run.
        cells: All that are planned.
        scores: Agent -> its performance in each trial, by the trial's seed.

    Returns:
        How many cells were played, and what the looks found.
    """
    known, batches, said = (
        {cell.id: cell for cell in cells},
        Batches(cells, rule, {cell.id for cell in cells}),
        list[str](),
    )
    done: dict[str, dict[str, float]] = {agent: {} for agent in scores}
    played = 0

    def look(trials: Collection[str], playing: Collection[str]) -> Verdict:
        wanted = set(trials)
        own = {
            agent: {trial: value for trial, value in each.items() if trial in wanted} for agent, each in done.items()
        }
        verdict = judge_scores(rule, {agent: AgentScores(each, {}) for agent, each in own.items()}, playing, "")
        said.extend([verdict.over, *verdict.settled.values()])
        return verdict

    steps = list(batches.begin(look))
    while steps:
        for cell in (known[name] for step in steps if not isinstance(step, Dropped) for name in step):
            done[cell.agent][cell.trial.id] = float(scores[cell.agent][cell.trial.seed])
            played += 1
            batches.end(cell.id)
        steps = list(batches.go_on(look)) if batches.is_due else []
    return played, said


def count_until_decided(draw: Draw, samples: int) -> float:
    """The mean number of trials of a run with `--until decided`."""
    rule = StoppingRule(until=DECIDED, most=TRIALS, batches={DOMAIN: BATCH})
    cells, counts = make_run(rule, ["one", "two"], TRIALS), []
    for random, count in split(samples):
        for row in draw(random, (count, TRIALS)):  # the difference, as the performances of two agents
            played, _ = play_run(rule, cells, {"one": np.maximum(row, 0), "two": np.maximum(-row, 0)})
            counts.append(played / 2)
    return float(np.mean(counts))


def race(lead: float, samples: int, trials: int = 200) -> tuple[float, float]:
    """How often `--race` calls another agent better than the best of eight, and the share of cells it leaves out."""
    rule = StoppingRule(race=True, most=trials, batches={DOMAIN: BATCH})
    agents = [f"agent{rank}" for rank in range(AGENTS)]
    cells, worse, saved = make_run(rule, agents, trials), 0, 0.0
    skill = np.array([0.5 + lead, *(0.5 - 0.06 * rank for rank in range(AGENTS - 1))])[:, None]
    for random, count in split(samples):
        for _ in range(count):
            hard = random.normal(0, 0.1, (1, trials))
            scores = np.clip(skill + hard + random.normal(0, 0.15, (AGENTS, trials)), 0, 1)
            played, said = play_run(rule, cells, dict(zip(agents, scores, strict=True)))
            worse += any(f"does better than {agents[0]} after" in each for each in said)
            saved += (1 - played / len(cells)) / samples
    return worse / samples, saved


RACES = {"the best leads by 0.1 deviations": 0.015, "by one deviation": 0.15}
"""How far the best is ahead of 0.5, where the second is."""
