"""The summary of many cells: estimates for each agent in each scenario, and comparisons of agents in one scenario.

It turns the metrics of single trials into the numbers of a report.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from openfield.errors import InvalidInput, OpenfieldError
from openfield.journal.reader import SCORED, CellRecord
from openfield.metrics.comparison import AgentScores, Comparison, compare_agents
from openfield.metrics.confidence_sequences import NO_SEQUENCE, RATIOS, follow_mean
from openfield.metrics.failures import Policy, apply_policy, has_failed
from openfield.metrics.metric import Metric, Number, Pooled
from openfield.metrics.performance import (
    assume_curriculum,
    count_episodes,
    find_curriculum,
    mean,
    performances,
    pick_after,
    split_periods,
)
from openfield.metrics.scenario import (
    CurriculumResults,
    Key,
    Scenario,
    are_of_control,
    describe_versions,
    group_cells,
    list_missing_trials,
    share_seeds,
    sort_cells,
    take_first,
    unit_of,
)
from openfield.metrics.significance import correct_by_holm
from openfield.metrics.stats import (
    Estimate,
    Intervals,
    Range,
    Ratio,
    Valid,
    bound_mean,
    estimate_count,
    estimate_iqm,
    estimate_mean,
    estimate_rate,
    format_units,
    mark_people,
    two_sided,
    without_interval,
)
from openfield.registry import known_domain

MIN_IQM_TRIALS = 20
"""The fewest trials with an interquartile mean: below, its middle half is a handful of them."""
COUNTABLE = "the onset is fixed or published, so agents can detect the change by counting"
TOTAL = ("all scenarios",)
"""Stands for the novelties of totals over scenarios."""
SILENT = Estimate(None, None, None, 0, "the agent states no belief")

Values = dict[str, dict[str, float]]
"""Name of a number -> trial id -> its value there."""


class AgentResults(msgspec.Struct, frozen=True):
    """The results of one agent in one scenario."""

    agent: str
    scenario: Scenario
    trials: int
    """The number of scored trials; repeats of a trial are averaged first."""
    unchanged: int
    """How many of them are unchanged twins."""
    outcomes: dict[str, int]
    """The number of cells by outcome, failed ones included."""
    estimates: dict[str, Estimate]
    """Name of a number -> its estimate. Numbers that no trial defines are left out; those about beliefs have no value
    if the agent states none in the whole scenario and failed no episode."""
    completed: dict[str, Estimate] = {}
    """The same over completed trials only, where failed ones make a difference."""
    iqm: Estimate | None = None
    """The interquartile mean of the test performance, after the onset if there is one; from 20 trials on."""
    note: str = ""
    """Cautions about its trials."""
    versions: str = ""
    """Which cells were not played by the latest known version of the agent, in words; empty if all were."""
    control: bool = False
    """Whether the agent is a control, which must fail and is in no comparison."""
    people: int = 0
    """How many people play as this agent, over whom its numbers are taken; 0 for programs."""
    valid: Valid = "fixed"
    """Whether intervals and p-values hold once, because all its planned trials are over, or at every look."""


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
    """The number of cells by outcome, without those of controls."""
    failures: tuple[Failure, ...] = ()
    intervals: Intervals = "conservative"
    """The rule of the intervals."""
    policy: Policy = "count"
    """Whether trials that an agent failed count or are left out."""
    curricula: tuple[CurriculumResults, ...] = ()
    """The tasks of agents that play a curriculum, one by one."""
    totals: tuple[AgentResults, ...] = ()
    """Agents that played in several scenarios of a domain, over all of them."""
    total_comparisons: tuple[Comparison, ...] = ()
    """Comparisons of agents over all scenarios of a domain, of those that played all of them."""
    missing: tuple[str, ...] = ()
    """Why metrics that were asked for have no row, in sentences."""
    shown: tuple[str, ...] = ()
    """The names of the numbers that tables show, as they were chosen; empty for the usual ones."""


def summarise(
    cells: Iterable[CellRecord],
    metrics: Sequence[Metric],
    intervals: Intervals = "conservative",
    policy: Policy = "count",
) -> Summary:
    """Estimate all numbers for each agent in each scenario, and compare the agents of a scenario.

    Args:
        cells: The cells as they were recorded.
        metrics: The metrics to measure.
        intervals: The rule of the intervals.
        policy: Whether trials that an agent failed count or are left out.
    """
    known = apply_policy(cells, policy)
    samples = take_samples(known, intervals)
    counted = list_counted(known)
    metrics = [metric.among(counted) for metric in metrics]
    rivals = {key: _score(sample) for key, sample in samples.items() if not are_of_control(sample.planned)}
    judged = [cell for cell in known if not cell.control]
    found = [_summarise_group(key, sample, metrics) for key, sample in samples.items()]
    groups = tuple(_correct_over_agents(found))
    totals = _gather_totals(samples)
    together = tuple(_summarise_total(key, sample, metrics) for key, sample in totals.items())
    whole = {
        key: _score(sample)
        for key, sample in totals.items()
        if _is_whole(key, samples) and sample.intervals != "anytime"
    }
    return Summary(
        list_numbers(metrics),
        groups,
        tuple(_mark_versions(compare_agents(rivals, intervals), groups)),
        count_outcomes(judged),
        list_failures(judged),
        intervals,
        policy,
        tuple(_summarise_curricula(samples, known)),
        together,
        total_comparisons=tuple(_mark_versions(compare_agents(whole, intervals), together)),
    )


class Sample(NamedTuple):
    """The cells of an agent in a scenario."""

    planned: Sequence[CellRecord]
    counted: Sequence[CellRecord]
    """Those that count: all of them, or the first ones as long as some are missing."""
    intervals: Intervals
    """The rule of their intervals."""

    @property
    def is_open(self) -> bool:
        """Whether some are missing."""
        return len(self.counted) < len(self.planned)

    @property
    def valid(self) -> Valid:
        """Whether the intervals hold once, or at every look."""
        return "anytime" if self.intervals == "anytime" else "fixed"


def is_extended(cells: Iterable[CellRecord]) -> bool:
    """Return whether some of the cells were entered when others had been played: their number was not planned."""
    return len({cell.later for cell in cells}) > 1


def take_samples(cells: Sequence[CellRecord], intervals: Intervals) -> dict[Key, Sample]:
    """Return the cells of each agent in each scenario, and those that count as long as some are missing.

    Args:
        cells: All cells, in the order in which they were entered.
        intervals: The rule of the intervals where no cell is missing.
    """
    missing, places = list_missing_trials(cells), {cell.id: place for place, cell in enumerate(cells)}
    samples = {}
    for key, own in group_cells(cells).items():
        counted = take_first(own, missing, places)
        planned = sorted(own, key=lambda cell: places[cell.id])
        waits = len(counted) < len(planned) or is_extended(planned) or any(cell.stops for cell in planned)
        samples[key] = Sample(planned, counted, "anytime" if waits else intervals)
    return samples


def list_counted(cells: Sequence[CellRecord]) -> list[CellRecord]:
    """Return the cells without those that do not count as long as earlier ones are missing."""
    samples = take_samples(cells, "conservative").values()
    counted = {cell.id for sample in samples for cell in sample.counted}
    left = {cell.id for sample in samples for cell in sample.planned} - counted
    return [cell for cell in cells if cell.id not in left]


def _score(sample: Sample) -> AgentScores:
    return score_agent(sample.counted)._replace(is_open=sample.intervals == "anytime")


def explain_missing(summary: Summary, metrics: Iterable[Metric]) -> Iterator[str]:
    """Yield a sentence for each metric that has no number of any agent: why there is none."""
    known = {name for group in summary.groups for name in group.estimates}
    for metric in metrics:
        if not any(number.name in known for number in metric.numbers):
            yield f"No row of {metric.name}: {metric.reason or 'no trial that counts has one of its numbers'}."


def _summarise_curricula(samples: Mapping[Key, Sample], cells: Sequence[CellRecord]) -> Iterator[CurriculumResults]:
    """Yield the tasks of agents that play a curriculum; other runs do not even load what measures them."""
    for key, sample in samples.items():
        if any(find_curriculum(cell.trial) for cell in sample.counted):
            from openfield.metrics.curricula.tasks import summarise_tasks

            if (found := summarise_tasks(key, sample.counted, cells, sample.intervals)) is not None:
                yield found


def _gather_totals(samples: Mapping[Key, Sample]) -> dict[Key, Sample]:
    """Return the cells of agents over the scenarios of a domain that count in totals, if these are several."""
    totals: dict[Key, Sample] = {}
    for domain, agent in dict.fromkeys((key[0].domain, key[1]) for key in samples):
        keys = [key for key in _list_together(samples, domain) if key[1] == agent]
        if len(keys) > 1:
            light = all(scenario.red_light for scenario, _ in keys)
            changes = any(scenario.novelty for scenario, _ in keys)
            together = Scenario(domain, TOTAL if changes else (), light, f"{len(keys)} scenarios together")
            own = [samples[key] for key in keys]
            rules = {sample.intervals for sample in own}
            planned = share_seeds(cell for sample in own for cell in sample.planned)
            counted = share_seeds(cell for sample in own for cell in sample.counted)
            totals[together, agent] = Sample(planned, counted, "anytime" if "anytime" in rules else own[0].intervals)
    return {key: totals[key] for key in sorted(totals, key=lambda key: key[0])}


def _list_together(samples: Mapping[Key, Sample], domain: str) -> list[Key]:
    """Return the scenarios of a domain that count in its totals, with the agents that played them.

    These are the ones in which something changes; all of them if nothing changes in any.
    """
    own = [
        key
        for key, sample in samples.items()
        if key[0].domain == domain and not key[0].loose and not are_of_control(sample.planned)
    ]
    return [key for key in own if key[0].novelty] or own


def _is_whole(key: Key, samples: Mapping[Key, Sample]) -> bool:
    """Return whether a total is over all scenarios of its domain: others are not compared, as theirs are different."""
    counted = _list_together(samples, key[0].domain)
    return {scenario for scenario, _ in counted} == {scenario for scenario, agent in counted if agent == key[1]}


def _correct_over_agents(groups: Sequence[AgentResults]) -> Iterator[AgentResults]:
    """Yield results whose p-values are corrected for the number of agents of their scenario, controls apart."""
    families: dict[tuple[Scenario, str], dict[str, float]] = {}
    for group in groups:
        for name, each in () if group.control else group.estimates.items():
            if each.p is not None:
                families.setdefault((group.scenario, name), {})[group.agent] = each.p
    corrected = {
        key: dict(zip(family, correct_by_holm([*family.values()]), strict=True))
        for key, family in families.items()
        if len(family) > 1
    }
    for group in groups:
        found = {
            name: msgspec.structs.replace(each, p_holm=corrected.get((group.scenario, name), {}).get(group.agent))
            for name, each in group.estimates.items()
        }
        yield msgspec.structs.replace(group, estimates=found)


def _mark_versions(comparisons: Iterable[Comparison], groups: Iterable[AgentResults]) -> Iterator[Comparison]:
    """Yield comparisons that say whose cells the latest known version of an agent did not play."""
    known = {(group.scenario, group.agent): group.versions for group in groups}
    for one in comparisons:
        said = [
            f"version of {agent} {words}" for agent in (one.first, one.second) if (words := known[one.scenario, agent])
        ]
        yield msgspec.structs.replace(one, versions="; ".join(said)) if said else one


def _summarise_total(key: Key, sample: Sample, metrics: Sequence[Metric]) -> AgentResults:
    """Summarise the cells of several scenarios; as long as some are missing, these count unequally."""
    found = _summarise_group(key, sample, metrics)
    if found.valid == "fixed":
        return found
    estimates = {name: without_interval(each, NO_SEQUENCE) for name, each in found.estimates.items()}
    return msgspec.structs.replace(found, estimates=estimates)


def _summarise_group(key: Key, sample: Sample, metrics: Sequence[Metric]) -> AgentResults:
    (scenario, agent), played = key, sample.planned
    scored = [cell for cell in sample.counted if cell.is_scored]
    completed = [cell for cell in scored if not has_failed(cell)]
    found = estimate_numbers(scored, metrics, sample.intervals, played)
    others = estimate_numbers(completed, metrics, sample.intervals, played) if len(completed) < len(scored) else {}
    beside = {name: other for name, other in others.items() if other != found.get(name)}
    trials = {cell.seed_unit or cell.trial.id: cell.trial for cell in scored}
    unchanged = sum(trial.is_unchanged_twin for trial in trials.values())
    people = len({cell.person for cell in scored if cell.person})
    iqm = _estimate_iqm(score_agent(scored), sample.intervals)
    countable = COUNTABLE if not scenario.red_light and is_countable(played) else ""
    absent = remark_missing(found, list_numbers(metrics))
    notes = countable, remark_people(played), remark_seeds(scored), remark_trials(played), absent, remark_open(sample)
    note = "; ".join(filter(None, notes))
    numbers = len(trials), unchanged, count_outcomes(played), found, beside, iqm
    versions, control = describe_versions(played), are_of_control(played)
    return AgentResults(agent, scenario, *numbers, note, versions, control, people, sample.valid)


def estimate_numbers(
    scored: Sequence[CellRecord],
    metrics: Sequence[Metric],
    intervals: Intervals,
    planned: Sequence[CellRecord] | None = None,
) -> dict[str, Estimate]:
    """Estimate all numbers that these cells define, one by one or together.

    Args:
        scored: The cells that count.
        metrics: What is measured.
        intervals: The rule of the intervals.
        planned: All cells that are planned, in the order in which they were entered; these if not given.
    """
    measured = measure_trials(scored, metrics)
    values: dict[str, Estimate | Ratio | Sequence[float]] = {
        name: list(trials.values()) for name, trials in measured.items()
    }
    for metric in metrics:
        values |= _pool(metric, scored, intervals, planned or scored)
    telling, people = counts_beliefs(scored), any(cell.person for cell in scored)
    found = {
        n.name: SILENT if n.belief and not telling else _estimate(n, values[n.name], intervals, scored)
        for n in list_numbers(metrics)
        if n.name in values and (n.given not in measured or any(measured[n.given].values()))
    }
    if any(map(find_published, scored)):  # a published mean of unknown spread is not a trial
        return {name: without_interval(estimate, "of published means") for name, estimate in found.items()}
    return {name: mark_people(estimate, people) for name, estimate in found.items()}


def _pool(metric: Metric, scored: Sequence[CellRecord], intervals: Intervals, planned: Sequence[CellRecord]) -> Pooled:
    """Return what a metric makes of all cells together; without intervals that hold only once where others must."""
    pooled = metric.pool(scored) if metric.pool and scored else {}
    if intervals != "anytime":
        return pooled
    plain = {
        name: without_interval(msgspec.structs.replace(each, p=None), NO_SEQUENCE)
        if isinstance(each, Estimate)
        else each
        for name, each in pooled.items()
    }
    return plain | (dict(metric.follow(scored, planned)) if metric.follow and scored else {})


def _estimate(
    number: Number, found: Estimate | Ratio | Sequence[float], intervals: Intervals, cells: Sequence[CellRecord]
) -> Estimate:
    """Return an estimate that a metric made of all cells, or make one from the values of the trials."""
    if isinstance(found, Ratio):
        return msgspec.structs.replace(RATIOS[intervals](found), missing=found.missing)
    return found if isinstance(found, Estimate) else estimate(number, found, intervals, cells)


def _estimate_iqm(scores: AgentScores, intervals: Intervals) -> Estimate | None:
    if len(scores.units) < MIN_IQM_TRIALS:
        return None
    found = mark_people(estimate_iqm(scores.units), bool(scores.people))
    return found if intervals == "usual" else without_interval(found)


def remark_trials(cells: Sequence[CellRecord]) -> str:
    """Return cautions about these trials: those of their domain, and whether they are imported."""
    trials = {cell.trial.id: cell.trial for cell in cells}
    domains = {}
    for name in {trial.domain for trial in trials.values()}:
        with suppress(OpenfieldError):
            domains[name] = known_domain(name)
    said = {domains[trial.domain].remark(trial): None for trial in trials.values() if trial.domain in domains}
    versions = sorted({trial.version for trial in trials.values()})
    mixed = f"trials of versions {', '.join(map(str, versions))} are taken together, whose rules differ"
    files = sorted({trial.imported for trial in trials.values() if trial.imported is not None})
    agents = sorted({cell.agent for cell in cells if cell.trial.imported is not None})
    imported = f"{', '.join(agents)} played elsewhere: imported from {', '.join(files)}" if files else ""
    return "; ".join(filter(None, (*said, mixed if len(versions) > 1 else "", imported)))


def remark_missing(found: Mapping[str, Estimate], numbers: Iterable[Number]) -> str:
    """Return in how many trials numbers have no value, where that is not the agent's doing."""
    known = ((number.title, found[number.name]) for number in numbers if number.name in found)
    return "; ".join(
        f"{title}: {each.missing} of {each.n + each.missing} trials have no value"
        for title, each in known
        if each.missing
    )


