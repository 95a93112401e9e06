"""The measures of the SAIL-ON programme: M1 and M2 of one agent, M3 to M6 against a baseline on the same trials.

One cell -> numbers of its trial, for the metrics `programme` and `baseline`. The baseline is the agent that was asked
for, or else the domain's own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from openfield.errors import OpenfieldError
from openfield.journal.reader import CellRecord
from openfield.metrics.metric import Measure, built_in, undefined
from openfield.metrics.performance import count_left, last_third, mean, performances, pick_after, ratio, split_periods
from openfield.registry import known_domain


def measure_programme(cell: CellRecord) -> dict[str, float | None]:
    """Compute the first detection, M1, M2 and M2.1; none is defined in a trial that never reached its onset."""
    parts = split_periods(cell)
    if not parts.after:
        return undefined(PROGRAMME)
    test = [*parts.before, *parts.after]
    first = next((number for number, episode in enumerate(test) if episode.detected), None)
    correct = first is not None and first >= len(parts.before)
    return {
        "first_detection": float((len(test) if first is None else first) + 1),
        "cdt": float(correct),
        "false_positive_trial": float(first is not None and not correct),
        "m1": float(first - len(parts.before)) if correct and first is not None else _missed(cell),
    }


def _missed(cell: CellRecord) -> float | None:
    """Return the episodes missed without a correct detection: all if the agent failed, else the trial is left out."""
    return float(count_left(cell)) if cell.counts else None


def relate_to_baseline(cells: Sequence[CellRecord], wanted: str | None) -> Measure:
    """Return the measure of cells among others, against the wanted agent or each domain's own baseline."""
    scored = [cell for cell in cells if cell.is_scored]
    names = {domain: wanted or _own_baseline(domain) for domain in {cell.trial.domain for cell in scored}}
    played = [cell for cell in scored if cell.agent == names[cell.trial.domain]]
    bases = {(cell.trial.id, cell.repeat): cell for cell in reversed(played)}
    normal = functools.cache(functools.partial(_normal_performance, played))

    def measure(cell: CellRecord) -> dict[str, float | None]:
        base = bases.get((cell.trial.id, cell.repeat)) or bases.get((cell.trial.id, 0))
        if base is None or not split_periods(cell).after:
            return undefined(BASELINE)
        own = cell.agent == base.agent
        return {**_compare(cell, base), "difficulty": _loss(cell, normal(_conditions(cell))) if own else None}

    return measure


def _own_baseline(domain: str) -> str | None:
    try:
        return known_domain(domain).baseline
    except OpenfieldError:
        return None


def _compare(cell: CellRecord, base: CellRecord) -> dict[str, float | None]:
    own, other = (performances(pick_after(one)) for one in (cell, base))
    relative = ratio(mean(last_third(own)), mean(performances(split_periods(base).before)))
    after, theirs = mean(own), mean(other)
    return {
        "nrp": None if cell.trial.red_light else relative,
        "nrp_given": relative if cell.trial.red_light else None,
        "opti": None if after is None or theirs is None else ratio(after, after + theirs),
        "apti": ratio(mean(last_third(own)), mean(last_third(other))),
    }


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
BASELINE = built_in("baseline", relate_to_baseline((), None), relate_to_baseline, counts_failures=True)
