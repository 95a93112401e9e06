"""Give a belief to an agent that has none: a detector is fitted in training episodes and scores the later ones.

`with_detector` wraps the agent. A detector is anything with `fit(episodes)` and `score(episode)`; three are here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from openfield.agents.policy import Array
from openfield.core import Agent, Ask, Belief, ChecksSpec, Reply, Spec, Turn
from openfield.errors import InvalidInput, UnknownName
from openfield.registry import AgentSource, find_agent, find_domain
from openfield.spaces import Choice, Discrete, Fields, Space, Text, Tuple

MIN_TRAINING = 3
"""Training episodes that a detector needs: fewer do not show how much scores vary."""
MAX_FOLDS = 20
"""In how many parts training episodes are left out of the fit to be scored."""
MAX_NUMBERS = 10_000
"""Numbers of an observation that a detector keeps, and of an input of the model of transitions."""
MAX_OPTIONS = 64
"""Whole numbers up to this many are one-hot."""
DRIFT = 0.5
"""Subtracted from each standardised score before summing: sums respond to shifts of about one deviation."""
OVERSHOOT = 1.166
"""How far a sum of normal steps is beyond a bound on average when it crosses it, twice (Siegmund 1985)."""


class Seen(NamedTuple):
    """An episode as a detector sees it."""

    observations: Array
    """A row of numbers for each turn, the last one included."""
    actions: Array
    """A row of numbers for each action; one less than observations."""
    total: float
    """The sum of rewards."""


class EpisodeDetector(Protocol):
    """Scores how unusual an episode is."""

    def fit(self, episodes: Sequence[Seen], /) -> None:
        """Learn from episodes in which nothing has changed; forget earlier ones."""
        ...

    def score(self, episode: Seen, /) -> float:
        """Return how strange an episode is; more is stranger."""
        ...


class FallingReturn:
    """Scores an episode by how low its return is."""

    def fit(self, episodes: Sequence[Seen]) -> None:
        """Learn nothing: returns are compared with those of training in any case."""

    def score(self, episode: Seen) -> float:
        """Return the return with its sign turned."""
        return -episode.total


class ObservationShift:
    """Scores an episode by how far its observations are from those of training, in their standard deviations."""

    def fit(self, episodes: Sequence[Seen]) -> None:
        """Learn mean and deviation of each number."""
        rows = np.concatenate([each.observations for each in episodes])
        self._mean, self._deviation = rows.mean(0), _floor(rows.std(0))

    def score(self, episode: Seen) -> float:
        """Return the mean square distance, on a logarithmic scale."""
        return _mean_square((episode.observations - self._mean) / self._deviation)


class TransitionSurprise:
    """Scores an episode by how badly a linear model of training predicts what follows an observation and an action.

    The model has weights for each action of some, and is fitted with a small ridge penalty.
    """

    def fit(self, episodes: Sequence[Seen]) -> None:
        """Learn the model, and how far it errs in training."""
        told = np.concatenate([_tell(each) for each in episodes])
        moved = np.concatenate([np.diff(each.observations, axis=0) for each in episodes])
        penalty = 1e-3 * max(len(told), 1) * np.eye(told.shape[1])
        self._weights = np.linalg.solve(told.T @ told + penalty, told.T @ moved)
        self._deviation = _floor((moved - told @ self._weights).std(0)) if len(moved) else 1.0

    def score(self, episode: Seen) -> float:
        """Return the mean square error, on a logarithmic scale."""
        errors = np.diff(episode.observations, axis=0) - _tell(episode) @ self._weights
        return _mean_square(errors / self._deviation)


DETECTORS: dict[str, Callable[[], EpisodeDetector]] = {
    "surprise": TransitionSurprise,
    "returns": FallingReturn,
    "observations": ObservationShift,
}
"""Detectors by name."""


class WithDetector:
    """An agent with a detector beside it. It plays as it did; the detector states its belief."""

    def __init__(self, agent: Agent, detector: EpisodeDetector, spec: Spec, bound: float) -> None:
        self._agent, self._detector, self._spec, self._bound = agent, detector, spec, bound
        self._training: list[Seen] = []
        self._rows: list[Array] = []
        self._actions: list[Array] = []
        self._total = self._sum = 0.0
        self._standard: ScoreDistribution | None = None
        if hasattr(agent, "remember"):
            self.remember = self._remember

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        self._look(turn)
        reply = self._agent(turn)
        self._note(turn, reply)
        if turn.last is None and turn.ask is not Ask.BELIEF:
            return Reply(reply.action, note=reply.note)
        return Reply(reply.action, Belief(min(1.0, self._sum / (2 * self._bound))), note=reply.note)

    def close(self) -> None:
        """Close the agent, if it can be closed."""
        getattr(self._agent, "close", lambda: None)()

    def _remember(self, turn: Turn, reply: Reply) -> None:
        self._look(turn)
        self._agent.remember(turn, reply)  # type: ignore[attr-defined]
        self._note(turn, reply)

    def _look(self, turn: Turn) -> None:
        """Take note of a turn; at the end of an episode judge it."""
        if turn.first:
            self._rows, self._actions, self._total = [], [], 0.0
        self._total += turn.reward
        if turn.ask is Ask.ACT or turn.last is not None:
            self._rows = [*self._rows[: len(self._actions)], encode_value(self._spec.observations, turn.observation)]
        if turn.last is not None and len(self._rows) > 1:
            self._judge(Seen(np.array(self._rows), np.array(self._actions), self._total), turn.phase == "training")
            self._rows, self._actions, self._total = [], [], 0.0

    def _note(self, turn: Turn, reply: Reply) -> None:
        if turn.ask is Ask.ACT and turn.last is None and reply.action is not None:
            self._actions.append(encode_value(self._spec.actions, reply.action))

    def _judge(self, episode: Seen, training: bool) -> None:
        if training:
            self._training.append(episode)
            return
        if self._standard is None:
            self._standard = cross_validate(self._detector, self._training)
            self._training = []
        score = self._standard.judge(float(self._detector.score(episode)))
        self._sum = max(0.0, self._sum + score - self._standard.drift)


class ScoreDistribution(NamedTuple):
    """How the scores of unchanged episodes are spread."""

    mean: float
    deviation: float
    episodes: int

    def judge(self, score: float) -> float:
        """Return a score as a standard normal number, with the wider tails of few training episodes undone."""
        t = (score - self.mean) / (self.deviation * math.sqrt(1 + 1 / self.episodes))
        free = self.episodes - 1
        size = (8 * free + 1) / (8 * free + 3) * math.sqrt(free * math.log1p(t * t / free))  # Wallace 1959
        return math.copysign(size, t)

    @property
    def drift(self) -> float:
        """Subtracted from each standardised score: also one deviation of the mean, which training only estimates."""
        return DRIFT + 1 / math.sqrt(self.episodes)


def cross_validate(detector: EpisodeDetector, episodes: Sequence[Seen]) -> ScoreDistribution:
    """Fit a detector to training episodes, and return how it scores those that it was not fitted to.

    Raises:
        InvalidInput: There are too few of them.
    """
    if len(episodes) < MIN_TRAINING:
        told = f"A detector needs {MIN_TRAINING} training episodes, and saw {len(episodes)}."
        raise InvalidInput(f"{told} Make trials with more, such as --set training=20.")
    folds = min(len(episodes), MAX_FOLDS)
    scores: list[float] = []
    for fold in range(folds):
        detector.fit([each for number, each in enumerate(episodes) if number % folds != fold])
        scores += [float(detector.score(each)) for each in episodes[fold::folds]]
    detector.fit(episodes)
    mean = float(np.mean(scores))
    return ScoreDistribution(mean, max(float(np.std(scores, ddof=1)), 1e-6 * max(1.0, abs(mean))), len(scores))


def find_bound(false_alarms: float) -> float:
    """Return the bound that a sum crosses in this share of all unchanged episodes on average, by Siegmund's formula."""
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        reach = 2 * DRIFT * (middle + OVERSHOOT)
        wait = (math.exp(reach) - reach - 1) / (2 * DRIFT**2)
        low, high = (middle, high) if wait < 1 / false_alarms else (low, middle)
    return high


