"""The permutation null of empowerment: its value if actions said nothing about the next input.

The actions taken on each input are shuffled among the visits to it, so that every n(o), n(o, a) and n(o, p) stays as it
is. Start at `permute_actions`. The random numbers depend on the seed, the draw and the place alone, so compiled code
and NumPy shuffle alike.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Columns

DRAWS = 200
CELL_VISITS = 75
"""Visits per cell of action and next input from which drawing the cells is faster than shuffling the visits."""
MIN_DRAWN = 1_000
"""Visits of an input below which shuffling is always fast enough."""
MAX_DRAWN = 10**9
"""NumPy draws from no larger hypergeometric distribution."""
AT_ONCE = 1 << 22
"""Visits times draws that NumPy shuffles at once."""
WORTH_COMPILING = 100_000
"""Visits from which compiled code gains more than the time to load it."""
STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""The constants of SplitMix64, which makes a random number of any place."""


def permute_actions(columns: Columns, draws: int = DRAWS, seed: int = 0) -> Array:
    """Compute the empowerment in nats of a table whose actions are shuffled within inputs, once per draw.

    Args:
        columns: The rows in any order; a key may occur more than once.
        draws: How many times the actions are shuffled.
        seed: The seed of the shuffles.

    Raises:
        InvalidInput: Counts are fractions, or an input was visited more than 10^9 times.
    """
    if columns.counts.dtype.kind == "f":
        raise InvalidInput("Fractional counts cannot be shuffled.")
    cells = _count_cells(columns)
    total = float(cells.visits.sum())
    fixed = _sum_log(cells.visits) - _sum_log(cells.pair_counts) - _sum_log(cells.move_counts)
    fixed += _sum_log(cells.triple_counts[~cells.free[cells.triple_input]])
    drawn = cells.free & (cells.visits >= MIN_DRAWN) & (cells.visits >= CELL_VISITS * cells.actions * cells.moves)
    sums = np.full(draws, fixed)
    sums += _shuffle(cells, cells.free & ~drawn, draws, seed)
    sums += _draw(cells, drawn, draws, seed)
    values: Array = np.maximum(sums / total, 0.0)
    return values


class Visits(NamedTuple):
    """Visits to some inputs, one after the other, those to one input together and ordered by next input."""

    starts: Array
    """Where the visits of each input begin; one more for the end."""
    move: Array
    """The number of the move, an input and its next input, of each visit."""
    action: Array
    """The action of each visit before any shuffle, numbered from 0 within its input."""
    width: int
    """One more than the largest action."""
    terms: Array
    """v ln v for every v that a cell may have."""


class _Cells(NamedTuple):
    """Sums of a table, by input, by input and action, by input and next input, and by all three."""

    visits: Array
    actions: Array
    """Distinct actions of each input."""
    moves: Array
    """Distinct next inputs of each input."""
    pair_input: Array
    pair_counts: Array
    move_input: Array
    move_counts: Array
    triple_input: Array
    triple_counts: Array

    @property
    def free(self) -> Array:
        """A flag for each input: a shuffle can change something."""
        flags: Array = (self.actions > 1) & (self.moves > 1)
        return flags


def _count_cells(columns: Columns) -> _Cells:
    ids, obs = np.unique(columns.obs, return_inverse=True)
    counts = columns.counts.astype(np.int64)
    pair_input, pair_counts = _sum_groups(obs, columns.action, counts)
    move_input, move_counts = _sum_groups(obs, columns.next_obs, counts)
    _, moves = np.unique(columns.next_obs, return_inverse=True)
    _, actions = np.unique(columns.action, return_inverse=True)
    triple_input, triple_counts = _sum_groups(obs, moves * (int(actions.max(initial=0)) + 1) + actions, counts)
    visits = np.zeros(len(ids), np.int64)
    np.add.at(visits, move_input, move_counts)
    return _Cells(
        visits,
        np.bincount(pair_input, minlength=len(ids)),
        np.bincount(move_input, minlength=len(ids)),
        pair_input,
        pair_counts,
        move_input,
        move_counts,
        triple_input,
        triple_counts,
    )


def _sum_groups(obs: Array, other: Array, counts: Array) -> tuple[Array, Array]:
    """Add up the counts of equal pairs. Return the first part of each pair and its sum, in rising order of pairs."""
    order = np.lexsort((other, obs))
    first, second = obs[order], other[order]
    new = np.ones(len(order), bool)
    new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    at = np.flatnonzero(new)
    return first[at], np.add.reduceat(counts[order], at) if len(at) else counts[:0]


def _sum_log(counts: Array) -> float:
    """Compute the sum of v ln v."""
    return float((counts * np.log(counts)).sum())


