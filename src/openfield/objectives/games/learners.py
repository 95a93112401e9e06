"""The agents of a study: small learners over downscaled frames, in NumPy, named for their methods.

All that learn share one policy: linear action values, learned by expected SARSA with traces, and random actions to
explore. They differ in what they are paid: the task's reward, a bonus for seldom seen frames, the error of a linear
forward model, or the error in predicting fixed random features. They stand for the families of the paper and are far
smaller than its networks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from openfield.objectives.frames.encode import FrameScaler
from openfield.objectives.tables.histograms import Array

SIZE = 16
"""Height and width of what learners see."""
COARSE = 8
"""Height and width of what bonuses are computed from."""
DISCOUNT = 0.99
RATE = 0.1
"""The share of an error that one step corrects."""
TRACE = 0.9
"""How much of an error reaches the action before, and so on."""
EXPLORE = (1.0, 0.1, 0.2)
"""The share of random actions at first and later, and the part of the life until it is low."""
COUNT_LEVELS = 2
"""Levels in which coarse frames are counted, for each standard deviation of a pixel."""
FEATURES, TARGETS = 64, 16
"""Random features that are known, and that must be predicted."""
LIMIT = 5.0
"""Normalised pixels, bonuses and errors are cut here: a first glimpse of something new may be a thousand times that."""


class GameAgent(Protocol):
    """What lives in a game: it sees a frame, gives an action, and gets the result."""

    def act(self, frame: Any) -> int:
        """Return an action on a frame."""

    def learn(self, action: int, reward: float, frame: Any, over: bool) -> None:
        """Learn from the reward of an action, the frame after it, and whether the episode is over."""


class Noop:
    """Does nothing, for ever."""

    def __init__(self, action: int) -> None:
        self._action = action

    def act(self, frame: Any) -> int:
        """Return the action that does nothing."""
        return self._action

    def learn(self, action: int, reward: float, frame: Any, over: bool) -> None:
        """Learn nothing."""


class RandomActions:
    """Takes every action with the same probability."""

    def __init__(self, actions: int, seed: int) -> None:
        self._random, self._actions = np.random.default_rng(seed), actions

    def act(self, frame: Any) -> int:
        """Return any action."""
        return int(self._random.integers(self._actions))

    def learn(self, action: int, reward: float, frame: Any, over: bool) -> None:
        """Learn nothing."""


class LinearLearner:
    """Learns linear action values of two small frames, paid with the sign of the task's reward or with a bonus."""

    def __init__(self, actions: int, steps: int, seed: int, bonus: Bonus | None = None) -> None:
        """Prepare to learn.

        Args:
            actions: How many actions there are.
            steps: How long the life is, by which exploration falls.
            seed: The seed of random actions.
            bonus: The reward that replaces the task's.
        """
        self._random = np.random.default_rng(seed)
        self._scaler, self._pixels = FrameScaler(SIZE), RunningScale(SIZE * SIZE)
        self._weights = np.zeros((actions, 2 * SIZE * SIZE + 1))
        self._traces = np.zeros_like(self._weights)
        self._bonus, self._actions = bonus, actions
        self._steps, self._taken, self._chance = steps, 0, 1.0
        self._before: Array | None = None
        self._state: Array | None = None

    def act(self, frame: Any) -> int:
        """Return the action that promises most, or a random one."""
        if self._state is None:
            self._before, self._state = None, self._look(frame)
        first, later, part = EXPLORE
        self._chance = max(later, first - (first - later) * self._taken / (part * self._steps))
        self._taken += 1
        if self._random.random() < self._chance:
            return int(self._random.integers(self._actions))
        return int(np.argmax(self._weights @ self._state))

    def learn(self, action: int, reward: float, frame: Any, over: bool) -> None:
        """Correct the values of recent actions towards the reward and the promise of the next frame."""
        state, following = self._state, self._look(frame)
        if state is None:
            return
        paid = float(np.sign(reward)) if self._bonus is None else self._bonus.pay(state, action, following)
        values = self._weights @ following
        expected = (1 - self._chance) * float(values.max()) + self._chance * float(values.mean())
        promise = 0.0 if over else DISCOUNT * expected
        error = paid + promise - float(self._weights[action] @ state)
        self._traces *= DISCOUNT * TRACE
        self._traces[action] += state / float(state @ state)
        self._weights += RATE * max(-LIMIT, min(LIMIT, error)) * self._traces
        self._state = None if over else following
        if over:
            self._traces[:] = 0.0

    def _look(self, frame: Any) -> Array:
        """Return the input: normalised pixels, how they changed, and a constant."""
        pixels = self._pixels.add(self._scaler.values(frame).ravel())
        changed = np.zeros_like(pixels) if self._before is None else pixels - self._before
        self._before = pixels
        return np.concatenate((pixels, changed, _ONE))


