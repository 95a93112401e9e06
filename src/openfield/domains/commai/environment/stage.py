"""The calls a task may make: say a text, and end its instance.

The environment is the only implementation. Tasks and the grid world depend on this protocol, not on it.
"""

from __future__ import annotations

import random
from typing import Protocol

from openfield.domains.commai.environment.serializers import Serializer
from openfield.domains.commai.settings import CommaiSettings


class Stage(Protocol):
    """The side of the environment that a task sees."""

    rng: random.Random
    settings: CommaiSettings
    serializer: Serializer | None
    """Encodes what the teacher says; an answer must be decoded before it is judged."""
    penalties: int
    """Interruptions so far that had a price."""

    @property
    def unsaid(self) -> int:
        """Symbols left to say before only spaces remain."""
        ...

    def say(self, text: str, priority: int = 1) -> None:
        """Queue a text behind the unsaid rest, or drop it if that rest has a higher priority."""
        ...

    def finish(self, result: bool, text: str = "", pays: bool = True) -> None:
        """End the instance with a verdict; `pays` gives it to the learner as a reward."""
        ...
