"""The objectives of recorded runs: what agents did in training, before the world changed and after.

Between `recordings`, which reads run files, and `intervals` and `likeness`, which count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.evaluation import NAMES, Unit
from openfield.objectives.measures.episodes import compare_counted
from openfield.objectives.measures.intervals import Counted, Interval, in_unit, objectives_of_counted
from openfield.objectives.runs.observations import code_pictures, number_keys
from openfield.objectives.runs.recordings import STAGES, Group, Recording
from openfield.objectives.tables.histograms import Array

Groups = Mapping[Group, Sequence[Counted]]


class GroupObjectives(msgspec.Struct, frozen=True, kw_only=True):
    """What the episodes of a group come to."""

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
    """The objectives of every group with 95 % intervals, and how similar it is to a human's episodes of its stage.

    Args:
        runs: Episodes as `read_runs` gives them; those on the same terms are evaluated together.
        human: Those of a person; similarity is left out if not given.
        num_obs: Distinct inputs of the domain; those seen by any agent if not given.
        only: Names of objectives; all if none is given.
        unit: Of entropies and information; `jsd_nats` is in nats as it says.
        thresholds: By which pictures are discretised; found from those of all runs and the human's if not given.

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
    """The person's episodes to compare a group with: of its domain and stage, after the onset also of its novelty."""
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
        """`size` is how many inputs there are."""
        actions, _ = number_keys([run.actions.get(domain, {}) for run in everyone])
        self.seen = len(np.unique(np.concatenate(inputs[: len(runs)])))
        """Those the agents met."""
        parts = [_renumbered(domain, run, *new) for run, *new in zip(everyone, inputs, actions, strict=True)]
        self.groups, self.human = _joined(parts[: len(runs)]), _joined(parts[len(runs) :])


def _renumbered(domain: str, run: Recording, inputs: Array, actions: Array) -> dict[Group, list[Counted]]:
    mine = {group: episodes for group, episodes in run.groups.items() if group.domain == domain}
    return {group: [each.renumbered(inputs, actions) for each in episodes] for group, episodes in mine.items()}


def _joined(parts: Iterable[Groups]) -> dict[Group, list[Counted]]:
    """The episodes of all runs by group, in an order that does not depend on that of the runs."""
    groups: dict[Group, list[Counted]] = {}
    for part in parts:
        for group, episodes in part.items():
            groups.setdefault(group, []).extend(episodes)
    order = sorted(groups, key=lambda group: (*msgspec.structs.astuple(group)[:-1], STAGES.index(group.stage)))
    return {group: groups[group] for group in order}
