"""Evaluate recorded runs: the objectives of each agent in training, before the world changed and after.

`recordings` reads the run files. `measures.intervals` and `measures.episodes` compute the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.evaluation import NAMES, Unit
from openfield.objectives.intervals import Counted, Interval, compare_counted, in_unit, objectives_of_counted
from openfield.objectives.runs.observations import code_pictures, number_keys
from openfield.objectives.runs.recordings import STAGES, Group, Recording
from openfield.objectives.tables.histograms import Array

Groups = Mapping[Group, Sequence[Counted]]


class GroupObjectives(msgspec.Struct, frozen=True, kw_only=True):
    """The objectives of a group of episodes."""

    group: Group
    episodes: int
    transitions: int
    num_obs: int
    """The size of the Dirichlet distribution."""
    values: dict[str, Interval]


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
        for group, mine in episodes.groups.items():
            values = objectives_of_counted(mine, size)
            shown = {name: in_unit(values[name], name, unit) for name in NAMES if name in (only or NAMES)}
            if human is not None:
                shown |= compare_counted(human_part(episodes.human, group), mine, episodes.size)
            moves = sum(int(episode.counts.sum()) for episode in mine)
            found.append(
                GroupObjectives(group=group, episodes=len(mine), transitions=moves, num_obs=size, values=shown)
            )
    return found


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
