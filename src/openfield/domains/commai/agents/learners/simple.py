"""Learners that do not understand anything: the floor under every result.

They speak the environment's symbols, bytes or bits, and are driven by a session.
"""

from __future__ import annotations

import random


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
