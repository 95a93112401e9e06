"""Count everyone who started: fill in the episodes that an agent failed to play, so that failing never pays.

Cells -> cells, before anything is measured. An episode that an agent failed to play has performance 0, is an alarm as
long as the world has not changed, and a miss from the change on. So is one that it left out, where its protocol lets it
end a test early: else it could stop when it is ahead. Faults of the harness or of a world count neither way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, get_args

from msgspec.structs import replace

from openfield.course import plan_course
from openfield.journal.reader import CellRecord, Episode
from openfield.trial import Phase, Trial

Policy = Literal["count", "exclude"]
"""Whether failed cells count with their missing episodes filled in, or only the trials that were completed do."""
POLICIES: tuple[Policy, ...] = get_args(Policy)
MAX_FILLED = 100_000
"""Episodes that are filled in at most, where steps are counted and single episodes may be short."""
DEFAULT_EPISODES = 20
"""Episodes that stand for a test counted in steps of which none was played."""


def has_failed(cell: CellRecord) -> bool:
    """Return whether the agent failed, was cut off by one of its limits, or left a test early."""
    outcome = cell.outcome or ""
    return outcome.startswith("agent_") or (outcome == "truncated" and (bool(cell.note) or _has_left(cell)))


def _has_left(cell: CellRecord) -> bool:
    """Return whether episodes of a test are missing. Training may end early, and imported results are what they are."""
    trial = cell.trial
    if trial.is_training or trial.imported is not None:
        return False
    return counts_steps(trial) or len(cell.episodes) < sum(phase.episodes for phase in trial.phases)


def apply_policy(cells: Iterable[CellRecord], policy: Policy) -> list[CellRecord]:
    """Return the cells as a policy counts them: failed ones with all their episodes, or not at all."""
    failed = _fill if policy == "count" else _leave_out
    return [failed(cell) if has_failed(cell) else cell for cell in cells]


def _leave_out(cell: CellRecord) -> CellRecord:
    return replace(cell, counts=False)


def _fill(cell: CellRecord) -> CellRecord:
    """Return a cell with all its episodes: those that were played, and those that its agent failed to play."""
    played = list(cell.episodes)
    if cell.outcome == "truncated" and cell.note and played:  # the last one is what the limit cut off
        played[-1] = _fail(played[-1], any(episode.novel for episode in played))
    changed = any(episode.novel for episode in played)
    missing = _missing_by_steps(cell, played) if counts_steps(cell.trial) else _missing_by_episodes(cell, played)
    planned = plan_course(cell.trial)
    for phase, turns in itertools.islice(missing, MAX_FILLED):
        plan = planned[len(played)] if len(played) < len(planned) else None
        novel = bool(phase.novelty) if plan is None else plan.novel
        empty = Episode(
            number=len(played),
            phase=phase.name,
            novel=novel,
            turns=turns,
            performance=0.0,
            belief=None,
            detected=False,
            ended="truncated",
            strength=None if plan is None else plan.strength,
            change="" if plan is None else plan.change,
        )
        changed = changed or novel
        played.append(_fail(empty, changed))
    return replace(cell, episodes=tuple(played), counts=True)


def _fail(episode: Episode, changed: bool) -> Episode:
    """Return an episode that its agent failed: an alarm before the change, a miss from it on."""
    return replace(episode, performance=0.0, detected=not changed, failed=True)


def counts_steps(trial: Trial) -> bool:
    """Return whether the test of a trial is counted in steps, and not in episodes."""
    return any(phase.steps for phase in trial.phases)


def count_steps_before(trial: Trial) -> int:
    """Return after how many steps the world of a trial is to change; all of them if it never does."""
    return sum(phase.steps for phase in itertools.takewhile(lambda phase: not phase.novelty, trial.phases))


def _missing_by_episodes(cell: CellRecord, played: Sequence[Episode]) -> Iterator[tuple[Phase, int]]:
    """Yield the phase of each episode that was not played; where their number is not known, as many as were played.

    They have no turns.
    """
    planned = [phase for phase in cell.trial.phases for _ in range(phase.episodes)][len(played) :]
    yield from ((phase, 0) for phase in planned)
    if not cell.trial.phases[-1].episodes:
        yield from itertools.repeat((cell.trial.phases[-1], 0), max(len(played), 1))


def _missing_by_steps(cell: CellRecord, played: Sequence[Episode]) -> Iterator[tuple[Phase, int]]:
    """Yield the phase and the turns of each episode that the steps left have room for, at the pace of those played."""
    length, taken = cell.trial.test_length, sum(episode.steps for episode in played)
    before, pace = count_steps_before(cell.trial), taken / len(played) if played else length / DEFAULT_EPISODES
    while taken < length:
        turns = min(max(round(pace), 1), length - taken)
        yield cell.trial.phases[-1 if taken >= before else 0], turns
        taken += turns
