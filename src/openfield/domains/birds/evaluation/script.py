"""The script of a birds trial: which levels are played as which sets, and within which limits.

Stands between configuration files, which are read into scripts, and the harness, which plays them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

CheckpointPolicy = Literal["next_set", "all_sets"]


class LevelSet(msgspec.Struct, frozen=True, kw_only=True):
    """Levels that are played under common limits; a limit of 0 or less is none."""

    levels: tuple[str, ...]
    """Names of level files below the folder of levels, with `#change+change` where the level is changed at loading."""
    seconds: int = 0
    interactions: int = 0
    attempts: int = 0
    """How often each level may be loaded."""
    selection: bool = False
    """Whether levels may be chosen freely, or only come one after the other."""

    @property
    def endless(self) -> bool:
        """Whether nothing ever ends it: no limit of time, of interactions or of attempts."""
        return bool(self.levels) and max(self.seconds, self.interactions, self.attempts) <= 0


class EvaluationScript(msgspec.Struct, frozen=True, kw_only=True):
    """A trial: training, tests at checkpoints and at the end, and how often the agent is asked what it thinks."""

    training: LevelSet
    tests: tuple[LevelSet, ...] = ()
    checkpoint_seconds: int = 0
    checkpoint_interactions: int = 0
    informed: bool = False
    """Whether the agent is told if a level is novel."""
    report_step: int = 0
    """The agent is asked for its belief after every so many interactions; 0 or less is never."""
    report_in_training: bool = False
    report_in_testing: bool = False
    executions: int = 1

    @property
    def names(self) -> list[str]:
        """All its levels, in order."""
        return [name for levels in (self.training, *self.tests) for name in levels.levels]
