"""`tasks.competition.repetition` and `tasks.micro` of the original: repeat what the teacher says, or be silent.

The rules are the original's, the words are ours. Two tasks are judged once by default; in Round 1 they pronounced
failure before they looked at the second alternative.
"""

from __future__ import annotations

import string
from typing import Any

from openfield.domains.commai.original.core.task import World, on_message, on_start, on_timeout
from openfield.domains.commai.original.tasks import messages
from openfield.domains.commai.original.tasks.base import BaseTask, DrawingTask

BOOK = messages.BOOK
VERBS = ("say", "repeat")
NEGATIONS = ("do not {verb}", "never {verb}")


class BeSilentTask(DrawingTask):
    """Be silent until the time is over, which is drawn once."""

    _drawn = False

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=1000, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Ask for silence."""
        if not self._drawn:
            self._max_time, self._drawn = self._env.rng.randint(100, 1000), True
        self.set_message(self.draw(("be silent now.", "do not say anything.")))

    @on_message(r"[^ ]$")
    def on_speech(self, event: Any) -> None:
        """Fail. In Round 1 too the blame is heard once, whatever is said meanwhile."""
        if not self.has_ended():
            self.set_result(0, self.blame())

    @on_timeout()
    def on_silence(self, event: Any) -> None:
        """Succeed."""
        self.set_result(1, self.praise())


class RepeatingTask(BaseTask):
    """A task of one question whose answer ends with a dot. Text before the answer does no harm."""

    limit = 1000
    tells = False
    """Whether a failure tells the answer."""
    exact = False
    """Whether only blanks may stand before the answer."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=self.limit, world=world)

    def make(self) -> tuple[str, tuple[str, ...]]:
        """Draw a question and its answers."""
        raise NotImplementedError

    @on_start()
    def ask(self, event: Any) -> None:
        """Ask the question."""
        question, self.state.answers = self.make()
        self.state.answer = f"{self.state.answers[0]}."
        self.set_message(question)

    @on_message(r"\.$")
    def on_sentence(self, event: Any) -> None:
        """Judge the answer."""
        self.judge(event)

    @on_timeout()
    def on_time_over(self, event: Any) -> None:
        """Fail."""
        self.fail()

    def judge(self, event: Any) -> None:
        """End with the verdict on the answer."""
        fits = event.is_message_exact if self.exact else event.is_message
        answers = self.state.answers
        if self.exact and self._env._round1:
            for answer in answers:  # failure is pronounced for each alternative before the one that fits
                if fits(answer, "."):
                    break
                self.fail()
        if any(fits(answer, ".") for answer in answers):
            self.set_result(1, self.praise())
        elif not (self.exact and self._env._round1):
            self.fail()

    def fail(self) -> None:
        """End with failure."""
        right_answer = f" the right answer is: {self.state.answer}" if self.tells else ""
        self.set_result(0, self.blame() + right_answer)


class RepeatCharacterTask(RepeatingTask):
    """Repeat a letter."""

    def make(self) -> tuple[str, tuple[str, ...]]:
        """Draw one of 52 letters."""
        letter = self.draw(string.ascii_letters)
        return f"{self.draw(VERBS)} {letter}.", (letter,)


class RepeatWhatISayTask(RepeatingTask):
    """Repeat a phrase."""

    promises = False

    def make(self) -> tuple[str, tuple[str, ...]]:
        """Draw a phrase."""
        phrase = self.draw(BOOK.phrases)
        promise = f" {self.draw(BOOK.promises)}" if self.promises else ""
        return f"{self.draw(VERBS)} {phrase}{promise}.", (phrase,)


class RepeatWhatISay2Task(RepeatWhatISayTask):
    """Repeat a phrase, which a promise follows."""

    promises = True


class RepeatWhatISayMultipleTimesTask(RepeatingTask):
    """Repeat a phrase two or three times."""

    limit, tells, promises, manner = 10_000, True, False, ""

    def make(self) -> tuple[str, tuple[str, ...]]:
        """Draw a phrase and a number."""
        phrase, times = self.draw(BOOK.phrases), self.draw((2, 3))
        number = messages.number_to_string(times, self._env.rng)
        promise = f" {self.draw(BOOK.promises)}" if self.promises else ""
        question = f"{self.draw(VERBS)} {phrase} {number} times{self.manner}{promise}."
        return question, (self.join([phrase] * times),)

    def join(self, phrases: list[str]) -> str:
        """Return the phrases as they must be said."""
        return " ".join(phrases)


class RepeatWhatISayMultipleTimes2Task(RepeatWhatISayMultipleTimesTask):
    """Repeat a phrase two or three times; a promise follows."""

    promises = True


