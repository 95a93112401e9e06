"""Concordance: whether beliefs are higher where the world has changed, at the same place of the test.

All cells of one agent in one scenario -> one number. At each test episode every changed trial is paired with every
trial that has not (yet) changed, and the higher belief wins. A belief that depends only on the number of the episode
is equal in both, so that counting reaches 0.5 and no more. Worlds that count steps are compared at 20 equally spaced
steps. A world that changes once and at once has changed from its onset on. Where changes have a process or follow each
other, a trial has changed wherever its world differs at that episode: it may be normal again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from openfield.journal.reader import CellRecord, StatedBeliefs
from openfield.metrics.confidence_sequences import NO_SEQUENCE, Blocks, bet_on_share, follow_share
from openfield.metrics.failures import counts_steps
from openfield.metrics.scenario import unit_of
from openfield.metrics.significance import arrange, share_as_extreme
from openfield.metrics.stats import FEW, MIN_TRIALS, Estimate, score_limits
from openfield.trial import Trial

STEP_POSITIONS = 20
"""Places of the test at which trials that count steps are compared."""
NO_PAIRS = "no two trials to compare"
"""The note of a concordance that is not defined."""

WAYS = 10
"""How often the same trials are dealt into blocks."""
ROUND = 2
"""Blocks whose trials are dealt among each other: those of one batch of a run that stops by itself."""
MAX_TABLE = 5_000_000
"""Numbers of trials times courses up to which the wins of each trial with each course are kept."""

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


class DrawnTrial(Protocol):
    """What blocks are dealt by."""

    @property
    def seed(self) -> int:
        """The seed of its world."""
        ...

    @property
    def is_unchanged_twin(self) -> bool:
        """Whether it is the unchanged twin of another trial."""
        ...


Drawn = TypeVar("Drawn", bound=DrawnTrial)


class BeliefCourse(NamedTuple):
    """The belief of one cell at each position of the test."""

    beliefs: list[float]
    """The last one stated so far; 0 before the first."""
    changed: list[bool]
    """The positions at which the world has changed."""
    failed: list[bool]
    """The positions that the agent failed to play: it loses all pairs there."""


class Panel(NamedTuple):
    """The courses of all cells side by side, one row for each cell."""

    beliefs: Floats
    courses: Flags
    """The ways in which the world changes, one row for each: the positions at which it has changed."""
    kinds: Indices
    """Which of them each cell has."""
    present: Flags
    valid: Flags
    """Present and not failed."""
    seeds: Indices
    trials: Indices
    units: Indices
    """The trials, or the people who played them."""

    @property
    def positions(self) -> int:
        """The number of positions."""
        return int(self.beliefs.shape[1])


def estimate_concordance(cells: Sequence[CellRecord]) -> Estimate | None:
    """Estimate the concordance of the cells of an agent in a scenario; None if no two trials can be compared.

    The interval is Newcombe's for a probability that one value exceeds another, with the mean numbers of changed
    and unchanged trials over all pairs, or of people who played them. The p-value is one-sided: the courses of
    change, that without one included, are rearranged among the trials, and beliefs stay. People too are rearranged
    with their trial: two who played the same one met the same world. It compares wins above a half of all pairs,
    not shares: twins, which are never paired, make the observed number of pairs the smallest one, so that equal
    beliefs would raise the observed share alone. There is none if the agent failed a test episode: the loss there
    depends on the change, and not on beliefs; and none in totals, whose trials of one seed are alike.
    """
    panel = make_panel(cells)
    if panel is None:
        return None
    wins, pairs = count_pairs(panel, [panel.kinds[None]])
    if not pairs[0]:
        return None
    in_totals = any(cell.seed_unit for cell in cells)
    p = None if in_totals or (panel.present & ~panel.valid).any() else _test(panel)
    chance, n = float(wins[0] / pairs[0]), int(panel.units.max()) + 1
    if n < MIN_TRIALS:
        return Estimate(chance, None, None, n, FEW, p)
    return Estimate(chance, *score_limits(chance, *mean_numbers(panel)), n, p=p)


def _test(panel: Panel) -> float:
    """Return how often courses that are rearranged among the trials give as many wins above a half of their pairs."""
    labels = np.zeros(panel.trials.max() + 1, dtype=np.int64)
    labels[panel.trials[::-1]] = panel.kinds[::-1]  # of several repeats the first
    blocks = (rows[:, panel.trials] for rows in arrange(labels))
    wins, pairs = count_pairs(panel, itertools.chain([panel.kinds[None], next(blocks)[1:]], blocks))
    gains = wins - pairs / 2
    return share_as_extreme(gains, float(gains[0]), float(pairs[0]))


def follow_concordance(cells: Sequence[CellRecord], planned: Sequence[CellRecord]) -> Estimate:
    """Estimate the concordance while trials are missing.

    Pairs of trials are not independent, and no bet on one of them would be fair. So the interval and the p-value are
    those of blocks: a few changed trials and unchanged ones of other seeds, which are compared with each other and with
    no others. Which trials are a block is settled when they are planned.

    Args:
        cells: The cells that count.
        planned: All cells of the agent in the scenario, in the order in which they were entered.
    """
    panel = make_panel(cells)
    wins, pairs = (np.zeros(1), np.zeros(1)) if panel is None else count_pairs(panel, [panel.kinds[None]])
    if panel is None or not pairs[0]:
        return Estimate(None, None, None, 0, NO_PAIRS)
    chance, n = float(wins[0] / pairs[0]), int(panel.units.max()) + 1
    if n < MIN_TRIALS:
        return Estimate(chance, None, None, n, FEW)
    found = None if any(cell.person for cell in planned) else _count_blocks(cells, planned)
    if found is None or not (found.wins.sum() + found.losses.sum()):
        return Estimate(chance, None, None, n, NO_SEQUENCE)
    low, high = follow_share(found)
    p = None if (panel.present & ~panel.valid).any() else bet_on_share(found, 0.5)
    return Estimate(chance, min(low, chance), max(high, chance), n, p=p)


def _count_blocks(cells: Sequence[CellRecord], planned: Sequence[CellRecord]) -> Blocks | None:
    """Return the wins and losses of each block whose trials all count; None where their greatest number is not known.

    Pairs of two changed trials have the weight that they have among all pairs of all trials.
    """
    trials = list({cell.trial.id: cell.trial for cell in planned}.values())
    shape = choose_shape(trials)
    most = None if shape is None else _count_most(trials, shape)
    if shape is None or most is None:
        return None
    rows: dict[str, list[CellRecord]] = {}
    for cell in cells:
        rows.setdefault(cell.trial.id, []).append(cell)
    ways: list[list[Floats]] = [[] for _ in range(WAYS)]
    for dealt in deal_blocks(trials, shape):
        names = dict.fromkeys(trial.id for blocks in dealt for block in blocks for trial in block)
        numbers = {name: number for number, name in enumerate(names)}
        repeats = np.array([len(rows.get(name, ())) for name in numbers])
        tables = _compare_trials(
            [(numbers[name], cell) for name in numbers for cell in rows.get(name, ())], len(numbers)
        )
        for way, blocks in zip(ways, dealt, strict=True):
            for block in blocks:
                places = [numbers[trial.id] for trial in block]
                often = repeats[places]
                if often[0] and (often == often[0]).all():
                    way.append(count_block(tables, places, shape) / often[0] ** 2)
    return arrange_blocks(ways, most, _expect_pairs(trials, cells, shape))


def _compare_trials(cells: Sequence[tuple[int, CellRecord]], count: int) -> Floats:
    """Return two tables of trials with trials: how many pairs the one wins as a changed trial, and how many it has."""
    tables = np.zeros((2, count, count))
    panel = make_panel([cell for _, cell in cells])
    if panel is not None:
        places = np.array([number for number, cell in cells if trace_beliefs(cell).beliefs])
        found = compare_all(panel.beliefs, panel.courses[panel.kinds], panel.present, panel.valid)
        for table, part in zip(tables, found, strict=True):
            np.add.at(table, np.ix_(places, places), part)
    return tables


def compare_all(beliefs: Floats, changed: Flags, present: Flags, valid: Flags) -> Floats:
    """Return how many pairs each trial wins against each other one as the changed one, and how many it has.

    Args:
        beliefs: Rows of trials, positions along the last axis; as the others.
        changed: Where each has changed.
        present: Where each was played.
        valid: Where it did not fail.
    """
    first, second = (slice(None), None, slice(None)), (None, slice(None), slice(None))
    met = (changed & present)[..., *first] & (present & ~changed)[..., *second]
    wins = np.heaviside(beliefs[..., *first] - beliefs[..., *second], 0.5)
    wins *= met & valid[..., *first] & valid[..., *second]
    return np.stack([wins.sum(axis=-1), met.sum(axis=-1)])


def count_block(tables: Floats, places: Sequence[int], shape: BlockShape) -> Floats:
    """Return the wins and the pairs of a block.

    Args:
        tables: The wins and pairs of each trial with each other one.
        places: The trials of the block, changed ones first.
        shape: What the block has.
    """
    own, rest = list(places[: shape.changed]), list(places[shape.changed :])
    among = tables[..., own, :][..., own].sum(axis=(-2, -1))
    return np.asarray(shape.weight * among + tables[..., own, :][..., rest].sum(axis=(-2, -1)))


def arrange_blocks(ways: Sequence[Sequence[Floats]], most: float, mean: float | None) -> Blocks:
    """Return blocks as arrays: a row for each way to deal them, filled up with blocks that have no pairs.

    Args:
        ways: The wins and pairs of each block, for each way.
        most: The most pairs that a block can have.
        mean: How many it has on average; None if that is not known.
    """
    longest = max(map(len, ways))
    table = np.zeros((len(ways), longest, 2))
    due = np.zeros((len(ways), longest))
    for row, way in enumerate(ways):
        table[row, : len(way)] = np.reshape(way, (-1, 2))
        due[row, : len(way)] = table[row, : len(way), 1] if mean is None else mean
    wins, pairs = table[..., 0], table[..., 1]
    return Blocks(wins, pairs - wins, due, np.full_like(due, most if mean is None else mean))


class BlockShape(NamedTuple):
    """How many trials a block has."""

    changed: int
    unchanged: int
    weight: float
    """How much a pair of two changed trials counts, so that blocks have the same number as all trials together."""


def choose_shape(trials: Sequence[Trial]) -> BlockShape | None:
    """Return the smallest block with the share of unchanged trials that a plan has; None if nothing can be compared."""
    unchanged = sum(trial.is_unchanged_twin for trial in trials)
    changed = len(trials) - unchanged
    if changed < 2:
        return None
    if not unchanged:
        return BlockShape(2, 0, 1.0)
    twins = max(1, round(2 * unchanged / changed))
    own = max(2, changed * twins // unchanged)
    return BlockShape(own, twins, changed * twins / (unchanged * (own - 1)))


def deal_blocks(trials: Sequence[Drawn], shape: BlockShape) -> Iterator[list[list[list[Drawn]]]]:
    """Yield some ways to deal trials into blocks, changed ones first in each, round by round.

    Trials of a round follow each other in the plan, so that blocks are whole soon. The first way keeps their order.
    """
    changed = [trial for trial in trials if not trial.is_unchanged_twin]
    unchanged = [trial for trial in trials if trial.is_unchanged_twin]
    used = ROUND * (shape.unchanged or shape.changed)
    whole = len(unchanged) if shape.unchanged else len(changed)
    for number in range(-(-whole // used)):
        first, last = (min(at * used, whole) * len(changed) // whole for at in (number, number + 1))
        own, twins = changed[first:last], unchanged[number * used :][:used]
        ways = []
        for way in range(WAYS):
            random = Random(way)
            if way:
                own, twins = random.sample(own, len(own)), random.sample(twins, len(twins))
            ways.append(list(_deal(own, twins, shape)))
        yield ways


def _deal(changed: Sequence[Drawn], unchanged: Sequence[Drawn], shape: BlockShape) -> Iterator[list[Drawn]]:
    """Yield blocks; no seed is in one of them twice."""
    left = list(unchanged)
    for first in range(0, len(changed) - shape.changed + 1, shape.changed):
        own = list(changed[first : first + shape.changed])
        seeds = {trial.seed for trial in own}
        twins = [trial for trial in left if trial.seed not in seeds][: shape.unchanged]
        if len(twins) == shape.unchanged:
            left = [trial for trial in left if trial not in twins]
            yield own + twins


def _expect_pairs(trials: Sequence[Trial], cells: Sequence[CellRecord], shape: BlockShape) -> float | None:
    """Return how many pairs a block has on average, with their weights; None where that is not known.

    It is where the place of the change is drawn evenly from a window, and comes into force there. Trials that end early
    have fewer pairs, which only makes bets against them more careful.
    """
    changed = [trial for trial in trials if not trial.is_unchanged_twin]
    windows, trial = {trial.window for trial in changed}, changed[0]
    window = windows.pop()
    if windows or window is None or any(counts_steps(each) or each.has_course for each in changed):
        return None
    for cell in cells:
        flags, onset = trace_beliefs(cell).changed, _count_before(cell.trial)
        if flags != [at >= onset for at in range(len(flags))]:
            return None
    return mean_pairs(trial.test_length, window, shape)


def mean_pairs(length: int, window: tuple[int, int], shape: BlockShape) -> float:
    """Return how many pairs a block has on average, with their weights, if each change is drawn evenly from a window.

    Args:
        length: The positions of the test.
        window: How many positions are before the change at least and at most.
        shape: What a block has.
    """
    places = window[1] - window[0] + 1
    apart = (places**2 - 1) / (3 * places)  # of two places that are drawn evenly
    after = length - sum(window) / 2
    return shape.changed * (shape.unchanged * after + shape.weight * (shape.changed - 1) / 2 * apart)


def _count_before(trial: Trial) -> int:
    """Return how many test episodes precede the change; all of them if there is none."""
    early = itertools.takewhile(lambda phase: not phase.novelty, trial.phases)
    return sum(phase.episodes for phase in early if phase.name == "test")


def _count_most(trials: Sequence[Trial], shape: BlockShape) -> float | None:
    """Return the most pairs that a block can have, with their weights; None where the length of a test is not known.

    They are the most where each onset is as early or as late as it can be.
    """
    trial = next(trial for trial in trials if not trial.is_unchanged_twin)
    length = trial.test_length
    early = sum(
        phase.steps or phase.episodes
        for phase in itertools.takewhile(lambda phase: not phase.novelty, trial.phases)
        if phase.name == "test"
    )
    least, latest = trial.window or (early, early)
    counts = [(number, shape.changed - number) for number in range(shape.changed + 1)]
    if not length:
        return None
    if any(each.has_course for each in trials):  # any of them may be changed at any position
        positions = STEP_POSITIONS if counts_steps(trial) else length
        return positions * max(own * (shape.unchanged + shape.weight * other) for own, other in counts)
    if counts_steps(trial):  # the change comes at the first border from there on
        least, latest, length = least * STEP_POSITIONS // length, STEP_POSITIONS, STEP_POSITIONS
    most = max(
        shape.unchanged * (soon * (length - least) + late * (length - latest))
        + shape.weight * soon * late * (latest - least)
        for soon, late in counts
    )
    return most or None


def make_panel(cells: Sequence[CellRecord]) -> Panel | None:
    """Return the courses of all cells that have one, side by side, or None if no cell has."""
    known = [(cell, course) for cell, course in ((cell, trace_beliefs(cell)) for cell in cells) if course.beliefs]
    if not known:
        return None
    length = max(len(course.beliefs) for _, course in known)
    beliefs = np.zeros((len(known), length))
    present, failed, changed = (np.zeros(beliefs.shape, dtype=bool) for _ in range(3))
    for row, (cell, course) in enumerate(known):
        beliefs[row, : len(course.beliefs)] = course.beliefs
        present[row, : len(course.beliefs)] = True
        failed[row, : len(course.beliefs)] = course.failed
        changed[row, : len(course.beliefs)] = course.changed
        if not cell.trial.has_course:  # it stays changed, also where this trial ended before others
            changed[row, len(course.beliefs) :] = any(course.changed)
    courses, kinds = np.unique(changed, axis=0, return_inverse=True)
    seeds = np.unique([str(cell.trial.seed) for cell, _ in known], return_inverse=True)[1]
    trials = np.unique([cell.trial.id for cell, _ in known], return_inverse=True)[1]
    units = np.unique([unit_of(cell) for cell, _ in known], return_inverse=True)[1]
    return Panel(beliefs, courses, kinds.reshape(-1), present, present & ~failed, seeds, trials, units)


def trace_beliefs(cell: CellRecord) -> BeliefCourse:
    """Return the belief of a cell at each test episode, or at equally spaced steps where the world counts those."""
    return _trace_steps(cell) if counts_steps(cell.trial) else _trace_episodes(cell)


def _trace_episodes(cell: CellRecord) -> BeliefCourse:
    test = [episode for episode in cell.episodes if episode.phase == "test"]
    stated = [None if episode.belief is None else episode.belief.highest for episode in test]
    novel = [episode.novel for episode in test]
    changed = novel if cell.trial.has_course else list(itertools.accumulate(novel, lambda one, other: one or other))
    return BeliefCourse(list(_carry(stated)), changed, [episode.failed for episode in test])


def _trace_steps(cell: CellRecord) -> BeliefCourse:
    """Return the beliefs at equally spaced steps; without a record of single steps, at the ends of episodes."""
    known, length = cell.stated or _state_at_ends(cell), cell.trial.test_length
    marks = [length * (number + 1) / STEP_POSITIONS for number in range(STEP_POSITIONS)]
    lost = _find_failure(cell)
    marks = [mark for mark in marks if mark <= known.steps or lost is not None]
    stated = [next((value for step, value in reversed(known.beliefs) if step <= mark), 0.0) for mark in marks]
    onset = known.onset if lost is None or known.onset is not None else _find_planned_onset(cell)
    switches = known.switches if cell.trial.has_course else () if onset is None else ((onset, True),)
    changed = [next((novel for step, novel in reversed(switches) if step < mark), False) for mark in marks]
    return BeliefCourse(stated, changed, [lost is not None and mark > lost for mark in marks])


def _state_at_ends(cell: CellRecord) -> StatedBeliefs:
    ends = list(itertools.accumulate(episode.steps for episode in cell.episodes))
    pairs = list(zip(ends, cell.episodes, strict=True))
    switches = tuple((end - episode.steps, episode.novel) for end, episode in pairs)
    onset = next((start for start, novel in switches if novel), None)
    beliefs = tuple((end, episode.belief.highest) for end, episode in pairs if episode.belief is not None)
    return StatedBeliefs(beliefs, onset, ends[-1] if ends else 0, switches)


def _find_failure(cell: CellRecord) -> int | None:
    """Return the steps before the first episode that the agent failed to play; None if it played all."""
    starts = itertools.accumulate((episode.steps for episode in cell.episodes), initial=0)
    return next((start for episode, start in zip(cell.episodes, starts, strict=False) if episode.failed), None)


def _find_planned_onset(cell: CellRecord) -> int | None:
    early = itertools.takewhile(lambda phase: not phase.novelty, cell.trial.phases)
    return sum(phase.steps for phase in early) if cell.trial.is_changed else None


def _carry(stated: Sequence[float | None]) -> Iterator[float]:
    """Yield the last value so far at each place; 0 before the first."""
    last = 0.0
    for value in stated:
        last = last if value is None else value
        yield last


def count_pairs(panel: Panel, kinds: Iterable[Indices]) -> tuple[Floats, Floats]:
    """Return how many pairs are won, ties half, and how many there are, for each row of blocks of kinds of courses.

    With c = 1 for changed trials, w the wins of one trial over another and m = 1 for pairs that count, the sums are
    c'w(1 - c) and c'm(1 - c). One of two trials wins, or each a half: w + w' = m for valid pairs. So c'wc is half of
    c'mc, and what is left of the first sum is linear in c: a table of each trial's wins with each course.
    """
    wins, rivals, twins = _count_wins(panel), _count_rivals(panel), _pair_twins(panel.seeds)
    won, met = [], []
    for rows in kinds:
        won.append(_sum_changed(wins, panel.courses, rows) - _count_changed(panel, panel.valid, twins, rows) / 2)
        met.append(_sum_changed(rivals, panel.courses, rows) - _count_changed(panel, panel.present, twins, rows))
    return np.concatenate(won), np.concatenate(met)


def _count_wins(panel: Panel) -> Floats:
    """Return how many valid trials of other seeds each trial beats at each position, ties half."""
    found = np.zeros_like(panel.beliefs)
    for place in range(panel.positions):
        valid = panel.valid[:, place]
        ranks = np.unique(panel.beliefs[valid, place], return_inverse=True)[1]
        # A rank beside its seed: beaten trials of the same seed are those between its first and this one.
        first = panel.seeds[valid] * (len(ranks) + 1)
        found[valid, place] = _count_lower(ranks, np.zeros_like(ranks)) - _count_lower(first + ranks, first)
    return found


def _count_lower(values: Indices, least: Indices) -> Floats:
    """Return how many values lie between the least one that counts and each value, equal ones half."""
    ordered = np.sort(values)
    below, upto = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    return np.asarray((below + upto) / 2 - np.searchsorted(ordered, least, "left"))


def _count_rivals(panel: Panel) -> Floats:
    """Return how many trials of other seeds each trial meets at each position."""
    return np.asarray((panel.present.sum(axis=0) - _count_by_seed(panel, panel.present)[panel.seeds]) * panel.present)


def _count_by_seed(panel: Panel, flags: Flags) -> Floats:
    """Return how many trials of each seed have a flag at each position."""
    counts = np.zeros((panel.seeds.max() + 1, panel.positions))
    np.add.at(counts, panel.seeds, flags)
    return counts


def _pair_twins(seeds: Indices) -> tuple[Indices, Indices]:
    """Return all pairs of trials with the same seed."""
    order = np.argsort(seeds, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(seeds[order])) + 1)
    pairs = [group[np.array(np.triu_indices(len(group), 1))] for group in groups if len(group) > 1]
    first, second = np.concatenate(pairs, axis=1) if pairs else np.zeros((2, 0), dtype=np.int64)
    return first, second


def _sum_changed(table: NDArray[Any], courses: Flags, kinds: Indices) -> Floats:
    """Return the sum of all trials' values at the positions at which they have changed, for each row of kinds."""
    if len(table) * len(courses) <= MAX_TABLE:
        sums = table @ courses.T.astype(float)
        return np.asarray(sums.ravel()[kinds + np.arange(len(table)) * len(courses)].sum(axis=1))
    return np.array([(table * courses[row]).sum() for row in kinds], dtype=float)


