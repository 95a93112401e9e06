"""Curves of learning before and after a change: a Q-learner walks along a cliff, then its actions change places.

Try it: python examples/curves.py
"""

import random
from typing import Any

import openfield as of

RATE, DISCOUNT, CURIOSITY = 0.5, 0.98, 0.05
STATES, ACTIONS = 48, 4


class Learner:
    """Learns values of actions while it plays, and never stops learning."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.rng = random.Random(seed)
        self.values = [[0.0] * ACTIONS for _ in range(STATES)]
        self.last: tuple[int, int] | None = None

    def __call__(self, turn: of.Turn) -> of.Reply:
        """Learn from what the last action led to, and choose the next one."""
        seen = int(turn.observation)
        if self.last is not None and not turn.first:
            state, action = self.last
            later = 0.0 if turn.last == "terminated" else DISCOUNT * max(self.values[seen])
            self.values[state][action] += RATE * (turn.reward + later - self.values[state][action])
        if turn.last is not None:
            self.last = None
            return of.Reply()
        best = max(range(ACTIONS), key=self.values[seen].__getitem__)
        self.last = seen, self.rng.randrange(ACTIONS) if self.rng.random() < CURIOSITY else best
        return of.Reply(self.last[1])


def make_trials(count: int, length: int) -> list[of.Trial]:
    """Make trials that change in the middle."""
    changes: dict[str, Any] = {"before": length, "after": length, "max_steps": 200, "return": (-200, -13)}
    return of.trials("gym:CliffWalking-v1", count, novelty="actions-permuted", onset=length, unchanged=0, **changes)


def read_curve(result: of.Result, agent: str, width: int = 5) -> list[float]:
    """Return the mean performance of an agent, episode by episode, smoothed over some of them."""
    cells = [cell.episodes for cell in result.cells if cell.agent == agent]
    means = [sum(each.performance or 0.0 for each in row) / len(row) for row in zip(*cells, strict=True)]
    near = [means[max(0, place - width) : place + 1] for place in range(len(means))]
    return [sum(part) / len(part) for part in near]


if __name__ == "__main__":
    trials = make_trials(count=4, length=60)
    found = of.run({"learner": Learner, "random": "random"}, trials, "runs/curves.sqlite")
    for name in ("learner", "random"):
        print(f"{name:8}", " ".join(f"{value:.2f}" for value in read_curve(found, name)[::10]))
