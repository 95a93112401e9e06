"""The summary of many cells: estimates for each agent in each scenario, and comparisons of agents in one scenario.

It turns the metrics of single trials into what a report shows.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from openfield.errors import InvalidInput
from openfield.journal.reader import SCORED, CellRecord
from openfield.metrics.metric import Metric, Number
from openfield.metrics.performance import mean, performances, split_periods
from openfield.metrics.stats import (
    MIN_TRIALS,
    Estimate,
    estimate_count,
    estimate_improvement,
    estimate_iqm,
    estimate_mean,
    estimate_paired_improvement,
    estimate_rate,
)

Values = dict[str, dict[str, float]]
"""Name of a number -> trial id -> its value there."""


class Scenario(msgspec.Struct, frozen=True, order=True):
    """The conditions of a table: its trials differ only in their seeds."""

    domain: str
    novelty: tuple[str, ...]
    red_light: bool
    settings: str
    """The settings that differ from the domain's defaults, in words."""


Key = tuple[Scenario, str]
"""A scenario and an agent in it."""


class AgentResults(msgspec.Struct, frozen=True):
    """The results of one agent in one scenario."""

    agent: str
    scenario: Scenario
    trials: int
    """The number of scored trials; repeats of a trial are averaged first."""
    outcomes: dict[str, int]
    """The number of cells by outcome, failed ones included."""
    estimates: dict[str, Estimate]
    """Name of a number -> its estimate; numbers that no trial defines are left out."""
    iqm: Estimate
    """The interquartile mean of the test performance, after the onset if there is one."""


class Comparison(msgspec.Struct, frozen=True):
    """Two agents in one scenario, by their test performance (after the onset if there is one)."""

    scenario: Scenario
    first: str
    second: str
    paired: bool
    """Whether the trials are compared one by one, because both agents played them."""
    difference: Estimate
    """The first's performance minus the second's, over shared trials; not defined if there are too few."""
    improvement: Estimate
    """The probability that the first does better, ties half."""


class Failure(msgspec.Struct, frozen=True):
    """Cells of one agent that had the same outcome and are not scored."""

    outcome: str
    agent: str
    cells: int
    note: str
    """The note of the first of them, which says what to repair."""


class Summary(msgspec.Struct, frozen=True):
    """All numbers a report shows."""

    numbers: tuple[Number, ...]
    groups: tuple[AgentResults, ...]
    comparisons: tuple[Comparison, ...]
    outcomes: dict[str, int]
    failures: tuple[Failure, ...] = ()


def summarise(cells: Iterable[CellRecord], metrics: Sequence[Metric]) -> Summary:
    """Estimate all numbers for each agent in each scenario, and compare the agents of a scenario."""
    known = tuple(cells)
    numbers = list_numbers(metrics)
    metrics = [metric.among(known) for metric in metrics]
    members = group_cells(known)
    scores = {key: score_trials(played) for key, played in members.items()}
    groups = []
    for (scenario, agent), played in members.items():
        values = measure_trials(played, metrics)
        estimates = {n.name: estimate(n, list(values[n.name].values())) for n in numbers if n.name in values}
        iqm = estimate_iqm(list(scores[scenario, agent].values()))
        trials = len({cell.trial.id for cell in played if cell.outcome in SCORED})
        groups.append(AgentResults(agent, scenario, trials, count_outcomes(played), estimates, iqm))
    return Summary(numbers, tuple(groups), tuple(_compare_all(scores)), count_outcomes(known), list_failures(known))


def group_cells(cells: Iterable[CellRecord]) -> dict[Key, list[CellRecord]]:
    """Group cells by scenario and agent, sorted, so that sums do not depend on the order of the cells.

    A trial with only training whose agent other trials start from is left out: it has no scenario of its own.
    """
    members: dict[Key, list[CellRecord]] = {}
    known = _sorted(cells)
    starts = {cell.trial.after for cell in known}
    for cell in known:
        if not (cell.trial.is_training and cell.trial.id in starts):
            members.setdefault((scenario_of(cell), cell.agent), []).append(cell)
    return {key: members[key] for key in sorted(members)}