def remark_open(sample: Sample) -> str:
    """Return which trials count as long as some are missing, or why intervals are anytime ones where none is."""
    found = ({cell.person or cell.trial.id for cell in cells} for cells in (sample.planned, sample.counted))
    planned, counted = map(len, found)
    units = "people" if any(cell.person for cell in sample.planned) else "trials"
    if any(cell.stops for cell in sample.planned):
        over = format_units(counted, units == "people")
        return f"the run stops by itself: anytime intervals over {over}, of {planned:,} at most"
    if sample.is_open:
        return f"anytime intervals over the first {counted} of {planned} {units}"
    return f"anytime intervals: {units} were added after some had been played" if is_extended(sample.planned) else ""


def remark_seeds(cells: Sequence[CellRecord]) -> str:
    """Return that trials of one seed count as one, where several scenarios have the same seeds."""
    seeds = {unit_of(cell) for cell in cells}
    trials = {cell.trial.id for cell in cells}
    if len(seeds) == len(trials) or not any(cell.seed_unit for cell in cells) or any(cell.person for cell in cells):
        return ""
    return f"{len(trials):,} trials of {len(seeds):,} seeds: trials of one seed count as one, as they begin alike"


def remark_people(cells: Sequence[CellRecord]) -> str:
    """Return that intervals are over persons, if people played."""
    agents: dict[str, set[str]] = {}
    for cell in cells:
        if cell.person:
            agents.setdefault(cell.agent, set()).add(cell.person)
    return "; ".join(
        f"{name}: {len(people)} {'person' if len(people) == 1 else 'people'}, intervals are over them"
        for name, people in sorted(agents.items())
    )


