"""Learners that do not understand anything: the floor under every result.

They speak the environment's symbols, bytes or bits, and are driven by a session.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any


class EchoLearner:
    """Says what it hears."""

    def next(self, symbol: str) -> str:
        """The symbol itself."""
        return symbol

    def reward(self, reward: int) -> None:
        """Does not care."""


class SilentLearner:
    """Says nothing but spaces."""

    def next(self, symbol: str) -> str:
        """A space."""
        return " "

    def reward(self, reward: int) -> None:
        """Does not care."""


class RandomLearner:
    """Says anything.

    Args:
        seed: Where its randomness starts.
        alphabet: The symbols it chooses from.
    """

    def __init__(self, seed: int = 0, alphabet: str = "".join(map(chr, range(32, 127)))) -> None:
        self._rng = random.Random(seed)
        self._alphabet = alphabet

    def next(self, symbol: str) -> str:
        """Any symbol of its alphabet."""
        return self._alphabet[int(self._rng.random() * len(self._alphabet))]

    def reward(self, reward: int) -> None:
        """Does not care."""


class MemorisingLearner:
    """Repeats the last text that earned a reward, and is silent until there is one."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._best = ""
        self._at = 0

    def next(self, symbol: str) -> str:
        """The next symbol of the text it remembers."""
        said = self._best[self._at % len(self._best)] if self._best else " "
        self._at += 1
        self._said.append(said)
        return said

    def reward(self, reward: int) -> None:
        """Remembers what it said since the last reward, if it was good, and forgets its memory if it was bad."""
        if reward > 0:
            self._best, self._at = "".join(self._said), 0
        elif reward < 0:
            self._best = ""
        if reward:
            self._said.clear()


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
