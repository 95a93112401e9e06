"""A domain whose trials are one turn long: what is left is the cost of openfield itself."""

from __future__ import annotations

import random
from typing import Any

import openfield as of


class TinySettings(of.Settings, frozen=True):
    """The episodes of a trial."""

    before: int = 1
    after: int = 1


class TinyPlay:
    """An episode of one turn."""

    observation, reward, performance = 0, 0.0, 1.0
    ended: of.core.Ending | None = None

    def __init__(self, settings: TinySettings, rng: random.Random) -> None:
        self.performance = rng.random()

    def move(self, action: Any) -> None:
        self.ended = "terminated"


class TinyDomain(of.Domain[TinySettings]):
    """Trials of two turns."""

    name, title, settings, metrics = "tiny", "Trials of two turns", TinySettings, ("performance",)

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Say 0.", actions=of.spaces.Discrete(1))

    def phases(self, settings: TinySettings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        return of.Phase("test", settings.before), of.Phase("test", settings.after, novelty)

    def world(self, trial: of.Trial) -> of.World:
        return of.EpisodicWorld(self, trial, TinyPlay)


DOMAIN = TinyDomain()


def say_nothing(turn: of.Turn) -> of.Reply:
    """Answer 0."""
    return of.Reply(0)