def is_countable(cells: Iterable[CellRecord]) -> bool:
    """Return whether the world changes at a known place in all trials in which it changes."""
    return {cell.trial.window for cell in cells if cell.trial.is_changed} == {None}


def counts_beliefs(cells: Iterable[CellRecord]) -> bool:
    """Return whether rows about beliefs count: the agent states one in some test episode, or failed to play one."""
    known = list(cells)
    test = (episode for cell in known for episode in cell.episodes if episode.phase == "test")
    return any(episode.belief is not None or episode.failed for episode in test) or any(map(find_published, known))


def find_published(cell: CellRecord) -> dict[str, float | None]:
    """Return the numbers of an imported trial of which nothing else is known; empty for any other."""
    detail = cell.episodes[0].detail if cell.trial.imported is not None and cell.episodes else None
    published = detail.get("published") if isinstance(detail, dict) else None
    known = published.items() if isinstance(published, dict) else ()
    return {name: float(value) for name, value in known if isinstance(value, int | float) and math.isfinite(value)}


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


def count_outcomes(cells: Iterable[CellRecord]) -> dict[str, int]:
    """Count cells by outcome, `done` and `truncated` first; cells in progress are `unfinished`.

    Those that are not played because the run stopped by itself are left out.
    """
    counts = Counter(cell.outcome or "unfinished" for cell in cells if not cell.dropped)
    order = sorted(counts, key=lambda outcome: (outcome != "done", outcome != "truncated", outcome))
    return {outcome: counts[outcome] for outcome in order}


