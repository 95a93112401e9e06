"""The measures of the SAIL-ON programme: M1 and M2 of one agent, M3 to M6 against a baseline on the same trials.

`TestFacts` has them for one test. The metrics `programme` and `baseline` take them from the episodes of a cell,
`program_measures` from the samples of many tests. The baseline is the agent that was asked for, or else the domain's.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.errors import OpenfieldError
from openfield.journal.reader import CellRecord
from openfield.metrics.metric import Pooled, Related, built_in, undefined
from openfield.metrics.openset.compat import Floats, first_of, mean_hits
from openfield.metrics.performance import count_left, last_third, mean, performances, pick_after, ratio, split_periods
from openfield.metrics.scenario import unit_of
from openfield.metrics.stats import Estimate, Ratio, bound_mean, bound_ratio, estimate_count
from openfield.registry import known_domain

LAST_SAMPLES = 100
"""The number of samples at the end of a test that its asymptotic performance is measured on."""


class TestFacts(msgspec.Struct, frozen=True):
    """The facts of one test that the programme's measures need, and the measures; None where one is not defined."""

    __test__ = False
    onset: int | None
    """The first novel sample or episode, counted from 0."""
    detection: int | None
    """The first at which a change was declared, counted from 0."""
    last: float | None = None
    """The agent's performance at the end of the test, from the onset on, of what it answered."""
    after: float | None = None
    """The same over all from the onset on."""
    baseline_before: float | None = None
    baseline_last: float | None = None
    baseline_after: float | None = None

    @property
    def missed(self) -> int | None:
        """M1: what passed from the onset until the change was declared; None where it never was, or too early."""
        if self.onset is None or self.detection is None or self.detection < self.onset:
            return None
        return self.detection - self.onset

    @property
    def correct(self) -> bool:
        """M2: whether the change was declared, and not too early."""
        return self.missed is not None

    @property
    def early(self) -> bool:
        """M2.1: whether a change was declared before the onset."""
        return self.detection is not None and not self.correct

    @property
    def relative(self) -> float | None:
        """M3, or M4 if detection was given: performance at the end over the baseline's before the onset."""
        return ratio(self.last, self.baseline_before)

    @property
    def overall(self) -> float | None:
        """M5: the agent's share of agent and baseline after the onset."""
        if self.after is None or self.baseline_after is None:
            return None
        return ratio(self.after, self.after + self.baseline_after)

    @property
    def asymptotic(self) -> float | None:
        """M6: performance at the end over the baseline's there."""
        return ratio(self.last, self.baseline_last)


def make_facts(
    novel: NDArray[np.bool_], declared: NDArray[np.bool_], hits: Floats | None, baseline: Floats | None = None
) -> TestFacts:
    """Make the facts of a test from the truth and the answers for each sample.

    M3 to M6 are not defined without `hits` and `baseline`.

    Args:
        novel: Which samples are novel.
        declared: At which samples the agent said that the world had changed.
        hits: Which samples the agent got right; NaN for those it did not answer.
        baseline: Which samples the baseline got right.
    """
    onset = first_of(novel)
    after, last = _answered_after(hits, onset)
    base_after, base_last = _answered_after(baseline, onset)
    return TestFacts(
        onset=onset,
        detection=first_of(declared),
        last=mean_hits(last),
        after=mean_hits(after),
        baseline_before=mean_hits(_answered(baseline[:onset])) if baseline is not None and onset else None,
        baseline_last=mean_hits(base_last),
        baseline_after=mean_hits(base_after),
    )


def _answered_after(hits: Floats | None, onset: int | None) -> tuple[Floats, Floats]:
    """Return the answered hits from the onset on, and those among the last samples of the test."""
    after = hits[onset:] if hits is not None and onset is not None else np.zeros(0)
    return _answered(after), _answered(after[-LAST_SAMPLES:])


def _answered(hits: Floats) -> Floats:
    return hits[~np.isnan(hits)]


def program_measures(tests: Iterable[TestFacts], given: bool = False) -> dict[str, Estimate]:
    """Estimate M1 to M6 over tests; M3 is called M4 if detection was given."""
    novel = [test for test in tests if test.onset is not None]
    facts = dict(enumerate([test] for test in novel))
    return {
        "M1": estimate_count(_present(test.missed for test in novel)),
        "M2": bound_mean([float(test.correct) for test in novel], (0.0, 1.0)),
        "M2.1": bound_mean([float(test.early) for test in novel], (0.0, 1.0)),
        "M4" if given else "M3": bound_ratio(_divide(facts, "last", "baseline_before")),
        "M5": bound_mean(_present(test.overall for test in novel), (0.0, 1.0)),
        "M6": bound_ratio(_divide(facts, "last", "baseline_last")),
    }


def _present(values: Iterable[float | None]) -> list[float]:
    return [float(value) for value in values if value is not None]


def _divide(tests: Mapping[Any, Sequence[TestFacts]], above: str, below: str) -> Ratio:
    """Return two facts of tests as the values of a ratio of means; tests with the same key are averaged first."""
    found = {key: [(getattr(one, above), getattr(one, below)) for one in facts] for key, facts in tests.items()}
    known = {key: [pair for pair in pairs if None not in pair] for key, pairs in found.items()}
    averages = {key: np.mean(pairs, axis=0).tolist() for key, pairs in known.items() if pairs}
    over, under = ({key: pair[side] for key, pair in averages.items()} for side in (0, 1))
    return Ratio(over, under, missing=len(tests) - len(averages))


