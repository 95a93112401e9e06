"""The questions of micro7 to micro14 (say, spell, interleave, combine, decide, continue), and the tasks that mix them.

Each function draws one round, and the catalogue turns them into tasks. micro16 mixes them, micro19 replaces keywords by
synonyms and micro20 by code words.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from openfield.domains.commai.environment.task import Round, RoundSource, Stage
from openfield.domains.commai.tasks.draws import between, load_words, load_words_without, pick, sample
from openfield.domains.commai.tasks.mapping import make_round
from openfield.domains.commai.tasks.micro import (
    KEYWORD,
    SYNONYMS,
    MicroTask,
    ask_otherwise,
    draw_synonyms,
    replace_keywords,
)

LETTERS = string.ascii_lowercase
PAIRS = ("ab", "ac", "ad", "bc", "bd", "cd")
TRIPLES = ("abc", "acd", "adc", "bcd", "bda", "cdb")
FEW_LETTERS = "abcde"


class PhraseContext(NamedTuple):
    """The parts a question is drawn from."""

    rng: Random
    word: Callable[[], str]
    """Draws a word of the vocabulary."""
    letters: Callable[[int], str]
    """Draws a number of letters that all differ."""
    synonyms: Callable[[], Mapping[str, str]]
    """Draws a synonym of every keyword."""
    codes: Mapping[str, str] = {}
    """The code words of the keywords, in micro20."""
    lenient: bool = False
    """Whether `and` of micro13.1 accepts every part of its answer, as in the original."""


RoundMaker = Callable[[PhraseContext], Round]


@dataclass(frozen=True, slots=True)
class IsOneOf:
    """Accepts certain answers."""

    answers: frozenset[str]

    def __call__(self, answer: str) -> bool:
        """Return True if the answer is one of them."""
        return answer in self.answers


@dataclass(frozen=True, slots=True)
class HasAny:
    """Accepts every answer that contains one of a few words."""

    words: tuple[str, ...]

    def __call__(self, answer: str) -> bool:
        """Return True if a word is in the answer."""
        return any(word in answer for word in self.words)


@dataclass(frozen=True, slots=True)
class Lacks:
    """Accepts every answer without a letter, except the empty one."""

    letter: str

    def __call__(self, answer: str) -> bool:
        """Return True if the letter is not in the answer."""
        return answer != "." and self.letter not in answer


@dataclass(frozen=True, slots=True)
class IsPartOf:
    """Accepts every part of the answer, as in the original."""

    whole: str

    def __call__(self, answer: str) -> bool:
        """Return True if the whole contains the answer."""
        return answer in self.whole


class PhraseTask(MicroTask):
    """A task with independent rounds."""

    def __init__(self, name: str, make: RoundMaker) -> None:
        super().__init__(name)
        self.make = make

    def deal(self, stage: Stage) -> RoundSource:
        """Return a source that draws each round anew."""
        return RoundSource(partial(self.make, make_context(stage, load_words(stage.settings.vocabulary))))


def make_context(stage: Stage, pool: Sequence[str]) -> PhraseContext:
    """Make a context that draws words from a pool."""
    rng, lenient = stage.rng, stage.settings.compat == "round1"
    draw_letters, synonyms = partial(_draw_letters, rng), partial(draw_synonyms, rng)
    return PhraseContext(rng, lambda: pick(rng, pool), draw_letters, synonyms, lenient=lenient)


def _draw_letters(rng: Random, count: int) -> str:
    return pick(rng, LETTERS) if count == 1 else "".join(sample(rng, LETTERS, count))


def say_letter(context: PhraseContext) -> Round:
    """Draw a round of micro7.1."""
    return _repeated(f"say: {(letter := context.letters(1))}.", f"{letter}.")


def say_word(context: PhraseContext) -> Round:
    """Draw a round of micro7.2."""
    return _repeated(f"say: {(word := context.word())}.", f"{word}.")


def say_two_words(context: PhraseContext) -> Round:
    """Draw a round of micro7.3."""
    return _repeated(f"say: {(phrase := f'{context.word()} {context.word()}')}.", f"{phrase}.")


def say_without_spaces(context: PhraseContext) -> Round:
    """Draw a round of micro8: leading spaces go, inner ones (also before the dot) become one."""
    first, second = context.letters(1), context.letters(1)
    before, inside, behind = (" " * between(context.rng, 0, 6) for _ in range(3))
    answer = first + inside[:1] + second + behind[:1] + "."
    return _repeated(f"say: {before}{first}{inside}{second}{behind}.", answer)


def spell_letter(context: PhraseContext) -> Round:
    """Draw a round of micro9.1."""
    return _make_exact(f"spell: {(letter := context.letters(1))}.", f"{letter} .")


def spell_word(context: PhraseContext) -> Round:
    """Draw a round of micro9.2."""
    return _make_exact(f"spell: {(word := context.word())}.", " ".join(word) + " .")


def interleave_word(context: PhraseContext) -> Round:
    """Draw a round of micro9.3."""
    word, mark = context.word(), pick(context.rng, "-#,")
    return _make_exact(f"interleave: {word} by {mark}.", mark.join(word) + ".")


def say_several(context: PhraseContext) -> Round:
    """Draw a round of micro10."""
    said = [context.word() for _ in range(between(context.rng, 2, 3))]
    return make_round(" ".join(f"say: {word}" for word in said) + ".", " ".join(said) + ".")


def combine_pairs(context: PhraseContext) -> Round:
    """Draw a round of micro11."""
    first, second = pick(context.rng, PAIRS), pick(context.rng, PAIRS)
    operation, answer = pick(
        context.rng,
        (
            ("reverse", f"{second} {first}"),
            ("concatenate", first + second),
            ("interleave", first[0] + second[0] + first[1] + second[1]),
        ),
    )
    return make_round(f"say: {first} say: {second} {operation}:.", answer + ".")


def combine_sets(context: PhraseContext) -> Round:
    """Draw a round of micro12."""
    letters, letter = pick(context.rng, TRIPLES), pick(context.rng, "abcd")
    if context.rng.random() < 0.5:
        operation, answer = "union", letters if letter in letters else letters + letter
    else:
        operation, answer = "exclude", letters.replace(letter, "")
    return make_round(f"say: {letters} say: {letter} {operation}:.", answer + ".")


def follow_letter(context: PhraseContext) -> Round:
    """Draw a round of micro14."""
    at = between(context.rng, 0, 24)
    return make_round(f"after {LETTERS[at]} comes what:.", LETTERS[at + 1] + ".")


def decide_letters(context: PhraseContext) -> Round:
    """Draw a round of micro13.1: one of four kinds."""
    return pick(context.rng, (_both, _either, _anything_but, _either_but))(context)


def decide_words(context: PhraseContext) -> Round:
    """Draw a round of micro13.2: all words, or at least one of them."""
    operator = "and" if context.rng.random() < 0.5 else "or"
    count = between(context.rng, 2, 4)
    said = [context.letters(between(context.rng, 1, 3)) for _ in range(count)]
    question = f"say: {f' {operator} '.join(said)}."
    if operator == "and":
        return make_round(question, "".join(said) + ".")
    told = pick(context.rng, said)
    return make_round(question, f"{told}.", told=told, accepts=HasAny(tuple(said)))


def _both(context: PhraseContext) -> Round:
    first, second = pick(context.rng, FEW_LETTERS), pick(context.rng, FEW_LETTERS)
    answer = f"{first}{second}."
    accepts = IsPartOf(answer) if context.lenient else None
    return make_round(f" say: {first} and {second}.", answer, accepts=accepts)


def _either(context: PhraseContext) -> Round:
    first, second = pick(context.rng, FEW_LETTERS), pick(context.rng, FEW_LETTERS)
    told, allowed = pick(context.rng, (first, second)), _combinations(first, second)
    return make_round(f" say: {first} or {second}.", f"{told}.", accepts=IsOneOf(allowed))


def _anything_but(context: PhraseContext) -> Round:
    banned = pick(context.rng, FEW_LETTERS)
    other = pick(context.rng, FEW_LETTERS.replace(banned, ""))
    return make_round(
        f" say: anything and not {banned}.",
        f"{other}.",
        told=other,
        accepts=Lacks(banned),
    )


def _either_but(context: PhraseContext) -> Round:
    first, second, other = sample(context.rng, FEW_LETTERS, 3)
    banned = pick(context.rng, (first, second, other))
    allowed = frozenset(answer for answer in _combinations(first, second) if banned not in answer)
    told = pick(context.rng, [letter for letter in (first, second) if letter != banned])
    return make_round(f" say: {first} or {second} but not {banned}.", f"{told}.", told=told, accepts=IsOneOf(allowed))


def _combinations(first: str, second: str) -> frozenset[str]:
    return frozenset((f"{first}.", f"{second}.", f"{first}{second}.", f"{second}{first}."))


def _repeated(question: str, answer: str) -> Round:
    return Round(question, answer, f"correct! {answer};", f"false! {answer};")


def _make_exact(question: str, answer: str) -> Round:
    return Round(question, answer, f"good job! {answer};", f"wrong! {answer};")


ALL_SYNONYMS = tuple(synonym for synonyms in SYNONYMS.values() for synonym in synonyms)
CODE_WORDS = slice(200, 400)
"""Which words of the filtered vocabulary micro20 draws its code words from."""


class MixedTask(MicroTask):
    """micro16: each instance is one of several tasks."""

    def __init__(self, name: str, makers: Sequence[RoundMaker]) -> None:
        super().__init__(name)
        self.makers = makers

    def deal(self, stage: Stage) -> RoundSource:
        """Draw one of the tasks for the instance."""
        make = pick(stage.rng, self.makers)
        return RoundSource(partial(make, make_context(stage, load_words(stage.settings.vocabulary))))


class ReworkedTask(MicroTask):
    """micro19 and micro20: every task is played once before any is played again, in other words.

    Args:
        name: The task's id.
        makers: Draw the rounds of the tasks.
        rework: Puts a round in other words.
        coded: Whether an instance draws code words.
    """

    failed_task_tolerance = 2.0

    def __init__(
        self,
        name: str,
        makers: Sequence[RoundMaker],
        rework: Callable[[Round, PhraseContext], Round],
        coded: bool = False,
    ) -> None:
        super().__init__(name)
        self.makers, self.rework, self.coded = makers, rework, coded
        self._left: list[RoundMaker] = []

    def deal(self, stage: Stage) -> RoundSource:
        """Take the next of the tasks and reword its rounds."""
        if not self._left:
            self._left = sample(stage.rng, self.makers, len(self.makers))
        make, rework, context = self._left.pop(), self.rework, make_plain_context(stage, self.coded)
        return RoundSource(lambda: rework(make(context), context))


def make_plain_context(stage: Stage, coded: bool) -> PhraseContext:
    """Make a context whose words contain no synonym and none of the code words, which are drawn here."""
    rng, pool = stage.rng, load_plain_words(stage.settings.vocabulary)
    context = make_context(stage, pool)
    if not coded:
        return context
    codes = dict(zip(SYNONYMS, sample(rng, pool[CODE_WORDS], len(SYNONYMS)), strict=True))
    return context._replace(word=partial(_draw_without, rng, pool, [*codes.values()]), codes=codes)


def load_plain_words(vocabulary: str) -> tuple[str, ...]:
    """Return the words that contain no synonym."""
    return load_words_without(ALL_SYNONYMS, vocabulary)


def _draw_without(rng: Random, pool: Sequence[str], parts: Sequence[str]) -> str:
    """Draw a word that contains none of these parts."""
    drawn = pick(rng, pool)
    while any(part in drawn for part in parts):
        drawn = pick(rng, pool)
    return drawn


def use_synonyms(drawn: Round, context: PhraseContext) -> Round:
    """Replace each keyword of a question by one of its synonyms, for micro19."""
    return ask_otherwise(drawn, replace_keywords(drawn.question, context.synonyms()))


def use_code_word(drawn: Round, context: PhraseContext) -> Round:
    """Let a question introduce and use the code word of one of its keywords, for micro20."""
    key = pick(context.rng, sorted(set(KEYWORD.findall(drawn.question))))
    code = context.codes[key]
    return ask_otherwise(drawn, f"{code} is as {key} - {replace_keywords(drawn.question, {key: code})}")