class Bonus(Protocol):
    """The reward of an agent that is not paid for its task."""

    def pay(self, state: Array, action: int, following: Array) -> float:
        """Return the bonus of a transition, and learn from it."""


class CountBonus:
    """Pays 1 / sqrt(n) for a coarse frame that was seen n times: a table of counts."""

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}

    def pay(self, state: Array, action: int, following: Array) -> float:
        """Count the frame and pay for it."""
        key = np.round(coarse(following) * COUNT_LEVELS).astype(np.int8).tobytes()
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return float(count**-0.5)


class PredictionError:
    """Pays the error of a linear model that predicts the next coarse frame, one for each action."""

    def __init__(self, actions: int) -> None:
        self._model = np.zeros((actions, COARSE * COARSE, 2 * COARSE * COARSE + 1))
        self._mean = RunningMean()

    def pay(self, state: Array, action: int, following: Array) -> float:
        """Predict, pay the error, and correct the model."""
        now = coarse(state)
        given = np.concatenate((now, coarse(state, moved=True), _ONE))
        error = coarse(following) - now - self._model[action] @ given
        self._model[action] += np.outer(RATE / float(given @ given) * error, given)
        return self._mean.add(float(error @ error))


class RandomFeatures:
    """Pays the error in predicting fixed random features of the frame: small where much like it was seen."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng((seed, 1))
        size = COARSE * COARSE
        self._target = random.normal(0, size**-0.5, (TARGETS, size))
        self._known = random.normal(0, size**-0.5, (FEATURES, size))
        self._model = np.zeros((TARGETS, size + FEATURES + 1))
        self._mean = RunningMean()

    def pay(self, state: Array, action: int, following: Array) -> float:
        """Predict, pay the error, and correct the model."""
        now = coarse(following)
        given = np.concatenate((now, np.tanh(self._known @ now), _ONE))
        error = np.tanh(2 * self._target @ now) - self._model @ given
        self._model += np.outer(RATE / float(given @ given) * error, given)
        return self._mean.add(float(error @ error))


class RunningScale:
    """Means and deviations of numbers so far, by which new ones are normalised."""

    def __init__(self, size: int) -> None:
        self._mean, self._square, self._count = np.zeros(size), np.zeros(size), 0

    def add(self, values: Array) -> Array:
        """Take new values into account and return them normalised."""
        self._count += 1
        step = values - self._mean
        self._mean += step / self._count
        self._square += step * (values - self._mean)
        deviation = np.sqrt(self._square / self._count) + 1.0
        return np.minimum(np.maximum((values - self._mean) / deviation, -LIMIT), LIMIT)


class RunningMean:
    """The mean of bonuses so far, by which new ones are normalised."""

    def __init__(self) -> None:
        self._mean, self._count = 0.0, 0

    def add(self, value: float) -> float:
        """Take a bonus into account and return it as a share of the mean so far."""
        self._count += 1
        self._mean += (value - self._mean) / self._count
        return min(LIMIT, value / self._mean) if self._mean > 0 else 0.0


def coarse(state: Array, *, moved: bool = False) -> Array:
    """Return the pixels of a state, or how they changed, averaged to half the height and width."""
    size = SIZE * SIZE
    pixels = state[size : 2 * size] if moved else state[:size]
    return np.asarray(_HALF @ pixels)


def _halving() -> Array:
    """Return the matrix that averages blocks of 2 x 2 pixels."""
    matrix = np.zeros((COARSE * COARSE, SIZE * SIZE))
    for row in range(SIZE):
        for column in range(SIZE):
            matrix[row // 2 * COARSE + column // 2, row * SIZE + column] = 0.25
    return matrix


_HALF, _ONE = _halving(), np.ones(1)


def make_study_agent(name: str, *, actions: int, noop: int, steps: int, seed: int) -> GameAgent:
    """Make an agent of a study by its name."""
    makers: dict[str, Callable[[], GameAgent]] = {
        "noop": lambda: Noop(noop),
        "random": lambda: RandomActions(actions, seed),
        "task_reward": lambda: LinearLearner(actions, steps, seed),
        "count_bonus": lambda: LinearLearner(actions, steps, seed, CountBonus()),
        "prediction_error": lambda: LinearLearner(actions, steps, seed, PredictionError(actions)),
        "random_features": lambda: LinearLearner(actions, steps, seed, RandomFeatures(seed)),
    }
    return makers[name]()
