"""micro and sample: the three smallest repetition tasks, and eleven that show what the environment can do.

Three samples could not be solved in the original: RepeatingChar, RepeatingPhrase, and in byte mode Unicode.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from openfield.domains.commai.environment.rounds import Round
from openfield.domains.commai.environment.task import Task
from openfield.domains.commai.tasks.draws import between, pick
from openfield.domains.commai.tasks.legacy import navigation
from openfield.domains.commai.tasks.legacy.dialogue import Dialogue, DialogueTask, ExerciseTask
from openfield.domains.commai.tasks.legacy.navigation import turn_by
from openfield.domains.commai.tasks.legacy.phrasebook import load_phrasebook
from openfield.domains.commai.tasks.legacy.repetition import BeSilentTask, repeat_character

_ACCENTED = "ñéüøß"
"""Two bytes in UTF-8, so two characters' worth of bits; codes below 256, so one symbol in byte mode."""


def repeat_letters(alphabet: str, longest: int) -> Callable[[Random], Round]:
    """A few letters of a small alphabet."""

    def make(rng: Random) -> Round:
        text = "".join(pick(rng, alphabet) for _ in range(between(rng, 1, longest)))
        return Round(f"repeat: {text}.", f"{text}.", "correct.", f"wrong: {text}.")

    return make


def repeat_phrase(rng: Random) -> Round:
    """A phrase."""
    phrase = pick(rng, load_phrasebook().phrases)
    return Round(f"repeat '{phrase}'.", f"{phrase}.")


def answer_yes_or_no(rng: Random) -> Round:
    """The word that is asked for."""
    word = pick(rng, ("yes", "no"))
    return Round(f"say {word}.", f"{word}.", wrong=f"wrong. the right answer is: {word}.")


def repeat_accented(rng: Random) -> Round:
    """A character of two bytes."""
    letter = pick(rng, _ACCENTED)
    return Round(f"say {letter}.", f"{letter}.")


class ConflictingMessages(Dialogue):
    """Shows priorities: the less important of two messages is never heard."""

    __slots__ = ()

    def begin(self) -> None:
        """Queues both."""
        self.stage.say("say orange.", priority=2)
        self.stage.say("say lemon.", priority=1)

    def read(self, sentence: str) -> None:
        """Judges which one was heard."""
        if sentence.endswith("orange."):
            self.win()
        else:
            self.lose()

    def hint(self) -> str:
        """What the more important message asked for."""
        return "orange."


class _OneWay(navigation.Turning):
    """Turn one given way."""

    __slots__ = ()
    way = "left"

    def instruct(self) -> str:
        """Names the way."""
        self._way = self.way
        self._goal = turn_by(self.world.facing, 1 if self.way == "right" else 3)
        return f"Turn {self.way}."


class TurnLeft(_OneWay):
    """Turn left."""

    __slots__ = ()


class TurnRight(_OneWay):
    """Turn right."""

    __slots__ = ()
    way = "right"


class PickAnApple(navigation.PickUp):
    """Pick up the apple in front."""

    __slots__ = ()

    def any_thing(self) -> str:
        """An apple."""
        return "apple"


def _exercise(make: Callable[[Random], Round], max_time: int, retries: bool = True) -> Callable[[str], Task]:
    return lambda name: ExerciseTask(name, make, max_time, retries)


SMALLEST: dict[str, Callable[[str], Task]] = {
    "Repeat1V1L": _exercise(repeat_letters("a", 1), 112, retries=False),
    "Repeat3V1L": _exercise(repeat_letters("abc", 1), 112, retries=False),
    "Repeat3V2L": _exercise(repeat_letters("abc", 2), 136, retries=False),
}
SAMPLES: dict[str, Callable[[str], Task]] = {
    "RepeatingChar": _exercise(repeat_character, 1000),
    "YesNo": _exercise(answer_yes_or_no, 1000, retries=False),
    "BeSilent": lambda name: BeSilentTask(name, 300, 300, "be silent."),
    "RepeatingPhrase": _exercise(repeat_phrase, 1000),
    "ConflictingMessages": lambda name: DialogueTask(name, ConflictingMessages, 1000),
    "Moving": navigation.in_grid(navigation.Moving, 1000),
    "TurnLeft": navigation.in_grid(TurnLeft, 1000),
    "TurnRight": navigation.in_grid(TurnRight, 1000),
    "LookAround": navigation.in_grid(navigation.LookAround, 5000),
    "PickAnApple": navigation.in_grid(PickAnApple, 1000),
    "Unicode": _exercise(repeat_accented, 1000),
}
