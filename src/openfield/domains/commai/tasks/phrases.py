"""The questions of micro7 to micro14: say, spell, interleave, combine, decide, go on.

Each function draws one round; the catalogue turns them into tasks, and micro16, 19 and 20 mix them.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from openfield.domains.commai.environment.draws import between, pick, sample
from openfield.domains.commai.environment.rounds import Round
from openfield.domains.commai.environment.task import Stage
from openfield.domains.commai.environment.vocabulary import words
from openfield.domains.commai.tasks.mapping import praised
from openfield.domains.commai.tasks.micro import MicroTask

LETTERS = string.ascii_lowercase
PAIRS = ("ab", "ac", "ad", "bc", "bd", "cd")
TRIPLES = ("abc", "acd", "adc", "bcd", "bda", "cdb")
FEW_LETTERS = "abcde"


class Pen(NamedTuple):
    """What a question is drawn with."""

    rng: Random
    word: Callable[[], str]
    """Draws a word of the dictionary."""
    lenient: bool = False
    """Whether `and` of micro13.1 accepts every part of its answer, as the original did."""


Maker = Callable[[Pen], Round]


class PhraseTask(MicroTask):
    """A task whose rounds are independent of each other."""

    def __init__(self, name: str, make: Maker) -> None:
        super().__init__(name)
        self._make = make

    def ask(self, stage: Stage) -> Round:
        """A fresh round."""
        return self._make(plain_pen(stage))


def plain_pen(stage: Stage) -> Pen:
    """A pen that knows the whole dictionary."""
    rng, pool = stage.rng, words(stage.settings.vocabulary)
    return Pen(rng, lambda: pick(rng, pool), stage.settings.compat == "round1")


def say_letter(pen: Pen) -> Round:
    """micro7.1."""
    return _repeated(f"say: {(letter := pick(pen.rng, LETTERS))}.", f"{letter}.")


def say_word(pen: Pen) -> Round:
    """micro7.2."""
    return _repeated(f"say: {(word := pen.word())}.", f"{word}.")


def say_two_words(pen: Pen) -> Round:
    """micro7.3."""
    return _repeated(f"say: {(phrase := f'{pen.word()} {pen.word()}')}.", f"{phrase}.")


def say_without_spaces(pen: Pen) -> Round:
    """micro8: leading spaces go, inner ones (also before the dot) become one."""
    first, second = pick(pen.rng, LETTERS), pick(pen.rng, LETTERS)
    before, inside, behind = (" " * between(pen.rng, 0, 6) for _ in range(3))
    answer = first + inside[:1] + second + behind[:1] + "."
    return _repeated(f"say: {before}{first}{inside}{second}{behind}.", answer)


def spell_letter(pen: Pen) -> Round:
    """micro9.1."""
    return _told(f"spell: {(letter := pick(pen.rng, LETTERS))}.", f"{letter} .")


def spell_word(pen: Pen) -> Round:
    """micro9.2."""
    return _told(f"spell: {(word := pen.word())}.", " ".join(word) + " .")


def interleave_word(pen: Pen) -> Round:
    """micro9.3."""
    word, mark = pen.word(), pick(pen.rng, "-#,")
    return _told(f"interleave: {word} by {mark}.", mark.join(word) + ".")


def say_several(pen: Pen) -> Round:
    """micro10."""
    said = [pen.word() for _ in range(between(pen.rng, 2, 3))]
    return praised(" ".join(f"say: {word}" for word in said) + ".", " ".join(said) + ".")


def combine_pairs(pen: Pen) -> Round:
    """micro11."""
    first, second = pick(pen.rng, PAIRS), pick(pen.rng, PAIRS)
    operation, answer = pick(
        pen.rng,
        (
            ("reverse", f"{second} {first}"),
            ("concatenate", first + second),
            ("interleave", first[0] + second[0] + first[1] + second[1]),
        ),
    )
    return praised(f"say: {first} say: {second} {operation}:.", answer + ".")


def combine_sets(pen: Pen) -> Round:
    """micro12."""
    letters, letter = pick(pen.rng, TRIPLES), pick(pen.rng, "abcd")
    if pen.rng.random() < 0.5:
        operation, answer = "union", letters if letter in letters else letters + letter
    else:
        operation, answer = "exclude", letters.replace(letter, "")
    return praised(f"say: {letters} say: {letter} {operation}:.", answer + ".")


def follow_letter(pen: Pen) -> Round:
    """micro14."""
    at = between(pen.rng, 0, 24)
    return praised(f"after {LETTERS[at]} comes what:.", LETTERS[at + 1] + ".")


def decide_letters(pen: Pen) -> Round:
    """micro13.1: one of four kinds."""
    return pick(pen.rng, (_both, _either, _anything_but, _either_but))(pen)


def decide_words(pen: Pen) -> Round:
    """micro13.2: all words, or at least one of them."""
    operator = "and" if pen.rng.random() < 0.5 else "or"
    count = between(pen.rng, 2, 4)
    said = ["".join(sample(pen.rng, LETTERS, between(pen.rng, 1, 3))) for _ in range(count)]
    question = f"say: {f' {operator} '.join(said)}."
    if operator == "and":
        return praised(question, "".join(said) + ".")
    return praised(question, said[0] + ".", accepts=lambda answer: any(word in answer for word in said))


def _both(pen: Pen) -> Round:
    first, second = pick(pen.rng, FEW_LETTERS), pick(pen.rng, FEW_LETTERS)
    answer = f"{first}{second}."
    accepts = answer.__contains__ if pen.lenient else None
    return praised(f" say: {first} and {second}.", answer, accepts=accepts)


def _either(pen: Pen) -> Round:
    first, second = pick(pen.rng, FEW_LETTERS), pick(pen.rng, FEW_LETTERS)
    allowed = _combinations(first, second)
    return praised(f" say: {first} or {second}.", f"{first}.", accepts=allowed.__contains__)


def _anything_but(pen: Pen) -> Round:
    banned = pick(pen.rng, FEW_LETTERS)
    other = next(letter for letter in FEW_LETTERS if letter != banned)
    return praised(
        f" say: anything and not {banned}.",
        f"{other}.",
        told=other,
        accepts=lambda answer: answer != "." and banned not in answer,
    )


def _either_but(pen: Pen) -> Round:
    first, second, other = sample(pen.rng, FEW_LETTERS, 3)
    banned = pick(pen.rng, (first, second, other))
    allowed = {answer for answer in _combinations(first, second) if banned not in answer}
    best = second if banned == first else first
    return praised(f" say: {first} or {second} but not {banned}.", f"{best}.", told=best, accepts=allowed.__contains__)


def _combinations(first: str, second: str) -> frozenset[str]:
    return frozenset((f"{first}.", f"{second}.", f"{first}{second}.", f"{second}{first}."))


def _repeated(question: str, answer: str) -> Round:
    return Round(question, answer, f"correct! {answer};", f"false! {answer};")


def _told(question: str, answer: str) -> Round:
    return Round(question, answer, f"good job! {answer};", f"wrong! {answer};")