class DetectorFactory:
    """Makes agents with a detector. `with_detector` returns one."""

    def __init__(self, agent: AgentSource, detector: EpisodeDetector, false_alarms: float) -> None:
        self.agent, self.detector, self.false_alarms = agent, detector, false_alarms
        name = agent if isinstance(agent, str) else getattr(agent, "__name__", type(agent).__name__)
        self.__name__ = f"{name} with {type(detector).__name__}"

    def __call__(self, spec: Spec, seed: int) -> WithDetector:
        """Make the agent."""
        watched = self.check_spec(spec)
        agent = find_agent(self.agent, find_domain(spec.domain))(spec, seed)
        return WithDetector(agent, deepcopy(self.detector), watched, find_bound(self.false_alarms))

    def check_spec(self, spec: Spec) -> Spec:
        """Return the spec with what the detector needs of it.

        Raises:
            InvalidInput: It does not declare the spaces, or observations are too large for the detector.
        """
        factory = find_agent(self.agent, find_domain(spec.domain))
        if isinstance(factory, ChecksSpec):
            factory.check_spec(spec)
        if isinstance(self.detector, FallingReturn):
            return replace(spec, observations=None, actions=None)
        if spec.observations is None or spec.actions is None:
            raise InvalidInput(f"The detector cannot watch {spec.domain}: it does not declare its spaces.")
        seen, done = (
            len(encode_value(each, each.sample(random.Random(0)))) for each in (spec.observations, spec.actions)
        )
        numbers = (seen + 1) * (done + 1) if isinstance(self.detector, TransitionSurprise) else seen
        if numbers > MAX_NUMBERS:
            raise InvalidInput(f"Observations of {spec.domain} are too large for the detector: {numbers:,} numbers.")
        return spec


