"""How well the agent did: in each period of a trial, what the change cost it, and how far it recovered.

One cell -> numbers of its trial, for the metrics `performance` and `adaptation`. The periods are training, the test
before the onset, and the test from the onset on; other metrics and charts are about them too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from openfield.capabilities import Curriculum, HasCurriculum
from openfield.errors import OpenfieldError
from openfield.journal.reader import CellRecord, Episode
from openfield.metrics.failures import count_steps_before, counts_steps
from openfield.metrics.metric import Period, built_in
from openfield.metrics.scenario import unit_of
from openfield.registry import known_domain
from openfield.trial import Phase, Trial

WORST_CHANGE = -1.0
"""The change in a trial that an agent failed: as bad before the change as after it, it would look like none."""


class Periods(msgspec.Struct, frozen=True):
    """The episodes of a cell by period. A training episode is one even if its world is novel."""

    training: tuple[Episode, ...]
    before: tuple[Episode, ...]
    """Test episodes before the first one whose world is novel; all of them if none is."""
    after: tuple[Episode, ...]
    """Test episodes from the first novel one on, also those after a return to normal."""


def split_periods(cell: CellRecord) -> Periods:
    """Split the episodes of a cell into periods."""
    test = tuple(episode for episode in cell.episodes if episode.phase == "test")
    onset = next((index for index, episode in enumerate(test) if episode.novel), len(test))
    training = tuple(episode for episode in cell.episodes if episode.phase == "training")
    return Periods(training, test[:onset], test[onset:])


def pick_before(cell: CellRecord) -> tuple[Episode, ...]:
    """Pick the test episodes before the onset; none in the unchanged twin of a trial, whose row they would blur."""
    return () if cell.trial.is_unchanged_twin else split_periods(cell).before


def pick_after(cell: CellRecord) -> tuple[Episode, ...]:
    """Pick the test episodes from the onset on that all trials of a set have, wherever the onset was drawn.

    They are as many as follow the last place of the window; in tests that count steps, those that start within as many
    steps.
    """
    after, window = split_periods(cell).after, cell.trial.window
    if window is None:
        return after
    left = cell.trial.test_length - window[1]
    if not counts_steps(cell.trial):
        return after[:left]
    starts = itertools.accumulate((episode.steps for episode in after), initial=0)
    return tuple(episode for episode, start in zip(after, starts, strict=False) if start < left)


def measure_effects(cells: Sequence[CellRecord]) -> list[float]:
    """Return how much worse each changed trial went than its unchanged twin of the same seed, in the same episodes.

    Of people there is one value for each person who played both.
    """
    found: dict[str, list[float]] = {}
    for cell, twin in pair_twins(cells):
        after, normal = (mean(performances(episodes)) for episodes in (pick_after(cell), pick_same(cell, twin)))
        if cell.counts or twin.counts:
            found.setdefault(unit_of(cell), []).append(WORST_CHANGE)
        elif after is not None and normal is not None:
            found.setdefault(unit_of(cell), []).append(after - normal)
    return [math.fsum(values) / len(values) for values in found.values()]


def pair_twins(cells: Sequence[CellRecord]) -> Iterator[tuple[CellRecord, CellRecord]]:
    """Yield each changed trial with its unchanged twin of the same seed, if both were played."""
    twins = {(cell.trial.seed, cell.repeat): cell for cell in cells if cell.trial.is_unchanged_twin}
    for cell in cells:
        twin = twins.get((cell.trial.seed, cell.repeat)) if cell.trial.is_changed else None
        if twin is not None:
            yield cell, twin


def pick_same(cell: CellRecord, twin: CellRecord) -> tuple[Episode, ...]:
    """Pick the episodes of an unchanged twin that take the place of those after the onset, or start at their steps."""
    first, taken, test = len(split_periods(cell).before), pick_after(cell), split_periods(twin).before
    if not counts_steps(cell.trial):
        return test[first : first + len(taken)]
    begin = sum(episode.steps for episode in split_periods(cell).before)
    end = begin + cell.trial.test_length - (cell.trial.window or (0, 0))[1]
    starts = itertools.accumulate((episode.steps for episode in test), initial=0)
    return tuple(episode for episode, start in zip(test, starts, strict=False) if begin <= start < end)


def count_lost(cell: CellRecord) -> tuple[int, int]:
    """Return how many test episodes the agent failed to play, before the onset and from it on.

    Where steps are counted it is the most that could have been: one in each step left. Else an agent that is slow at
    first and fast later would lose fewer by stopping than by going on.
    """
    periods = split_periods(cell)
    before, after = (sum(episode.failed for episode in period) for period in (periods.before, periods.after))
    if not counts_steps(cell.trial) or not before + after:
        return before, after
    taken = sum(episode.steps for episode in cell.episodes if not episode.failed)
    onset, length = count_steps_before(cell.trial), cell.trial.test_length
    return max(onset - taken, 0), max(length - max(onset, taken), 0)


def count_left(cell: CellRecord) -> int:
    """Return the test episodes from the onset on, those that the agent failed to play included."""
    return sum(not episode.failed for episode in split_periods(cell).after) + count_lost(cell)[1]


def count_episodes(trial: Trial, period: Period) -> int | None:
    """Return the most episodes a period of a trial can have; None where the world's own rules decide."""
    test = [phase for phase in trial.phases if phase.name == "test"]
    if not all(phase.episodes for phase in test):
        return None
    early = sum(phase.episodes for phase in itertools.takewhile(lambda phase: not phase.novelty, test))
    least, most = trial.window or (early, early)
    return most if period == "before" else trial.test_length - least


