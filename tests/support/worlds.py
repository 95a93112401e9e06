"""Small worlds for tests: a scripted one for the loop, and a domain whose cue an agent can learn."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

import openfield as of
from openfield.core import Ask, Ending, Reply, Truth, Turn
from openfield.errors import AgentProtocol

FAR = Truth(performance=0.25)
OVER = Truth(performance=1.0, episode_over=True)


def act(seen: Any = 0, **fields: Any) -> Turn:
    """A turn that asks for an action."""
    return Turn(observation=seen, **fields)


def end(seen: Any = 0, ending: Ending = "terminated", **fields: Any) -> Turn:
    """The last turn of an episode."""
    return Turn(ask=Ask.NONE, observation=seen, last=ending, **fields)


class Scripted:
    """Shows the turns it was given, one a step, and keeps the replies; an exception in the script is raised."""

    def __init__(self, script: Sequence[Turn | Exception], truths: Sequence[Truth] = (), timed: bool = False) -> None:
        self.script = list(script)
        self.truths = list(truths)
        self.timed = timed
        self.at = 0
        self.replies: list[Reply] = []
        self.closed = False

    @property
    def truth(self) -> Truth:
        if self.at < len(self.truths):
            return self.truths[self.at]
        turn = self.script[self.at]
        return OVER if isinstance(turn, Turn) and turn.last else FAR

    @property
    def over(self) -> bool:
        return self.at + 1 >= len(self.script)

    def reset(self) -> Turn:
        self.at = 0
        return self._show()

    def step(self, reply: Reply) -> Turn:
        self.replies.append(reply)
        self.at += 1
        return self._show()

    def look(self, query: str) -> Any:
        return query

    def close(self) -> None:
        self.closed = True

    def _show(self) -> Turn:
        turn = self.script[self.at]
        if isinstance(turn, Exception):
            raise turn
        return turn


def endless(**fields: Any) -> Scripted:
    return Scripted([act(n, **fields) for n in range(1_000)])


def two_episodes() -> Scripted:
    return Scripted([act(0, first=True), act(1), end(2, reward=1.0), act(3, first=True), end(4, "truncated")])


class TinySettings(of.Settings, frozen=True):
    """How long trials of the cue world are."""

    length: int = 6
    flipped: bool = False
    training: int = 2
    before: int = 3
    after: int = 3
    padding: int = 0
    """Bytes of noise in every observation, to fill chunks of the record inside an episode."""
    broken_at: int = -1
    """The move that raises an error, counted in every episode; -1 is none."""


class TinyPlay:
    """An episode: the right answer is the cue, or the other one if the world is flipped."""

    def __init__(self, settings: TinySettings, rng: random.Random) -> None:
        self.settings, self.rng, self.moves, self.right = settings, rng, 0, 0
        self.reward, self.performance = 0.0, 0.0
        self.ended: Ending | None = None
        self.observation = self._see()

    def move(self, action: Any) -> None:
        if action not in (0, 1):
            raise AgentProtocol(f"unknown action {action!r}; known are 0 and 1")
        if self.moves == self.settings.broken_at:
            raise ArithmeticError("the world fell apart")
        right = action == self.observation["cue"] ^ self.settings.flipped
        self.moves, self.right, self.reward = self.moves + 1, self.right + right, float(right)
        self.performance = self.right / self.settings.length
        self.ended = "terminated" if self.moves == self.settings.length else None
        self.observation = self._see()

    def _see(self) -> dict[str, Any]:
        return {"cue": self.rng.randrange(2), "noise": self.rng.randbytes(self.settings.padding)}


class Tiny(of.Domain[TinySettings]):
    """A domain of cue worlds."""

    name, title, settings = "tiny", "Answer the cue", TinySettings
    default_novelty = "flipped"
    novelties = (
        of.Novelty(
            "flipped", 3, "rules", "the other answer is right", lambda s: msgspec.structs.replace(s, flipped=True)
        ),
    )
    limits = of.Limits(reply_seconds=30.0)

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Answer the cue.", actions=of.spaces.Discrete(2))

    def phases(self, settings: TinySettings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        early = of.Phase("training", settings.training), of.Phase("test", settings.before)
        return (*early, of.Phase("test", settings.after, novelty))

    def world(self, trial: of.Trial) -> of.World:
        return of.EpisodicWorld(self, trial, TinyPlay)


TINY = Tiny()


def tiny_trials(count: int = 1, limits: of.Limits | None = None, **options: Any) -> list[of.Trial]:
    """Trials of the cue world."""
    trials = of.trials(TINY, count, **options, unchanged=0)
    return trials if limits is None else [msgspec.structs.replace(trial, limits=limits) for trial in trials]