class RepeatWhatISayMultipleTimesSeparatedByCommaTask(RepeatWhatISayMultipleTimesTask):
    """Repeat a phrase with commas between."""

    manner = " separated by comma"

    def join(self, phrases: list[str]) -> str:
        """Return the phrases with commas between."""
        return ", ".join(phrases)


class RepeatWhatISayMultipleTimesSeparatedByAndTask(RepeatWhatISayMultipleTimesTask):
    """Repeat a phrase with `and` between."""

    manner = " separated by and"

    def join(self, phrases: list[str]) -> str:
        """Return the phrases with `and` between."""
        return " and ".join(phrases)


class RepeatWhatISayMultipleTimesSeparatedByCATask(RepeatWhatISayMultipleTimesTask):
    """Repeat a phrase with commas between, and `and` before the last."""

    manner = " separated by comma and and"

    def join(self, phrases: list[str]) -> str:
        """Return the phrases with commas and a last `and` between."""
        return f"{', '.join(phrases[:-1])} and {phrases[-1]}"


class RepeatWhatISayDisjunction(RepeatingTask):
    """Repeat one of two phrases, and nothing else."""

    limit, exact = 3000, True

    def make(self) -> tuple[str, tuple[str, ...]]:
        """Draw two phrases, which may be equal."""
        first, second = self.draw(BOOK.phrases), self.draw(BOOK.phrases)
        return f"{self.draw(VERBS)} {first} or {second}.", (first, second)


class RepeatWhatISayConjunctionNegation(RepeatingTask):
    """Repeat the phrases that are not forbidden, joined by `and`, and nothing else."""

    limit, exact = 3000, True
    on_sentence = None

    def make(self) -> tuple[str, tuple[str, ...]]:
        """Draw two phrases and which of them are forbidden. Round 1 also draws equal ones, and forbids both."""
        while True:
            phrases = self.draw(BOOK.phrases), self.draw(BOOK.phrases)
            negated = self.draw((False, True)), self.draw((False, True))
            if self._env._round1 or (phrases[0] != phrases[1] and not all(negated)):
                break
        verb = self.draw(VERBS)
        clauses = [
            f"{self.draw(NEGATIONS).format(verb=verb) if no else verb} {phrase}"
            for phrase, no in zip(phrases, negated, strict=True)
        ]
        return f"{' and '.join(clauses)}.", self.accept(*phrases, *negated)

    def accept(self, first: str, second: str, not_first: bool, not_second: bool) -> tuple[str, ...]:
        """Return the answers that pass."""
        if first == second:
            return (first,)
        if not (not_first or not_second):
            return f"{first} and {second}", f"{second} and {first}"
        return (second,) if not_first and not not_second else (first,)

    @on_message(r"\.$")
    def check_sentence(self, event: Any) -> None:
        """Judge the answer, before an interruption is erased."""
        self.judge(event)


class VerbTask(DrawingTask):
    """Say a verb in the first person. The world's own commands are live."""

    def __init__(self, world: World) -> None:
        super().__init__(max_time=896, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Say which sentence to say."""
        self.state.verb = self.draw(list(BOOK.verbs))
        self.state.answer = f"I {self.state.verb}."
        self.set_message(f"Say 'I {self.state.verb}' to {self.state.verb}.")

    @on_message(r"\.$")
    def on_sentence(self, event: Any) -> None:
        """Judge the sentence: the verb is enough."""
        if event.is_message(self.state.verb, "."):
            self.set_result(1, f"You {BOOK.verbs[self.state.verb]}.")
        else:
            self.set_result(0, self.blame())

    @on_timeout()
    def on_time_over(self, event: Any) -> None:
        """Fail."""
        self.set_result(0, self.blame())


class Repeat1V1LTask(BaseTask):
    """Repeat a short string of capital letters."""

    limit, letters, max_length = 112, "A", 1

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=self.limit, world=world)

    @on_start()
    def ask(self, event: Any) -> None:
        """Say the string."""
        length = self._env.rng.randint(1, self.max_length)
        self.state.answer = "".join(self.draw(self.letters) for _ in range(length)) + "."
        self.set_message(f"repeat: {self.state.answer}")

    @on_message(r"\.")
    def check_response(self, event: Any) -> None:
        """Judge the answer."""
        if event.is_message(self.state.answer[:-1], "."):
            self.set_result(1, "correct.")
        else:
            self.set_result(0, f"wrong: {self.state.answer}")

    @on_timeout()
    def on_time_over(self, event: Any) -> None:
        """Fail."""
        self.set_result(0, f"wrong: {self.state.answer}")


class Repeat3V1LTask(Repeat1V1LTask):
    """Repeat one of three letters."""

    letters = "ABC"


class Repeat3V2LTask(Repeat3V1LTask):
    """Repeat one or two of three letters."""

    limit, max_length = 136, 2