def planned_size(trial: Trial, setting: str) -> int:
    """Return a size that the settings of a trial's domain name; 0 if the domain is not known here or has none."""
    try:
        return int(getattr(known_domain(trial.domain).settings_in(trial, Phase("test")), setting, 0))
    except OpenfieldError:
        return 0


def find_curriculum(trial: Trial) -> Curriculum | None:
    """Return what the domain of a trial says of its curriculum; None if it is not known here or has none."""
    with suppress(OpenfieldError):
        domain = known_domain(trial.domain)
        if isinstance(domain, HasCurriculum):
            return domain.curriculum(trial)
    return None


def assume_curriculum(trial: Trial) -> Curriculum:
    """Return the curriculum of a trial; where no domain reports one, as its phases and settings give it."""
    if (known := find_curriculum(trial)) is not None:
        return known
    steps = sum(phase.steps for phase in trial.phases) or planned_size(trial, "max_steps")
    return Curriculum(tasks=(), steps=steps, task_steps=None, retested=False, strict=True)


def has_borders(trial: Trial) -> bool:
    """Return whether nothing changes in a trial but its tasks, so that beliefs are about the borders between them."""
    plan = None if trial.novelty else find_curriculum(trial)
    return plan is not None and len(plan.tasks) != 1


def split_sets(cell: CellRecord) -> dict[int, list[Episode]]:
    """Return the episodes of a cell by the number of their set; empty if they have none."""
    sets: dict[int, list[Episode]] = {}
    for episode in cell.episodes:
        if "set" in (episode.detail or {}):
            sets.setdefault(int(episode.detail["set"]), []).append(episode)
    return sets


def count_as_test(cell: CellRecord) -> CellRecord:
    """Return a cell whose training set counts as its test if no test is planned.

    The published trials are such a single set: normal levels, then novel ones.
    """
    if any(phase.name == "test" for phase in cell.trial.phases) or not split_sets(cell):
        return cell
    episodes = tuple(msgspec.structs.replace(episode, phase="test") for episode in cell.episodes)
    return msgspec.structs.replace(cell, episodes=episodes)


