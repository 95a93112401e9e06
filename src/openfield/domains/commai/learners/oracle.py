"""The learner that knows all answers, because it asks the instance itself: the ceiling in reports and tests.

It needs the environment it talks to, so it can only play at home.
"""

from __future__ import annotations

from openfield.domains.commai.bits import BitEnvironment
from openfield.domains.commai.engine import Environment
from openfield.domains.commai.serializers import to_bits
from openfield.domains.commai.task import Instance

_SILENCE = " "


class Oracle:
    """Says what the instance hints at, as soon as the teacher is silent, in the environment's own symbols."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._spelling = environment if isinstance(environment, BitEnvironment) else None
        self._instance: Instance | None = None
        self._planned = iter("")

    def next(self, symbol: str) -> str:
        """The next symbol of the answer, or silence while the teacher talks."""
        if self._spelling is not None and self._instance is not self._environment.instance:
            self._instance, self._planned = self._environment.instance, iter("")  # a new one hears no half characters
        said = next(self._planned, None)
        if said is not None:
            return said
        plan = self._plan() or _SILENCE
        self._planned = iter(plan if self._spelling is None else to_bits(plan.translate(self._spelling.alphabet)))
        return next(self._planned)

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
