"""A scenario is the conditions of a table: a domain, a novelty, the red light, settings.

Cells -> groups of one agent in one scenario, which `summary` turns into estimates.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache

import msgspec
from msgspec.structs import replace

from openfield.errors import OpenfieldError
from openfield.journal.reader import RESUMABLE, CellRecord
from openfield.metrics.stats import Estimate, Valid
from openfield.registry import known_domain
from openfield.settings import write_settings
from openfield.trial import Trial, with_settings


class Scenario(msgspec.Struct, frozen=True, order=True):
    """The conditions of a table: its trials differ only in their seeds, in their onset and in whether they change."""

    domain: str
    novelty: tuple[str, ...]
    red_light: bool
    settings: str
    """The settings that differ from the domain's defaults, in words."""
    loose: bool = False
    """Whether its rules allow scores that nothing was done for. It stands below all others, in no total."""


Key = tuple[Scenario, str]
"""A scenario and an agent in it."""


class TaskResults(msgspec.Struct, frozen=True):
    """One task over all trials of a curriculum; None stands for a number that is not defined."""

    task: str
    solved: Estimate
    """The share of trials in which it is solved, the first time it is met."""
    success: Estimate
    """The share of its instances that are solved until then, or until the curriculum leaves it."""
    steps: Estimate | None
    """From its first step until it is solved, cut at its own budget."""
    alone: Estimate | None
    """The same in the trials that play it alone."""
    transfer: Estimate | None
    """The steps alone divided by those in the curriculum: above 1 the tasks before it helped."""
    retention: Estimate | None
    """The accuracy in the retest relative to when it was left."""


class CurriculumResults(msgspec.Struct, frozen=True):
    """The tasks of one agent in one scenario."""

    agent: str
    scenario: Scenario
    task_steps: int | None
    """The steps that each task has for itself; None if they share all steps, and times cannot be compared."""
    tasks: tuple[TaskResults, ...]
    transfer: Estimate | None
    """The steps of all tasks alone, divided by those of all tasks in the curriculum."""
    versions: str = ""
    """Which of these cells, those of single tasks included, the latest known version of the agent did not play."""
    control: bool = False
    valid: Valid = "fixed"
    """Whether intervals hold once, or at every look."""


def scenario_of(cell: CellRecord) -> Scenario:
    """Return the scenario of a cell."""
    trial = cell.trial
    red_light = [f"red_light={trial.red_light}"] if isinstance(trial.red_light, str) else []
    settings = ", ".join(write_settings(trial.settings) + red_light)
    return Scenario(trial.domain, trial.novelty, bool(trial.red_light), settings, cell.loose or _is_loose(trial))


def _is_loose(trial: Trial) -> bool:
    return any(trial.settings.get(name) == value for name, value in _find_loose(trial.domain))


@cache
def _find_loose(domain: str) -> tuple[tuple[str, object], ...]:
    """Return the values of settings with which the rules of a domain are loose; none of a domain that is not known."""
    try:
        return tuple(known_domain(domain).loose.items())
    except OpenfieldError:
        return ()


def group_cells(cells: Iterable[CellRecord]) -> dict[Key, list[CellRecord]]:
    """Group cells by scenario and agent, sorted, so that sums do not depend on the order of the cells; controls last.

    Trials that have no scenario of their own are left out: one with only training whose agent other trials start from,
    and one that another trial is compared with.
    """
    members: dict[Key, list[CellRecord]] = {}
    known = sort_cells(cells)
    starts, trials = {cell.trial.after for cell in known}, {cell.trial.id for cell in known}
    for cell in known:
        if not (cell.trial.is_training and cell.trial.id in starts) and cell.trial.reference_for not in trials:
            members.setdefault((scenario_of(cell), cell.agent), []).append(cell)
    return {
        key: members[key]
        for key in sorted(members, key=lambda key: (key[0].loose, key[0], are_of_control(members[key]), key[1]))
    }


