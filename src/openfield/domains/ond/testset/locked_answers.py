"""Locks the answers to a sample once its label has been revealed.

Under `agent_answers.py`. Without this, labels bought in one attempt could be posted as answers in the next.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.actions import Told

if TYPE_CHECKING:
    from openfield.domains.ond.testset.agent_answers import AgentAnswers

VECTORS = {
    "detection": ("p_world", "p_second"),
    "classification": ("ranks", "predicted", "p_unknown", "best_known", "confidence"),
    "labels": ("ranks",),
}
"""Type of results -> the vectors of `AgentAnswers` that keep them."""
WHOLE = ("ranks", "predicted", "best_known")
UNSAID = -1
"""The value of a sample without an answer."""


class LockedAnswers:
    """The answers to samples whose truth was told, by the type of results it was told about."""

    def __init__(self) -> None:
        self._answers: dict[str, dict[int, Told]] = {}

    def lock(self, answers: AgentAnswers, kind: str, positions: Iterable[int]) -> None:
        """Lock the present answers to some samples; answers that are locked already stay."""
        if kind not in VECTORS:
            return
        held, texts = self._answers.setdefault(kind, {}), answers.texts.get(kind, {})
        for at in positions:
            if at not in held:
                values = tuple(_plain(getattr(answers, name)[at].item()) for name in VECTORS[kind])
                held[at] = Told(at, values, texts.get(at))

    def restore(self, answers: AgentAnswers, kind: str, positions: NDArray[np.int64]) -> None:
        """Put locked answers in the place of those that were just posted."""
        if kind not in self._answers:
            return
        held = self._answers[kind]
        for told in (held[at] for at in positions.tolist() if at in held):
            for name, value in zip(VECTORS[kind], told.values, strict=True):
                getattr(answers, name)[told.at] = math.nan if value is None else value
            if told.words is not None:
                answers.texts.setdefault(kind, {})[told.at] = told.words

    def carry(self) -> dict[str, list[Told]]:
        """Return what the next attempt takes over."""
        return {kind: list(held.values()) for kind, held in self._answers.items() if held}

    def take_over(self, answers: Mapping[str, Sequence[Told]], count: int) -> None:
        """Take over the answers that an earlier attempt locked, but not those that do not fit `count` samples."""
        for kind, told in answers.items():
            fits = {one.at: one for one in told if 0 <= one.at < count and _fits(kind, one)}
            self._answers[kind] = self._answers.get(kind, {}) | fits


def _fits(kind: str, told: Told) -> bool:
    """Return whether a locked answer has valid values; it may come from a file."""
    names = VECTORS.get(kind, ())
    return 0 < len(names) == len(told.values) and all(
        isinstance(value, int)
        if name in WHOLE
        else value is None or (isinstance(value, int | float) and 0 <= value <= 1)
        for name, value in zip(names, told.values, strict=True)
    )


def _plain(value: Any) -> float | int | None:
    """Return a number as a record can keep it."""
    return None if isinstance(value, float) and math.isnan(value) else value
