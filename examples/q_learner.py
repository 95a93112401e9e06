"""A trained policy: a table of Q-values, learned on a frozen lake without ice that slips.

Try it: python examples/q_learner.py
"""

from typing import Any

import gymnasium
import numpy as np
from rich import print

import openfield as of

EPISODES, RATE, DISCOUNT = 2_000, 0.5, 0.95
LAKE = {"is_slippery": False}


class QTable:
    """Values of actions in states. `predict` is all that openfield asks for."""

    def __init__(self, states: int, actions: int) -> None:
        self.values = np.zeros((states, actions))

    def predict(self, observation: Any) -> int:
        """Return the action with the highest value."""
        return int(self.values[observation].argmax())

    def learn(self, seen: int, action: int, reward: float, after: int, ended: bool) -> None:
        """Move a value towards what the action led to."""
        target = reward + (0.0 if ended else DISCOUNT * self.values[after].max())
        self.values[seen, action] += RATE * (target - self.values[seen, action])


def train(seed: int = 0) -> QTable:
    """Learn from random walks on the lake."""
    env, rng = gymnasium.make("FrozenLake-v1", **LAKE), np.random.default_rng(seed)
    table = QTable(env.observation_space.n, env.action_space.n)  # type: ignore[attr-defined]
    for episode in range(EPISODES):
        seen, _ = env.reset(seed=seed + episode)
        ended = cut = False
        while not (ended or cut):
            action = int(rng.integers(4))
            after, reward, ended, cut, _ = env.step(action)
            table.learn(seen, action, float(reward), after, ended)
            seen = after
    return table


if __name__ == "__main__":
    lake = of.from_gymnasium("FrozenLake-v1", **LAKE)
    changes: dict[str, Any] = {"before": 20, "after": 20, "return": (0, 1)}
    trials = lake.trials(count=2, novelty="make.is_slippery=true", **changes)
    print(of.run({"trained": of.policy(train()), "random": "random"}, trials, "runs/q_learner.sqlite").table())
