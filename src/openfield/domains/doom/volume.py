"""WADs for whole experiments: an engine that has one plays any of its trials without being started again.

Between domain and worlds. Who plays which trial is not known beforehand, but which there are: so they are bound
together as they stand in the plan.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from openfield.domains.doom import workplace
from openfield.domains.doom.scenario import bind
from openfield.domains.doom.script import Script
from openfield.errors import OpenfieldError
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.domains.doom.domain import DoomDomain

MOST_MAPS = 2_000
"""In one WAD, which then takes about a second to build."""
MOST_EXPECTED = 10_000
"""Trials that are kept in mind; a server may be asked for new ones for ever."""


class Bound(NamedTuple):
    """Where the maps of a trial are."""

    wad: Path
    first: int
    """The number of the map of its first episode."""


class Volume:
    """Trials whose maps are in one WAD, which is made when the first of them is played."""

    def __init__(self, domain: DoomDomain, trials: list[Trial]) -> None:
        self._domain = domain
        self._trials = trials
        self._bound: dict[str, Bound] = {}
        self._lock = threading.Lock()

    def find(self, trial: Trial) -> Bound | None:
        """Where a trial's maps are; None if it cannot be bound with the others."""
        with self._lock:  # worlds are opened in several threads at once
            if not self._bound:
                self._bound = dict(self._bind())
            return self._bound.get(trial.id)

    def _bind(self) -> Iterator[tuple[str, Bound]]:
        scripts: dict[str, Script] = {}
        for trial in self._trials:
            with suppress(OpenfieldError):  # a trial that cannot be played must not keep the others from it
                scripts[trial.id] = Script(self._domain, trial)
        wad, first = keep_maps(self._domain, list(scripts.values())), 0
        for key, script in scripts.items():
            yield key, Bound(wad, first)
            first += len(script)


def expect(domain: DoomDomain, trials: Iterable[Trial]) -> None:
    """Has trials bound together as soon as one of them is played."""
    for group in _groups(trials):
        volume = Volume(domain, group)
        _shelf.update((trial.id, volume) for trial in group)
    for key in list(_shelf)[:-MOST_EXPECTED]:
        _shelf.pop(key, None)


def bound(domain: DoomDomain, trial: Trial, script: Script) -> Bound:
    """Where a trial's maps are: with those of others, or, where nobody expected it, by themselves."""
    volume = _shelf.get(trial.id)
    found = None if volume is None else volume.find(trial)
    return found or Bound(keep_maps(domain, [script]), 0)


def keep_maps(domain: DoomDomain, scripts: list[Script]) -> Path:
    """A WAD with the episodes of some trials, one after the other."""
    layouts = [layout for script in scripts for layout in script.layouts]
    settings = [chosen for script in scripts for chosen in script.settings]
    return workplace.keep_wad(bind(domain.task.name, layouts, settings))


_shelf: dict[str, Volume] = {}
"""By the ids of trials; the latest are last."""


def _groups(trials: Iterable[Trial]) -> Iterator[list[Trial]]:
    """Trials of equal settings, and so of the same player, in WADs of bounded size."""
    groups: dict[str, list[Trial]] = {}
    maps: dict[str, int] = {}
    for trial in trials:
        kind, size = repr(sorted(trial.settings.items())), sum(phase.episodes for phase in trial.phases)
        if maps.get(kind, 0) + size > MOST_MAPS and kind in groups:
            yield groups.pop(kind)
            maps[kind] = 0
        groups.setdefault(kind, []).append(trial)
        maps[kind] = maps.get(kind, 0) + size
    yield from groups.values()
