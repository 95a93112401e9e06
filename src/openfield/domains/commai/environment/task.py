"""What a task is: a thing that starts instances, each a small state machine that hears symbols and speaks.

Authors write these two classes; the environment (engine.py) calls them and nothing else does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from openfield.domains.commai.environment.grid_world import GridWorld
from openfield.domains.commai.environment.stage import Stage

SILENCE = " "
BYTES = tuple(map(chr, range(256)))
Prices = Mapping[str | None, int | None]
"""What a symbol said while the teacher talks costs at once; None where the instance wants to be asked."""

ASKED: Prices = {**dict.fromkeys(BYTES), SILENCE: 0, None: 0}
"""Every interruption is overheard."""
PENALISED: Prices = {**dict.fromkeys(BYTES, -1), SILENCE: 0, None: 0}
"""Every interruption costs a point."""
DOTS_ASKED: Prices = {**dict.fromkeys(BYTES, 0), ".": None, None: 0}
"""Dots are overheard, all else is lost."""


class Instance:
    """One run of a task, from its first symbol to its verdict. Nothing of it outlives it.

    `hear` and `overhear` return the immediate reward of what was heard: -1, 0 or 1.
    """

    __slots__ = ("stage",)
    prices: Prices = ASKED
    marks: str = ""
    """How its questions were answered so far, `+` or `-` each; empty if the verdict says it all."""
    original: bool | None = None
    """What the original criterion says, where a strict one decides."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def hear(self, symbol: str) -> int:
        """Takes a symbol said while the teacher was silent."""
        return 0

    def overhear(self, symbol: str) -> int:
        """Takes a symbol said while the teacher was talking, if `prices` has None for it."""
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
        self.name = self.kind = name or type(self).__name__
        self.world = world

    @abstractmethod
    def start(self, stage: Stage) -> Instance:
        """Begins an instance and queues its first message."""
