"""Count the transitions in sequences of inputs and actions.

There is no transition from one episode to the next, and every key occurs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Rows, as_column
from openfield.objectives.tables.table import Meta, Table, make_table

Alignment = Literal["action_leads_to_next", "action_led_here"]


def transitions(
    indices: Sequence[int] | Array,
    actions: Sequence[int] | Array,
    episode_ends: Any = None,
    *,
    alignment: Alignment = "action_leads_to_next",
    meta: Meta | None = None,
) -> Table:
    """Make the transition table of frames and actions. There is no transition from one episode to the next.

    Args:
        indices: The input of every frame, episode after episode.
        actions: The action of every frame.
        episode_ends: The last frames of episodes: flags, one per frame, or rising positions. Zeros and ones, one per
            frame, are flags. The very last frame always ends an episode.
        alignment: `action_leads_to_next` if a frame's action was chosen on it, `action_led_here` if it came before.
        meta: The known facts about the table.
    """
    inputs, taken = np.asarray(indices), np.asarray(actions)
    if inputs.shape != taken.shape or inputs.ndim != 1:
        raise InvalidInput(
            f"There are {inputs.shape} inputs and {taken.shape} actions; one action per frame is needed."
        )
    taken = taken.astype(np.int64) if taken.dtype.kind == "b" else taken
    for column, name in ((inputs, "Inputs"), (taken, "Actions")):
        if len(column) and column.dtype.kind not in "iu":
            raise InvalidInput(f"{name} must be whole numbers; these are {column.dtype}.")
    inputs, taken = (column if column.dtype != np.uint64 else as_column(column.tolist()) for column in (inputs, taken))
    rows = _pairs(inputs, taken, _end_flags(episode_ends, len(inputs)), alignment)
    meta = msgspec.structs.replace(meta or Meta(), alignment=alignment)
    return make_table([sum_rows(rows)], single=True, meta=meta)


def sum_rows(rows: Rows) -> Rows:
    """Add up the counts of equal keys. Return every key once, in order of (obs, next_obs, action)."""
    if not len(rows.obs):
        return rows
    order = np.lexsort((rows.action, rows.next_obs, rows.obs))
    obs, action, next_obs, counts = (column[order] for column in rows)
    new = np.ones(len(order), bool)
    new[1:] = (obs[1:] != obs[:-1]) | (next_obs[1:] != next_obs[:-1]) | (action[1:] != action[:-1])
    at = np.flatnonzero(new)
    return Rows(obs[at], action[at], next_obs[at], np.add.reduceat(counts, at))


def _end_flags(episode_ends: Any, size: int) -> Array:
    flags = np.zeros(size, bool)
    ends = np.asarray([] if episode_ends is None else episode_ends)
    if ends.shape == (size,) and _are_flags(ends):
        flags |= ends.astype(bool)
    elif ends.size and not _are_positions(ends, size):
        raise InvalidInput(f"episode_ends must be {size} flags or positions below {size} that rise.")
    else:
        flags[ends.astype(np.int64)] = True
    flags[-1:] = True
    return flags


def _are_flags(ends: Array) -> bool:
    """Return True for truth values, and for zeros and ones, as many recorders store them."""
    return ends.dtype.kind in "biuf" and bool(np.isin(ends, (0, 1)).all())


def _are_positions(ends: Array, size: int) -> bool:
    if ends.ndim != 1 or ends.dtype.kind not in "iu":
        return False
    return int(ends[0]) >= 0 and int(ends[-1]) < size and bool((ends[1:] > ends[:-1]).all())


def _pairs(inputs: Array, actions: Array, ends: Array, alignment: Alignment) -> Rows:
    if alignment not in ("action_leads_to_next", "action_led_here"):
        raise InvalidInput(f"Alignment '{alignment}' is neither action_leads_to_next nor action_led_here.")
    at = np.flatnonzero(~ends)
    action = actions[at if alignment == "action_leads_to_next" else at + 1]
    return Rows(inputs[at], action, inputs[at + 1], np.ones(len(at), np.int64))
