"""The rules of a birds trial: sets, checkpoints, limits, attempts, and when the agent is asked what it thinks.

Stands between script and world, without any input or output: the world tells it what was asked and what happened, it
says what is allowed and which state the agent is in.
"""

from __future__ import annotations

import enum
import math

import msgspec

from openfield.domains.birds.evaluation.progress import SetProgress
from openfield.domains.birds.evaluation.script import CheckpointPolicy, EvaluationScript


class HarnessState(enum.IntEnum):
    """What an agent is told when it asks for the state."""

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
"""States in which a set is on and no level is in play."""


class HarnessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which releases of the game differ."""

    count_loads: bool = True
    """A level loaded is an interaction, not only a shot."""
    checkpoint_policy: CheckpointPolicy = "next_set"
    repeat_unlimited: bool = True
    """A level with any number of attempts is the next one again, until another is chosen; else the one after it is."""
    finish_levels: bool = True
    """A level in play is finished when a limit of its set is reached, where a test or training follows.

    States 8, 9 and 10 wait for the end of a level, so its birds are the only ones that may still fly; else it is cut
    short, and no limit is ever exceeded.
    """


class Harness:
    """A trial under way."""

    def __init__(self, script: EvaluationScript, options: HarnessOptions | None = None) -> None:
        self.script = script
        self.options = options or HarnessOptions()
        self.training = SetProgress(script.training, testing=False, repeats=self.options.repeat_unlimited)
        self.current = self.training
        self.stage = HarnessState.NEW_TRIAL
        self.report_pending = False
        self.training_over = False
        self._unused = [levels for levels in script.tests if levels.levels]

    @property
    def state(self) -> HarnessState:
        """What the agent is told."""
        return HarnessState.REQUEST_BELIEF if self.report_pending else self.stage

    @property
    def over(self) -> bool:
        """Whether the trial has ended."""
        return self.stage is HarnessState.TERMINATED

    @property
    def level_name(self) -> str:
        """The level loaded last in this set; empty if none is."""
        return self.current.set.levels[self.current.position] if self.current.position >= 0 else ""

    def ready(self) -> None:
        """The agent is ready for what was announced; at any other time this changes nothing."""
        if self.stage is HarnessState.NEW_TRIAL:
            self._announce_first()
        elif self.stage in SET_STATES:
            self.current.resumed = self.stage is HarnessState.RESUME_TRAINING
            self.stage = HarnessState.MAIN_MENU
            self.current.enter()

    def find(self, index: int | None = None) -> int | None:
        """The index of the level that a request to load one, or the next one, would give; None if it is refused."""
        if self.report_pending or self._moves_on or self.stage not in (*RESTING, HarnessState.PLAYING):
            return None
        return self._candidate(index)

    @property
    def open_levels(self) -> list[int]:
        """The numbers, from 1 on, of the levels that a request to load them would give."""
        return [index + 1 for index in range(len(self.current.left)) if self.find(index) is not None]

    def load(self, index: int | None = None) -> int | None:
        """Loads a level, or the next available one; returns its index, or None if that is refused.

        Asking for the next one when none is left ends the set; leaving a level when a test or the end of the set waits
        for it lets that come instead of another level.
        """
        wanted = self.find(index)
        if wanted is None:
            self._refuse(index)
            return None
        self._play(wanted)
        if self.options.count_loads:
            self.interact()
        return wanted

    @property
    def may_restart(self) -> bool:
        """Whether the level loaded last has an attempt left."""
        loaded = self.stage in (HarnessState.PLAYING, HarnessState.WON, HarnessState.LOST) and not self._moves_on
        return loaded and not self.report_pending and self.current.may_load(self.current.position)

    def restart(self) -> int | None:
        """Plays the level again, as one more attempt; returns its index, or None if it has none left."""
        if not self.may_restart:
            if self.stage is HarnessState.PLAYING:
                self._refuse(self.current.position)
            return None
        self._play(self.current.position)
        return self.current.position

    @property
    def may_shoot(self) -> bool:
        """Whether a shot would count."""
        return self.stage is HarnessState.PLAYING and not self.report_pending

    def interact(self) -> None:
        """Counts an interaction, and asks for a belief when it is time."""
        current = self.current
        current.interactions += 1
        current.recent_interactions += 1
        script = self.script
        wanted = script.report_in_testing if current.testing else script.report_in_training
        if wanted and not script.informed and script.report_step > 0:
            self.report_pending = current.recent_interactions % script.report_step == 0

    def report(self) -> None:
        """The agent has said what it thinks."""
        self.report_pending = False

    def end_level(self, won: bool, score: int) -> None:
        """The level in play was won or lost."""
        scores, position = self.current.scores, self.current.position
        scores[position] = max(scores[position], score)
        self.stage = HarnessState.WON if won else HarnessState.LOST

    def spend(self, seconds: float) -> None:
        """Lets time pass; it counts while a set is on."""
        if self.stage in (*RESTING, HarnessState.PLAYING):
            self.current.seconds += seconds
            self.current.recent_seconds += seconds

    @property
    def seconds_left(self) -> float:
        """How long the agent may wait before something happens by itself; infinite if nothing will."""
        playing = self.stage is HarnessState.PLAYING
        if (playing and not self._cuts_short) or self.stage not in (*RESTING, HarnessState.PLAYING):
            return math.inf
        current, script = self.current, self.script
        left = [current.set.seconds - current.seconds] if current.set.seconds > 0 else []
        if script.checkpoint_seconds > 0 and self._unused and not current.testing and not playing:
            left.append(script.checkpoint_seconds - current.recent_seconds)
        return min(left, default=math.inf)

    def update(self) -> None:
        """Moves on if a limit, a checkpoint or the end of a set was reached; to be called after everything."""
        if self.report_pending:
            return  # the question comes before everything else
        if self.stage is HarnessState.PLAYING:
            self._interrupt()
        if self.stage in RESTING:
            if self.current.exhausted:
                self._end_set()
            elif not self.current.testing and self._checkpoint_due():
                self._announce_test()

    def _candidate(self, index: int | None) -> int | None:
        """The level a request means, whether or not it is the time for it; None if there is none left."""
        following = self.current.next_index()
        if index is None or index == following:
            return following
        return index if self.current.set.selection and self.current.may_load(index) else None

    def _refuse(self, index: int | None) -> None:
        """What becomes of the set when a level cannot be loaded."""
        if self.report_pending or self.stage not in (*RESTING, HarnessState.PLAYING):
            return
        if self.stage is HarnessState.PLAYING and self._moves_on and self._candidate(index) is not None:
            self.stage = HarnessState.MAIN_MENU
            self.update()
        elif index is None:
            self._end_set()

    @property
    def _moves_on(self) -> bool:
        """Whether a limit is reached, or a checkpoint that a test set follows; both wait for the end of a level."""
        return self.current.spent or (not self.current.testing and bool(self._unused) and self._at_checkpoint)

    @property
    def _at_checkpoint(self) -> bool:
        script, recent = self.script, self.training
        by_time = 0 < script.checkpoint_seconds <= recent.recent_seconds
        return by_time or 0 < script.checkpoint_interactions <= recent.recent_interactions

    def _announce_first(self) -> None:
        if self.training.next_index() is None:
            self._end_training()
        else:
            self.stage = HarnessState.NEW_TRAINING_SET

    def _play(self, index: int) -> None:
        left = self.current.left[index]
        self.current.left[index] = None if left is None else left - 1
        self.current.position, self.current.resumed = index, False
        self.stage = HarnessState.PLAYING

    def _interrupt(self) -> None:
        """Ends the level in play where a limit is reached; a checkpoint always waits for its end."""
        if self.current.spent and self._cuts_short:
            self.stage = HarnessState.MAIN_MENU

    @property
    def _cuts_short(self) -> bool:
        """Whether a limit ends the level in play: the trial is over with it, or levels are not finished."""
        return self._last_set or not self.options.finish_levels

    @property
    def _last_set(self) -> bool:
        return not self._unused and (self.training_over or not self.current.testing)

    def _checkpoint_due(self) -> bool:
        if self._at_checkpoint and not self._unused:
            self.training.recent_seconds = 0.0  # only the clock: questions go by the interactions
            return False
        return self._at_checkpoint

    def _end_set(self) -> None:
        if not self.current.testing:
            self._end_training()
        elif self._unused and (self.training_over or self.options.checkpoint_policy == "all_sets"):
            self._announce_test()
        elif not self.training_over and not self.training.exhausted:
            self.current, self.stage = self.training, HarnessState.RESUME_TRAINING
        else:
            self._end_training()

    def _end_training(self) -> None:
        self.training_over = True
        if self._unused:
            self._announce_test()
        else:
            self.stage = HarnessState.TERMINATED

    def _announce_test(self) -> None:
        self.current = SetProgress(self._unused.pop(0), testing=True, repeats=self.options.repeat_unlimited)
        self.stage = HarnessState.NEW_TEST_SET
