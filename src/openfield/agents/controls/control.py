"""Controls that never look at their world: they count, always believe, guess, give up, or believe nothing.

Each acts at random, so that what it believes is all that tells it from the others.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any, ClassVar

from openfield.core import Agent, Ask, Belief, Reply, Spec, Turn
from openfield.domain import Domain
from openfield.errors import InvalidInput
from openfield.registry import find_agent
from openfield.settings import make_settings
from openfield.trial import Trial, derive, measure_test

SURE, CALM = Belief(1.0), Belief(0.0)
TURNS_PER_EPISODE = 100
"""What the quitter takes for an episode in a world that hides where episodes end."""


class Control:
    """Acts at random. A subclass says what it believes."""

    usual: ClassVar[float] = 0.0
    """The number behind the name, as in `counter:12`, where none is given."""
    bounds: ClassVar[tuple[float, float] | None] = None
    """What that number may be; None if the control takes none."""

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        """Make the control.

        Args:
            domain: The domain, whose own random agent acts.
            spec: What an agent may know.
            seed: The seed of its actions and guesses.
            number: The number behind its name; the usual one if it is None.
        """
        self._policy = _make_policy(domain, spec, seed)
        self._clock = Clock(domain)
        self.number = self.usual if number is None else number
        self.rng = random.Random(derive(seed, "control"))

    def __call__(self, turn: Turn) -> Reply:
        """Act at random, and state a belief with every reply."""
        self._clock.count(turn)
        reply = self._policy(turn)
        return Reply(reply.action, self.believe(turn))

    def believe(self, turn: Turn) -> Belief | None:
        """Return what is believed at a turn; None states nothing."""
        raise NotImplementedError

    @property
    def now(self) -> int:
        """The number of the test episode, from 0 on; of the turn where a world hides where episodes end."""
        return self._clock.now


class Counter(Control):
    """Believes that the world has changed once `n` test episodes are over."""

    usual, bounds = 10, (0.0, 1e12)

    def believe(self, turn: Turn) -> Belief:
        """Return certainty, before and after."""
        return SURE if self.now >= self.number else CALM


class Alarmist(Control):
    """Always believes that the world has changed."""

    def believe(self, turn: Turn) -> Belief:
        """Return certainty."""
        return SURE


class Doubter(Control):
    """Believes with probability `p` in each episode that the world has changed."""

    usual, bounds = 0.5, (0.0, 1.0)

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, number)
        self._drawn, self._belief = -1, CALM

    def believe(self, turn: Turn) -> Belief:
        """Return the belief drawn for this episode."""
        if self._drawn != self.now:
            self._drawn, self._belief = self.now, SURE if self.rng.random() < self.number else CALM
        return self._belief


class Sleeper(Control):
    """Never believes that the world has changed, and says so only where it is asked."""

    def believe(self, turn: Turn) -> Belief | None:
        """Return certainty that nothing has changed, if a belief is asked for."""
        return CALM if turn.ask is Ask.BELIEF else None


class Quitter(Doubter):
    """Guesses as the doubter does, and raises an error once its last `n` test episodes went badly.

    They went badly if they earned less than half of what the episodes before did. It goes by what it is told: the
    performance if that is shown, or else the rewards.
    """

    usual, bounds = 3, (1.0, 1e12)
    chance: ClassVar[float] = 0.5
    """The probability of its guesses."""

    def __init__(self, domain: Domain[Any], spec: Spec, seed: int, number: float | None = None) -> None:
        super().__init__(domain, spec, seed, self.chance)
        self._patience = int(self.usual if number is None else number)
        self._length = TURNS_PER_EPISODE if self._clock.counts_turns else 1
        self._scores = [0.0]
        self._latest = 0

    def believe(self, turn: Turn) -> Belief:
        """Return a guess, or give up when an episode begins after others that went badly."""
        if self.now // self._length > self._latest:
            self._latest = self.now // self._length
            if self._does_badly():
                raise RuntimeError(f"I give up: my last {self._patience} episodes went badly.")
            self._scores.append(0.0)
        if turn.phase == "test":
            told = turn.feedback.get("performance") if isinstance(turn.feedback, dict) else None
            self._scores[-1] = self._scores[-1] + turn.reward if told is None else float(told)
        return super().believe(turn)

    def _does_badly(self) -> bool:
        recent, before = self._scores[-self._patience :], self._scores[: -self._patience]
        usual = sum(before) / len(before) if before else -math.inf
        return sum(recent) / len(recent) < min(usual, usual / 2)


class Clock:
    """Counts what an agent can count of a test: episodes, or turns in a world that hides where episodes end."""

    def __init__(self, domain: Domain[Any]) -> None:
        self.counts_turns = _hides_episodes(domain)
        self.now = -1 if self.counts_turns else 0
        self._ended = False

    def count(self, turn: Turn) -> None:
        """Take note of a turn. The last turn of an episode, also when it is shown again, belongs to the episode."""
        if self.counts_turns:
            self.now += turn.phase == "test"
            return
        self.now += self._ended and turn.last is None
        self._ended = turn.last is not None and turn.phase == "test"


def expect_change(trials: Sequence[Trial], now: int) -> Belief:
    """Return the belief of an agent that knows it is in one of these trials."""
    changed = sum(_find_onset(trial) <= now for trial in trials)
    return Belief(changed / len(trials)) if trials else CALM


def _find_onset(trial: Trial) -> float:
    """Return how much of the test precedes the change; infinity if nothing changes."""
    test = [phase for phase in trial.phases if phase.name == "test"]
    normal = list(itertools.takewhile(lambda phase: not phase.novelty, test))
    return measure_test(normal) if len(normal) < len(test) else math.inf


def _hides_episodes(domain: Domain[Any]) -> bool:
    """Return whether the changes of a domain's trials are placed by steps, because agents see no episodes."""
    settings = make_settings(domain.settings, {})
    names = tuple(novelty.id for novelty in domain.novelties[:1])
    return any(phase.steps for phase in domain.phases(settings, names))


def _make_policy(domain: Domain[Any], spec: Spec, seed: int) -> Agent:
    """Make an agent that acts at random, or another of the domain's own where its actions are not declared."""
    own = [name for name in domain.agents if name not in domain.oracles]
    if "random" in own or spec.actions is not None:
        return find_agent("random", domain)(spec, seed)
    if not own:
        raise InvalidInput(f"A control cannot play {domain.name}: it has no action space and no agent of its own.")
    return find_agent(own[0], domain)(spec, seed)
