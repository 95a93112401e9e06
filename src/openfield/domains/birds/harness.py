"""The script of a birds trial, and the harness that plays it: sets, checkpoints, limits, attempts, and questions.

The script says which levels are played in which sets, and within which limits. The harness has no input or output: the
world tells it what the agent asked for and what happened, and it decides what is allowed and which state comes next.
"""

from __future__ import annotations

import enum
import math
from typing import Any

import msgspec

from openfield.domains.birds.settings import BirdsSettings


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


class HarnessState(enum.IntEnum):
    """The state codes of the protocol (request 12)."""

    UNKNOWN = 0
    MAIN_MENU = 1
    EPISODE_MENU = 2
    LEVEL_SELECTION = 3
    LOADING = 4
    PLAYING = 5
    WON = 6
    LOST = 7
    NEW_TEST_SET = 8
    NEW_TRAINING_SET = 9
    RESUME_TRAINING = 10
    NEW_TRIAL = 11
    REQUEST_BELIEF = 12
    TERMINATED = 13


SET_STATES = (HarnessState.NEW_TEST_SET, HarnessState.NEW_TRAINING_SET, HarnessState.RESUME_TRAINING)
RESTING = (HarnessState.MAIN_MENU, HarnessState.WON, HarnessState.LOST)
"""States inside a set with no level in play."""


