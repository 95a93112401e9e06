"""A learner that notices: it holds its world for changed when it hears a symbol it has never heard before.

It stands in front of another learner, which does the talking.
"""

from __future__ import annotations

from typing import Any

SETTLED = 500
"""Symbols without a new one after which a new one is a surprise."""
SURPRISE = 0.9


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
        self._since = 0

    def next(self, symbol: str) -> Any:
        """The other learner's answer."""
        if symbol in self._known:
            self._since += 1
        else:
            self._notice(symbol)
        return self._answer(symbol)

    def _notice(self, symbol: str) -> None:
        self._known.add(symbol)
        if self._since >= SETTLED:
            self.belief = SURPRISE
        self._since = 0