def list_failures(cells: Iterable[CellRecord]) -> tuple[Failure, ...]:
    """List the failures that kept cells from being scored, by outcome and agent."""
    notes: dict[tuple[str, str], list[str]] = {}
    for cell in sort_cells(cells):
        if cell.outcome is not None and cell.outcome not in SCORED:
            notes.setdefault((cell.outcome, cell.agent), []).append(cell.note)
    return tuple(Failure(*key, len(said), next(filter(None, said), "")) for key, said in sorted(notes.items()))


def measure_trials(cells: Iterable[CellRecord], metrics: Sequence[Metric]) -> Values:
    """Measure each scored trial; repeats of a trial are averaged, because they are not independent.

    Of people each person is measured instead, over all their trials.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for cell in cells:
        if cell.is_scored:
            measured = find_published(cell) or {
                name: value for metric in metrics for name, value in metric.take(cell).items()
            }
            for name, value in measured.items():
                if value is not None:
                    found.setdefault(name, {}).setdefault(unit_of(cell), []).append(float(value))
    return {name: _averages(trials) for name, trials in found.items()}


def score_trials(cells: Iterable[CellRecord]) -> dict[str, float]:
    """Return the performance of each scored trial that agents are compared by: after the onset if there is one.

    In totals over several scenarios there is one for each seed.
    """
    scores: dict[str, list[float]] = {}
    for cell in cells:
        score = mean(performances(pick_after(cell) if cell.trial.novelty else split_periods(cell).before))
        if cell.is_scored and score is not None:
            scores.setdefault(cell.seed_unit or cell.trial.id, []).append(score)
    return _averages(scores)


def score_agent(cells: Iterable[CellRecord]) -> AgentScores:
    """Return the performance of an agent in each scored trial, and that of each person if it is people."""
    played = list(cells)
    people: dict[str, list[CellRecord]] = {}
    for cell in played:
        if cell.person:
            people.setdefault(cell.person, []).append(cell)
    scored = {name: score_trials(own) for name, own in people.items()}
    return AgentScores(score_trials(played), {name: scores for name, scores in scored.items() if scores})


def estimate(
    number: Number, values: Sequence[float], intervals: Intervals = "conservative", cells: Iterable[CellRecord] = ()
) -> Estimate:
    """Estimate a number over trials by the rule for its kind.

    Args:
        number: The number to estimate.
        values: Its values, one for each trial.
        intervals: The rule of the interval. A number without a range, such as a return, has the usual one anyway.
        cells: The cells it is measured in; they say how high a count can be.
    """
    bounds = _find_range(number, cells)
    if number.within == "budget" and len(set(values)) == 1:
        return estimate_mean(values, None)  # bounds as far as a budget would make an interval that says nothing
    if intervals == "anytime":
        return follow_mean(values, bounds)
    if intervals == "conservative" and two_sided(bounds) is not None:
        return bound_mean(values, bounds)
    if number.kind == "rate":
        return estimate_rate(values)
    if number.kind == "count":
        return estimate_count(values)
    return estimate_mean(values, bounds)


def _find_range(number: Number, cells: Iterable[CellRecord]) -> Range | None:
    """Return the range of a number; that of a count ends with the episodes its trials have, that of steps with them."""
    if number.within == "budget":
        steps = [assume_curriculum(cell.trial).steps for cell in cells]
        return (0.0, float(max(steps))) if steps and all(steps) else number.bounds
    if number.kind != "count":
        return number.bounds
    counts = [count_episodes(cell.trial, number.within) for cell in cells] if number.within else []
    known = [count for count in counts if count is not None]
    return (0.0, float(max(known))) if known and len(known) == len(counts) else None


def _averages(repeats: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {trial: sum(values) / len(values) for trial, values in repeats.items()}
