"""How an agent's performance held against a baseline's on the same trials, and how hard each novelty was for it.

Stands in metrics: one cell beside the baseline's cells -> numbers of its trial. NRP, OPTI and APTI are the SAIL-ON
programme's M3 to M6. The baseline is the agent that is asked for, or else the domain's own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from openfield.errors import OpenfieldError
from openfield.journal.reader import SCORED, CellRecord
from openfield.metrics.metric import Measure, Metric, Number
from openfield.metrics.stats import FROM_ZERO
from openfield.metrics.stretches import last_third, mean, performances, split
from openfield.registry import find_domain

NRP = Number(
    name="nrp",
    title="M3: NRP",
    note="asymptotic performance after the onset over the baseline's before it, where detection is the agent's own",
    bounds=FROM_ZERO,
)
NRP_GIVEN = Number(
    name="nrp_given",
    title="M4: NRP, detection given",
    note="asymptotic performance after the onset over the baseline's before it, where the red light tells",
    bounds=FROM_ZERO,
)
OPTI = Number(
    name="opti",
    title="M5: OPTI",
    note="performance after the onset as a share of the agent's and the baseline's together; 0.5 is as good as it",
)
APTI = Number(
    name="apti",
    title="M6: APTI",
    note="asymptotic performance after the onset over the baseline's",
    bounds=FROM_ZERO,
)
DIFFICULTY = Number(
    name="difficulty",
    title="Difficulty of the novelty",
    note="share of its normal performance that the baseline loses in novel episodes; given for the baseline only",
    better="",
    bounds=None,
)
NUMBERS = (NRP, NRP_GIVEN, OPTI, APTI, DIFFICULTY)


def relate_to_baseline(cells: Sequence[CellRecord], wanted: str | None) -> Measure:
    """The measure of cells among others, against an agent or against each domain's own baseline."""
    scored = [cell for cell in cells if cell.outcome in SCORED]
    names = {domain: wanted or _own_baseline(domain) for domain in {cell.trial.domain for cell in scored}}
    played = [cell for cell in scored if cell.agent == names[cell.trial.domain]]
    bases = {(cell.trial.id, cell.repeat): cell for cell in reversed(played)}
    normal = functools.cache(functools.partial(_normal_performance, played))

    def measure(cell: CellRecord) -> dict[str, float | None]:
        base = bases.get((cell.trial.id, cell.repeat)) or bases.get((cell.trial.id, 0))
        if base is None or not split(cell).after:
            return dict.fromkeys(number.name for number in NUMBERS)
        own = cell.agent == base.agent
        return {**_compare(cell, base), "difficulty": _loss(cell, normal(_terms(cell))) if own else None}

    return measure


def _own_baseline(domain: str) -> str | None:
    try:
        return find_domain(domain).baseline
    except OpenfieldError:
        return None


def _compare(cell: CellRecord, base: CellRecord) -> dict[str, float | None]:
    own, other = (performances(split(one).after) for one in (cell, base))
    relative = _ratio(mean(last_third(own)), mean(performances(split(base).before)))
    after, theirs = mean(own), mean(other)
    return {
        "nrp": None if cell.trial.red_light else relative,
        "nrp_given": relative if cell.trial.red_light else None,
        "opti": None if after is None or theirs is None else _ratio(after, after + theirs),
        "apti": _ratio(mean(last_third(own)), mean(last_third(other))),
    }


def _normal_performance(played: Sequence[CellRecord], terms: tuple[str, str]) -> float | None:
    """The baseline's mean in normal test episodes of all its trials on the same terms."""
    episodes = [episode for cell in played if _terms(cell) == terms for episode in cell.episodes]
    return mean(performances(episode for episode in episodes if episode.phase == "test" and not episode.novel))


def _terms(cell: CellRecord) -> tuple[str, str]:
    return cell.trial.domain, repr(sorted(cell.trial.settings.items()))


def _loss(cell: CellRecord, normal: float | None) -> float | None:
    kept = _ratio(mean(performances(episode for episode in split(cell).after if episode.novel)), normal)
    return None if kept is None else 1.0 - kept


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


BASELINE = Metric(
    name="baseline",
    note="How performance held against a baseline agent's on the same trials: NRP, OPTI, APTI, difficulty.",
    numbers=NUMBERS,
    measure=relate_to_baseline((), None),
    relate=relate_to_baseline,
)
