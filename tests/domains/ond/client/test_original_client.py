"""What the original client offers to its agents: feedback within a budget, and stub modules."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from openfield.domains.ond.client.original_client import FeedbackAccount, register_stubs
from openfield.domains.ond.errors import Refusal


def test_feedback_accounts_fill_up_batch_by_batch() -> None:
    asked: list[Any] = []

    def buy(kind: str, ids: Any) -> list[str]:
        asked.append((kind, ids))
        return [f"{key},1" for key in ids or ["accuracy"]]

    account = FeedbackAccount(3, 2, 3, buy, "classification")
    rows = account.get_feedback(0, [0, 2], ["a", "b", "c"])
    assert len(rows) == 2
    assert account.get_feedback(0, [1], ["a", "b", "c"]) is None
    with pytest.raises(ValueError, match="budget"):
        account.get_feedback(1, [0, 1, 2, 3], ["a", "b", "c", "d"])
    assert asked == [("classification", ["a", "c"])]
    assert account.budget == 3


def test_a_budget_that_is_used_up_is_an_empty_table() -> None:
    def buy(kind: str, ids: Any) -> list[str]:
        raise Refusal("FeedbackBudgetExceeded" if kind == "labels" else "SessionEnded", "no")

    table = FeedbackAccount(3, 3, 3, buy, "labels").get_feedback(0, [0], ["a"])
    assert (len(table), list(table["labels"]) if hasattr(table, "columns") else []) == (0, [])
    with pytest.raises(Refusal, match="no"):
        FeedbackAccount(3, 3, 3, buy, "detection").get_feedback(0, [0], ["a"])


def test_stubs_leave_an_installed_package_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sail_on_client", ModuleType("sail_on_client"))
    assert not register_stubs()
