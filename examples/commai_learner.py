"""Run a learner written for the General AI Challenge: a class with the methods `next` and `reward`.

Try it: openfield run commai --agent examples/commai_learner.py:Patient --agent echo --set tasks=micro1,micro2
"""


class Patient:
    """A learner that tries one symbol after the other and keeps the one that is rewarded."""

    symbols = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,.!;?-"

    def __init__(self) -> None:
        self.at, self.belief = 0, 0.0
        self.won = 0

    def reward(self, reward: int) -> None:
        """Take the reward of the last symbol. A loss after many wins looks like another world."""
        if reward < 0:
            self.belief = 0.6 if self.won > 200 else 0.0
            self.at, self.won = (self.at + 1) % len(self.symbols), 0
        self.won += reward > 0

    def next(self, symbol: str) -> str:
        """Return the symbol it stays with."""
        return self.symbols[self.at]
