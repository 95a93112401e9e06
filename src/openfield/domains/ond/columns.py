"""Where the unknown class stands among scores: agents of ours have it first, tests may have it last.

Between agents and tests, in process and over the wire: scores on their way out, bought labels on their way back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from openfield.domains.ond.rows import quote_id, split_row

LABELLED = ("classification", "labels")
"""The kinds of feedback that tell classes."""


def put_unknown_last(scores: ArrayLike) -> NDArray[np.float64]:
    """Scores of an agent, [unknown, 1 to K], as tests want them whose classes are 0 to K-1 and K is the unknown one."""
    return np.roll(np.asarray(scores, dtype=float), -1, axis=1)


def number_from_one(lines: Sequence[str], known: int) -> list[str]:
    """Bought labels of such tests, 0 to K-1 and more, as agents have them: 1 to K, and 0 for all unknown classes."""
    return [_renumber(line, known) for line in lines]


def _renumber(line: str, known: int) -> str:
    key, label = split_row(line)
    if not label.lstrip("-").isdecimal():  # five texts, a distance that is none: nothing to number
        return line
    number = int(label)
    return f"{quote_id(key)},{number + 1 if 0 <= number < known else 0}"
