"""Beliefs against the borders between tasks, in a curriculum in which nothing else changes.

One cell -> numbers of its trial. Where one task follows another, the learner's world does change, though no novelty
was planned. So a belief that rises there is no false alarm: it has found a border.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress

from openfield.core import Belief, says_novel
from openfield.errors import OpenfieldError
from openfield.journal.reader import CellRecord
from openfield.metrics.curricula.instances import list_visits
from openfield.metrics.metric import built_in, undefined
from openfield.metrics.performance import assume_curriculum, has_borders, mean
from openfield.provenance.rules import own_rule
from openfield.registry import known_domain
from openfield.trial import Trial

EVERY_STEP = 1000.0
"""Crossings per 1,000 steps in a trial that its agent failed: no agent can have more."""


def measure_borders(cell: CellRecord) -> dict[str, float | None]:
    """Compute the share of borders found, the steps that took, and the other crossings of the threshold.

    A border is found by the first crossing after it and before the next border, or the end.
    """
    if not has_borders(cell.trial):
        return undefined(BORDERS)
    if cell.counts:
        steps = assume_curriculum(cell.trial).steps
        return {"borders_found": 0.0, "border_steps": float(steps) if steps else None, "other_crossings": EVERY_STEP}
    visits = list_visits(cell)
    if not visits:
        return undefined(BORDERS)
    end = visits[-1].start + visits[-1].steps
    starts = [visit.start for visit in visits[1:]]
    crossings = list_crossings(cell)
    stretches = list(itertools.pairwise([*starts, end]))
    found = [next((step for step in crossings if start < step <= stop), None) for start, stop in stretches]
    delays = [
        float((stop if step is None else step) - start) for (start, stop), step in zip(stretches, found, strict=True)
    ]
    others = len(crossings) - sum(step is not None for step in found)
    return {
        "borders_found": mean([float(step is not None) for step in found]),
        "border_steps": mean(delays),
        "other_crossings": 1000 * others / end if end else None,
    }


def list_crossings(cell: CellRecord) -> list[int]:
    """Return the steps at which the belief comes to say that the world has changed, having not said so before.

    Of several beliefs in one step the last counts. Without a record of single steps, beliefs stand at the ends of
    episodes.
    """
    detects = _find_rule(cell.trial)
    if cell.stated is not None:
        stated = dict(cell.stated.beliefs)
    else:
        ends = itertools.accumulate(episode.steps for episode in cell.episodes)
        pairs = zip(ends, cell.episodes, strict=True)
        stated = {end: episode.belief.highest for end, episode in pairs if episode.belief is not None}
    said = [False, *(detects(Belief(value)) for value in stated.values())]
    return [step for step, (before, now) in zip(stated, itertools.pairwise(said), strict=True) if now and not before]


def _find_rule(trial: Trial) -> Callable[[Belief], bool]:
    """Return how the domain of a trial reads beliefs."""
    with suppress(OpenfieldError):
        return own_rule(known_domain(trial.domain), trial) or says_novel
    return says_novel


BORDERS = built_in("borders", measure_borders, counts_failures=True)