def join_imported(cells: Sequence[CellRecord]) -> list[CellRecord]:
    """Return cells with imported ones in the tables of played ones: same novelty, and settings that do not differ.

    An import does not know every setting: those it knows must be among the settings of exactly one table. An agent that
    both was imported and played here is two agents, so that its numbers stand beside each other.
    """
    played = [cell for cell in cells if cell.trial.imported is None]
    tables = {scenario_of(cell): cell.trial.settings for cell in played}
    names = {(cell.trial.domain, cell.agent) for cell in played}
    joined = []
    for cell in cells:
        trial, own = cell.trial, scenario_of(cell)
        if trial.imported is not None:
            like = [
                settings
                for table, settings in tables.items()
                if (table.domain, table.novelty, table.red_light) == (own.domain, own.novelty, own.red_light)
                and trial.settings.items() <= settings.items()
            ]
            agent = f"{cell.agent} (imported)" if (trial.domain, cell.agent) in names else cell.agent
            settings = like[0] if len(like) == 1 else trial.settings
            cell = replace(cell, agent=agent, trial=with_settings(trial, settings))
        joined.append(cell)
    return joined


def is_over(cell: CellRecord) -> bool:
    """Return whether nothing more comes of a cell, however it ended."""
    return cell.outcome not in (*RESUMABLE, "superseded")


def list_missing_trials(cells: Iterable[CellRecord]) -> set[tuple[str, str]]:
    """Return the agents and trials of cells that are not over; a trial is with those that it is compared with."""
    return {(cell.agent, cell.trial.reference_for or cell.trial.id) for cell in cells if not is_over(cell)}


def take_first(
    cells: Sequence[CellRecord], missing: Container[tuple[str, str]], places: Mapping[str, int]
) -> list[CellRecord]:
    """Return the cells of an agent up to the first trial, or person, of which a cell is missing.

    Cells that take long are over late. Those that are over at a moment are so by how they went, while the first of
    those that were entered are the same however they went.

    Args:
        cells: The cells of an agent in a scenario.
        missing: The agents and trials of cells that are not over.
        places: When each cell was entered.
    """
    units: dict[str, list[CellRecord]] = {}
    for cell in sorted(cells, key=lambda cell: places[cell.id]):
        units.setdefault(unit_of(cell), []).append(cell)
    waiting = {unit for unit, own in units.items() if any((cell.agent, cell.trial.id) in missing for cell in own)}
    taken = set(itertools.takewhile(lambda unit: unit not in waiting, units))
    return [cell for cell in cells if unit_of(cell) in taken]


def unit_of(cell: CellRecord) -> str:
    """Return the independent unit that a cell belongs to: who played it, its seed in totals, or its trial."""
    return cell.person or cell.seed_unit or cell.trial.id


def share_seeds(cells: Iterable[CellRecord]) -> list[CellRecord]:
    """Return the cells of several scenarios with the seed as their unit.

    Trials of one seed are alike before the onset, whatever changes then, and unchanged ones are alike to the end, so
    that they count as one. Imported trials have no seeds.
    """
    return [
        cell
        if cell.trial.imported is not None
        else replace(cell, seed_unit=f"{cell.trial.seed}{'' if cell.trial.is_changed else ' unchanged'}")
        for cell in cells
    ]


def are_of_control(cells: Iterable[CellRecord]) -> bool:
    """Return whether the agent of these cells is a control."""
    return all(cell.control for cell in cells)


def sort_cells(cells: Iterable[CellRecord]) -> list[CellRecord]:
    """Return cells in an order that does not depend on how they were played."""
    return sorted(cells, key=lambda cell: (cell.trial.id, cell.repeat, cell.id))


def describe_versions(cells: Iterable[CellRecord]) -> str:
    """Return in words which cells the latest known version of an agent did not play; empty if it played all."""
    begun = [cell for cell in cells if cell.attempt]
    kinds = ("earlier", "edited", "unknown")
    earlier, edited, unknown = (sum(cell.version == kind for cell in begun) for kind in kinds)
    players = {cell.player for cell in begun if cell.player is not None}
    said = [f"earlier in {earlier} of {len(begun)} cells"] if earlier else []
    said += [f"edited during the run in {edited} of {len(begun)} cells"] if edited else []
    said += [f"{len(players)} versions"] if len(players) > 1 and not earlier + edited else []
    said += [f"unknown in {unknown} of {len(begun)} cells"] if unknown else []
    return ", ".join(said)
