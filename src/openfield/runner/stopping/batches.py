"""Batches of trials: those of a scenario in order, each with its share of unchanged twins.

All trials are planned before the first one is played, so that the plan of a run, with its fingerprint, does not depend
on how the run went. Only as many batches are played as the rule asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from openfield.cell import Cell
from openfield.console import say_count
from openfield.runner.stopping.rule import BATCH, StoppingRule
from openfield.trial import Trial

ScenarioKey = tuple[str, tuple[str, ...], bytes]
"""The domain, the novelties, and all else that trials of a scenario have in common."""


class Verdict(NamedTuple):
    """What a look between two batches finds."""

    over: str = ""
    """Why no further trial of the scenario is played, as a sentence; empty if they go on."""
    settled: Mapping[str, str] = {}
    """Agents that are played no further, each with a sentence that says why."""


Look = Callable[[Collection[str], Collection[str]], Verdict]
"""Looks at trials of a scenario that are over, given by their ids, and at the agents that play on in it."""


class Dropped(NamedTuple):
    """Cells that are not played, and why."""

    cells: list[str]
    """None of them are left where the last batch is over."""
    why: str
    key: str
    """Names the look that found it."""


def in_batches(trials: Sequence[Trial], size: int) -> list[Trial]:
    """Return trials batch by batch, in the order they have within it, so that the first ones are always whole ones."""
    places = deal(trials, {trial.domain: size for trial in trials})
    return sorted(trials, key=lambda trial: places[trial.id][1])


def deal(trials: Iterable[Trial], sizes: Mapping[str, int]) -> dict[str, tuple[ScenarioKey, int]]:
    """Return the scenario of each trial and the number of its batch.

    Every batch has its share of unchanged twins. A trial that others need is in the batch of the first of them.

    Args:
        trials: The trials in the order in which they are planned.
        sizes: Domain -> how many trials of a batch change.
    """
    known = {trial.id: trial for trial in trials}
    starts = {trial.after for trial in known.values()}
    sets: dict[ScenarioKey, tuple[list[Trial], list[Trial]]] = {}
    for trial in known.values():
        if trial.reference_for not in known and not (trial.is_training and trial.id in starts):
            sets.setdefault(_name_scenario(trial), ([], []))[trial.is_unchanged_twin].append(trial)
    places: dict[str, tuple[ScenarioKey, int]] = {}
    for scenario, (usual, twins) in sets.items():
        size = sizes.get(scenario[0], BATCH)
        count = max(1, -(-len(usual) // size))
        places |= {trial.id: (scenario, at // size) for at, trial in enumerate(usual)}
        places |= {trial.id: (scenario, at * count // len(twins)) for at, trial in enumerate(twins)}
    for trial in known.values():
        if trial.reference_for in known:
            places[trial.id] = places[trial.reference_for]
    for trial in reversed(known.values()):
        if trial.after in known:
            earlier = places.get(trial.after)
            own = places[trial.id]
            places[trial.after] = own if earlier is None or own[1] < earlier[1] else earlier
    return places


def _name_scenario(trial: Trial) -> ScenarioKey:
    rest = msgspec.json.encode([trial.settings, trial.red_light], order="sorted")
    return trial.domain, trial.novelty, rest


class Batches:
    """The cells of a run that stops by itself, and which of them may be played now."""

    def __init__(self, cells: Iterable[Cell], rule: StoppingRule, left: Collection[str]) -> None:
        """Deal the cells into batches.

        Args:
            cells: All cells of the plan, in order.
            rule: The rule of the run.
            left: Those that are still to be played.
        """
        planned, self._words = list(cells), rule.words
        places = deal([cell.trial for cell in planned], rule.batches)
        self._place = {cell.id: places[cell.trial.id] for cell in planned}
        self._left: dict[ScenarioKey, dict[int, dict[str, str]]] = {}  # batch -> cell -> agent, of cells to be played
        self._trials: dict[ScenarioKey, dict[str, int]] = {}
        for cell in planned:
            scenario, number = self._place[cell.id]
            self._trials.setdefault(scenario, {})[cell.trial.id] = number
            if cell.id in left:
                self._left.setdefault(scenario, {}).setdefault(number, {})[cell.id] = cell.agent
        self._agents = {
            scenario: sorted({cell.agent for cell in planned if self._place[cell.id][0] == scenario})
            for scenario in self._trials
        }
        self._playing = {scenario: min(batches) for scenario, batches in self._left.items()}
        self._done: list[ScenarioKey] = []  # scenarios whose batch is over

    @property
    def is_due(self) -> bool:
        """Whether a batch is over and has not been looked at."""
        return bool(self._done)

    def begin(self, look: Look) -> Iterator[list[str] | Dropped]:
        """Yield the cells that may be played first; of a run that goes on, after a look at the batches before.

        Args:
            look: Looks at trials that are over.
        """
        for scenario in list(self._playing):
            if self._playing[scenario] > 0:  # it may have been stopped before that look was recorded
                yield from self._settle(scenario, self._playing[scenario] - 1, look)
            if scenario in self._playing:
                yield list(self._left[scenario][self._playing[scenario]])

    def end(self, cell: str) -> None:
        """Take note of a cell that is over."""
        scenario, number = self._place[cell]
        batch = self._left.get(scenario, {}).get(number, {})
        if batch.pop(cell, None) is not None and not batch and number == self._playing.get(scenario):
            self._done.append(scenario)

    def go_on(self, look: Look) -> Iterator[list[str] | Dropped]:
        """Yield the cells that may be played next, and those that are dropped, where a batch is over.

        Args:
            look: Looks at trials that are over.
        """
        done, self._done = self._done, []
        for scenario in done:
            yield from self._settle(scenario, self._playing[scenario], look)
            later = [number for number, cells in self._left[scenario].items() if cells]
            if scenario in self._playing and later:
                self._playing[scenario] = min(later)
                yield list(self._left[scenario][self._playing[scenario]])

    def _settle(self, scenario: ScenarioKey, number: int, look: Look) -> Iterator[Dropped]:
        """Look at a scenario after a batch, and yield the cells that are dropped."""
        later = {
            cell: agent for at, cells in self._left[scenario].items() if at > number for cell, agent in cells.items()
        }
        trials = [trial for trial, at in self._trials[scenario].items() if at <= number]
        verdict = look(trials, sorted(set(later.values())) or self._agents[scenario])
        where, key = f"{scenario[0]}, {'+'.join(scenario[1]) or 'no novelty'}", trials[0]
        if verdict.over or not later:
            del self._playing[scenario]
            why = verdict.over or f"{self._words} was not met in {say_count(len(trials), 'trial')}."
            yield Dropped(list(later), f"{where}: {why}", key)
            return
        for agent, why in verdict.settled.items():
            dropped = [cell for cell, owner in later.items() if owner == agent]
            for batch in self._left[scenario].values():
                for cell in dropped:
                    batch.pop(cell, None)
            if dropped:
                yield Dropped(dropped, f"{where}: {why}", f"{key} {agent}")
