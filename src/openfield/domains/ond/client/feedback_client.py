"""What an agent of the original client buys feedback with: an account that fills up batch by batch.

Used by `host.py`; answers as the original did, as a pandas table where pandas is installed.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

from openfield.domains.ond.client.workflow import Feedback
from openfield.domains.ond.server.errors import Refusal

COLUMNS = {
    "classification": ("id", "labels"),
    "labels": ("id", "labels"),
    "detection": ("id", "detection"),
    "transcription": ("id", "levenshtein"),
}


class FeedbackAccount:
    """Buys feedback within a budget that grows with every batch, up to a maximum."""

    def __init__(self, first: int, income: int, maximum: int, buy: Feedback, kind: str) -> None:
        self.budget, self.income_per_batch, self.maximum_budget = first, income, maximum
        self.current_round = -1
        self._buy, self._kind = buy, kind

    def get_feedback(self, round_id: int, images_id_list: Sequence[int], image_names: Sequence[str]) -> Any:
        """Labels of some samples of a round; None for a round that was asked about before.

        The server's own count may differ from the account's, as after an interruption: nothing left is no label.

        Raises:
            ValueError: The budget is too small; agents of the original client expect this one.
        """
        if round_id <= self.current_round:
            return None
        if self.current_round >= 0:
            self.deposit_income()
        self.current_round = round_id
        if len(images_id_list) > self.budget:
            raise ValueError(f"Feedback on {len(images_id_list)} samples asked for; the budget is {self.budget}.")
        self.budget -= len(images_id_list)
        names = [image_names[at] for at in images_id_list]
        kinds = self._kind.split("_and_") if self._kind == "detection_and_classification" else [self._kind]
        return as_table([self._ask(kind, names) for kind in kinds], COLUMNS.get(kinds[-1], ()))

    def get_score(self, round_id: int, image_names: Sequence[str]) -> Any:
        """The accuracy so far, which costs nothing."""
        return as_table([self._ask("score", list(image_names))])

    def deposit_income(self) -> None:
        """A new batch brings new budget."""
        self.budget = min(self.budget + self.income_per_batch, self.maximum_budget)

    def _ask(self, kind: str, names: list[str]) -> list[dict[str, Any]]:
        try:
            lines = self._buy(kind, None if kind == "score" else names)
        except Refusal as error:
            if error.reason != "FeedbackBudgetExceeded":
                raise
            return []
        return [_row(kind, row) for row in csv.reader(lines, quotechar="|")]


def as_table(parts: Sequence[list[dict[str, Any]]], columns: Sequence[str] = ()) -> Any:
    """Rows joined on their ids: a pandas table, or the rows themselves where pandas is missing.

    Args:
        parts: Rows of each kind.
        columns: What a table without rows has.
    """
    joined: dict[Any, dict[str, Any]] = {}
    for rows in parts:
        for number, row in enumerate(rows):
            joined.setdefault(row.get("id", number), {}).update(row)
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return list(joined.values())
    return pandas.DataFrame(list(joined.values()), columns=None if joined else list(columns))


def _row(kind: str, row: list[str]) -> dict[str, Any]:
    if kind == "score":
        return {"0": row[0], "1": float(row[1])}
    if len(row) > 2:
        return {"id": row[0]} | {f"class{number}": value for number, value in enumerate(row[1:], 1)}
    name = COLUMNS.get(kind, ("id", "labels"))[1]
    return {"id": row[0], name: int(row[1]) if row[1].lstrip("-").isdigit() else row[1]}
