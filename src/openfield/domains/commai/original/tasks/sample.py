"""`tasks.sample.sample_tasks` of the original: eleven small tasks that show what the environment can do.

Two of them did not work in Round 1: RepeatingCharTask was always lost, RepeatingPhraseTask could not be made.
"""

from __future__ import annotations

import string
from typing import Any

from openfield.domains.commai.original.core.task import (
    World,
    on_ended,
    on_message,
    on_sequence,
    on_start,
    on_state_changed,
    on_timeout,
)
from openfield.domains.commai.original.grid_world import GridWorld, Point, Span
from openfield.domains.commai.original.tasks import messages
from openfield.domains.commai.original.tasks.base import DrawingTask
from openfield.domains.commai.original.tasks.navigation import next_command

PHRASE = "the river is deep"
PROMPT = "tell me your dearest wish"
NAME = "orlando"
ACCENTED = "ñéüøß"
"""Two bytes each in UTF-8; their codes are below 256, so that they are one symbol in byte mode."""


class RepeatingCharTask(DrawingTask):
    """Repeat a character."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=100, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Say the character."""
        self.state.answer = self.draw(string.ascii_lowercase + chr(ord("z") + 1))
        self.set_message(self.state.answer)

    @on_message(r"[^ ]")
    def on_speech(self, event: Any) -> None:
        """Judge the first answer."""
        self.set_result(int(event.is_message(self.state.answer)))


class YesNoTask(DrawingTask):
    """Say whether a statement holds. The first `yes` or `no` counts, wherever it stands."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=1000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """State something and ask whether it is so."""
        first, second = self.invent(), self.invent()
        self.state.answer = self.draw(("yes", "no"))
        denied = "" if self.state.answer == "yes" else "not "
        self.set_message(f"{first} is {denied}{second}. is {first} {second}?")

    def invent(self) -> str:
        """Make up a word of five letters."""
        return "".join(self.draw(string.ascii_lowercase) for _ in range(5))

    @on_message(r"yes|no")
    def on_yes_or_no(self, event: Any) -> None:
        """Judge the answer."""
        self.set_result(int(event.get_match() == self.state.answer))


class BeSilentTask(DrawingTask):
    """Say nothing: in bit mode only zeros, in byte mode anything but the character 1."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=1000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Ask for silence."""
        self.set_message("be silent.")

    @on_sequence("1")
    def on_one(self, event: Any) -> None:
        """Fail."""
        self.set_result(0)

    @on_timeout()
    def on_silence(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1)


class RepeatingPhraseTask(DrawingTask):
    """Repeat a sentence. Words said before the teacher's first dot are erased."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=1000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Say the sentence."""
        self.state.answer = PHRASE
        self.set_message(f"say: {PHRASE}.")

    @on_message()
    def erase_early_speech(self, event: Any) -> None:
        """Erase words that come too early."""
        if "." not in self._env._output_channel_listener.get_text():
            self.ignore_last_char()

    @on_message(rf"{PHRASE}$")
    def on_phrase(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1, self.praise())

    @on_timeout()
    def on_time_over(self, event: Any) -> None:
        """Say that the time is over."""
        self.set_message(self.draw(messages.timeout))


class SampleConflictingMessagesTask(DrawingTask):
    """Shows priorities: a remark is lost while a protest is said. The protest has the name that must be said."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=1000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Say the prompt, which has no dot."""
        self.set_message(PROMPT)

    @on_message(rf"{PROMPT.split()[0]}$")
    def on_first_word(self, event: Any) -> None:
        """Say the protest."""
        self.set_message(f"do not repeat me, my name is {NAME}!", 5)

    @on_message(rf"{' '.join(PROMPT.split()[-2:])}$")
    def on_last_words(self, event: Any) -> None:
        """Say a remark, if nothing more important is said."""
        self.set_message("an echo!", 1)

    @on_message(rf"{NAME}$")
    def on_name(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1, self.praise(), 5)

    def hint(self) -> str:
        """Return the first word, then the name."""
        said = NAME in self._env._output_channel_listener.get_text()
        return NAME if said else PROMPT.split()[0]


class WorldTask(DrawingTask):
    """A task in the grid world that asks for one command, in quotes and with its dot."""

    command = ""
    _world: GridWorld

    def __init__(self, world: GridWorld) -> None:
        super().__init__(max_time=1000, world=world)

    def prepare(self) -> None:
        """Take note of what the command is to reach."""

    @on_start()
    def ask(self, event: Any) -> None:
        """Say which command to say."""
        self.prepare()
        self.state.answer = self.command
        self.set_message(f"Say '{self.command}'")


class MovingTask(WorldTask):
    """Move forward."""

    command = "I move forward."

    def prepare(self) -> None:
        """Take note of the cell ahead."""
        self.state.goal = self._world.get_position_ahead()

    @on_state_changed(lambda world, task: world.learner_pos == task.goal)
    def on_moved(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1)


class TurnLeftTask(WorldTask):
    """Turn left."""

    command, quarters = "I turn left.", -1

    def prepare(self) -> None:
        """Take note of the direction."""
        self.state.goal = self._world.get_clockwise_direction(self.quarters)

    @on_state_changed(lambda world, task: world.learner_direction == task.goal)
    def on_turned(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1)


class TurnRightTask(TurnLeftTask):
    """Turn right."""

    command, quarters = "I turn right.", 1


class LookAroundTask(WorldTask):
    """Look."""

    command = "I look."

    @on_message(r"I look.")
    def on_look(self, event: Any) -> None:
        """Succeed, whatever character follows."""
        self.set_result(1)


class PickAnApple(DrawingTask):
    """Find an apple near by and pick it up. Something is in the way."""

    _world: GridWorld

    def __init__(self, world: GridWorld) -> None:
        super().__init__(max_time=10_000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Lay the apple and the block."""
        state, world = self.state, self._world
        state.apple, state.block = self.scatter(), self.scatter()
        if state.apple == state.block:
            state.block = state.block + world.valid_directions["south"]
        world.put_entity(state.apple, "apple", True, True)
        world.put_entity(state.block, "block", False, False)
        state.had = world.state.learner_inventory.get("apple", 0)
        self.set_message("Pick up the apple.")

    def scatter(self) -> Point:
        """Draw a cell at most two columns and two rows away."""
        here: Point = self._world.state.learner_pos
        return here + Span(self._env.rng.randint(-2, 2), self._env.rng.randint(-2, 2))

    @on_state_changed(lambda world, task: world.learner_inventory.get("apple", 0) > task.had)
    def on_picked_up(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1, self.praise())

    @on_ended()
    def clear_cells(self, event: Any) -> None:
        """Remove both things."""
        self._world.remove_entity(self.state.apple)
        self._world.remove_entity(self.state.block)

    def hint(self) -> str:
        """Return the next command on the way, then the one that takes it."""
        return next_command(self._world, beside=self.state.apple) or "I pick up the apple."


class UnicodeTask(DrawingTask):
    """Say a character of two bytes."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=1000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Say the character."""
        self.state.answer = self.draw(ACCENTED)
        self.set_message(f"this is {self.state.answer}. say it.")

    @on_message()
    def on_speech(self, event: Any) -> None:
        """Succeed when it was said."""
        if event.message.endswith(self.state.answer):
            self.set_result(1, self.praise())
