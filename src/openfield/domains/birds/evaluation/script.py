"""The script of a birds trial: which levels are played in which sets, and within which limits."""

from __future__ import annotations

import msgspec


class LevelSet(msgspec.Struct, frozen=True, kw_only=True):
    """Levels that are played under common limits; 0 or less means no limit."""

    levels: tuple[str, ...]
    """Names of level files below the folder of levels; `#change+change` behind a name changes the level on loading."""
    seconds: int = 0
    interactions: int = 0
    attempts: int = 0
    """Loads of each level."""
    selection: bool = False
    """True if the agent may choose levels; else they come in order."""

    @property
    def endless(self) -> bool:
        """True if no limit of time, interactions or attempts ever ends the set."""
        return bool(self.levels) and max(self.seconds, self.interactions, self.attempts) <= 0


class EvaluationScript(msgspec.Struct, frozen=True, kw_only=True):
    """A trial: training, tests at checkpoints and at the end, and how often the agent is asked for a belief."""

    training: LevelSet
    tests: tuple[LevelSet, ...] = ()
    checkpoint_seconds: int = 0
    checkpoint_interactions: int = 0
    informed: bool = False
    """True if the agent is told whether a level is novel."""
    report_step: int = 0
    """Interactions between two requests for a belief; 0 or less means never."""
    report_in_training: bool = False
    report_in_testing: bool = False
    executions: int = 1

    @property
    def names(self) -> list[str]:
        """The names of all levels, in order."""
        return [name for levels in (self.training, *self.tests) for name in levels.levels]
