"""Domains whose numbers can be had without looking at the world, each in one way; controls must find it."""

from __future__ import annotations

from typing import Any

import openfield as of
from support.walks import Walk, Walks


class FixedOnset(Walks):
    """Every trial changes at the same episode."""

    name = "fixed-onset"

    def trials(self, *args: Any, **options: Any) -> list[of.Trial]:
        return super().trials(*args, **options | {"onset": 2, "unchanged": 0})


class PublicTrials(Walks):
    """Its trials do not depend on the root seed, so that sealing hides nothing."""

    name = "public-trials"

    def trials(self, count: int = 5, seed: int = 0, *args: Any, **options: Any) -> list[of.Trial]:
        return super().trials(count, 0, *args, **options)


class NamedWalk(Walk):
    """Gives its places names that tell whether the world has changed."""

    def see(self) -> Any:
        return super().see() | {"id": f"{'usual' if self.settings.stride == 1 else 'novel'}-{self.at}"}


class TellingIds(Walks):
    """Shows the truth in ids."""

    name, play = "telling-ids", NamedWalk

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Walk.", actions=of.spaces.Discrete(2))


FIXED_ONSET, PUBLIC_TRIALS, TELLING_IDS = FixedOnset(), PublicTrials(), TellingIds()
