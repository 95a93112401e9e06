"""competition/repetition, micro and sample: repeat what the teacher says, be silent, and a few other small tasks.

Each function draws one question. The tables at the end name the tasks: twelve of repetition, the three smallest ones,
and eleven that show what the environment can do. Three samples could not be solved in the original: RepeatingChar,
RepeatingPhrase, and in byte mode Unicode.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Sequence
from random import Random

from openfield.domains.commai.environment.task import Instance, Round, Stage, Task
from openfield.domains.commai.tasks.draws import between, blame, load_phrasebook, number_word, pick, praise
from openfield.domains.commai.tasks.legacy import navigation
from openfield.domains.commai.tasks.legacy.dialogue import Dialogue, DialogueTask, exercise

BOOK = load_phrasebook()
_VERBS = ("say", "repeat")
_ACCENTED = "ñéüøß"
"""Two bytes in UTF-8, so two characters' worth of bits; codes below 256, so one symbol in byte mode."""


class BeSilentTask(Task):
    """The learner must be silent until the time is over, which is drawn once per task."""

    def __init__(self, name: str, minimum: int = 100, maximum: int = 1000, question: str = "be silent now.") -> None:
        super().__init__(name)
        self._limits, self.question = (minimum, maximum), question
        self._drawn = False

    def start(self, stage: Stage) -> Instance:
        """Ask for silence."""
        if not self._drawn:
            self.max_time, self._drawn = between(stage.rng, *self._limits), True
        stage.say(self.question)
        return _Silence(stage)


class _Silence(Instance):
    def hear(self, symbol: str) -> int:
        if symbol != " ":
            self.stage.finish(False, blame(self.stage.rng))
        return 0

    overhear = hear

    def time_out(self) -> None:
        self.stage.finish(True, praise(self.stage.rng))


def repeat(question: str, options: Sequence[str]) -> Callable[[Random], Round]:
    """Return a function that draws a question: repeat one of the options; `{verb}` and `{promise}` are drawn too."""
    others = {"verb": _VERBS, "promise": BOOK.promises}
    drawn = {name: words for name, words in others.items() if f"{{{name}}}" in question}

    def make(rng: Random) -> Round:
        said = pick(rng, options)
        words = {name: pick(rng, words) for name, words in drawn.items()}
        return Round(question.format(said=said, **words), f"{said}.")

    return make


def repeat_times(
    join: Callable[[Sequence[str]], str], manner: str = "", promised: bool = False
) -> Callable[[Random], Round]:
    """Return a function that draws a question: repeat a phrase two or three times, joined by `join`."""

    def make(rng: Random) -> Round:
        phrase, times = pick(rng, BOOK.phrases), between(rng, 2, 3)
        promise = f" {pick(rng, BOOK.promises)}" if promised else ""
        verb, count = pick(rng, _VERBS), number_word(times) if rng.random() < 0.5 else times
        question = f"{verb} {phrase} {count} times{manner}{promise}."
        answer = f"{join([phrase] * times)}."
        return Round(question, answer, wrong=f"{blame(rng)} the right answer is: {answer}")

    return make


def choose_phrase(rng: Random) -> Round:
    """Draw a question: say either of two phrases."""
    first, second = rng.sample(BOOK.phrases, 2)
    answers = (f"{first}.", f"{second}.")
    return Round(f"{pick(rng, _VERBS)} {first} or {second}.", answers[0], accepts=lambda said: said.endswith(answers))


def combine_phrases(rng: Random) -> Round:
    """Draw a question: say the phrases that are not negated, in any order, joined by `and`."""
    phrases = rng.sample(BOOK.phrases, between(rng, 2, 3))
    negated = [rng.random() < 0.5 for _ in phrases]
    if all(negated):
        negated[int(rng.random() * len(negated))] = False
    parts = [f"not {phrase}" if no else phrase for phrase, no in zip(phrases, negated, strict=True)]
    wanted = [phrase for phrase, no in zip(phrases, negated, strict=True) if not no]
    answers = tuple(f"{' and '.join(order)}." for order in itertools.permutations(wanted))
    banned = [phrase for phrase, no in zip(phrases, negated, strict=True) if no]
    return Round(
        f"{pick(rng, _VERBS)} {' and '.join(parts)}.",
        answers[0],
        wrong=f"{blame(rng)} the right answer is: {answers[0]}",
        accepts=lambda said: said.endswith(answers) and not any(phrase in said for phrase in banned),
    )


