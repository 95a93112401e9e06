"""Learners as agents: those that come with the domain, and any class with `next(symbol)`.

A rollout shows them turns; `openfield run commai --agent NAME` makes them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from openfield.core import Agent, Ask, Belief, Reply, Spec, Turn
from openfield.domains.commai.agents.learners import MappingLearner, MemorisingLearner, NoticingLearner, RandomLearner
from openfield.domains.commai.environment.learner_session import LearnerAdapter
from openfield.domains.commai.environment.serializers import speaks_bits
from openfield.domains.commai.environment.task import BYTES
from openfield.domains.commai.original.core.serializer import StandardSerializer
from openfield.domains.commai.original.imports import user_folder
from openfield.domains.commai.settings import INSTANCE_BEGINS
from openfield.errors import AgentProtocol, InvalidInput
from openfield.registry import load

SILENCE = Reply(32)
REPLIES = tuple(Reply(code) for code in range(256))
_SPOKEN: dict[Any, Reply] = {symbol: REPLIES[code] for code, symbol in enumerate(BYTES)}
_BITS: dict[Any, Reply] = {"0": REPLIES[0], "1": REPLIES[1], 0: REPLIES[0], 1: REPLIES[1]}


class EchoAgent:
    """Repeats what it hears."""

    stateless = True

    def __init__(self, spec: Spec, seed: int) -> None:
        """Ignore the trial: an echo needs to know nothing."""

    def __call__(self, turn: Turn) -> Reply:
        """Return the same byte."""
        reply: Reply = REPLIES[turn.observation]
        return reply


class SilentAgent:
    """Says only spaces. In bit mode it says only zeros."""

    stateless = True

    def __init__(self, spec: Spec, seed: int) -> None:
        self._silence = SILENCE if not speaks_bits(spec) else REPLIES[0]

    def __call__(self, turn: Turn) -> Reply:
        """Return silence."""
        return self._silence


class LearnerAgent:
    """Lets a learner answer turns: any object with `next(symbol)` and, if it likes, `reward(r)`.

    A learner may also have `belief`, a number or a method without arguments: the probability that its world has
    changed. None says nothing. With `save` and `load`, its state is saved from time to time. Rewards go to `try_reward`
    if it has that: every one, or with the setting `reward_calls=ends` only those at the end of an instance.
    """

    def __init__(self, learner: Any, spec: Spec) -> None:
        self.learner = learner
        if not callable(getattr(learner, "next", None)):
            raise InvalidInput(f"{type(learner).__name__} is not a learner: it has no method next(symbol).")
        self._answer = learner.next
        self._reward = getattr(learner, "try_reward", None) or getattr(learner, "reward", None)
        self._only_ends: bool | None = None  # whether the turns say where an instance begins
        if callable(getattr(learner, "set_view", None)):
            learner.set_view(QuietView())
        self._believes = hasattr(learner, "belief")
        bits = speaks_bits(spec)
        self._replies = _BITS if bits else _SPOKEN
        self._symbols = ("0", "1") if bits else BYTES
        if callable(getattr(learner, "save", None)) and callable(getattr(learner, "load", None)):
            self.save, self.load = learner.save, learner.load

    def __call__(self, turn: Turn) -> Reply:
        """Tell the learner its reward, then the symbol, and return its answer."""
        if self._reward is not None:
            if self._only_ends is None:
                self._only_ends = turn.feedback == INSTANCE_BEGINS
            if not self._only_ends:
                self._reward(_as_whole(turn.reward))
            elif not turn.first:
                self._tell_end(turn)
        if turn.ask is Ask.NONE:
            return Reply()
        said = self._answer(self._symbols[turn.observation])
        try:
            reply = self._replies[said]
        except (KeyError, TypeError):
            reply = self._understand(said)
        return Reply(reply.action, self._belief()) if self._believes else reply

    def _tell_end(self, turn: Turn) -> None:
        """Tell the learner the reward of an instance that has ended, and nothing in between."""
        if turn.feedback == INSTANCE_BEGINS and self._reward is not None:
            self._reward(_as_whole(turn.reward))
        elif hasattr(self.learner, "try_reward"):
            self.learner.try_reward(None)

    def _understand(self, said: Any) -> Reply:
        """Accept bytes and numbers as symbols, and None as silence."""
        if said is None:
            return REPLIES[ord(" ")] if len(self._symbols) == 256 else REPLIES[0]
        if isinstance(said, bytes) and said.decode("latin-1") in self._replies:
            return self._replies[said.decode("latin-1")]
        if isinstance(said, int) and 0 <= said < len(self._symbols):
            return REPLIES[said]
        wanted = "one character with a code from 0 to 255" if len(self._symbols) == 256 else "0 or 1"
        raise AgentProtocol(f"{type(self.learner).__name__} said {said!r:.60}; a symbol is {wanted}.")

    def _belief(self) -> Belief | None:
        belief = self.learner.belief
        value = belief() if callable(belief) else belief
        if value is None or isinstance(value, Belief):
            return value
        try:
            if isinstance(value, str | bytes):  # Python would read the digits of any script
                raise TypeError
            return Belief(float(value))
        except (TypeError, ValueError):
            name = type(self.learner).__name__
            raise AgentProtocol(f"{name} believes {value!r:.60}; a belief is one number from 0 to 1.") from None


class QuietView:
    """A view for learners that want one: it takes every call and shows nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **options: None


def _as_whole(reward: float) -> int | float:
    """Return a reward as an int if it is a whole number."""
    return int(reward) if reward == int(reward) else reward


def make_learner(kind: Any, parameters: Mapping[str, Any], spec: Spec, seed: int) -> Agent:
    """Make a learner of a user's class, which may draw from the global generator: that gets the agent's seed.

    The original's human learners get a serializer and the mode.
    """
    random.seed(seed)
    given = (StandardSerializer(), not speaks_bits(spec)) if getattr(kind, "takes_mode", False) else ()
    return LearnerAgent(kind(*given, **parameters), spec)


def make_random(spec: Spec, seed: int) -> Agent:
    """Make an agent that says random printable symbols, or random bits."""
    return LearnerAgent(RandomLearner(seed, "01") if speaks_bits(spec) else RandomLearner(seed), spec)


def make_memorising(spec: Spec, seed: int) -> Agent:
    """Make an agent that repeats what earned a reward."""
    return LearnerAgent(MemorisingLearner(), spec)


def make_mapper(spec: Spec, seed: int) -> Agent:
    """Make an agent that learns mappings and notices symbols it has never heard."""
    return LearnerAgent(NoticingLearner(MappingLearner()), spec)


def load_learner(path: str, *args: Any) -> LearnerAdapter:
    """Make the learner at a dotted path like `my_learners.Clever` or `my_learners:Clever`.

    Its module may import the packages of the original.

    Raises:
        InvalidInput: The path has no module, or the module cannot be imported.
        UnknownName: The module has no such class.
    """
    module_name, _, name = path.replace(":", ".").rpartition(".")
    if not module_name:
        raise InvalidInput(f"Learner '{path}' has no module. Write it like 'my_module.MyLearner'.")
    importer: Any = user_folder()
    return LearnerAdapter(load(f"{module_name}:{name}", importer)(*args), path)