def _count_changed(panel: Panel, counted: Flags, twins: tuple[Indices, Indices], kinds: Indices) -> Floats:
    """Return the number of ordered pairs of changed trials with different seeds, over all positions, for each row.

    Args:
        panel: All trials.
        counted: The positions of each trial that count.
        twins: All pairs of trials with the same seed.
        kinds: Which course each trial has, a row for each arrangement.
    """
    courses, width = panel.courses, len(panel.courses)
    places = kinds + np.arange(len(kinds))[:, None] * width
    often = np.bincount(places.ravel(), minlength=len(kinds) * width).reshape(-1, width)
    changed = often.astype(float) @ courses.astype(float)
    for place in np.flatnonzero(~counted.all(axis=0)):
        changed[:, place] -= courses[kinds[:, ~counted[:, place]], place].sum(axis=1)
    same = _count_changed_twins(courses, counted, twins, kinds)
    return np.asarray((changed**2).sum(axis=1) - changed.sum(axis=1) - 2 * same)


def _count_changed_twins(courses: Flags, counted: Flags, twins: tuple[Indices, Indices], kinds: Indices) -> Floats:
    """Return the number of pairs of trials with the same seed that have both changed, over all positions."""
    first, second = twins
    both = counted[first] & counted[second]
    if len(courses) ** 2 > MAX_TABLE:
        return np.array([(both & courses[row[first]] & courses[row[second]]).sum() for row in kinds], dtype=float)
    same, weights = np.zeros(len(kinds)), courses.astype(float)
    for flags, pairs in _group_rows(both):  # most pairs count everywhere
        overlaps = (weights * flags) @ weights.T
        same += overlaps[kinds[:, first[pairs]], kinds[:, second[pairs]]].sum(axis=1)
    return same


def _group_rows(table: Flags) -> Iterator[tuple[Flags, Indices]]:
    """Yield each different row of a table with the places where it is."""
    rows, places = np.unique(table, axis=0, return_inverse=True)
    for number, row in enumerate(rows):
        yield row, np.flatnonzero(places.reshape(-1) == number)


def mean_numbers(panel: Panel) -> tuple[float, float]:
    """Return the numbers of changed and of unchanged trials at a position, its pairs as weights; or of people."""
    changed = panel.courses[panel.kinds]
    repeats = np.bincount(panel.units)[panel.units]
    shares = panel.present / repeats[:, None]  # repeats of a trial are one trial, trials of a person one person
    numbers = [_count_by_seed(panel, panel.present & flags) for flags in (changed, ~changed)]
    pairs = numbers[0].sum(axis=0) * numbers[1].sum(axis=0) - (numbers[0] * numbers[1]).sum(axis=0)
    first, second = (shares * changed).sum(axis=0), (shares * ~changed).sum(axis=0)
    return float(first @ pairs / pairs.sum()), float(second @ pairs / pairs.sum())
