"""The learner that knows all answers, because it asks the instance itself: the ceiling in reports and tests.

It needs the environment it talks to, so it can only play at home.
"""

from __future__ import annotations

from openfield.domains.commai.engine import Environment

_SILENCE = " "


class Oracle:
    """Says what the instance hints at, as soon as the teacher is silent."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._rest = ""

    def next(self, symbol: str) -> str:
        """The next symbol of the answer, or silence while the teacher talks."""
        rest = self._rest
        if not rest:
            environment = self._environment
            if environment.talking or environment.ended or environment.instance is None:
                return _SILENCE
            rest = environment.instance.hint()
            if not rest:
                return _SILENCE
        self._rest = rest[1:]
        return rest[0]

    def reward(self, reward: int) -> None:
        """Does not care: it knows."""
