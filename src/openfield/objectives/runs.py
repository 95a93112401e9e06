"""The objectives of recorded runs: what agents did in training, before the world changed and after.

Between `view`, which reads run files, and `intervals` and `likeness`, which count; each domain says how to discretise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from openfield.core import Ask, Truth, Turn
from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.summary import scenario_of
from openfield.objectives.evaluation import NAMES, WITHOUT_UNIT, Unit
from openfield.objectives.intervals import Interval, Steps, objectives_of_episodes
from openfield.objectives.likeness import compare_episodes
from openfield.record import Step
from openfield.registry import find_domain
from openfield.view import SCORED, CellRecord, Run

Stage = Literal["training", "before", "after"]
STAGES: tuple[Stage, ...] = ("training", "before", "after")


class Group(msgspec.Struct, frozen=True):
    """Episodes that belong together: of one agent, on the same terms, at the same stage."""

    domain: str
    novelty: str
    """What changes at the onset, joined by `+`; empty if nothing does."""
    settings: str
    red_light: bool
    agent: str
    stage: Stage


class GroupObjectives(msgspec.Struct, frozen=True, kw_only=True):
    """What the episodes of a group come to."""

    group: Group
    episodes: int
    transitions: int
    values: dict[str, Interval]


Groups = Mapping[Group, Sequence[Steps]]


def evaluate_runs(
    groups: Groups,
    *,
    human: Groups | None = None,
    num_obs: int | None = None,
    only: Sequence[str] = (),
    unit: Unit = "nats",
) -> list[GroupObjectives]:
    """The objectives of every group with 95 % intervals, and how similar it is to a human's episodes of its stage.

    Args:
        groups: Episodes as `read_runs` gives them.
        human: Those of a person; similarity is left out if not given.
        num_obs: Distinct inputs of the domain; those seen by any agent if not given.
        only: Names of objectives; all if none is given.
        unit: Of entropies and information; `jsd_nats` is in nats as it says.

    Raises:
        InvalidInput: More distinct inputs were seen than `num_obs`.
    """
    found: list[GroupObjectives] = []
    for domain in dict.fromkeys(group.domain for group in groups):
        mine = {group: episodes for group, episodes in groups.items() if group.domain == domain}
        _check_size(mine, domain, num_obs)
        for group, values in objectives_of_episodes(mine, num_obs=num_obs).items():
            shown = {name: _in_unit(values[name], name, unit) for name in NAMES if name in (only or NAMES)}
            if human is not None:
                shown |= compare_episodes(human_part(human, group), mine[group])
            moves = sum(len(steps) - 1 for steps in mine[group])
            found.append(GroupObjectives(group=group, episodes=len(mine[group]), transitions=moves, values=shown))
    return found


def read_runs(paths: Iterable[str | Path], agent: str | None = None) -> dict[Group, list[Steps]]:
    """The episodes of all cells that were scored, of all agents or one, with observations and actions as keys.

    Raises:
        InvalidInput: Nothing was scored.
        JournalError: A file is no run, or damaged.
        UnknownName: No run has an agent of that name.
    """
    groups: dict[Group, list[Steps]] = {}
    paths, known = list(paths), dict[Hashable, Hashable]()
    agents: dict[str, None] = {}
    for path in paths:
        with Run(path) as run:
            agents |= dict.fromkeys(run.agents)
            for cell in run.cells(with_episodes=False):
                if cell.outcome in SCORED and agent in (None, cell.agent):
                    _read_cell(run, cell, known, groups)
    if agent is not None and agent not in agents:
        raise UnknownName("agent", agent, agents, label="In this run")
    if not groups:
        raise InvalidInput(f"{', '.join(map(str, paths))}: no agent has finished a trial in which it acted.")
    order = sorted(groups, key=lambda group: (*msgspec.structs.astuple(group)[:-1], STAGES.index(group.stage)))
    return {group: groups[group] for group in order}


def read_human(path: str | Path, agent: str | None = None) -> dict[Group, list[Steps]]:
    """The episodes of the person in a run; who that is must be said if several agents are in it.

    Raises:
        InvalidInput: Several agents are in the run and none is named.
    """
    with Run(path) as run:
        names = list(run.agents)
    if agent is None and len(names) > 1:
        raise InvalidInput(f"{path}: which of {', '.join(names)} is the human? Say --human-agent NAME.")
    return read_runs([path], agent)


def human_part(human: Groups, group: Group) -> list[Steps]:
    """The person's episodes to compare a group with: of its domain and stage, after the onset also of its novelty."""
    return [
        steps
        for other, episodes in human.items()
        if (other.domain, other.stage) == (group.domain, group.stage)
        and (group.stage != "after" or other.novelty == group.novelty)
        for steps in episodes
    ]


