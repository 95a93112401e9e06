"""WADs for whole experiments: an engine that has one plays any of its trials without being started again.

Between domain and worlds. Who plays which trial is not known beforehand, but which there are: so they are bound
together as they stand in the plan.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from openfield.domains.doom.engine import workdir as workplace
from openfield.domains.doom.maps.scenario import bind
from openfield.domains.doom.trial_script import Script
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
        self.trials = trials
        self._domain = domain
        self._wad: Path | None = None
        self._firsts: dict[str, int] = {}
        self._lock = threading.Lock()

    def find(self, trial: Trial) -> Bound | None:
        """Where a trial's maps are; None if it cannot be bound with the others."""
        with self._lock:  # worlds are opened in several threads at once
            if self._wad is None or not workplace.is_kept(self._wad):
                self._bind()
            first = self._firsts.get(trial.id)
            return None if self._wad is None or first is None else Bound(self._wad, first)

    def _bind(self) -> None:
        """Binds what can be played: a trial that cannot must not keep the others from it."""
        made = {trial.id: _script(self._domain, trial) for trial in self.trials}
        scripts = {key: script for key, script in made.items() if script is not None}
        firsts = itertools.accumulate(map(len, scripts.values()), initial=0)
        self._firsts = dict(zip(scripts, firsts, strict=False))
        self._wad = keep_maps(self._domain, list(scripts.values())) if scripts else None


def expect(domain: DoomDomain, trials: Iterable[Trial]) -> None:
    """Has trials bound together as soon as one of them is played."""
    for group in _groups(trials):
        before = _shelf.get(group[0].id)
        volume = before if before is not None and before.trials == group else Volume(domain, group)
        for trial in group:
            _shelf.pop(trial.id, None)
            _shelf[trial.id] = volume
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


def _script(domain: DoomDomain, trial: Trial) -> Script | None:
    """The episodes of a trial, laid out; None if they cannot be, or there are none."""
    with suppress(OpenfieldError):
        script = Script(domain, trial)
        return script if script.layouts else None
    return None


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
