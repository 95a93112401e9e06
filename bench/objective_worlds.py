"""Simulated worlds whose input entropy and empowerment are known, for `bench_coverage`.

An agent walks through a Markov chain from its stationary distribution on, in episodes, so that every step has the same
distribution and the truth is a sum over the chain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from openfield.objectives.intervals import Counted

Floats = NDArray[np.floating[Any]]


class Recipe(NamedTuple):
    """What a world is made of."""

    inputs: int
    actions: int
    nexts: int
    """Next inputs that an input may have."""
    control: float
    """The probability that the action decides the next input; otherwise chance does."""
    policy: str
    """`uniform`, `skewed` or `greedy`."""


class Size(NamedTuple):
    """How much is played."""

    episodes: int
    steps: int


class World:
    """A chain with a policy, and its truth."""

    def __init__(self, recipe: Recipe, seed: int = 0) -> None:
        random, (inputs, actions, nexts, control, policy) = np.random.default_rng(seed), recipe
        self.actions = actions
        self.policy = _make_policy(random, inputs, actions, policy)
        self.kernel = np.zeros((inputs, actions, inputs))
        for at in range(inputs):
            reached = random.choice(inputs, nexts, replace=False)
            self.kernel[at][:, reached] = (1 - control) * random.dirichlet(np.ones(nexts))
            self.kernel[at, np.arange(actions), random.permutation(np.resize(reached, actions))] += control
        self.visits = _stationary(np.einsum("oa,oap->op", self.policy, self.kernel))
        self.entropy = float(_entropy(self.visits))
        after = np.einsum("oa,oap->op", self.policy, self.kernel)
        said = _entropy(after) - (self.policy * _entropy(self.kernel)).sum(1)
        self.empowerment = float(self.visits @ said)

    def play(self, size: Size, random: np.random.Generator) -> list[Counted]:
        """Play episodes."""
        inputs = len(self.visits)
        cumulated = np.cumsum(self.policy, 1), np.cumsum(self.kernel, 2)
        at = random.choice(inputs, size.episodes, p=self.visits)
        columns = []
        for _ in range(size.steps):
            action = _pick(random, cumulated[0][at])
            then = _pick(random, cumulated[1][at, action])
            columns.append((at, action, then))
            at = then
        obs, action, then = (np.stack(column, 1) for column in zip(*columns, strict=True))
        return [_count(*rows) for rows in zip(obs, action, then, strict=True)]


def _make_policy(random: np.random.Generator, inputs: int, actions: int, kind: str) -> Floats:
    if kind == "skewed":
        return random.dirichlet(np.full(actions, 0.5), inputs)
    uniform = np.full((inputs, actions), 1 / actions)
    return uniform if kind == "uniform" else 0.8 * np.eye(actions)[random.integers(0, actions, inputs)] + 0.2 * uniform


def _stationary(steps: Floats) -> Floats:
    at = np.full(len(steps), 1 / len(steps))
    lazy = (steps + np.eye(len(steps))) / 2
    for _ in range(40):
        lazy = lazy @ lazy
    found: Floats = at @ lazy
    found /= found.sum()
    return found


def _entropy(chances: Floats) -> Any:
    return -(chances * np.log(np.where(chances > 0, chances, 1))).sum(-1)


def _pick(random: np.random.Generator, cumulated: Floats) -> NDArray[np.int64]:
    drawn = random.random((len(cumulated), 1)) * cumulated[:, -1:]
    picked: NDArray[np.int64] = (drawn >= cumulated).sum(1)
    return picked


def _count(obs: Any, action: Any, then: Any) -> Counted:
    """Count the transitions of an episode; inputs and actions have fewer than 2^20 numbers."""
    keys, counts = np.unique(obs << 40 | action << 20 | then, return_counts=True)
    mask = (1 << 20) - 1
    return Counted(keys >> 40, keys >> 20 & mask, keys & mask, counts)


WORLDS = {
    "ring of 6, all controlled": Recipe(6, 2, 2, 1.0, "uniform"),
    "12 inputs, half controlled": Recipe(12, 3, 3, 0.5, "uniform"),
    "12 inputs, no control": Recipe(12, 4, 4, 0.0, "uniform"),
    "30 inputs, skewed policy": Recipe(30, 4, 4, 0.8, "skewed"),
    "20 inputs, 18 actions": Recipe(20, 18, 6, 0.9, "uniform"),
    "60 inputs, greedy policy": Recipe(60, 6, 10, 0.6, "greedy"),
    "500 inputs, skewed policy": Recipe(500, 4, 4, 0.5, "skewed"),
}
SIZES = (Size(8, 25), Size(20, 50), Size(40, 200))
"""From few visits to many."""
