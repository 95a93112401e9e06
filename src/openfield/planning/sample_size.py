"""How many trials a difference of two agents needs, and what a number of trials can show.

Simulated with the intervals that reports use: for a conservative interval no formula gives the number. The differences
of single trials are drawn from a normal distribution with the deviation that a pilot or earlier runs had.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import stdev
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.journal.reader import CellRecord
from openfield.metrics.comparison import AgentScores, pair_scores
from openfield.metrics.confidence_sequences import LEVEL, trace_capital
from openfield.metrics.failures import apply_policy
from openfield.metrics.scenario import Scenario, group_cells
from openfield.metrics.stats import MIN_TRIALS, TAIL, bound_mean, share_below
from openfield.metrics.summary import score_agent
from openfield.planning.reach import GAP
from openfield.report.figures import Plot, PlotLine
from openfield.report.figures.paper import Figure
from openfield.report.matrix import name_scenarios
from openfield.result import Result
from openfield.runner.stopping.rule import BATCH

SAMPLES = 400
"""Simulated runs."""
MAX_TRIALS = 5_000
"""More trials are not looked at."""
MAX_FOLLOWED = 400
"""Trials up to which a run that stops by itself is simulated."""
WIDTHS = 20
"""Intervals whose width is averaged."""
SHOWN = (10, 20, 30, 50, 100, 200)
"""Numbers of trials whose width is shown."""
DOUBT = 1.2816
"""Standard deviations beyond which 10 % of a normal distribution lie."""
Floats = NDArray[np.floating[Any]]


class Need(msgspec.Struct, frozen=True):
    """What it takes to see a difference of two agents in a scenario."""

    scenario: Scenario
    first: str
    second: str
    measured: int
    """Trials in which both were measured."""
    difference: float
    deviation: float
    """The standard deviation of their difference from trial to trial."""
    highest_deviation: float
    """The deviation that is exceeded with a chance of 10 %, as so few trials know it."""
    trials: int | None
    """Those that must change; None if `MAX_TRIALS` are too few."""
    trials_at_most: int | None
    """The same with the highest deviation."""
    until_decided: float | None
    """How many a run with `--until decided` plays on average; None where they are too many to simulate."""
    widths: dict[int, float]
    """Trials -> how wide the interval is."""


class Spending(NamedTuple):
    """What a trial of an agent takes."""

    seconds: float
    tokens: float
    cost: float | None


def find_trials(deviation: float, detect: float, power: float) -> int | None:
    """Return how many trials a fixed design needs; None if `MAX_TRIALS` are too few.

    Args:
        deviation: The standard deviation of the difference from trial to trial.
        detect: The difference to detect.
        power: The chance of detecting it.
    """

    def shows(n: int) -> bool:
        rows = draw_gaps(deviation, detect, n, SAMPLES).tolist()
        return sum(share_below([-1.0, *sorted(row)], 0.0) < TAIL for row in rows) >= power * SAMPLES

    low, high = MIN_TRIALS - 1, MIN_TRIALS
    while not shows(high):
        low, high = high, 2 * high
        if high > MAX_TRIALS:
            return None
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def draw_gaps(deviation: float, difference: float, trials: int, runs: int) -> Floats:
    """Return differences of simulated trials, one row for each run."""
    random = np.random.default_rng([trials, 38])
    return np.clip(random.normal(difference, deviation, (runs, trials)), *GAP)


def count_until_decided(deviation: float, detect: float, planned: int | None) -> float | None:
    """Return how many trials a run with `--until decided` plays on average.

    Args:
        deviation: The standard deviation of the difference from trial to trial.
        detect: The true difference.
        planned: What a fixed design would play.
    """
    if planned is None or 2 * planned > MAX_FOLLOWED:
        return None
    gaps = draw_gaps(deviation, detect, max(2 * planned, 4 * BATCH), SAMPLES // 4)
    won = trace_capital(gaps) > math.log(2 / LEVEL)  # against 0, the middle of the range: a bet of a gap wins the gap
    looks = won[:, BATCH - 1 :: BATCH]
    counts = np.where(looks.any(-1), (looks.argmax(-1) + 1) * BATCH, gaps.shape[-1])
    return float(counts.mean())


def find_widths(deviation: float, difference: float, trials: Sequence[int] = SHOWN) -> dict[int, float]:
    """Return how wide the interval of a difference is on average, by number of trials."""
    found = {}
    for n in trials:
        intervals = [bound_mean(row, GAP) for row in draw_gaps(deviation, difference, n, WIDTHS).tolist()]
        found[n] = float(np.mean([(each.high or 0.0) - (each.low or 0.0) for each in intervals]))
    return found


def find_needs(result: Result, detect: float, power: float) -> list[Need]:
    """Return what the agents of some runs need, two by two, in each scenario.

    Args:
        result: A pilot, or earlier runs.
        detect: The difference to detect.
        power: The chance of detecting it.
    """
    scores: dict[Scenario, dict[str, AgentScores]] = {}
    for (scenario, agent), cells in group_cells(apply_policy(result.cells, "count")).items():
        if not all(cell.control for cell in cells):
            scores.setdefault(scenario, {})[agent] = score_agent(cells)
    return [
        need
        for scenario, own in scores.items()
        for pair in combinations(sorted(own), 2)
        if (need := _find_need(scenario, pair, own, detect, power)) is not None
    ]


def trace_widths(needs: Sequence[Need]) -> Figure:
    """Return a figure of how wide the interval of each difference is by the number of trials, a panel for each novelty.

    Args:
        needs: What `find_needs` found.
    """
    scenarios = list(dict.fromkeys(need.scenario for need in needs))
    names = name_scenarios(scenarios, len({scenario.domain for scenario in scenarios}) > 1)
    panels = []
    for scenario, title in names.items():
        own = [need for need in needs if need.scenario == scenario]
        lines = [
            PlotLine("p", list(need.widths.items()), _name_pair(need), [(None, None, n) for n in need.widths])
            for need in own
        ]
        panels.append(Plot(title=title, lines=lines, last=max(SHOWN), values="width"))
    return Figure(
        kind="curves",
        panels=list(panels),
        agents={name: name for name in dict.fromkeys(map(_name_pair, needs))},
        across="trials that change",
        values="width of the interval",
        caption="How wide the 95 % interval of each difference is on average, by simulation.",
    )


def _name_pair(need: Need) -> str:
    return f"{need.first} - {need.second}"


def _find_need(
    scenario: Scenario, pair: tuple[str, str], scores: Mapping[str, AgentScores], detect: float, power: float
) -> Need | None:
    gaps = [a - b for a, b in pair_scores(scores[pair[0]], scores[pair[1]])]
    if len(gaps) < 3:
        return None
    deviation, difference = stdev(gaps), math.fsum(gaps) / len(gaps)
    highest = deviation / math.sqrt(_least_chi_square(len(gaps) - 1) / (len(gaps) - 1))
    trials = find_trials(deviation, detect, power)
    return Need(
        scenario,
        *pair,
        measured=len(gaps),
        difference=difference,
        deviation=deviation,
        highest_deviation=highest,
        trials=trials,
        trials_at_most=find_trials(highest, detect, power),
        until_decided=count_until_decided(deviation, detect, trials),
        widths=find_widths(deviation, difference),
    )


def _least_chi_square(freedom: int) -> float:
    """Return the value that a chi-square variable is below with a chance of 10 %, by Wilson and Hilferty's formula."""
    share = 2 / (9 * freedom)
    return max(float(freedom * (1 - share - DOUBT * math.sqrt(share)) ** 3), 1e-3)


def measure_spending(result: Result) -> dict[str, Spending]:
    """Return what a trial of each agent takes on average: seconds, tokens and cost."""
    found, used = {}, result.usage
    own: dict[str, list[CellRecord]] = {}
    for cell in result.cells:
        if cell.attempt and not cell.control:
            own.setdefault(cell.agent, []).append(cell)
    for agent, cells in own.items():
        usage = used.get(agent)
        cost = None if usage is None or usage.cost is None else usage.cost / len(cells)
        tokens = 0.0 if usage is None else usage.tokens / len(cells)
        found[agent] = Spending(math.fsum(cell.seconds for cell in cells) / len(cells), tokens, cost)
    return found
