"""Agents for `walks.py` that break one promise each; the conformance kit must name the promise."""

from __future__ import annotations

import random
from typing import Any, ClassVar

from openfield.core import Ask, Belief, Reply, Spec, Turn


class Walker:
    """Keeps every promise."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self.rng, self.turns = random.Random(seed), 0

    def __call__(self, turn: Turn) -> Any:
        self.turns += 1
        return Reply(self.rng.randrange(2), Belief(0.1))


class Learner(Walker):
    """Keeps every promise, and can be saved."""

    def __call__(self, turn: Turn) -> Any:
        self.turns += 1
        return Reply(self.turns // 3 % 2)

    def save(self) -> bytes:
        return b"%d" % self.turns

    def load(self, state: bytes) -> None:
        self.turns = int(state)


class Unmakeable(Walker):
    def __init__(self, spec: Spec, seed: int) -> None:
        raise FileNotFoundError("weights.bin")


class Crashes(Walker):
    def __call__(self, turn: Turn) -> Any:
        if self.turns == 5:
            raise ZeroDivisionError("out of luck")
        return super().__call__(turn)


class FallsAtTheEnd(Walker):
    """Looks for an action also where none is asked for."""

    def __call__(self, turn: Turn) -> Any:
        return Reply({Ask.ACT: 1}[turn.ask])


class Hangs(Walker):
    def __call__(self, turn: Turn) -> Any:
        while self.turns == 5:
            pass
        return super().__call__(turn)


class WrongType(Walker):
    def __call__(self, turn: Turn) -> Any:
        return 1


class WrongAction(Walker):
    def __call__(self, turn: Turn) -> Any:
        return Reply("left")


class Hesitates(Walker):
    def __call__(self, turn: Turn) -> Any:
        return Reply(None, Belief(0.5))


class Naked:
    """Takes neither a spec nor a seed."""


def three(a: Any, b: Any, c: Any) -> Any: ...


class TalksTooMuch(Walker):
    def __call__(self, turn: Turn) -> Any:
        return Reply(1, Belief(0.5, detail="blah" * 300_000))


class Unseeded(Walker):
    def __init__(self, spec: Spec, seed: int) -> None:
        super().__init__(spec, random.SystemRandom().randrange(1 << 30))


class GlobalRandom(Walker):
    def __call__(self, turn: Turn) -> Any:
        return Reply(random.randrange(2))


class SharesState(Walker):
    counted: ClassVar[list[int]] = []

    def __call__(self, turn: Turn) -> Any:
        self.counted.append(1)
        return Reply(int(len(self.counted) > 20))


class Forgets(Learner):
    def load(self, state: bytes) -> None:
        self.turns = 0


class CannotLoad(Learner):
    def load(self, state: bytes) -> None:
        raise ValueError("version 2")
