"""The measures of the SAIL-ON programme: when novelty was detected, and how performance held against a baseline.

Stands in metrics: one cell -> numbers of its trial (`PROGRAMME`), and agents against a baseline over the same trials
(`compare_with_baseline`). Usable in every domain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from openfield.metrics.metric import Metric, Number
from openfield.metrics.stretches import mean, performances, split
from openfield.view import SCORED, CellRecord

FIRST = Number(
    name="first_detection",
    title="First detection",
    note="test episodes before the first one that ended in a detection; all of them if there was none",
    kind="count",
    better="",
    bounds=None,
)
CDT = Number(
    name="cdt",
    title="M2: correctly detected",
    note="share of trials whose first detection is after the onset",
    kind="rate",
)
FALSE_POSITIVE = Number(
    name="false_positive_trial",
    title="M2.1: false positive",
    note="share of trials with a detection before the onset",
    kind="rate",
    better="lower",
)
MISSED = Number(
    name="m1",
    title="M1: missed before detection",
    note="novel episodes missed before the detection, over correctly detected trials only",
    kind="count",
    better="lower",
    bounds=None,
)


def measure_programme(cell: CellRecord) -> dict[str, float | None]:
    """First detection, M1, M2 and M2.1; nothing is defined in a trial that never reached an onset."""
    parts = split(cell)
    if not parts.after:
        return dict.fromkeys(number.name for number in (FIRST, CDT, FALSE_POSITIVE, MISSED))
    test = [*parts.before, *parts.after]
    first = next((number for number, episode in enumerate(test) if episode.detected), None)
    correct = first is not None and first >= len(parts.before)
    return {
        "first_detection": float(len(test) if first is None else first),
        "cdt": float(correct),
        "false_positive_trial": float(first is not None and not correct),
        "m1": float(first - len(parts.before)) if correct and first is not None else None,
    }


PROGRAMME = Metric(
    name="programme",
    note="The measures of the SAIL-ON programme that need one agent only.",
    numbers=(FIRST, CDT, FALSE_POSITIVE, MISSED),
    measure=measure_programme,
)


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """An agent against a baseline on the same trials; each number is a mean over trials, None where none is defined."""

    agent: str
    given: bool
    """Whether the trials told when the world had changed: then NRP is M4, otherwise M3."""
    trials: int
    nrp: float | None
    """Asymptotic performance after the onset over the baseline's mean before it."""
    opti: float | None
    """M5: performance after the onset as a share of both agents' together."""
    apti: float | None
    """M6: summed performance at the end of the trial over the baseline's."""


def compare_with_baseline(cells: Iterable[CellRecord], baseline: str, last: int | None = None) -> list[Against]:
    """NRP, OPTI and APTI of every agent against one of them.

    Args:
        cells: The cells of a run; trials the baseline did not play are left out.
        baseline: The name of the agent to compare with.
        last: How many episodes at the end count as asymptotic; a third of those after the onset if not given.
    """
    scored = [cell for cell in cells if cell.outcome in SCORED and split(cell).after]
    bases = {(cell.trial.id, cell.repeat): cell for cell in scored if cell.agent == baseline}
    groups: dict[tuple[str, bool], list[tuple[CellRecord, CellRecord]]] = {}
    for cell in scored:
        base = bases.get((cell.trial.id, cell.repeat)) or bases.get((cell.trial.id, 0))
        if base is not None:
            groups.setdefault((cell.agent, cell.trial.red_light), []).append((cell, base))
    return [
        Against(
            agent=agent,
            given=given,
            trials=len(pairs),
            nrp=_mean(_nrp(cell, base, last) for cell, base in pairs),
            opti=_mean(_opti(cell, base) for cell, base in pairs),
            apti=_mean(_apti(cell, base, last) for cell, base in pairs),
        )
        for (agent, given), pairs in sorted(groups.items())
    ]


def difficulties(cells: Iterable[CellRecord], reference: str) -> dict[str, float]:
    """How hard each novelty is: the share of its performance that a reference agent loses from the onset on."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for cell in cells:
        if cell.agent == reference and cell.outcome in SCORED and cell.trial.novelty:
            parts = split(cell)
            before, after = found.setdefault("+".join(cell.trial.novelty), ([], []))
            before += performances(parts.before)
            after += performances(episode for episode in parts.after if episode.novel)
    means = {name: (mean(before), mean(after)) for name, (before, after) in found.items()}
    return {name: 1 - after / before for name, (before, after) in means.items() if before and after is not None}


def asymptotic(cell: CellRecord, last: int | None = None) -> float | None:
    """The mean performance of the last episodes after the onset."""
    return mean(_tail(cell, last))


def _tail(cell: CellRecord, last: int | None) -> list[float]:
    curve = performances(split(cell).after)
    return curve[-(last or max(1, math.ceil(len(curve) / 3))) :]


def _nrp(cell: CellRecord, base: CellRecord, last: int | None) -> float | None:
    return _ratio(asymptotic(cell, last), mean(performances(split(base).before)))


def _opti(cell: CellRecord, base: CellRecord) -> float | None:
    own, other = (mean(performances(split(one).after)) for one in (cell, base))
    return None if own is None or other is None else _ratio(own, own + other)


def _apti(cell: CellRecord, base: CellRecord, last: int | None) -> float | None:
    return _ratio(math.fsum(_tail(cell, last)), math.fsum(_tail(base, last)))


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def _mean(values: Iterable[float | None]) -> float | None:
    return mean([value for value in values if value is not None])
