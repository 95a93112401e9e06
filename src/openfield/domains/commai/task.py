"""What a task is: a thing that starts instances, each a small state machine that hears symbols and speaks.

Authors write these two classes; the environment (engine.py) calls them and nothing else does.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

from openfield.domains.commai.settings import Settings

if TYPE_CHECKING:
    from openfield.domains.commai.grid import GridWorld


class Stage(Protocol):
    """What an instance may do to the conversation; the environment is one."""

    rng: random.Random
    settings: Settings

    @property
    def talking(self) -> bool:
        """Whether something other than spaces is still to be said."""
        ...

    def say(self, text: str, priority: int = 1) -> None:
        """Queues a text."""
        ...

    def finish(self, result: bool, text: str = "", pays: bool = True) -> None:
        """Ends the instance with a verdict."""
        ...

    def understand(self, text: str) -> str:
        """What the learner's text means once the serializer has undone its work."""
        ...


class Instance:
    """One run of a task, from its first symbol to its verdict. Nothing of it outlives it.

    `hear` and `overhear` return the immediate reward of what was heard: -1, 0 or 1.
    """

    __slots__ = ("stage",)

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def hear(self, symbol: str) -> int:
        """Takes a symbol said while the teacher was silent."""
        return 0

    def overhear(self, symbol: str) -> int:
        """Takes a symbol other than a space said while the teacher was talking."""
        return 0

    def time_out(self) -> None:
        """Is told that the time is up; the verdict is failure unless it finishes otherwise."""
        self.stage.finish(False)

    def hint(self) -> str:
        """What a perfect learner says now that the teacher is silent; empty for silence."""
        return ""


class Task(ABC):
    """A kind of exercise. Its fields may carry something from instance to instance, never between environments."""

    max_time: int = 10_000
    """Steps after which an instance times out, as soon as there is nothing left to say."""
    separator: bool = True
    """Whether one space stands between the end of an instance and the next."""
    minimum_threshold: int = 1
    """How many solved instances a strict curriculum asks for at least."""

    def __init__(self, name: str = "", world: GridWorld | None = None) -> None:
        self.name = name or type(self).__name__
        self.world = world

    @property
    def kind(self) -> str:
        """What tasks are counted together by: the name of the class and of the task."""
        return f"{type(self).__name__} {self.name}"

    @abstractmethod
    def start(self, stage: Stage) -> Instance:
        """Begins an instance and queues its first message."""


