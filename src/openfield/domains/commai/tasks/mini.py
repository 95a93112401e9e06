"""The mini tasks: tell whether a string belongs to the set that a description describes, `true.` or `false.`.

They follow the older rules of the environment: one question per instance, and the verdict is the reward.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from openfield.domains.commai.environment.rounds import Round, RoundScript
from openfield.domains.commai.environment.task import DOTS_ASKED, Instance, Stage, Task
from openfield.domains.commai.settings import STRICT_MINI_THRESHOLD
from openfield.domains.commai.tasks.description import LETTERS, Description, draw_member, draw_nonmember
from openfield.domains.commai.tasks.draws import between, pick, praise
from openfield.domains.commai.tasks.micro import reword

MAX_GROUPS = 3
MAX_NGRAM = 3
HALF_ALPHABET = 13
_ONE_LETTER_INSTANCES = 1001
_KEEP_NGRAM = 10


class MiniTask(Task):
    """A task of one question per instance. Subclasses draw a description and a string to verify."""

    max_time = 3000
    minimum_threshold = STRICT_MINI_THRESHOLD
    script: RoundScript | None = None
    """Rounds that replace the task's own, one per instance."""

    def start(self, stage: Stage) -> Instance:
        """Ask the question."""
        drawn = self.script.deal().draw() if self.script else self.ask(stage.rng)
        return MiniInstance(stage, reword(drawn, stage))

    def ask(self, rng: Random) -> Round:
        """Draw a description, a string that belongs to it or not (a fair coin), and the feedback."""
        belongs = rng.random() < 0.5
        description, verified = self.draw(rng, belongs)
        answer = "true" if belongs else "false"
        question = f"description: {description.text(rng)}; verify: {verified}."
        return Round(question, f"{answer}.", praise(rng), f"Wrong. The right answer is: {answer}.")

    def draw(self, rng: Random, belongs: bool) -> tuple[Description, str]:
        """Draw a description and a string for it."""
        raise NotImplementedError


class MiniInstance(Instance):
    """Waits for a dot and judges the text before it.

    What the learner says while the teacher talks is lost, except that a dot decides even then.
    """

    prices = DOTS_ASKED

    def __init__(self, stage: Stage, drawn: Round) -> None:
        super().__init__(stage)
        self.round = drawn
        self._heard: list[str] = []
        stage.say(drawn.question)

    def hear(self, symbol: str) -> int:
        """Keep the symbol; a dot decides."""
        self._heard.append(symbol)
        if symbol == ".":
            self._decide()
        return 0

    def overhear(self, symbol: str) -> int:
        """Decide at a dot. The text before it was lost."""
        if symbol == ".":
            self._heard = [symbol]
            self._decide()
        return 0

    def time_out(self) -> None:
        """Fail and tell the answer."""
        self.stage.finish(False, self.round.wrong)

    def hint(self) -> str:
        """Return the answer."""
        return self.round.answer

    def _decide(self) -> None:
        """Judge the end of what was heard; text before the answer does no harm."""
        answer = "".join(self._heard)
        if self.stage.serializer is not None:
            answer = self.stage.serializer.decode(answer)
        self._heard.clear()
        right = answer.endswith(self.round.answer)
        self.stage.finish(right, self.round.right if right else self.round.wrong)


class OneNgramTask(MiniTask):
    """mini0: one letter, after a thousand instances a pair. Each description stays for ten instances."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._count = 0
        self._ngram = ""

    def draw(self, rng: Random, belongs: bool) -> tuple[Description, str]:
        """Draw the n-gram repeated, or random letters."""
        size = 1 if self._count < _ONE_LETTER_INSTANCES else 2
        if self._count % _KEEP_NGRAM == 0:
            self._ngram = _ngram(rng, LETTERS, size)
        self._count += 1
        description, length = Description((self._ngram,)), between(rng, size, 3 * size - 1)
        if belongs:
            return description, draw_member(description, length, rng)
        for _ in range(3):
            guess = _ngram(rng, LETTERS, length)
            if not description.accepts(guess):
                return description, guess
        return description, draw_nonmember(description, length, rng)


class DrawnMiniTask(MiniTask):
    """mini1 to mini4: every instance draws its own description."""

    def __init__(self, name: str, describe: Callable[[Random], Description], max_length: int) -> None:
        super().__init__(name)
        self._describe, self._max_length = describe, max_length

    def draw(self, rng: Random, belongs: bool) -> tuple[Description, str]:
        """Draw a description, and a string that belongs or nearly does."""
        description, length = self._describe(rng), between(rng, 1, self._max_length)
        return description, (draw_member if belongs else draw_nonmember)(description, length, rng)


class MixedMiniTask(MiniTask):
    """mini5: one of mini1 to mini4."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._tasks = [DRAWN[number](number) for number in ("mini1", "mini2", "mini3", "mini4")]

    def draw(self, rng: Random, belongs: bool) -> tuple[Description, str]:
        """Draw as one of the other tasks does."""
        return pick(rng, self._tasks).draw(rng, belongs)


def describe_one(rng: Random) -> Description:
    """Describe a set of mini1: one n-gram."""
    return Description((_ngram(rng, LETTERS, between(rng, 1, MAX_NGRAM)),))


def describe_alternatives(rng: Random) -> Description:
    """Describe a set of mini2: one to three n-grams joined by `or`, or only `anything`."""
    if rng.random() < 0.05:
        return Description((), anything=True, operator="or")
    return Description(_ngrams(rng, LETTERS), operator="or")


def describe_all(rng: Random) -> Description:
    """Describe a set of mini3: one to three n-grams joined by `and`, half of the time with `anything`."""
    return Description(_ngrams(rng, LETTERS), anything=rng.random() < 0.5)


def describe_negations(rng: Random) -> Description:
    """Describe a set of mini4: as mini3, but half of the n-grams are negated and share no letter with the others."""
    own = rng.choices(LETTERS, k=HALF_ALPHABET)
    rest = [letter for letter in LETTERS if letter not in own]
    other = rng.choices(rest, k=HALF_ALPHABET)
    required: dict[str, None] = {}
    banned: dict[str, None] = {}
    for _ in range(between(rng, 1, MAX_GROUPS)):
        negated = rng.random() < 0.5
        ngram = _ngram(rng, other if negated else own, between(rng, 1, MAX_NGRAM))
        (banned if negated else required)[ngram] = None
    anything = bool(banned) or rng.random() < 0.5
    return Description(tuple(required), tuple(banned), anything)


DRAWN: dict[str, Callable[[str], DrawnMiniTask]] = {
    "mini1": lambda name: DrawnMiniTask(name, describe_one, 10),
    "mini2": lambda name: DrawnMiniTask(name, describe_alternatives, 10),
    "mini3": lambda name: DrawnMiniTask(name, describe_all, 30),
    "mini4": lambda name: DrawnMiniTask(name, describe_negations, 30),
}
MINI: dict[str, Callable[[str], Task]] = {"mini0": OneNgramTask, **DRAWN, "mini5": MixedMiniTask}


def _ngrams(rng: Random, letters: str) -> tuple[str, ...]:
    """Draw one to three n-grams; equal ones collapse."""
    count = between(rng, 1, MAX_GROUPS)
    return tuple(dict.fromkeys(_ngram(rng, letters, between(rng, 1, MAX_NGRAM)) for _ in range(count)))


def _ngram(rng: Random, letters: str | list[str], size: int) -> str:
    return "".join(rng.choices(letters, k=size))
