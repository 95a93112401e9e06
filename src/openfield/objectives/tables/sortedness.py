"""Rows that are said to be in order, watched as they pass: every key comes after the one before it.

Under `parquet`, so that whoever reads a sorted file finds the same rows wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.rows import Columns


class Order:
    """The last row of a file so far, to compare further rows with."""

    def __init__(self, name: str, ids: Sequence[str] | None) -> None:
        self._name, self._ids = name, ids
        self._last: Columns | None = None

    def check(self, part: Columns) -> None:
        """Further rows, as they follow in the file.

        Raises:
            InvalidInput: They are not in the order (obs, next_obs, action), or a key occurs twice.
        """
        if not len(part.obs):
            return
        if self._last is not None:
            self._check(Columns(*map(np.append, self._last, part.part(0, 1))))
        self._check(part)
        self._last = part.part(len(part.obs) - 1, len(part.obs))

    def _check(self, rows: Columns) -> None:
        behind, same = np.zeros(len(rows.obs) - 1, bool), np.ones(len(rows.obs) - 1, bool)
        for column in (rows.action, rows.next_obs, rows.obs):  # the last one decides first
            equal = column[1:] == column[:-1]
            behind, same = (column[1:] < column[:-1]) | (equal & behind), same & equal
        if behind.any():
            raise InvalidInput(f"{self._name}: the rows are not in the order the file says they are.")
        if same.any():
            at = int(np.argmax(same))
            key = self._id(rows.obs[at]), int(rows.action[at]), self._id(rows.next_obs[at])
            raise InvalidInput(f"{self._name}: key {key} occurs more than once.")

    def _id(self, number: int) -> int:
        """The id the file gives to an input, where its description does so."""
        word = self._ids[number] if self._ids is not None and 0 <= number < len(self._ids) else ""
        return int(word) if word.removeprefix("-").isdecimal() else int(number)