def say_verb(rng: Random) -> Round:
    """Draw a question: say a verb in the first person."""
    verb = pick(rng, BOOK.verbs)
    return Round(f"Say 'I {verb}' to {verb}.", f"I {verb}.")


def join_comma_and(parts: Sequence[str]) -> str:
    """Join with commas, and the last two with `and`."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def repeat_letters(alphabet: str, max_length: int) -> Callable[[Random], Round]:
    """Return a function that draws a question: repeat a few letters of a small alphabet."""

    def make(rng: Random) -> Round:
        text = "".join(pick(rng, alphabet) for _ in range(between(rng, 1, max_length)))
        return Round(f"repeat: {text}.", f"{text}.", "correct.", f"wrong: {text}.")

    return make


def answer_yes_or_no(rng: Random) -> Round:
    """Draw a question: say `yes` or `no`."""
    word = pick(rng, ("yes", "no"))
    return Round(f"say {word}.", f"{word}.", wrong=f"wrong. the right answer is: {word}.")


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


REPETITION: dict[str, Callable[[str], Task]] = {
    "BeSilent": BeSilentTask,
    "RepeatCharacter": exercise(repeat("{verb} {said}.", string.ascii_lowercase), 1000),
    "RepeatWhatISay": exercise(repeat("{verb} {said}.", BOOK.phrases), 1000),
    "RepeatWhatISay2": exercise(repeat("{verb} {said} {promise}.", BOOK.phrases), 1000),
    "RepeatWhatISayMultipleTimes": exercise(repeat_times(" ".join), 10_000),
    "RepeatWhatISayMultipleTimes2": exercise(repeat_times(" ".join, promised=True), 10_000),
    "RepeatWhatISayMultipleTimesSeparatedByComma": exercise(repeat_times(", ".join, " separated by comma"), 10_000),
    "RepeatWhatISayMultipleTimesSeparatedByAnd": exercise(repeat_times(" and ".join, " separated by and"), 10_000),
    "RepeatWhatISayMultipleTimesSeparatedByCA": exercise(
        repeat_times(join_comma_and, " separated by comma and and"), 10_000
    ),
    "RepeatWhatISayDisjunction": exercise(choose_phrase, 3000),
    "RepeatWhatISayConjunctionNegation": exercise(combine_phrases, 3000),
    "Verb": exercise(say_verb, 896),
}
SMALLEST: dict[str, Callable[[str], Task]] = {
    "Repeat1V1L": exercise(repeat_letters("a", 1), 112, retries=False),
    "Repeat3V1L": exercise(repeat_letters("abc", 1), 112, retries=False),
    "Repeat3V2L": exercise(repeat_letters("abc", 2), 136, retries=False),
}
SAMPLES: dict[str, Callable[[str], Task]] = {
    "RepeatingChar": exercise(repeat("{verb} {said}.", string.ascii_lowercase), 1000),
    "YesNo": exercise(answer_yes_or_no, 1000, retries=False),
    "BeSilent": lambda name: BeSilentTask(name, 300, 300, "be silent."),
    "RepeatingPhrase": exercise(repeat("repeat '{said}'.", BOOK.phrases), 1000),
    "ConflictingMessages": lambda name: DialogueTask(name, ConflictingMessages, 1000),
    "Moving": navigation.in_grid(navigation.Going, 1000, choose=navigation.ahead, text=navigation.TEXTS["forward"]),
    "TurnLeft": navigation.in_grid(navigation.Turning, 1000, side="left"),
    "TurnRight": navigation.in_grid(navigation.Turning, 1000, side="right"),
    "LookAround": navigation.in_grid(navigation.LookAround, 5000),
    "PickAnApple": navigation.in_grid(PickAnApple, 1000, choose=navigation.ahead, text=navigation.TEXTS["take_ahead"]),
    "Unicode": exercise(repeat("say {said}.", _ACCENTED), 1000),
}
