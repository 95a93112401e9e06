"""What a task may do to the conversation: speak, and end the instance.

The environment is the one implementation; tasks and the grid world are written against this protocol.
"""

from __future__ import annotations

import random
from typing import Protocol

from openfield.domains.commai.environment.serializers import Serializer
from openfield.domains.commai.settings import CommaiSettings


class Stage(Protocol):
    """What an instance may do to the conversation; the environment is one."""

    rng: random.Random
    settings: CommaiSettings
    serializer: Serializer | None
    """What changes the words on their way; an answer must be decoded before it is judged."""
    penalties: int
    """How many interruptions had their price so far."""

    @property
    def unsaid(self) -> int:
        """How many symbols are still to be said before nothing but spaces remains."""
        ...

    def say(self, text: str, priority: int = 1) -> None:
        """Queues a text."""
        ...

    def finish(self, result: bool, text: str = "", pays: bool = True) -> None:
        """Ends the instance with a verdict."""
        ...
