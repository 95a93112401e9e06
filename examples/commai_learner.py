"""A learner as people wrote them for the General AI Challenge: a class with `next` and `reward`, nothing else.

Try it: openfield run commai --agent examples/commai_learner.py:Patient --agent echo --set tasks=micro1,micro2
"""


class Patient:
    """Tries symbols one after the other, and stays with what earns a reward."""

    symbols = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ,.!;?-"

    def __init__(self) -> None:
        self.at, self.belief = 0, 0.0
        self.won = 0

    def reward(self, reward: int) -> None:
        """Is told what the last symbol earned; a loss after many wins looks like another world."""
        if reward < 0:
            self.belief = 0.6 if self.won > 200 else 0.0
            self.at, self.won = (self.at + 1) % len(self.symbols), 0
        self.won += reward > 0

    def next(self, symbol: str) -> str:
        """Says the symbol it stays with."""
        return self.symbols[self.at]
