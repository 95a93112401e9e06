"""A learner that notices: it holds its world for changed when it hears several symbols it has never heard before.

It stands in front of another learner, which does the talking.
"""

from __future__ import annotations

from collections import deque
from typing import Any

CHILDHOOD = 600
"""Symbols after which new ones are a surprise."""
SURPRISES, WITHIN = 4, 30
"""So many new symbols within so many are no accident: by then an instance brings two at most, mostly none."""
SURE = 0.9


class NoticingLearner:
    """Passes everything on, and keeps a belief.

    Args:
        learner: Who talks.
    """

    def __init__(self, learner: Any) -> None:
        self._learner = learner
        self._answer = learner.next
        self.reward = learner.reward
        self.belief: float | None = None
        """How likely the world has changed; None until there is something to say."""
        self._known: set[str] = set()
        self._heard = 0
        self._surprises: deque[int] = deque(maxlen=SURPRISES)

    def next(self, symbol: str) -> Any:
        """The other learner's answer."""
        self._heard += 1
        if symbol not in self._known:
            self._notice(symbol)
        return self._answer(symbol)

    def _notice(self, symbol: str) -> None:
        self._known.add(symbol)
        if self._heard < CHILDHOOD:
            return
        self._surprises.append(self._heard)
        if len(self._surprises) == SURPRISES and self._heard - self._surprises[0] <= WITHIN:
            self.belief = SURE
