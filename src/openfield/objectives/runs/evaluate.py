"""Evaluate recorded runs: the objectives of each agent in training, before the world changed and after.

`recordings` reads the run files, and `intervals` computes the values. Values that depend on the number of transitions
are also given at equal numbers: for all agents and stages of a scenario, beside the agent `random` if it played.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from openfield.errors import InvalidInput
from openfield.objectives.evaluation import NAMES, Unit
from openfield.objectives.intervals import (
    Counted,
    Estimates,
    Interval,
    compare_counted,
    in_unit,
    objectives_at,
    objectives_of_counted,
)
from openfield.objectives.runs.observations import code_pictures, number_keys
from openfield.objectives.runs.recordings import STAGES, Group, Recording
from openfield.objectives.tables.histograms import Array

Groups = Mapping[Group, Sequence[Counted]]
RANDOM = "random"
"""The agent that others are compared with at equal numbers of transitions."""


class GroupObjectives(msgspec.Struct, frozen=True, kw_only=True):
    """The objectives of a group of episodes."""

    group: Group
    episodes: int
    transitions: int
    num_obs: int
    """The size of the Dirichlet distribution."""
    values: dict[str, Interval]
    estimates: Estimates
    """The same in nats, with the null and the excess of empowerment, distinct numbers and saturation."""
    equal: EqualNumbers | None = None
    """Values that may be compared between stages and with `random`; None if there is nothing to compare."""


class EqualNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """Input entropy and information gain at a number of transitions that all agents have at all stages."""

    transitions: int
    values: dict[str, float]
    random: dict[str, float] | None = None
    """The same of the agent `random` at this stage; None if it did not play."""


def evaluate_runs(
    runs: Sequence[Recording],
    *,
    human: Recording | None = None,
    num_obs: int | None = None,
    only: Sequence[str] = (),
    unit: Unit = "nats",
    thresholds: Array | None = None,
) -> list[GroupObjectives]:
    """Compute the objectives of every group with 95 % intervals, and its similarity to a human's episodes.

    Args:
        runs: Episodes as `read_runs` returns them. Equal groups of different runs are evaluated together.
        human: Episodes of a human, compared stage by stage. Without it there is no similarity.
        num_obs: Distinct inputs of the domain. The default is the number seen by all agents.
        only: Names of objectives; the default is all.
        unit: The unit of entropies and information. `jsd_nats` is always in nats.
        thresholds: Thresholds to discretize pictures. The default is found from all pictures.

    Raises:
        InvalidInput: More distinct inputs were seen than `num_obs`.
    """
    found: list[GroupObjectives] = []
    for domain in sorted({group.domain for run in runs for group in run.groups}):
        episodes = _Common(domain, runs, human, thresholds)
        if num_obs is not None and episodes.seen > num_obs:
            raise InvalidInput(
                f"{domain}: {episodes.seen:,} distinct inputs were seen; it is said to have {num_obs:,}."
            )
        size = episodes.seen if num_obs is None else num_obs
        names = [name for name in NAMES if name in (only or NAMES)]
        for group, mine in episodes.groups.items():
            estimates = objectives_of_counted(mine, size)
            shown = {name: in_unit(estimates.values[name], name, unit) for name in names}
            if human is not None:
                shown |= compare_counted(human_part(episodes.human, group), mine, episodes.size)
            found.append(
                GroupObjectives(
                    group=group,
                    episodes=len(mine),
                    transitions=count_transitions(mine),
                    num_obs=size,
                    values=shown,
                    estimates=estimates,
                    equal=_at_equal_numbers(episodes.groups, group, size, names, unit),
                )
            )
    return found


def _of(group: Group) -> Group:
    """Return what all groups of a scenario have in common."""
    return replace(group, agent="", stage="after")


def count_transitions(episodes: Sequence[Counted]) -> int:
    """Count the transitions of episodes."""
    return sum(int(episode.counts.sum()) for episode in episodes)


def _at_equal_numbers(
    groups: Groups, group: Group, num_obs: int, names: Sequence[str], unit: Unit
) -> EqualNumbers | None:
    """Compute the values at as many transitions as the shortest stage of any agent in the scenario has."""
    alike = [episodes for other, episodes in groups.items() if _of(other) == _of(group)]
    numbers = [number for episodes in alike if (number := count_transitions(episodes))]
    if not count_transitions(groups[group]) or len(numbers) < 2:
        return None
    least, rival = min(numbers), groups.get(replace(group, agent=RANDOM), ())

    def values_of(episodes: Sequence[Counted]) -> dict[str, float]:
        found = objectives_at(episodes, least, num_obs)
        shown = {name: in_unit(Interval(found[name]), name, unit).value for name in names if name in found}
        return {name: value for name, value in shown.items() if value is not None}

    return EqualNumbers(
        transitions=least,
        values=values_of(groups[group]),
        random=values_of(rival) if count_transitions(rival) else None,
    )


def human_part(human: Groups, group: Group) -> list[Counted]:
    """Return the human's episodes of a group's domain and stage; after the onset also of its novelty."""
    return [
        episode
        for other, episodes in human.items()
        if (other.domain, other.stage) == (group.domain, group.stage)
        and (group.stage != "after" or other.novelty == group.novelty)
        for episode in episodes
    ]


class _Common:
    """The episodes of several runs and a human in one domain, with common numbers for inputs and actions."""

    def __init__(
        self, domain: str, runs: Sequence[Recording], human: Recording | None, thresholds: Array | None
    ) -> None:
        everyone = [*runs, *([human] if human else [])]
        keys = [run.inputs.get(domain, {}) for run in everyone]
        inputs, self.size = number_keys(keys, code_pictures(keys, everyone[0].size, thresholds))
        """`size` is the number of different inputs."""
        actions, _ = number_keys([run.actions.get(domain, {}) for run in everyone])
        self.seen = len(np.unique(np.concatenate(inputs[: len(runs)])))
        """The number of inputs that the agents met."""
        parts = [_renumbered(domain, run, *new) for run, *new in zip(everyone, inputs, actions, strict=True)]
        self.groups, self.human = _joined(parts[: len(runs)]), _joined(parts[len(runs) :])


def _renumbered(domain: str, run: Recording, inputs: Array, actions: Array) -> dict[Group, list[Counted]]:
    mine = {group: episodes for group, episodes in run.groups.items() if group.domain == domain}
    return {group: [each.renumbered(inputs, actions) for each in episodes] for group, episodes in mine.items()}


def _joined(parts: Iterable[Groups]) -> dict[Group, list[Counted]]:
    """Join the episodes of all runs by group, in an order that does not depend on the order of the runs."""
    groups: dict[Group, list[Counted]] = {}
    for part in parts:
        for group, episodes in part.items():
            groups.setdefault(group, []).extend(episodes)
    order = sorted(groups, key=lambda group: (*msgspec.structs.astuple(group)[:-1], STAGES.index(group.stage)))
    return {group: groups[group] for group in order}