def measure_programme(cell: CellRecord) -> dict[str, float | None]:
    """Compute the first detection, M1, M2 and M2.1; none is defined in a trial that never reached its onset."""
    parts = split_periods(cell)
    if not parts.after:
        return undefined(PROGRAMME)
    test = [*parts.before, *parts.after]
    first = next((number for number, episode in enumerate(test) if episode.detected), None)
    onset = len(parts.before)
    early = first == onset and parts.after[0].early  # within the episode, but before the onset
    facts = TestFacts(onset=onset, detection=onset - 1 if early else first)
    return {
        "first_detection": float((len(test) if first is None else first) + 1),
        "cdt": float(facts.correct),
        "false_positive_trial": float(facts.early),
        "m1": _missed(cell) if facts.missed is None else float(facts.missed),
    }


def _missed(cell: CellRecord) -> float | None:
    """Return the episodes missed without a correct detection: all if the agent failed, else the trial is left out."""
    return float(count_left(cell)) if cell.counts else None


def relate_to_baseline(cells: Sequence[CellRecord], wanted: str | None) -> Related:
    """Relate cells to the wanted agent or to each domain's own baseline.

    A cell has quotients of its own. Those of an agent are of means over trials: the mean of quotients would be ruled by
    the trials in which the baseline has nearly nothing.
    """
    scored = [cell for cell in cells if cell.is_scored]
    names = {domain: wanted or _own_baseline(domain) for domain in {cell.trial.domain for cell in scored}}
    played = [cell for cell in scored if cell.agent == names[cell.trial.domain]]
    bases = {(cell.trial.id, cell.repeat): cell for cell in reversed(played)}
    normal = functools.cache(functools.partial(_normal_performance, played))

    def find_base(cell: CellRecord) -> CellRecord | None:
        base = bases.get((cell.trial.id, cell.repeat)) or bases.get((cell.trial.id, 0))
        return base if split_periods(cell).after else None

    def measure(cell: CellRecord) -> dict[str, float | None]:
        if (base := find_base(cell)) is None:
            return undefined(BASELINE)
        facts, own = _compare(cell, base), cell.agent == base.agent
        return undefined(BASELINE) | {
            _name_relative(cell): facts.relative,
            "opti": facts.overall,
            "apti": facts.asymptotic,
            "difficulty": _loss(cell, normal(_conditions(cell))) if own else None,
        }

    def pool(played: Sequence[CellRecord]) -> Pooled:
        changing = [cell for cell in played if cell.trial.is_changed]
        facts: dict[str, list[TestFacts]] = {unit_of(cell): [] for cell in changing}
        for cell in changing:
            if (base := find_base(cell)) is not None:
                facts[unit_of(cell)].append(_compare(cell, base))
        if not any(facts.values()):
            return {}
        relative, asymptotic = _divide(facts, "last", "baseline_before"), _divide(facts, "last", "baseline_last")
        return {_name_relative(changing[0]): relative, "apti": asymptotic}

    return Related(measure, pool, _find_obstacle(scored, names, bases))


def _name_relative(cell: CellRecord) -> str:
    return "nrp_given" if cell.trial.red_light else "nrp"


def _find_obstacle(
    scored: Sequence[CellRecord], names: Mapping[str, str | None], bases: Mapping[tuple[str, int], CellRecord]
) -> str:
    """Return why no cell can be compared with a baseline, in words; empty if one can."""
    if not scored:
        return "no cell has been played to its end"
    if not any(split_periods(cell).after for cell in scored):
        return "no trial has come to a change of its world, and these numbers compare the time after it"
    without = sorted(domain for domain, name in names.items() if name is None)
    if len(without) == len(names):
        return f"{', '.join(without)} names no baseline; name an agent with --baseline"
    if not any(cell.trial.id == trial for cell in scored for trial, _ in bases):
        return f"no trial was played by the baseline {' or '.join(sorted(filter(None, names.values())))}"
    return ""


def _own_baseline(domain: str) -> str | None:
    try:
        return known_domain(domain).baseline
    except OpenfieldError:
        return None


def _compare(cell: CellRecord, base: CellRecord) -> TestFacts:
    parts = split_periods(base)
    own, other = (performances(pick_after(one)) for one in (cell, base))
    return TestFacts(
        onset=len(parts.before),
        detection=None,
        last=mean(last_third(own)),
        after=mean(own),
        baseline_before=mean(performances(parts.before)),
        baseline_last=mean(last_third(other)),
        baseline_after=mean(other),
    )


def _normal_performance(played: Sequence[CellRecord], conditions: tuple[str, str]) -> float | None:
    """Return the baseline's mean in normal test episodes of all its trials with the same domain and settings."""
    episodes = [episode for cell in played if _conditions(cell) == conditions for episode in cell.episodes]
    return mean(performances(episode for episode in episodes if episode.phase == "test" and not episode.novel))


def _conditions(cell: CellRecord) -> tuple[str, str]:
    return cell.trial.domain, repr(sorted(cell.trial.settings.items()))


def _loss(cell: CellRecord, normal: float | None) -> float | None:
    kept = ratio(mean(performances(episode for episode in split_periods(cell).after if episode.novel)), normal)
    return None if kept is None else 1.0 - kept


PROGRAMME = built_in("programme", measure_programme, counts_failures=True)
BASELINE = built_in("baseline", relate_to_baseline((), None).measure, relate_to_baseline, counts_failures=True)
