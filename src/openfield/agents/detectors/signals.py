"""What a detector watches: numbers of an episode, one row for the episode or for each of its turns.

A signal is fitted to training episodes, and keeps what it learned in attributes that are numbers and arrays, so that
it can be saved. Some have a `score` too, one number for an episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import msgspec
import numpy as np

from openfield.agents.policy import Array
from openfield.spaces import Choice, Discrete, Fields, Space, Text, Tuple

MAX_OPTIONS = 64
"""Whole numbers up to this many are one-hot."""
MIN_DOUBT = 1e-6
"""Beliefs nearer to 0 or 1 have the log odds of this one."""
Need = Literal["observations", "actions"]
NO_ROWS: Array = np.zeros(0)


class Seen(NamedTuple):
    """An episode as a detector sees it."""

    observations: Array
    """A row of numbers for each turn, the last one included."""
    actions: Array
    """A row of numbers for each action; one less than observations."""
    total: float
    """The sum of rewards."""
    rewards: Array = NO_ROWS
    """The reward of each turn."""
    beliefs: Array = NO_ROWS
    """What the agent itself believed, for each turn in which it said so."""


class EpisodeDetector(Protocol):
    """Scores how unusual an episode is."""

    def fit(self, episodes: Sequence[Seen], /) -> None:
        """Learn from episodes in which nothing has changed; forget earlier ones."""
        ...

    def score(self, episode: Seen, /) -> float:
        """Return how strange an episode is; more is stranger."""
        ...


class Signal(Protocol):
    """Numbers of an episode that a detector watches."""

    needs: tuple[Need, ...]
    """The spaces that a domain must declare."""
    learns: bool
    """Whether it reads an episode otherwise than one that it was fitted to."""

    @property
    def worse(self) -> int:
        """Which numbers are worse: 1 high ones, -1 low ones, 0 neither."""
        ...

    def fit(self, episodes: Sequence[Seen], /) -> None:
        """Learn from episodes in which nothing has changed; forget earlier ones."""
        ...

    def read(self, episode: Seen, /) -> Array:
        """Return rows of numbers."""
        ...


class FallingReturn:
    """Watches the return of an episode."""

    needs: tuple[Need, ...] = ()
    learns = False
    worse = -1

    def fit(self, episodes: Sequence[Seen]) -> None:
        """Learn nothing: returns are compared with those of training in any case."""

    def read(self, episode: Seen) -> Array:
        """Return the return."""
        return make_finite(np.array([[episode.total]]))

    def score(self, episode: Seen) -> float:
        """Return the return with its sign turned."""
        return -episode.total


class Rewards(FallingReturn):
    """Watches the reward of each turn."""

    def read(self, episode: Seen) -> Array:
        """Return the rewards of an episode."""
        return make_finite(episode.rewards[:, None])


class OwnBelief(FallingReturn):
    """Watches the belief that the agent states itself, in log odds, of turns in which it does."""

    worse = 1

    def read(self, episode: Seen) -> Array:
        """Return the beliefs of an episode."""
        inside = np.clip(episode.beliefs, MIN_DOUBT, 1 - MIN_DOUBT)
        return np.asarray(np.log(inside / (1 - inside)))[:, None]

    def score(self, episode: Seen) -> float:
        """Return their mean."""
        return float(self.read(episode).mean()) if episode.beliefs.size else 0.0


class _Deviations:
    """Numbers in standard deviations from the mean of training."""

    def __init__(self) -> None:
        self._mean: Array | float = 0.0
        self._deviation: Array | float = 1.0

    def _learn(self, rows: Sequence[Array]) -> None:
        if rows:
            together = np.concatenate(rows)
            self._mean, self._deviation = together.mean(0), _floor(together.std(0))

    def _standardise(self, rows: Array) -> Array:
        return np.asarray((rows - self._mean) / self._deviation)


class Actions(_Deviations):
    """Watches what the agent does; of scores for the samples of a batch, their means."""

    needs: tuple[Need, ...] = ("actions",)
    learns = False
    worse = 0

    def fit(self, episodes: Sequence[Seen]) -> None:
        """Learn mean and deviation of each number."""
        self._learn([each.actions for each in episodes if each.actions.size])

    def read(self, episode: Seen) -> Array:
        """Return the actions in standard deviations from the mean of training."""
        return make_finite(self._standardise(episode.actions))


class ObservationShift(_Deviations):
    """Watches how far observations are from those of training, in their standard deviations."""

    needs: tuple[Need, ...] = ("observations",)
    learns = False
    worse = 0

    def fit(self, episodes: Sequence[Seen]) -> None:
        """Learn mean and deviation of each number."""
        self._learn([each.observations for each in episodes])

    def read(self, episode: Seen) -> Array:
        """Return each observation in deviations from the mean."""
        return make_finite(self._standardise(episode.observations))

    def score(self, episode: Seen) -> float:
        """Return the mean square distance, on a logarithmic scale."""
        return log_mean_square(self._standardise(episode.observations))


class Moves(NamedTuple):
    """What a model of transitions is fitted to of an episode."""

    predictors: Array
    """What each next observation is predicted from."""
    moved: Array
    """How far each next observation is from the one before."""
    squares: Array
    """The products of the columns of `predictors` with each other."""
    crossed: Array
    """Their products with those of `moved`."""


class TransitionSurprise:
    """Watches how badly a linear model of training predicts what follows an observation and an action.

    The model has weights for each action of some, and is fitted with a small ridge penalty.
    """

    needs: tuple[Need, ...] = ("observations", "actions")
    learns = True
    worse = 1

    def __init__(self) -> None:
        self._weights: Array = np.zeros((0, 0))
        self._deviation: Array | float = 1.0

    def fit(self, episodes: Sequence[Seen]) -> None:
        """Learn the model, and how far it errs in training."""
        self.learn([self.summarise(each) for each in episodes])

    def summarise(self, episode: Seen) -> Moves:
        """Return what the model is fitted to of an episode; `learn` takes it."""
        predictors, moved = _list_predictors(episode), np.diff(episode.observations, axis=0)
        return Moves(predictors, moved, predictors.T @ predictors, predictors.T @ moved)

    def learn(self, parts: Sequence[Moves]) -> None:
        """Fit the model to summaries of episodes: their sums are all that it takes to leave some of them out."""
        first, *others = parts
        squares = sum((each.squares for each in others), first.squares)
        crossed = sum((each.crossed for each in others), first.crossed)
        rows = sum(len(each.moved) for each in parts)
        penalty = 1e-3 * max(rows, 1) * np.eye(len(squares))
        self._weights = np.linalg.solve(squares + penalty, crossed)
        errors = np.concatenate([each.moved - each.predictors @ self._weights for each in parts])
        self._deviation = _floor(errors.std(0)) if rows else 1.0

    def read(self, episode: Seen) -> Array:
        """Return the mean square error of each prediction, on a logarithmic scale."""
        return make_finite(np.log(np.mean(self._find_errors(episode) ** 2, axis=1, keepdims=True) + 1e-6))

    def score(self, episode: Seen) -> float:
        """Return the mean square error, on a logarithmic scale."""
        return log_mean_square(self._find_errors(episode))

    def _find_errors(self, episode: Seen) -> Array:
        errors = np.diff(episode.observations, axis=0) - _list_predictors(episode) @ self._weights
        return np.asarray(errors / self._deviation)


class EpisodeScores:
    """Watches the score that an object with `fit(episodes)` and `score(episode)` gives to an episode."""

    learns = True
    worse = 1

    def __init__(self, detector: EpisodeDetector) -> None:
        self.detector = detector
        self.needs: tuple[Need, ...] = getattr(detector, "needs", ("observations", "actions"))
        if isinstance(detector, TransitionSurprise):
            self.summarise, self.learn = detector.summarise, detector.learn

    def fit(self, episodes: Sequence[Seen]) -> None:
        """Fit the object."""
        self.detector.fit(episodes)

    def read(self, episode: Seen) -> Array:
        """Return the score of an episode."""
        return np.array([[float(self.detector.score(episode))]])


SIGNALS: dict[str, type[FallingReturn] | type[Actions] | type[ObservationShift] | type[TransitionSurprise]] = {
    "return": FallingReturn,
    "reward": Rewards,
    "belief": OwnBelief,
    "observation": ObservationShift,
    "action": Actions,
    "transition": TransitionSurprise,
}
"""What a detector may watch, by name."""


def encode_value(space: Space | None, value: Any) -> Array:
    """Return a value as a row of numbers; one of some options is one-hot."""
    if isinstance(space, Text) or space is None:
        return np.zeros(0)
    if isinstance(value, msgspec.Struct):
        return _average_batch(value)
    if isinstance(space, Choice):
        return _one_hot(space.options.index(value), len(space.options))
    if isinstance(space, Discrete) and space.n <= MAX_OPTIONS:
        return _one_hot(int(value) - space.start, space.n)
    if isinstance(space, Fields):
        return np.concatenate([encode_value(part, value[name]) for name, part in space.parts.items()])
    if isinstance(space, Tuple):
        return np.concatenate([encode_value(part, each) for part, each in zip(space.parts, value, strict=True)])
    return np.ravel(np.asarray(value, dtype=float))


def _average_batch(value: msgspec.Struct) -> Array:
    """Return the means of the columns of the first table in an answer to a batch; nothing if it has none."""
    for name in value.__struct_fields__:
        part = getattr(value, name)
        if isinstance(part, list) and part and isinstance(part[0], list | tuple):
            return np.asarray(np.mean(np.asarray(part, dtype=float), axis=0))
    return np.zeros(0)


def _one_hot(number: int, count: int) -> Array:
    row = np.zeros(count)
    row[number] = 1.0
    return row


def reduce_rows(values: Array) -> Array:
    """Return one number for each row: itself, or the mean square of several, on a logarithmic scale."""
    if values.shape[1] == 1:
        return np.asarray(values[:, 0])
    return np.asarray(np.log(np.mean(values**2, axis=1) + 1e-6)) if values.shape[1] else np.zeros(0)


def make_finite(values: Array) -> Array:
    """Return numbers without infinite and missing ones."""
    return np.asarray(np.nan_to_num(np.asarray(values, dtype=float), nan=0.0, posinf=1e12, neginf=-1e12))


def log_mean_square(values: Array) -> float:
    """Return the mean square of numbers, on a logarithmic scale."""
    return float(np.log(np.mean(make_finite(values) ** 2) + 1e-6)) if values.size else 0.0


def _list_predictors(episode: Seen) -> Array:
    """Return what the next observation is predicted from: the observation, the action, and each with the other."""
    before, actions = episode.observations[:-1], episode.actions
    crossed = (before[:, :, None] * actions[:, None, :]).reshape(len(before), before.shape[1] * actions.shape[1])
    return np.hstack([before, actions, crossed, np.ones((len(before), 1))])


def _floor(deviation: Any) -> Any:
    return np.maximum(deviation, 1e-3)