def _shuffle(cells: _Cells, chosen: Array, draws: int, seed: int) -> Array:
    """Compute the sum of n(o, a, p) ln n(o, a, p) over the chosen inputs for each of many shuffles of their visits."""
    if not chosen.any():
        return np.zeros(draws)
    visits = _list_visits(cells, chosen)
    if _use_compiled(len(visits.move)):
        from openfield.objectives.measures.compiled import sum_shuffled

        return sum_shuffled(visits, draws, seed, (STEP, FIRST, SECOND))
    size = max(1, AT_ONCE // len(visits.move))
    parts = [_shuffle_at_once(visits, range(at, min(at + size, draws)), seed) for at in range(0, draws, size)]
    return np.concatenate(parts)


def _list_visits(cells: _Cells, chosen: Array) -> Visits:
    pairs, moves = chosen[cells.pair_input], chosen[cells.move_input]
    sizes = cells.visits[chosen]
    first = np.cumsum(cells.actions) - cells.actions
    local = np.arange(len(cells.pair_input)) - first[cells.pair_input]
    largest = int(cells.pair_counts[pairs].max())
    values = np.arange(1, largest + 1)
    return Visits(
        starts=np.concatenate(([0], np.cumsum(sizes))),
        move=np.repeat(np.arange(int(moves.sum())), cells.move_counts[moves]),
        action=np.repeat(local[pairs], cells.pair_counts[pairs]).astype(np.int32),
        width=int(cells.actions[chosen].max()),
        terms=np.concatenate(([0.0], values * np.log(values))),
    )


def _use_compiled(visits: int) -> bool:
    return visits >= WORTH_COMPILING and ("numba" in sys.modules or find_spec("numba") is not None)


def _shuffle_at_once(visits: Visits, draws: range, seed: int) -> Array:
    """Shuffle for several draws at once: at each step the next visit of every input changes places with one before."""
    sizes = np.diff(visits.starts)
    order = np.argsort(-sizes, kind="stable")
    starts, falling = visits.starts[:-1][order], -sizes[order]
    action = np.repeat(visits.action[:, None], len(draws), axis=1)
    column = np.arange(len(draws))
    offsets = (np.array(draws, np.uint64) * np.uint64(len(visits.move))) + np.uint64(1)
    for step in range(1, int(sizes.max())):
        here = starts[: np.searchsorted(falling, -step)] + step
        numbers = _random_numbers(here.astype(np.uint64)[:, None] + offsets, seed)
        there = here[:, None] - step + ((numbers >> np.uint64(32)) * np.uint64(step + 1) >> np.uint64(32)).astype(int)
        moved = action[there, column]
        action[there, column] = action[here]
        action[here] = moved
    return np.array([_sum_cells(visits, action[:, at]) for at in column])


def _random_numbers(places: Array, seed: int) -> Array:
    """Return a random number of 64 bits for each place (SplitMix64)."""
    found: Array = np.uint64(seed) + places * np.uint64(STEP)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(FIRST)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(SECOND)
    found ^= found >> np.uint64(31)
    return found


def _sum_cells(visits: Visits, action: Array) -> float:
    keys = visits.move * visits.width + action
    if (int(visits.move[-1]) + 1) * visits.width <= 8 * len(keys):
        sizes = np.bincount(np.bincount(keys), minlength=1)
    else:
        keys.sort()
        ends = np.flatnonzero(np.append(keys[1:] != keys[:-1], True))
        sizes = np.bincount(np.diff(ends, prepend=-1))
    return float(sizes @ visits.terms[: len(sizes)])


def _draw(cells: _Cells, chosen: Array, draws: int, seed: int) -> Array:
    """Compute the same sum for inputs with many visits: draw n(o, a, p) itself, given its margins."""
    sums, random = np.zeros(draws), np.random.default_rng(seed)
    if int(cells.visits[chosen].max(initial=0)) > MAX_DRAWN:
        raise InvalidInput(f"An input was visited more than {MAX_DRAWN:,} times, too often to be shuffled.")
    for number in np.flatnonzero(chosen):
        actions = cells.pair_counts[slice(*np.searchsorted(cells.pair_input, (number, number + 1)))]
        moves = cells.move_counts[slice(*np.searchsorted(cells.move_input, (number, number + 1)))]
        left = np.repeat(actions[:, None], draws, axis=1)  # of each action, not yet given to a move
        for size in moves[:-1]:
            wanted, others = np.full(draws, size), left.sum(axis=0)
            for at in range(len(actions)):
                others = others - left[at]
                taken = random.hypergeometric(left[at], others, wanted)
                left[at] -= taken
                wanted -= taken
                sums += _log_terms(taken)
        sums += _log_terms(left).sum(axis=0)
    return sums


def _log_terms(counts: Array) -> Array:
    """Compute v ln v of each count; 0 for 0."""
    terms: Array = counts * np.log(np.maximum(counts, 1))
    return terms
