"""Finds what gives the truth away without naming it: places that tell a changed world from the usual one.

Part of the conformance kit. A novelty may change what is shown, for that is what novelties are, so a difference alone
is no leak. A leak is a place that is one thing on every turn of the usual world and another on every turn of a changed
one, whoever plays and whatever the seed, and either says no more than yes or no, or says the same for every novelty.
"""

from __future__ import annotations

from collections.abc import Iterator

from openfield.testing.evidence import Evidence, name_trial, without_novelty
from openfield.testing.places import (
    Differences,
    Place,
    describe,
    in_all,
    in_both,
    innermost,
    is_certain,
    says_yes_or_no,
)
from openfield.trial import Trial


def find_leaks(evidence: Evidence) -> Iterator[str]:
    """What tells changed worlds from the usual one: a yes or no for any novelty, or the same for all of several."""
    trials = [trial for trial in evidence.trials if trial.novelty]
    found = {name_trial(trial): _differences(evidence, trial, 0) for trial in trials}
    names = {name.partition(":")[0] for trial in trials for name in trial.novelty}
    common = in_all(found.values()) if len(names) > 1 else set()
    sure = {name_trial(trial): _confirm(evidence, trial, found[name_trial(trial)], common) for trial in trials}
    told = {place: [name for name in sure if place in sure[name]] for left in sure.values() for place in left}
    differences = {place: sure[names[0]][place] for place, names in told.items()}
    telling = (
        place for place, names in told.items() if len(names) == len(sure) or says_yes_or_no(place, differences[place])
    )
    for place in innermost(telling):
        yield describe(place, differences[place], told[place])


def _confirm(evidence: Evidence, trial: Trial, found: Differences, common: set[Place]) -> Differences:
    """The differences between a changed and a usual world that are no effect, whoever plays and whatever the seed."""
    shown = frozenset(evidence.domain.shown_effects)
    left: Differences = {
        place: difference
        for place, difference in found.items()
        if not shown.intersection(place) and (place in common or says_yes_or_no(place, difference))
    }
    for like, agent in evidence.attempts(trial):
        if left and (like, agent) != (trial, 0):
            left = in_both(left, _differences(evidence, like, agent)) if _meets(evidence, like, agent) else left
    return {place: difference for place, difference in left.items() if is_certain(difference)}


def _differences(evidence: Evidence, trial: Trial, agent: int) -> Differences:
    """What is always one thing where a trial is as usual, also all along without its novelty, and another after it."""
    changed, normal = evidence.play(trial, agent), evidence.play(without_novelty(trial), agent)
    return changed.usual.joined(normal.usual).differences(changed.changed)


def _meets(evidence: Evidence, trial: Trial, agent: int) -> bool:
    played = evidence.play(trial, agent)
    return played.onset < len(played.truths)
