"""The column of the unknown class: local agents have it first, tests may have it last.

Between agents and tests: scores on their way to the test, bought labels on their way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openfield.core import Belief
from openfield.domains.ond.testset.results import quote_id, split_row
from openfield.errors import AgentProtocol

LABELLED = ("classification", "labels")
"""The kinds of feedback that tell classes."""


def read_table(p: Any, rows: int) -> NDArray[np.float64]:
    """Read the scores of an agent as a table: so many rows of equal length, all of them probabilities."""
    try:
        fits = len(p) == rows and len({len(row) for row in p}) == 1
        table = np.array(p, dtype=float) if fits else np.zeros(0)
    except (TypeError, ValueError):
        fits = False
    if not fits or table.ndim != 2:
        raise AgentProtocol(f"scores must be a table with {rows} rows of equal length")
    if not ((table >= 0) & (table <= 1)).all():
        raise AgentProtocol("scores must be numbers from 0 to 1")
    return table


def read_beliefs(belief: Belief | None, rows: int) -> NDArray[np.float64]:
    """Return the belief of an agent for each sample; one probability is that of all."""
    said = belief.novel if belief is not None else 0.0
    worlds = np.array([said] * rows if isinstance(said, float | int) else said, dtype=float)
    if worlds.shape != (rows,) or not ((worlds >= 0) & (worlds <= 1)).all():
        raise AgentProtocol(f"the belief must be one probability, or one for each of the {rows} samples")
    return worlds


def put_unknown_last(scores: ArrayLike) -> NDArray[np.float64]:
    """Turn scores [unknown, 1 to K] into those of tests whose classes are 0 to K-1 and whose unknown class is K."""
    return np.roll(np.asarray(scores, dtype=float), -1, axis=1)


def number_from_one(kind: str, lines: Sequence[str], known: int) -> list[str]:
    """Turn bought labels of such tests, 0 to K-1 and more, into those of agents: 1 to K, and 0 for unknown classes.

    Feedback of a kind that tells no classes stays as it is.
    """
    return [_renumber(line, known) for line in lines] if kind in LABELLED else list(lines)


def _renumber(line: str, known: int) -> str:
    key, label = split_row(line)
    if not label.lstrip("-").isdecimal():  # five texts, a distance that is none: nothing to number
        return line
    number = int(label)
    return f"{quote_id(key)},{number + 1 if 0 <= number < known else 0}"
