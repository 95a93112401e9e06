"""The mini tasks: tell whether a string belongs to the set that a description describes, `true.` or `false.`.

They follow the older rules of the environment: one question per instance, and the verdict is the reward. The string to
verify belongs to the set or nearly does (`draw_member`, `draw_nonmember`).
"""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from openfield.domains.commai.environment.task import DOTS_ASKED, Instance, Round, RoundScript, Stage, Task
from openfield.domains.commai.settings import STRICT_MINI_THRESHOLD
from openfield.domains.commai.tasks.draws import between, pick, praise, sample
from openfield.domains.commai.tasks.micro import reword

LETTERS = string.ascii_uppercase
_FILLER = 5
"""`anything` stands for up to this many letters between two n-grams."""
MIN_LETTERS = 2
"""Letters of a string that nearly belongs, at least."""
_TRIES = 20


@dataclass(frozen=True)
class Description:
    """N-grams that must or must not occur, joined by one operator; `anything` allows letters in between."""

    required: tuple[str, ...]
    banned: tuple[str, ...] = ()
    anything: bool = False
    operator: str = "and"

    def text(self, rng: Random) -> str:
        """Return the description as the teacher says it, its groups in random order."""
        groups = [*self.required, *(f"not {ngram}" for ngram in self.banned)]
        if self.anything:
            groups.append("anything")
        return f" {self.operator} ".join(sample(rng, groups, len(groups)))

    def accepts(self, verified: str) -> bool:
        """Return whether the string belongs to the set."""
        if any(ngram in verified for ngram in self.banned):
            return False
        if self.operator == "and" and not all(ngram in verified for ngram in self.required):
            return False
        return self.anything or _covered(verified, self.required)


def draw_member(description: Description, length: int, rng: Random) -> str:
    """Draw a string of the set: n-grams in random order until it is longer than `length` and has all it needs."""
    writer = _Writer(description, rng)
    required = description.required
    missing = set(required) if description.operator == "and" else set()
    while (room := length - len(writer.text)) >= 0:
        if description.anything and (not required or rng.random() < 0.5):
            writer.fill(room + 1)
        else:
            missing.discard(writer.add(pick(rng, required)))
    for ngram in sorted(missing):
        if ngram not in writer.text:
            writer.add(ngram)
    return writer.text


def draw_nonmember(description: Description, length: int, rng: Random) -> str:
    """Draw a string that nearly belongs: a member with one edit that excludes it.

    Every string belongs to plain `anything`. Its nonmember is the empty string, as in the original.
    """
    if description.anything and not description.required and not description.banned:
        return ""
    edits = [_insert_unused, _insert_own, _remove_required, _insert_banned]
    text = draw_member(description, length, rng)
    for _ in range(_TRIES):
        changed = pick(rng, edits)(description, text, rng)
        if len(changed) >= MIN_LETTERS and not description.accepts(changed):
            return changed
    return _spoil(description, text, rng)


class _Writer:
    """Writes a member n-gram by n-gram."""

    def __init__(self, description: Description, rng: Random) -> None:
        self.text = ""
        self._description, self._rng = description, rng
        self._unused = unused_letters(description)

    def add(self, ngram: str) -> str:
        """Appends an n-gram, sometimes overlapping the end."""
        overlap = _overlap(self.text, ngram) if len(ngram) > 1 and self._rng.random() < 0.5 else 0
        self.text += ngram[overlap:]
        return ngram

    def fill(self, most: int) -> None:
        """Append up to five letters that complete nothing: unused ones, or letters of banned n-grams."""
        rng, banned = self._rng, self._description.banned
        size = min(between(rng, 1, _FILLER), most)
        if not banned:
            self.text += "".join(rng.choices(self._unused, k=size))
            return
        for _ in range(size):
            grown = self.text + pick(rng, pick(rng, (*banned, self._unused)))
            if grown.endswith(banned):
                grown = self.text + pick(rng, self._unused)
            self.text = grown


def unused_letters(description: Description) -> str:
    """Return the letters that occur in no n-gram."""
    used = set("".join(description.required + description.banned))
    return "".join([letter for letter in LETTERS if letter not in used])


def _insert_unused(description: Description, text: str, rng: Random) -> str:
    return _insert(text, pick(rng, unused_letters(description)), rng)


def _insert_own(description: Description, text: str, rng: Random) -> str:
    letters = "".join(description.required)
    return _insert(text, pick(rng, letters), rng) if letters else text


def _remove_required(description: Description, text: str, rng: Random) -> str:
    if description.operator != "and" or not description.required:
        return text
    ngram, unused = pick(rng, description.required), unused_letters(description)
    while ngram in text:
        text = text.replace(ngram, pick(rng, unused) * len(ngram) if description.anything else "", 1)
    return text


def _insert_banned(description: Description, text: str, rng: Random) -> str:
    return _insert(text, pick(rng, description.banned), rng) if description.banned else text


def _spoil(description: Description, text: str, rng: Random) -> str:
    """Make the edit that always works, for the rare string that stays a member after all others."""
    if not description.anything:
        return _insert_unused(description, text, rng)
    return (_insert_banned if description.banned else _remove_required)(description, text, rng)


def _insert(text: str, part: str, rng: Random) -> str:
    at = int(rng.random() * (len(text) + 1))
    return text[:at] + part + text[at:]


def _overlap(text: str, ngram: str) -> int:
    """Return how many letters of the n-gram the text already ends with."""
    for size in range(len(ngram) - 1, 0, -1):
        if text.endswith(ngram[:size]):
            return size
    return 0


def _covered(text: str, ngrams: tuple[str, ...]) -> bool:
    """Return whether occurrences of the n-grams, overlapping or touching, cover every letter."""
    reach = 0
    while reach < len(text):
        ends = [_furthest(text, ngram, reach) for ngram in ngrams]
        further = max(ends, default=reach)
        if further <= reach:
            return False
        reach = further
    return True


def _furthest(text: str, ngram: str, reach: int) -> int:
    """Return the end of the last occurrence that starts at or before `reach`, if it ends behind it."""
    at = text.rfind(ngram, max(0, reach - len(ngram) + 1), reach + len(ngram))
    return at + len(ngram) if at >= 0 else 0


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
        """Judge the end of the heard text; text before the answer does no harm."""
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
