"""How far an agent is in a set: attempts left, best scores, position, and what of its limits is used up.

Stands under the harness, which keeps one for training and one for the test set that is on.
"""

from __future__ import annotations

from typing import Any

from openfield.domains.birds.evaluation.script import LevelSet


class SetProgress:
    """How far the agent is in a set."""

    def __init__(self, levels: LevelSet, testing: bool, repeats: bool = True) -> None:
        self.set = levels
        self.testing = testing
        self.repeats = repeats
        """Whether a level with any number of attempts comes again and again until another is chosen."""
        self.resumed = False
        """Whether the set was gone on with and no level loaded since."""
        self.left: list[int | None] = [levels.attempts if levels.attempts > 0 else None] * len(levels.levels)
        self.scores = [0] * len(levels.levels)
        self.position = -1
        self.interactions = 0
        self.seconds = 0.0
        self.recent_interactions = 0
        """Since the set was entered last; with the next one it is what checkpoints go by."""
        self.recent_seconds = 0.0

    def enter(self) -> None:
        """Starts counting for the next checkpoint."""
        self.recent_interactions, self.recent_seconds = 0, 0.0

    def may_load(self, index: int) -> bool:
        """Whether a level has attempts left."""
        return 0 <= index < len(self.left) and self.left[index] != 0

    def next_index(self) -> int | None:
        """The level played last while it has attempts left, else the next that has, all around.

        When a set is gone on with it is the one after that; where attempts have no limit too, if the options say so.
        """
        count = len(self.left)
        moves_on = self.position >= 0 and self.left[self.position] is None and not self.repeats
        start = self.position + 1 if moves_on or self.resumed else max(self.position, 0)
        order = [(start + step) % count for step in range(count)] if count else []
        return next((index for index in order if self.may_load(index)), None)

    @property
    def exhausted(self) -> bool:
        """Whether a limit is reached, or no level is left."""
        return self.spent or self.next_index() is None

    @property
    def spent(self) -> bool:
        """Whether a limit is reached."""
        return self.out_of_time or self.out_of_interactions

    @property
    def out_of_time(self) -> bool:
        """Whether the time is over."""
        return 0 < self.set.seconds <= self.seconds

    @property
    def out_of_interactions(self) -> bool:
        """Whether all interactions are used."""
        return 0 < self.set.interactions <= self.interactions

    @property
    def facts(self) -> dict[str, Any]:
        """What an agent is told of the set when it begins."""
        levels = self.set
        return {
            "levels": len(levels.levels),
            "seconds": levels.seconds,
            "interactions": levels.interactions,
            "attempts": levels.attempts,
            "selection": levels.selection,
        }

    @property
    def menu(self) -> dict[str, Any]:
        """What an agent is told between levels: the one played last, those it may load, and the best scores."""
        return {
            "level": self.position + 1,
            "available": [index + 1 for index in range(len(self.left)) if self.may_load(index)],
            "scores": list(self.scores),
            "selection": self.set.selection,
        }