class SetProgress:
    """How far the agent is in a set: attempts left, best scores, position, and the used part of the limits."""

    def __init__(self, levels: LevelSet, testing: bool, repeats: bool = True) -> None:
        self.set = levels
        self.testing = testing
        self.repeats = repeats
        """See the setting `repeat_unlimited`."""
        self.resumed = False
        """True from the moment the set was resumed until a level is loaded."""
        self.left: list[int | None] = [levels.attempts if levels.attempts > 0 else None] * len(levels.levels)
        self.scores = [0] * len(levels.levels)
        self.position = -1
        self.interactions = 0
        self.seconds = 0.0
        self.recent_interactions = 0
        """Interactions since the set was entered; checkpoints count these and `recent_seconds`."""
        self.recent_seconds = 0.0

    def may_load(self, index: int) -> bool:
        """Return whether a level has attempts left."""
        return 0 <= index < len(self.left) and self.left[index] != 0

    def next_index(self) -> int | None:
        """Return the index of the next level: the last one while it has attempts left, else the next that has.

        A resumed set goes on with the level after the last one. So does a set without a limit of attempts, if the
        settings say so.
        """
        count = len(self.left)
        moves_on = self.position >= 0 and self.left[self.position] is None and not self.repeats
        start = self.position + 1 if moves_on or self.resumed else max(self.position, 0)
        order = [(start + step) % count for step in range(count)] if count else []
        return next((index for index in order if self.may_load(index)), None)

    @property
    def exhausted(self) -> bool:
        """True if a limit is reached or no level is left."""
        return self.spent or self.next_index() is None

    @property
    def spent(self) -> bool:
        """True if a limit of time or of interactions is reached."""
        return 0 < self.set.seconds <= self.seconds or 0 < self.set.interactions <= self.interactions

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that an agent receives when the set begins."""
        return {**msgspec.structs.asdict(self.set), "levels": len(self.set.levels)}

    @property
    def menu(self) -> dict[str, Any]:
        """The facts that an agent receives between levels: the last level, the available ones, and the best scores."""
        return {
            "level": self.position + 1,
            "available": [index + 1 for index in range(len(self.left)) if self.may_load(index)],
            "scores": list(self.scores),
            "selection": self.set.selection,
        }


class Harness:
    """The rules of one trial, applied to what the agent does; where releases of the game differ, a setting decides."""

    def __init__(self, script: EvaluationScript, settings: BirdsSettings) -> None:
        self.script, self.settings = script, settings
        self.training = SetProgress(script.training, testing=False, repeats=settings.repeat_unlimited)
        self.current = self.training
        self.stage = HarnessState.NEW_TRIAL
        self.report_pending = False
        """True from the moment a belief is asked for until the agent has reported one."""
        self.training_over = False
        self._tests = [levels for levels in script.tests if levels.levels]
        self._unused = list(self._tests)
        self._tests_begun = 0

    @property
    def state(self) -> HarnessState:
        """The state that the agent receives."""
        return HarnessState.REQUEST_BELIEF if self.report_pending else self.stage

    @property
    def over(self) -> bool:
        """True if the trial has ended."""
        return self.stage is HarnessState.TERMINATED

    @property
    def set_number(self) -> int:
        """The number of the current set: 0 is training, 1 the first test that was played."""
        return self._tests_begun if self.current.testing else 0

    @property
    def level_name(self) -> str:
        """The name of the level loaded last in this set; empty if there is none."""
        return self.current.set.levels[self.current.position] if self.current.position >= 0 else ""

    def ready(self) -> None:
        """Begin the announced trial or set; does nothing if none is announced."""
        if self.stage is HarnessState.NEW_TRIAL:
            if self.training.next_index() is None:
                self._end_training()
            else:
                self.stage = HarnessState.NEW_TRAINING_SET
        elif self.stage in SET_STATES:
            self.current.resumed = self.stage is HarnessState.RESUME_TRAINING
            self.stage = HarnessState.MAIN_MENU
            self.current.recent_interactions, self.current.recent_seconds = 0, 0.0

    def find(self, index: int | None = None) -> int | None:
        """Return the index that `load` would give; None if it would refuse."""
        if self.report_pending or self._moves_on or self.stage not in (*RESTING, HarnessState.PLAYING):
            return None
        return self._candidate(index)

    @property
    def open_levels(self) -> list[int]:
        """The numbers, from 1 on, of the levels that can be loaded now."""
        return [index + 1 for index in range(len(self.current.left)) if self.find(index) is not None]

    def load(self, index: int | None = None) -> int | None:
        """Load a level, or the next available one, and return its index; None if that is refused.

        A request for the next level ends the set when none is left. A request inside a level that a test or the end of
        the set waits for brings that instead of another level.
        """
        wanted = self.find(index)
        if wanted is None:
            self._refuse(index)
            return None
        self._play(wanted)
        if self.settings.count_loads:
            self.interact()
        return wanted

    @property
    def may_restart(self) -> bool:
        """True if the level loaded last may be played again now."""
        loaded = self.stage in (HarnessState.PLAYING, HarnessState.WON, HarnessState.LOST) and not self._moves_on
        return loaded and not self.report_pending and self.current.may_load(self.current.position)

    def restart(self) -> int | None:
        """Load the last level again, as one more attempt, and return its index; None if it has no attempt left."""
        if not self.may_restart:
            if self.stage is HarnessState.PLAYING:
                self._refuse(self.current.position)
            return None
        self._play(self.current.position)
        return self.current.position

    @property
    def may_leave(self) -> bool:
        """True if the agent may stop for good: nothing but its own choice, or a clock, ends the set that it plays.

        A set without any limit never ends by itself. One without a limit of attempts must be the last of the trial.
        """
        current = self.current
        in_set = self.stage in (*RESTING, HarnessState.PLAYING) and not self.report_pending
        free = current.set.endless or (current.set.attempts <= 0 and self._is_last)
        return in_set and free and current.position >= 0

    def leave_level(self) -> None:
        """Leave the level in play without another one."""
        if self.stage is HarnessState.PLAYING:
            self.stage = HarnessState.MAIN_MENU

    @property
    def may_shoot(self) -> bool:
        """True if a shot would count."""
        return self.stage is HarnessState.PLAYING and not self.report_pending

    def interact(self) -> None:
        """Count an interaction, and ask for a belief if one is due."""
        current = self.current
        current.interactions += 1
        current.recent_interactions += 1
        script = self.script
        wanted = script.report_in_testing if current.testing else script.report_in_training
        if wanted and not script.informed and script.report_step > 0:
            self.report_pending = current.recent_interactions % script.report_step == 0

    def end_level(self, won: bool, score: int) -> None:
        """End the level in play, and keep its score if it is the best."""
        scores, position = self.current.scores, self.current.position
        scores[position] = max(scores[position], score)
        self.stage = HarnessState.WON if won else HarnessState.LOST

    def spend(self, seconds: float) -> None:
        """Count seconds towards the limits while a set is on."""
        if self.stage in (*RESTING, HarnessState.PLAYING):
            self.current.seconds += seconds
            self.current.recent_seconds += seconds

    @property
    def seconds_left(self) -> float:
        """Seconds until a time limit or checkpoint changes the state; infinite if none will."""
        playing = self.stage is HarnessState.PLAYING
        if (playing and not self._cuts_short) or self.stage not in (*RESTING, HarnessState.PLAYING):
            return math.inf
        current, script = self.current, self.script
        left = [current.set.seconds - current.seconds] if current.set.seconds > 0 else []
        if script.checkpoint_seconds > 0 and self._unused and not current.testing and not playing:
            left.append(script.checkpoint_seconds - current.recent_seconds)
        return min(left, default=math.inf)

    def update(self) -> None:
        """Change the state if a limit, a checkpoint or the end of a set was reached; call it after every event."""
        if self.report_pending:
            return  # the question comes before everything else
        if self.stage is HarnessState.PLAYING and self.current.spent and self._cuts_short:
            self.stage = HarnessState.MAIN_MENU  # a limit cuts the level short; a checkpoint waits for its end
        if self.stage in RESTING:
            if self.current.exhausted:
                self._end_set()
            elif not self.current.testing and self._at_checkpoint:
                if self._unused:
                    self._announce_test()
                else:
                    self.training.recent_seconds = 0.0  # only the clock: questions go by the interactions

    def _candidate(self, index: int | None) -> int | None:
        """Return the level that a request means, whatever the state is; None if no level is left."""
        following = self.current.next_index()
        if index is None or index == following:
            return following
        return index if self.current.set.selection and self.current.may_load(index) else None

    def _refuse(self, index: int | None) -> None:
        """Change the state after a refused load."""
        if self.report_pending or self.stage not in (*RESTING, HarnessState.PLAYING):
            return
        if self.stage is HarnessState.PLAYING and self._moves_on and self._candidate(index) is not None:
            self.stage = HarnessState.MAIN_MENU
            self.update()
        elif index is None:
            self._end_set()

    @property
    def _moves_on(self) -> bool:
        """True if a limit is reached, or a checkpoint that a test set follows; both wait for the end of a level."""
        return self.current.spent or (not self.current.testing and bool(self._unused) and self._at_checkpoint)

    @property
    def _at_checkpoint(self) -> bool:
        script, recent = self.script, self.training
        by_time = 0 < script.checkpoint_seconds <= recent.recent_seconds
        return by_time or 0 < script.checkpoint_interactions <= recent.recent_interactions

    def _play(self, index: int) -> None:
        left = self.current.left[index]
        self.current.left[index] = None if left is None else left - 1
        self.current.position, self.current.resumed = index, False
        self.stage = HarnessState.PLAYING

    @property
    def _cuts_short(self) -> bool:
        """True if a limit ends the level in play: the trial ends with it, or the settings say so."""
        return self._is_last or not self.settings.finish_levels

    @property
    def _is_last(self) -> bool:
        """True if the trial ends with the current set: a test after training, or training if there is no test."""
        return not self._unused and (self.training_over or not self._tests)

    def _end_set(self) -> None:
        if not self.current.testing:
            self._end_training()
        elif self._unused and (self.training_over or self.settings.checkpoint_policy == "all_sets"):
            self._announce_test()
        elif self.training_over:
            self.stage = HarnessState.TERMINATED
        elif self.training.exhausted:
            self._end_training()
        else:
            self.current, self.stage = self.training, HarnessState.RESUME_TRAINING

    def _end_training(self) -> None:
        """End training with a final test: the sets that are left, else what the last checkpoint has played."""
        self.training_over = True
        if not self._unused:
            self._unused = list(self._tests) if self.settings.checkpoint_policy == "all_sets" else self._tests[-1:]
        if self._unused:
            self._announce_test()
        else:
            self.stage = HarnessState.TERMINATED

    def _announce_test(self) -> None:
        self._tests_begun += 1
        self.current = SetProgress(self._unused.pop(0), testing=True, repeats=self.settings.repeat_unlimited)
        self.stage = HarnessState.NEW_TEST_SET
