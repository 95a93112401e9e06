"""micro and sample: the three smallest repetition tasks, and eleven that show what the environment can do.

Three samples could not be solved in the original: RepeatingChar, RepeatingPhrase, and in byte mode Unicode.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from openfield.domains.commai.environment.rounds import Round
from openfield.domains.commai.environment.task import Task
from openfield.domains.commai.tasks.draws import between, load_phrasebook, pick
from openfield.domains.commai.tasks.legacy import navigation
from openfield.domains.commai.tasks.legacy.dialogue import Dialogue, DialogueTask, exercise
from openfield.domains.commai.tasks.legacy.repetition import BeSilentTask, repeat_character

_ACCENTED = "ñéüøß"
"""Two bytes in UTF-8, so two characters' worth of bits; codes below 256, so one symbol in byte mode."""


def repeat_letters(alphabet: str, max_length: int) -> Callable[[Random], Round]:
    """Return a function that draws a question: repeat a few letters of a small alphabet."""

    def make(rng: Random) -> Round:
        text = "".join(pick(rng, alphabet) for _ in range(between(rng, 1, max_length)))
        return Round(f"repeat: {text}.", f"{text}.", "correct.", f"wrong: {text}.")

    return make


def repeat_phrase(rng: Random) -> Round:
    """Draw a question: repeat a phrase."""
    phrase = pick(rng, load_phrasebook().phrases)
    return Round(f"repeat '{phrase}'.", f"{phrase}.")


def answer_yes_or_no(rng: Random) -> Round:
    """Draw a question: say `yes` or `no`."""
    word = pick(rng, ("yes", "no"))
    return Round(f"say {word}.", f"{word}.", wrong=f"wrong. the right answer is: {word}.")


def repeat_accented(rng: Random) -> Round:
    """Draw a question: say a character of two bytes."""
    letter = pick(rng, _ACCENTED)
    return Round(f"say {letter}.", f"{letter}.")


class ConflictingMessages(Dialogue):
    """Shows priorities: the less important of two messages is never said."""

    def begin(self) -> None:
        """Queue both messages."""
        self.stage.say("say orange.", priority=2)
        self.stage.say("say lemon.", priority=1)

    def read(self, sentence: str) -> None:
        """Judge which one was heard."""
        if sentence.endswith("orange."):
            self.win()
        else:
            self.lose()

    def hint(self) -> str:
        """Return what the more important message asked for."""
        return "orange."


class PickAnApple(navigation.Fetching):
    """Pick up an apple."""

    def any_thing(self) -> str:
        """Return an apple."""
        return "apple"


SMALLEST: dict[str, Callable[[str], Task]] = {
    "Repeat1V1L": exercise(repeat_letters("a", 1), 112, retries=False),
    "Repeat3V1L": exercise(repeat_letters("abc", 1), 112, retries=False),
    "Repeat3V2L": exercise(repeat_letters("abc", 2), 136, retries=False),
}
SAMPLES: dict[str, Callable[[str], Task]] = {
    "RepeatingChar": exercise(repeat_character, 1000),
    "YesNo": exercise(answer_yes_or_no, 1000, retries=False),
    "BeSilent": lambda name: BeSilentTask(name, 300, 300, "be silent."),
    "RepeatingPhrase": exercise(repeat_phrase, 1000),
    "ConflictingMessages": lambda name: DialogueTask(name, ConflictingMessages, 1000),
    "Moving": navigation.in_grid(partial(navigation.Going, choose=navigation.move_forward), 1000),
    "TurnLeft": navigation.in_grid(partial(navigation.Turning, side="left"), 1000),
    "TurnRight": navigation.in_grid(partial(navigation.Turning, side="right"), 1000),
    "LookAround": navigation.in_grid(navigation.LookAround, 5000),
    "PickAnApple": navigation.in_grid(partial(PickAnApple, choose=navigation.take_ahead), 1000),
    "Unicode": exercise(repeat_accented, 1000),
}
