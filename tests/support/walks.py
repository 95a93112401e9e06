"""A very small domain that keeps every promise, for tests that need one, and to be spoilt in `bad_worlds.py`."""

from __future__ import annotations

import random
from typing import Any

import msgspec

import openfield as of
from openfield.core import Ending
from openfield.errors import AgentProtocol


class WalkSettings(of.Settings, frozen=True):
    """How a walk goes."""

    stride: int = 1
    length: int = 8
    training: int = 1
    before: int = 2
    after: int = 2


class Walk:
    """An episode: some steps to the left and right from a random place."""

    def __init__(self, settings: WalkSettings, rng: random.Random) -> None:
        self.settings, self.rng = settings, rng
        self.at, self.moves = rng.randrange(40, 60), 0
        self.reward, self.performance = 0.0, 0.5
        self.ended: Ending | None = None
        self.observation: Any = self.see()

    def move(self, action: Any) -> None:
        if action not in (0, 1):
            raise AgentProtocol(f"{action!r} is neither 0 nor 1")
        self.at += self.settings.stride * (1 if action else -1)
        self.moves += 1
        self.ended = "terminated" if self.moves >= self.settings.length else None
        self.observation = self.see()

    def see(self) -> Any:
        return {"at": self.at, "noise": self.rng.randrange(1000)}


class Walks(of.Domain[WalkSettings]):
    """The domain."""

    name, title, settings = "walks", "Walks", WalkSettings
    novelties: Any = (
        of.Novelty("backwards", 2, "actions", "goes back", lambda s: msgspec.structs.replace(s, stride=-1)),
        of.Novelty("leaps", 3, "actions", "wide", lambda s: msgspec.structs.replace(s, stride=2), "easy"),
        of.Novelty("leaps", 3, "actions", "wider", lambda s: msgspec.structs.replace(s, stride=3), "hard"),
    )
    default_novelty = "backwards"
    play: Any = Walk

    def spec(self, trial: of.Trial) -> of.Spec:
        seen = of.spaces.Fields({"at": of.spaces.Discrete(100), "noise": of.spaces.Discrete(1000)})
        return of.Spec(domain=self.name, task="Walk.", actions=of.spaces.Discrete(2), observations=seen)

    def phases(self, settings: WalkSettings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        early = of.Phase("training", settings.training), of.Phase("test", settings.before)
        return (*early, of.Phase("test", settings.after, novelty))

    def world(self, trial: of.Trial) -> of.World:
        return of.EpisodicWorld(self, trial, self.play)


WALKS = Walks()