def cut_episodes(steps: Iterable[Step]) -> Iterator[tuple[Stage, list[tuple[Any, Any]]]]:
    """The episodes in the steps of a cell: observations with the actions taken on them, the last one with None.

    Only turns that ask for an action count. The turn that ends an episode the agent is not told of already shows the
    next one: it is the end of the one and the start of the other, and what was true at the start is true of it.
    """
    moves: list[tuple[Any, Any]] = []
    shown: Turn | None = None
    truth = Truth()
    novel: bool | None = None
    for step in steps:
        if shown is not None and shown.ask is Ask.ACT and step.reply is not None:
            if step.reply.action is None:
                continue  # a belief on its own: the same turn is shown again
            if shown.last is None:
                moves.append((shown.observation, step.reply.action))
        if step.turn is None:
            break
        shown, truth = step.turn, step.truth or truth
        novel = truth.novel if novel is None else novel
        if shown.last is not None or truth.episode_over:
            if moves:
                yield _stage(shown, truth.novel if shown.last else novel), [*moves, (shown.observation, None)]
            moves, novel = [], truth.novel
    if moves and shown is not None:
        yield _stage(shown, truth.novel), [*moves, (shown.observation, None)]


def _stage(turn: Turn, novel: bool) -> Stage:
    return "training" if turn.phase == "training" else "after" if novel else "before"


def _read_cell(run: Run, cell: CellRecord, known: dict[Hashable, Hashable], groups: dict[Group, list[Steps]]) -> None:
    """Adds the episodes of a cell to their groups; equal keys are kept once."""
    met = scenario_of(cell)
    encode = find_domain(run.facts.get(f"domain {met.domain}", met.domain)).encode
    for stage, moves in cut_episodes(run.steps(cell.id, cell.attempt)):
        group = Group(met.domain, "+".join(met.novelty), met.settings, met.red_light, cell.agent, stage)
        groups.setdefault(group, []).append(_keys(moves, encode, known))


def _keys(
    moves: Iterable[tuple[Any, Any]], encode: Callable[[Any], Any], known: dict[Hashable, Hashable]
) -> list[tuple[Hashable, Hashable]]:
    keys = ((encode(seen), msgspec.json.encode(action, order="sorted")) for seen, action in moves)
    return [(known.setdefault(seen, seen), known.setdefault(action, action)) for seen, action in keys]


def _check_size(groups: Groups, domain: str, num_obs: int | None) -> None:
    seen = len({key for episodes in groups.values() for steps in episodes for key, _ in steps})
    if num_obs is not None and seen > num_obs:
        raise InvalidInput(f"{domain}: {seen:,} distinct inputs were seen; --num-obs says {num_obs:,}.")


def _in_unit(interval: Interval, name: str, unit: Unit) -> Interval:
    if unit == "nats" or name in WITHOUT_UNIT:
        return interval
    value, low, high = (
        None if number is None else number / math.log(2) for number in (interval.value, interval.low, interval.high)
    )
    return Interval(value, low, high, interval.note)
