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
        self._planned = iter("")

    def next(self, symbol: str) -> str:
        """The next symbol of the answer, or silence while the teacher talks."""
        said = next(self._planned, None)
        if said is not None:
            return said
        self._planned = iter(self._plan())
        return next(self._planned, _SILENCE)

    def reward(self, reward: int) -> None:
        """Does not care: it knows."""

    def _plan(self) -> str:
        """As much silence as the teacher still needs, or else the answer."""
        environment = self._environment
        unsaid = environment.unsaid
        if unsaid:
            return _SILENCE * unsaid
        if environment.instance is None or not environment.running:
            return ""
        answer = environment.instance.hint()
        return answer if environment.serializer is None else environment.serializer.encode(answer)
