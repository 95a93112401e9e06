"""competition/repetition: twelve tasks of repeating what the teacher says, or being silent.

Each function draws one question. `REPETITION` names the tasks they make.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Sequence
from random import Random

from openfield.domains.commai.environment.rounds import Round
from openfield.domains.commai.environment.task import Instance, Stage, Task
from openfield.domains.commai.tasks.draws import any_number, between, blame, load_phrasebook, pick
from openfield.domains.commai.tasks.legacy.dialogue import Dialogue, exercise

_VERBS = ("say", "repeat")


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
        return _Silence(stage, self)


class _Silence(Dialogue):
    def begin(self) -> None:
        if isinstance(self.task, BeSilentTask):
            self.say(self.task.question)

    def hear(self, symbol: str) -> int:
        if symbol != " ":
            self.lose()
        return 0

    def overhear(self, symbol: str) -> int:
        return self.hear(symbol)

    def time_out(self) -> None:
        self.win()


def repeat_character(rng: Random) -> Round:
    """Draw a question: repeat one letter."""
    letter = pick(rng, string.ascii_lowercase)
    return Round(f"{pick(rng, _VERBS)} {letter}.", f"{letter}.")


def repeat_phrase(rng: Random) -> Round:
    """Draw a question: repeat a phrase."""
    phrase = pick(rng, load_phrasebook().phrases)
    return Round(f"{pick(rng, _VERBS)} {phrase}.", f"{phrase}.")


def repeat_promised_phrase(rng: Random) -> Round:
    """Draw a question: repeat a phrase that a promise follows."""
    phrase = pick(rng, load_phrasebook().phrases)
    return Round(f"{pick(rng, _VERBS)} {phrase} {pick(rng, load_phrasebook().promises)}.", f"{phrase}.")


def repeat_times(
    join: Callable[[Sequence[str]], str], manner: str = "", promised: bool = False
) -> Callable[[Random], Round]:
    """Return a function that draws a question: repeat a phrase two or three times, joined by `join`."""

    def make(rng: Random) -> Round:
        phrase, times = pick(rng, load_phrasebook().phrases), between(rng, 2, 3)
        promise = f" {pick(rng, load_phrasebook().promises)}" if promised else ""
        question = f"{pick(rng, _VERBS)} {phrase} {any_number(rng, times)} times{manner}{promise}."
        answer = f"{join([phrase] * times)}."
        return Round(question, answer, wrong=f"{blame(rng)} the right answer is: {answer}")

    return make


def choose_phrase(rng: Random) -> Round:
    """Draw a question: say either of two phrases."""
    first, second = rng.sample(load_phrasebook().phrases, 2)
    answers = (f"{first}.", f"{second}.")
    return Round(f"{pick(rng, _VERBS)} {first} or {second}.", answers[0], accepts=lambda said: said.endswith(answers))


def combine_phrases(rng: Random) -> Round:
    """Draw a question: say the phrases that are not negated, in any order, joined by `and`."""
    phrases = rng.sample(load_phrasebook().phrases, between(rng, 2, 3))
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
    verb = pick(rng, load_phrasebook().verbs)
    return Round(f"Say 'I {verb}' to {verb}.", f"I {verb}.")


def join_comma_and(parts: Sequence[str]) -> str:
    """Join with commas, and the last two with `and`."""
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


REPETITION: dict[str, Callable[[str], Task]] = {
    "BeSilent": BeSilentTask,
    "RepeatCharacter": exercise(repeat_character, 1000),
    "RepeatWhatISay": exercise(repeat_phrase, 1000),
    "RepeatWhatISay2": exercise(repeat_promised_phrase, 1000),
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
