"""What the original client offers to its agents: the modules they import, and the object they buy feedback with.

The modules are stubs with the names and behaviour that agents rely on: base classes that dispatch steps, a
checkpointer, errors. They are registered only if the original package is not installed.
"""

from __future__ import annotations

import csv
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from openfield.domains.ond.client.workflow import BuyFeedback
from openfield.domains.ond.errors import Refusal

PACKAGE = "sail_on_client"
COLUMNS = {
    "classification": ("id", "labels"),
    "labels": ("id", "labels"),
    "detection": ("id", "detection"),
    "transcription": ("id", "levenshtein"),
}
"""The columns of each kind of feedback."""


class StepAgent:
    """A base class that dispatches `execute(toolset, step)` to a method named for the step in lower case."""

    def __init__(self, **config: Any) -> None:
        self.config = config

    @classmethod
    def from_config(cls, config: dict[str, Any], **_: Any) -> StepAgent:
        """Make an agent from its configuration."""
        return cls(**config)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration the agent was made from."""
        return getattr(self, "config", {})

    def execute(self, toolset: dict[str, Any], step: str) -> Any:
        """Call the method of a step."""
        words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in step).lstrip("_")
        method = getattr(self, words, None) or getattr(self, step, None)
        if method is None and step in ("Initialize", "NoveltyCharacterization"):
            return None
        if method is None:
            raise NotImplementedError(f"There is no step {step}.")
        return method(toolset)


class Checkpointer:
    """Saves nothing: `StepPlayer` saves features and attributes from outside."""

    def __init__(self, toolset: dict[str, Any] | None = None, *_: Any, **__: Any) -> None:
        self.toolset = toolset or {}

    def save_attributes(self, step: str) -> None:
        """Do nothing; the player saves them after each step."""

    def restore_attributes(self, step: str) -> None:
        """Do nothing; the player restores them before each step."""


class ServerError(Exception):
    """The server refused a request."""

    def __init__(self, reason: str = "", msg: str = "", stack_trace: str = "") -> None:
        super().__init__(msg)
        self.reason, self.msg, self.stack_trace = reason, msg, stack_trace


class ApiError(ServerError):
    """The request was wrong."""


class RoundError(ServerError):
    """There is no further round."""


ERRORS = {"ApiError": ApiError, "RoundError": RoundError, "ServerError": ServerError}
MODULES: dict[str, dict[str, Any]] = {
    "": {},
    "agent": {},
    "agent.ond_agent": {"ONDAgent": StepAgent},
    "agent.condda_agent": {"CONDDAAgent": StepAgent},
    "agent.ond_reaction_agent": {"ONDReactionAgent": StepAgent},
    "agent.visual_agent": {"VisualAgent": StepAgent},
    "checkpointer": {"Checkpointer": Checkpointer},
    "errors": ERRORS,
    "errors.errors": ERRORS,
}
"""The stub modules and the names in them, parents first."""


def register_stubs() -> bool:
    """Register the stub modules and return True; do nothing if the original package is installed."""
    if PACKAGE in sys.modules or importlib.util.find_spec(PACKAGE) is not None:
        return False
    for path, names in MODULES.items():
        full = f"{PACKAGE}.{path}".rstrip(".")
        module = ModuleType(full, "A stub of openfield.")
        module.__path__ = []
        vars(module).update(names)
        sys.modules[full] = module
        parent, _, leaf = full.rpartition(".")
        if parent:
            setattr(sys.modules[parent], leaf, module)
    return True


class FeedbackAccount:
    """Buys feedback within a budget that grows with every batch, up to a maximum."""

    def __init__(self, first: int, income: int, maximum: int, buy: BuyFeedback, kind: str) -> None:
        self.budget, self.income_per_batch, self.maximum_budget = first, income, maximum
        self.current_round = -1
        self._buy, self._kind = buy, kind

    def get_feedback(self, round_id: int, images_id_list: Sequence[int], image_names: Sequence[str]) -> Any:
        """Return labels of some samples of a round, or None if the round was asked about before.

        The list has positions in the names of the round's samples. After an interruption the server may count less
        budget than this account. An order that the server refuses for that reason returns no labels. An order beyond
        this account is a `ValueError`, as agents of the original client expect.
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
        return join_rows([self._ask(kind, names) for kind in kinds], COLUMNS.get(kinds[-1], ()))

    def get_score(self, round_id: int, image_names: Sequence[str]) -> Any:
        """Return the accuracy so far, which costs no budget."""
        return join_rows([self._ask("score", list(image_names))])

    def deposit_income(self) -> None:
        """Add the income of one batch to the budget."""
        self.budget = min(self.budget + self.income_per_batch, self.maximum_budget)

    def _ask(self, kind: str, names: list[str]) -> list[dict[str, Any]]:
        try:
            lines = self._buy(kind, None if kind == "score" else names)
        except Refusal as error:
            if error.reason != "FeedbackBudgetExceeded":
                raise
            return []
        return [_row(kind, row) for row in csv.reader(lines, quotechar="|")]


def join_rows(parts: Sequence[list[dict[str, Any]]], columns: Sequence[str] = ()) -> Any:
    """Join rows by their ids: into a pandas table, or into a list of rows if pandas is not installed."""
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
