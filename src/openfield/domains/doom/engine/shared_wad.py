"""One WAD for the maps of many trials, so that an engine plays all of them without a restart.

A plan says beforehand which trials there are, not who plays which. So their maps are put together in the plan's order.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from openfield.domains.doom.engine import workdir
from openfield.domains.doom.maps.scenario import build_wad
from openfield.domains.doom.trials import MAX_PART, TrialScript
from openfield.errors import OpenfieldError
from openfield.trial import Trial

if TYPE_CHECKING:
    from openfield.domains.doom.domain import DoomDomain

MAX_MAPS = 2_000
"""Maps in one WAD. It then takes about a second to build."""
MAX_EXPECTED = 10_000
"""Trials that are remembered; a server may be asked for new ones for ever."""


class WadLocation(NamedTuple):
    """Where the maps of a trial are."""

    wad: Path
    first: int
    """The number of the map of the trial's first episode, below 0 if it is in an earlier WAD."""


class SharedWad:
    """Trials whose maps are in one WAD. It is written when the first of them is played."""

    def __init__(self, domain: DoomDomain, trials: list[Trial]) -> None:
        self.trials = trials
        self._domain = domain
        self._wad: Path | None = None
        self._firsts: dict[str, int] = {}
        self._lock = threading.Lock()

    def find(self, trial: Trial) -> WadLocation | None:
        """Return where a trial's maps are, or None if it has none here."""
        with self._lock:  # worlds are opened in several threads at once
            if self._wad is None or not workdir.is_kept(self._wad):
                self._write()
            first = self._firsts.get(trial.id)
            return None if self._wad is None or first is None else WadLocation(self._wad, first)

    def _write(self) -> None:
        """Write the maps of the trials that can be played; the others are left out."""
        scripts = {trial.id: script for trial in self.trials if (script := _script(self._domain, trial))}
        firsts = itertools.accumulate(map(len, scripts.values()), initial=0)
        self._firsts = dict(zip(scripts, firsts, strict=False))
        self._wad = write_maps(self._domain, list(scripts.values())) if scripts else None


def expect_trials(domain: DoomDomain, trials: Iterable[Trial]) -> None:
    """Plan one WAD for these trials. It is written when the first of them is played."""
    for group in _groups(trial for trial in trials if _length(trial) <= MAX_PART):
        before = _planned.get(group[0].id)
        shared = before if before is not None and before.trials == group else SharedWad(domain, group)
        for trial in group:
            _planned.pop(trial.id, None)
            _planned[trial.id] = shared
    for key in list(_planned)[:-MAX_EXPECTED]:
        _planned.pop(key, None)


def locate_map(domain: DoomDomain, trial: Trial, script: TrialScript, number: int) -> WadLocation:
    """Return where the map of an episode is: in a shared WAD if the trial was expected, else in one of its own.

    Args:
        domain: The domain.
        trial: The trial; a long one has several WADs, each of which is written when it is needed.
        script: The trial's episodes.
        number: Which of them.
    """
    shared = _planned.get(trial.id)
    found = None if shared is None else shared.find(trial)
    if found is not None:
        return found
    part = script.part(number)
    content = build_wad(domain.task.name, script.layouts(part), [script.settings[each] for each in part])
    return WadLocation(workdir.keep_wad(content), -part.start)


def write_maps(domain: DoomDomain, scripts: list[TrialScript]) -> Path:
    """Write a WAD with the episodes of some trials, one after the other."""
    layouts = [layout for script in scripts for layout in script.layouts()]
    settings = [chosen for script in scripts for chosen in script.settings]
    return workdir.keep_wad(build_wad(domain.task.name, layouts, settings))


_planned: dict[str, SharedWad] = {}
"""By the ids of trials; the latest are last."""


def _script(domain: DoomDomain, trial: Trial) -> TrialScript | None:
    """Lay out the episodes of a trial; return None if that fails, or if the trial has no episodes."""
    with suppress(OpenfieldError):
        script = TrialScript(domain, trial)
        return script if script.layouts() else None
    return None


def _length(trial: Trial) -> int:
    return sum(phase.episodes for phase in trial.phases)


def _groups(trials: Iterable[Trial]) -> Iterator[list[Trial]]:
    """Group trials of equal settings, and so of the same player, for WADs of bounded size."""
    groups: dict[str, list[Trial]] = {}
    maps: dict[str, int] = {}
    for trial in trials:
        kind, size = repr(sorted(trial.settings.items())), _length(trial)
        if maps.get(kind, 0) + size > MAX_MAPS and kind in groups:
            yield groups.pop(kind)
            maps[kind] = 0
        groups.setdefault(kind, []).append(trial)
        maps[kind] = maps.get(kind, 0) + size
    yield from groups.values()