def performances(episodes: Iterable[Episode]) -> list[float]:
    """Return the performances of the episodes that have one."""
    found = (episode.performance for episode in episodes)
    return [value for value in found if value is not None and math.isfinite(value)]


def last_third(curve: list[float]) -> list[float]:
    """Return the last third of a curve, rounded up: its asymptotic part."""
    return curve[-math.ceil(len(curve) / 3) :]


def mean(values: list[float]) -> float | None:
    """Return the mean of values, or None without values."""
    return math.fsum(values) / len(values) if values else None


def ratio(above: float | None, below: float | None) -> float | None:
    """Return a quotient, or None if a part of it is missing or would divide by 0."""
    return None if above is None or not below else above / below


def measure_performance(cell: CellRecord) -> dict[str, float | None]:
    """Compute the mean performance in training, before the onset and from it on."""
    periods = split_periods(cell)
    return {
        "training": mean(performances(periods.training)),
        "before": mean(performances(pick_before(cell))),
        "after": mean(performances(pick_after(cell))),
    }


def measure_returns(cell: CellRecord) -> dict[str, float | None]:
    """Compute the mean return before the onset and from it on, in cells whose episodes have no performance."""
    scaled = bool(performances(episode for episode in cell.episodes if not episode.failed))
    before, after = ((), ()) if scaled else (pick_before(cell), pick_after(cell))
    return {"return_before": mean(_list_values(before, "return")), "return_after": mean(_list_values(after, "return"))}


def read_return(episode: Episode) -> float | None:
    """Return the raw return of an episode, if its world tells it."""
    return next(iter(_list_values((episode,), "return")), None)


def _list_values(episodes: Iterable[Episode], name: str) -> list[float]:
    """Return a number of the episodes whose worlds report it; one that was not played has none."""
    values = (_details(episode).get(name) for episode in episodes)
    return [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]


def measure_winning(cell: CellRecord) -> dict[str, float | None]:
    """Compute the share of test episodes won and their mean score, before the onset and from it on.

    An episode that was not played is not won.
    """
    before, after = pick_before(cell), pick_after(cell)
    return {
        "won_before": share_won(before),
        "won_after": share_won(after),
        "score_before": mean(_list_values(before, "score")),
        "score_after": mean(_list_values(after, "score")),
    }


def share_won(episodes: Iterable[Episode]) -> float | None:
    """Return the share of episodes that were won, or None if no world says whether one was."""
    known = [episode for episode in episodes if episode.failed or "won" in _details(episode)]
    return mean([float(not episode.failed and _details(episode)["won"] is True) for episode in known])


def _details(episode: Episode) -> dict[str, Any]:
    return episode.detail if isinstance(episode.detail, dict) else {}


def measure_adaptation(cell: CellRecord) -> dict[str, float | None]:
    """Compute the performance before and after the onset, at the end, and the area under the curve after it."""
    curve = performances(pick_after(cell))
    before, after = mean(performances(pick_before(cell))), mean(curve)
    return {
        "before": before,
        "after": after,
        "change": None if before is None or after is None else after - before if not cell.counts else WORST_CHANGE,
        "asymptotic": mean(last_third(curve)),
        "area": normalised_area(curve),
    }


def normalised_area(curve: list[float]) -> float | None:
    """Return the area under a curve of unit steps, divided by its length; a single point is its own area."""
    if len(curve) < 2:
        return mean(curve)
    return (math.fsum(curve) - (curve[0] + curve[-1]) / 2) / (len(curve) - 1)


PERFORMANCE = built_in("performance", measure_performance, counts_failures=True)
RETURNS = built_in("returns", measure_returns, counts_failures=True)
WINNING = built_in("winning", measure_winning, counts_failures=True)
ADAPTATION = built_in(
    "adaptation",
    measure_adaptation,
    pool=lambda cells: {"effect": measure_effects(cells)} if any(cell.trial.novelty for cell in cells) else {},
    counts_failures=True,
)
