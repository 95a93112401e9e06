"""Simple learners: the floor under every result.

They speak the environment's symbols, bytes or bits. `NoticingLearner` adds a belief to another learner.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from openfield.domains.commai.environment.learner_session import Learner


class EchoLearner(Learner):
    """Repeats what it hears."""

    def next(self, symbol: str) -> str:
        """Return the symbol itself."""
        return symbol


class SilentLearner(Learner):
    """Says only spaces."""

    def next(self, symbol: str) -> str:
        """Return a space."""
        return " "


class RandomLearner(Learner):
    """Says random symbols of an alphabet, by default the printable ones."""

    def __init__(self, seed: int = 0, alphabet: str = "".join(map(chr, range(32, 127)))) -> None:
        self._rng = random.Random(seed)
        self._alphabet = alphabet

    def next(self, symbol: str) -> str:
        """Return a random symbol of its alphabet."""
        return self._alphabet[int(self._rng.random() * len(self._alphabet))]


class MemorisingLearner:
    """Repeats the last text that earned a reward, and is silent until there is one."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._best = ""
        self._at = 0

    def next(self, symbol: str) -> str:
        """Return the next symbol of the remembered text."""
        said = self._best[self._at % len(self._best)] if self._best else " "
        self._at += 1
        self._said.append(said)
        return said

    def reward(self, reward: int) -> None:
        """Remember the text since the last reward if it was good, and forget the remembered one if it was bad."""
        if reward > 0:
            self._best, self._at = "".join(self._said), 0
        elif reward < 0:
            self._best = ""
        if reward:
            self._said.clear()


CALIBRATION_SYMBOLS = 600
"""Symbols after which a new one is a surprise."""
SURPRISES, WITHIN = 4, 30
"""So many new symbols within so many symbols mean a change; an instance brings two at most by then, mostly none."""
SURE = 0.9


class NoticingLearner:
    """Lets another learner talk, and believes that the world has changed when several unknown symbols come at once."""

    def __init__(self, learner: Any) -> None:
        self._learner = learner
        self._answer = learner.next
        self.reward = learner.reward
        self.belief: float | None = None
        """The probability that the world has changed; None until there is something to say."""
        self._known: set[str] = set()
        self._heard = 0
        self._surprises: deque[int] = deque(maxlen=SURPRISES)

    def next(self, symbol: str) -> Any:
        """Return the other learner's answer."""
        self._heard += 1
        if symbol not in self._known:
            self._notice(symbol)
        return self._answer(symbol)

    def _notice(self, symbol: str) -> None:
        self._known.add(symbol)
        if self._heard < CALIBRATION_SYMBOLS:
            return
        self._surprises.append(self._heard)
        if len(self._surprises) == SURPRISES and self._heard - self._surprises[0] <= WITHIN:
            self.belief = SURE