def list_numbers(metrics: Sequence[Metric]) -> tuple[Number, ...]:
    """List all numbers of the metrics in order, shared ones once."""
    numbers: dict[str, Number] = {}
    for metric in metrics:
        for number in metric.numbers:
            if numbers.setdefault(number.name, number) != number:
                raise InvalidInput(
                    f"Metric '{metric.name}' has a number '{number.name}' that another metric defines otherwise. "
                    "Give it a name of its own."
                )
    return tuple(numbers.values())


def scenario_of(cell: CellRecord) -> Scenario:
    """Return the scenario of a cell."""
    trial = cell.trial
    settings = ", ".join(f"{key}={value}" for key, value in sorted(trial.settings.items()))
    return Scenario(trial.domain, trial.novelty, trial.red_light, settings)


def count_outcomes(cells: Iterable[CellRecord]) -> dict[str, int]:
    """Count cells by outcome, `done` and `truncated` first; cells in progress are `unfinished`."""
    counts = Counter(cell.outcome or "unfinished" for cell in cells)
    order = sorted(counts, key=lambda outcome: (outcome != "done", outcome != "truncated", outcome))
    return {outcome: counts[outcome] for outcome in order}


def list_failures(cells: Iterable[CellRecord]) -> tuple[Failure, ...]:
    """List the failures that kept cells from being scored, by outcome and agent."""
    notes: dict[tuple[str, str], list[str]] = {}
    for cell in _sorted(cells):
        if cell.outcome is not None and cell.outcome not in SCORED:
            notes.setdefault((cell.outcome, cell.agent), []).append(cell.note)
    return tuple(Failure(*key, len(said), next(filter(None, said), "")) for key, said in sorted(notes.items()))


def measure_trials(cells: Iterable[CellRecord], metrics: Sequence[Metric]) -> Values:
    """Measure each scored trial; repeats of a trial are averaged, because they are not independent."""
    found: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        if cell.outcome in SCORED:
            measured = {name: value for metric in metrics for name, value in metric.take(cell).items()}
            for name, value in measured.items():
                if value is not None:
                    found.setdefault(name, {}).setdefault(cell.trial.id, []).append(float(value))
    return {name: _averages(trials) for name, trials in found.items()}


def score_trials(cells: Iterable[CellRecord]) -> dict[str, float]:
    """Return the performance of each scored trial that agents are compared by: after the onset if there is one."""
    scores: dict[str, list[float]] = {}
    for cell in cells:
        periods = split_periods(cell)
        score = mean(performances(periods.after or (() if cell.trial.novelty else periods.before)))
        if cell.outcome in SCORED and score is not None:
            scores.setdefault(cell.trial.id, []).append(score)
    return _averages(scores)


def estimate(number: Number, values: Sequence[float]) -> Estimate:
    """Estimate a number over trials by the rule for its kind."""
    if number.kind == "rate":
        return estimate_rate(values)
    if number.kind == "count":
        return estimate_count(values)
    return estimate_mean(values, number.bounds)


def _sorted(cells: Iterable[CellRecord]) -> list[CellRecord]:
    return sorted(cells, key=lambda cell: (cell.trial.id, cell.repeat, cell.id))


def _averages(repeats: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {trial: sum(values) / len(values) for trial, values in repeats.items()}


def _compare_all(scores: Mapping[Key, Mapping[str, float]]) -> Iterator[Comparison]:
    for (scenario, first), (other, second) in itertools.combinations(scores, 2):
        if scenario == other:
            ours, theirs = scores[scenario, first], scores[scenario, second]
            yield Comparison(scenario, first, second, *_compare(ours, theirs))


def _compare(ours: Mapping[str, float], theirs: Mapping[str, float]) -> tuple[bool, Estimate, Estimate]:
    """Return whether trials are compared one by one, the difference, and the probability of doing better."""
    shared = [trial for trial in ours if trial in theirs]
    pairs = [ours[trial] for trial in shared], [theirs[trial] for trial in shared]
    difference = estimate_mean([a - b for a, b in zip(*pairs, strict=True)], (-1.0, 1.0))
    if len(shared) >= MIN_TRIALS:
        return True, difference, estimate_paired_improvement(*pairs)
    return False, difference, estimate_improvement(list(ours.values()), list(theirs.values()))