def with_detector(
    agent: AgentSource, detector: str | EpisodeDetector, *, false_alarms: float = 0.01
) -> DetectorFactory:
    """Return an agent with a belief that a detector states: `of.with_detector(of.policy(model), "surprise")`.

    The scores of test episodes are standardised by those of training episodes and summed up (CUSUM). The belief is 0.5
    where the sum crosses its bound, and 1 at twice the bound.

    Args:
        agent: Any agent.
        detector: `surprise` (a learned linear model of transitions), `returns` (falling returns), `observations` (their
            mean and deviation), or an object with `fit(episodes)` and `score(episode)`.
        false_alarms: How many false alarms an unchanged episode may have on average: 0.01 is one in a hundred episodes.

    Raises:
        UnknownName: There is no detector of this name.
        InvalidInput: An argument is wrong.
    """
    if isinstance(detector, str) and detector not in DETECTORS:
        raise UnknownName("detector", detector, list(DETECTORS))
    made = DETECTORS[detector]() if isinstance(detector, str) else detector
    if not (callable(getattr(made, "fit", None)) and callable(getattr(made, "score", None))):
        raise InvalidInput(f"A detector has fit(episodes) and score(episode); a {type(made).__name__} has not.")
    if isinstance(false_alarms, bool) or not isinstance(false_alarms, int | float) or not 0 < false_alarms <= 0.5:
        raise InvalidInput(f"'false_alarms' is a number above 0 and up to 0.5, not {false_alarms!r}.")
    return DetectorFactory(agent, made, float(false_alarms))


def encode_value(space: Space | None, value: Any) -> Array:
    """Return a value as a row of numbers; one of some options is one-hot."""
    if isinstance(space, Text) or space is None:
        return np.zeros(0)
    if isinstance(space, Choice):
        return _one_hot(space.options.index(value), len(space.options))
    if isinstance(space, Discrete) and space.n <= MAX_OPTIONS:
        return _one_hot(int(value) - space.start, space.n)
    if isinstance(space, Fields):
        return np.concatenate([encode_value(part, value[name]) for name, part in space.parts.items()])
    if isinstance(space, Tuple):
        return np.concatenate([encode_value(part, each) for part, each in zip(space.parts, value, strict=True)])
    return np.ravel(np.asarray(value, dtype=float))


def _one_hot(number: int, count: int) -> Array:
    row = np.zeros(count)
    row[number] = 1.0
    return row


def _tell(episode: Seen) -> Array:
    """Return what the next observation is predicted from: the observation, the action, and each with the other."""
    before, actions = episode.observations[:-1], episode.actions
    crossed = (before[:, :, None] * actions[:, None, :]).reshape(len(before), -1)
    return np.hstack([before, actions, crossed, np.ones((len(before), 1))])


def _mean_square(values: Array) -> float:
    return float(np.log(np.mean(values**2) + 1e-6)) if values.size else 0.0


def _floor(deviation: Any) -> Any:
    return np.maximum(deviation, 1e-3)
