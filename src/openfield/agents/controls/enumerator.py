"""A control that computes the public trials, finds its own among them, and so knows when the world changes.

It succeeds where trials are made from a small seed, which docs and plans name. It must fail where they are sealed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from functools import cache
from typing import Any

from openfield.agents.controls.control import Control, expect_change
from openfield.cell import Cell
from openfield.core import Belief, Spec, Turn
from openfield.domain import Domain
from openfield.record import ENCODER
from openfield.trial import Trial

MANY, FEW = 40, 5
"""Trials of each root seed: those its own seed is compared with, and those it makes worlds of to see how they begin."""
MAX_WATCHED = 2
"""Root seeds whose worlds it makes. An engine may need half a second to start."""


class Enumerator(Control):
    """Makes the trials of the first `n` root seeds, and believes what the one it recognises says."""

    usual, bounds = 8, (1.0, 1000.0)

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, number)
        self._domain, self._seed = domain, seed
        self._own: list[Trial] = []
        self._looked: set[str] = set()

    def believe(self, turn: Turn) -> Belief:
        """Return the share of the trials it may be in that have changed by now."""
        if not self._own and turn.phase not in self._looked:  # training may be a trial of its own
            self._looked.add(turn.phase)
            self._own = self._recognise(turn)
        return expect_change(self._own, self.now)

    def _recognise(self, turn: Turn) -> list[Trial]:
        """Return the public trials that would give it its own seed, or else those that begin with this turn."""
        roots = int(self.number)
        named = [trial for trial in list_public(self._domain, roots, MANY) if _seed_in(trial) == self._seed]
        if named:
            return named
        seen = ENCODER.encode(turn)
        few = list_public(self._domain, min(roots, MAX_WATCHED), FEW)
        return [trial for trial in few if _begin(self._domain, trial) == seen]


@cache
def list_public(domain: Domain[Any], roots: int, count: int) -> list[Trial]:
    """Return the trials everybody can make: with the usual settings, and with those of checks and demos."""
    kinds: list[Mapping[str, Any]] = [{}, domain.check_settings, domain.demo_settings]
    different = [settings for number, settings in enumerate(kinds) if settings not in kinds[:number]]
    made = [trial for settings in different for root in range(roots) for trial in _make(domain, count, root, settings)]
    return list({trial.id: trial for trial in made if not trial.is_training}.values())


def _make(domain: Domain[Any], count: int, root: int, settings: Mapping[str, Any]) -> list[Trial]:
    novelty = domain.default_novelty or next((each.id for each in domain.novelties), None)  # all have the same onsets
    try:
        return domain.trials(count, root, novelty, **settings)
    except Exception:  # data may be missing here; a control then knows less, and does not fail
        return []


def _seed_in(trial: Trial) -> int:
    return Cell("enumerator", trial).seed


_beginnings: dict[tuple[str, int, str], bytes] = {}
"""The first turns of trials by domain, seed and settings; making worlds takes time."""


def _begin(domain: Domain[Any], trial: Trial) -> bytes:
    """Return the first turn of a trial; empty if there is none to be had."""
    key = domain.name, trial.seed, repr(sorted(trial.settings.items()))
    if key not in _beginnings:
        try:
            with closing(domain.world(trial)) as world:
                _beginnings[key] = ENCODER.encode(world.reset())
        except Exception:  # the engine may be missing here
            _beginnings[key] = b""
    return _beginnings[key]
