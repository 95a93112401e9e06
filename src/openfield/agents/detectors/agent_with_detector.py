"""Give a belief to an agent that has none: a detector is fitted in training episodes and judges the later ones.

`with_detector` wraps the agent.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from copy import deepcopy

import msgspec
import numpy as np
from msgspec.structs import replace

from openfield.agents.detectors.catalogue import ChangeDetector, make_detector
from openfield.agents.detectors.rules import check_share, check_training
from openfield.agents.detectors.signals import (
    EpisodeDetector,
    EpisodeScores,
    OwnBelief,
    Seen,
    TransitionSurprise,
    encode_value,
)
from openfield.agents.policy import Array
from openfield.core import Agent, Ask, Belief, ChecksSpec, ChecksTrial, Reply, Saves, Spec, Turn
from openfield.domain import hides_episodes
from openfield.errors import InvalidInput
from openfield.parameters import AgentText
from openfield.registry import AgentSource, find_agent, find_domain
from openfield.runner.deadline import adapt_async
from openfield.spaces import Fields, Space
from openfield.trial import Trial

MAX_NUMBERS = 10_000
"""Numbers of an observation that a detector keeps, and of an input of the model of transitions."""
PIECE = 100
"""Turns that count as an episode in a world that hides where episodes end."""
MAX_UNPACKED = 1 << 30
"""Bytes of a saved state, unpacked."""


class _Table(msgspec.Struct, frozen=True, array_like=True):
    """An array as it is saved."""

    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: object) -> _Table:
        """Make one from an array or a number."""
        found = np.asarray(array, dtype=float)
        return cls(found.shape, found.tobytes())

    def read(self) -> Array:
        """Return the array."""
        return np.frombuffer(self.data, dtype=float).reshape(self.shape).copy()


class _State(msgspec.Struct, frozen=True):
    """An agent with its detector as it is saved."""

    agent: bytes
    episodes: list[tuple[_Table, _Table, float, _Table, _Table]]
    """The training episodes of a detector that is not fitted yet."""
    signal: dict[str, _Table] | None
    """What its signal has learned; None before that."""
    training: list[_Table]
    judged: list[_Table]
    rows: tuple[list[_Table], list[_Table], list[float], list[float]]
    """Observations, actions, rewards and own beliefs of the episode under way."""
    total: float
    belief: float
    tested: int


class WithDetector:
    """An agent with a detector beside it. It plays as it did; the detector states its belief."""

    def __init__(self, agent: Agent, detector: ChangeDetector, spec: Spec, hidden: bool = False) -> None:
        """Put the detector on the agent.

        Args:
            agent: The agent.
            detector: The detector, which is this agent's own.
            spec: That of the domain, with the spaces that the detector needs.
            hidden: Whether the world hides where episodes end.
        """
        self._agent, self._detector, self._spec, self._hidden = agent, detector, spec, hidden
        self._columns = find_columns(spec.observations, detector.features)
        self._training: list[Seen] = []
        self._fitted, self._tested, self._belief = False, 0, 0.0
        self._rows: list[Array] = []
        self._actions: list[Array] = []
        self._rewards: list[float] = []
        self._beliefs: list[float] = []
        self._total = 0.0
        if hasattr(agent, "remember") and not isinstance(detector.signal, OwnBelief):  # a record has not the own belief
            self.remember = self._remember
        if hasattr(agent, "attend"):
            self.attend = agent.attend
        if isinstance(agent, Saves) and detector.can_save:
            self.save, self.load = self._save, self._load

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        self._look(turn)
        reply = self._agent(turn)
        self._note(turn, reply)
        self._judge_ended(turn)
        if turn.last is None and turn.ask is not Ask.BELIEF and not self._hidden:
            return Reply(reply.action, note=reply.note)
        return Reply(reply.action, Belief(self._belief), note=reply.note)

    @property
    def may_leave(self) -> bool:
        """Whether the agent may end its trial, to be resumed later."""
        return getattr(self._agent, "may_leave", False)

    @property
    def on_wait(self) -> Callable[[int], None]:
        """What an agent that waits for an endpoint calls; only such agents have it."""
        return self._agent.on_wait  # type: ignore[attr-defined, no-any-return]

    @on_wait.setter
    def on_wait(self, excuse: Callable[[int], None]) -> None:
        self._agent.on_wait = excuse  # type: ignore[attr-defined]

    def close(self) -> None:
        """Close the agent, if it can be closed."""
        getattr(self._agent, "close", lambda: None)()

    def _remember(self, turn: Turn, reply: Reply) -> None:
        self._look(turn)
        self._agent.remember(turn, reply)  # type: ignore[attr-defined]
        self._note(turn, reply)
        self._judge_ended(turn)

    def _save(self) -> bytes:
        detector, fitted = self._detector, self._fitted
        state = _State(
            self._agent.save(),  # type: ignore[attr-defined]
            [
                (_Table.of(rows), _Table.of(actions), total, _Table.of(rewards), _Table.of(beliefs))
                for rows, actions, total, rewards, beliefs in self._training
            ],
            {name: _Table.of(value) for name, value in detector.state.items()} if fitted else None,
            [_Table.of(each) for each in detector.training],
            [_Table.of(each) for each in detector.judged],
            (list(map(_Table.of, self._rows)), list(map(_Table.of, self._actions)), self._rewards, self._beliefs),
            self._total,
            self._belief,
            self._tested,
        )
        return zlib.compress(msgspec.msgpack.encode(state), 1)

    def _load(self, state: bytes) -> None:
        saved = msgspec.msgpack.decode(_unpack(state), type=_State)
        self._agent.load(saved.agent)  # type: ignore[attr-defined]
        self._training = [
            Seen(rows.read(), actions.read(), total, rewards.read(), beliefs.read())
            for rows, actions, total, rewards, beliefs in saved.episodes
        ]
        self._fitted = saved.signal is not None
        if saved.signal is not None:
            if saved.signal.keys() != self._detector.state.keys():
                raise InvalidInput("This is the saved state of another detector.")
            self._detector.state.update({name: table.read() for name, table in saved.signal.items()})
            self._detector.restore(*([each.read() for each in rows] for rows in (saved.training, saved.judged)))
        self._rows, self._actions = ([each.read() for each in rows] for rows in saved.rows[:2])
        (self._rewards, self._beliefs), self._total = map(list, saved.rows[2:]), saved.total
        self._belief, self._tested = saved.belief, saved.tested

    def _forget(self) -> None:
        """Begin an episode."""
        self._rows, self._actions, self._rewards, self._beliefs, self._total = [], [], [], [], 0.0

    def _look(self, turn: Turn) -> None:
        """Take note of a turn."""
        if turn.first:
            self._forget()
        self._total += turn.reward
        if turn.ask is Ask.ACT or turn.last is not None:
            row = encode_value(self._spec.observations, turn.observation)[self._columns]
            del self._rows[len(self._actions) :], self._rewards[len(self._actions) :]  # a turn that is shown again
            self._rows.append(row)
            self._rewards.append(float(turn.reward))

    def _note(self, turn: Turn, reply: Reply) -> None:
        """Take note of an answer."""
        if reply.belief is not None:
            self._beliefs.append(reply.belief.highest)
        if turn.ask is Ask.ACT and turn.last is None and reply.action is not None:
            action = encode_value(self._spec.actions, reply.action)
            if action.size or self._spec.actions is None:
                self._actions.append(action)

    def _judge_ended(self, turn: Turn) -> None:
        """Judge an episode that ends with this turn."""
        if (turn.last is not None or (self._hidden and len(self._rows) > PIECE)) and len(self._rows) > 1:
            actions = np.array(self._actions[: len(self._rows) - 1])
            rewards, beliefs = np.array(self._rewards[1:]), np.array(self._beliefs)
            self._judge(Seen(np.array(self._rows), actions, self._total, rewards, beliefs), turn.phase == "training")
            self._forget()

    def _judge(self, episode: Seen, training: bool) -> None:
        if training and not self._fitted:
            self._training.append(episode)
            return
        self._tested += not training
        if self._tested <= self._detector.warmup and not self._fitted:
            self._training.append(episode)
            return
        if not self._fitted:
            self._detector.fit(self._training)
            self._fitted, self._training = True, []
        if not training:
            self._belief = min(1.0, max(0.0, self._detector.judge(episode)))


def _unpack(state: bytes) -> bytes:
    """Return a saved state, of a size that it can have.

    Raises:
        InvalidInput: It is larger.
    """
    reader = zlib.decompressobj()
    found = reader.decompress(state, MAX_UNPACKED)
    if reader.unconsumed_tail:
        raise InvalidInput(f"The saved state of a detector is larger than {MAX_UNPACKED >> 20} MB.")
    return found


class DetectorFactory:
    """Makes agents with a detector. `with_detector` returns one."""

    def __init__(self, agent: AgentSource, detector: ChangeDetector) -> None:
        self.agent, self.detector = agent, detector
        named = isinstance(agent, str | AgentText)
        name = str(agent) if named else getattr(agent, "__name__", type(agent).__name__)
        self.__name__ = f"{name} with {detector.name}"

    def __call__(self, spec: Spec, seed: int) -> WithDetector:
        """Make the agent."""
        watched, domain = self.check_spec(spec), find_domain(spec.domain)
        agent = adapt_async(find_agent(self.agent, domain)(spec, seed), spec.reply_seconds)
        return WithDetector(agent, deepcopy(self.detector), watched, hides_episodes(domain))

    def check_trial(self, trial: Trial) -> None:
        """Check that a trial has enough training for the detector, or that it takes the first of the test instead.

        Raises:
            InvalidInput: It would see too few episodes.
        """
        factory = find_agent(self.agent, find_domain(trial.domain))
        if isinstance(factory, ChecksTrial):
            factory.check_trial(trial)
        if trial.after is None and not any(phase.steps for phase in trial.phases):
            training = sum(phase.episodes for phase in trial.phases if phase.name == "training")
            check_training(training + self.detector.warmup, self.detector.rule.min_training)
            if 0 < trial.test_length <= self.detector.warmup:
                raise InvalidInput(
                    f"A warmup of {self.detector.warmup} leaves nothing to judge: the test has {trial.test_length} "
                    "episodes."
                )

    def check_spec(self, spec: Spec) -> Spec:
        """Return the spec with what the detector needs of it.

        Raises:
            InvalidInput: It does not declare the spaces, or observations are too large for the detector.
        """
        factory = find_agent(self.agent, find_domain(spec.domain))
        if isinstance(factory, ChecksSpec):
            factory.check_spec(spec)
        signal = self.detector.signal
        missing = [need for need in signal.needs if getattr(spec, need) is None]
        if missing:
            raise InvalidInput(
                f"The detector cannot watch {spec.domain}: it does not declare its spaces, here the {missing[0]}. "
                "Let it watch the return or the reward, as in cusum(watch=reward)."
            )
        left_out = {need: None for need in ("observations", "actions") if need not in signal.needs}
        watched = replace(spec, **left_out)
        seen, done = (_count(each) for each in (watched.observations, watched.actions))
        seen = len(np.arange(seen)[find_columns(watched.observations, self.detector.features)])
        scorer = signal.detector if isinstance(signal, EpisodeScores) else signal
        numbers = (seen + 1) * (done + 1) if isinstance(scorer, TransitionSurprise) else seen
        if numbers > MAX_NUMBERS:
            raise InvalidInput(
                f"Observations of {spec.domain} are too large for the detector: {numbers:,} numbers. Name some of them "
                "with 'features', as in threshold(features=[0, 1])."
            )
        return watched


def with_detector(
    agent: AgentSource, detector: str | AgentText | EpisodeDetector, *, false_alarms: float = 0.01
) -> DetectorFactory:
    """Return an agent with a belief that a detector states: `of.with_detector(of.policy(model), "surprise")`.

    The detector is fitted to training episodes, and judges those of the test. A belief of 0.5 or more is an alarm.

    Args:
        agent: Any agent.
        detector: A detector as text, with parameters in brackets: `surprise`, `returns`, `observations`, `cusum`,
            `threshold`, `bocpd`, `mmd`, `deedee`, or `river:ADWIN` and others of river. Or an object with
            `fit(episodes)` and `score(episode)`.
        false_alarms: How many false alarms an unchanged episode may have on average: 0.01 is one in a hundred episodes.
            For detectors that have this parameter, where their text does not say it.

    Raises:
        UnknownName: There is no detector of this name, or no parameter.
        InvalidInput: An argument is wrong.
        MissingExtra: It needs a package that is not installed.
    """
    return DetectorFactory(agent, make_detector(detector, check_share(false_alarms)))


def find_columns(space: Space | None, features: tuple[int | str, ...]) -> Array | slice:
    """Return the places of features in the numbers of an observation; all if none is named.

    Raises:
        InvalidInput: The observation has no such feature.
    """
    if not features or space is None:
        return slice(None)
    places = {name: list(where) for name, where in _list_parts(space)}
    count, found = _count(space), list[int]()
    for feature in features:
        if isinstance(feature, int) and 0 <= feature < count:
            found.append(feature)
        elif isinstance(feature, str) and feature in places:
            found += places[feature]
        else:
            names = f", or {', '.join(places)}" if places else ""
            raise InvalidInput(f"Observations have no feature {feature!r}. They have places 0 to {count - 1}{names}.")
    return np.array(found, dtype=int)


def _list_parts(space: Space) -> list[tuple[str, range]]:
    """Return the named parts of an observation, each with its places."""
    found, start = [], 0
    for name, part in space.parts.items() if isinstance(space, Fields) else ():
        size = _count(part)
        found.append((name, range(start, start + size)))
        start += size
    return found


def _count(space: Space | None) -> int:
    """Return how many numbers a value of a space is."""
    return 0 if space is None else len(encode_value(space, space.sample(random.Random(0))))
