"""Micro tasks with a hidden mapping from questions to answers: micro1 to micro6 and micro15.

The mapping is drawn when an instance starts. The micro engine asks and judges.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from openfield.domains.commai.environment.task import Round, RoundSource, Stage, draw_shuffled, draw_uniformly
from openfield.domains.commai.tasks.draws import between, load_phrasebook, load_words, pick, sample
from openfield.domains.commai.tasks.micro import Knows, MicroTask, know_after, know_when_seen

LETTERS = string.ascii_lowercase
MARKS = ' !":?.,;'
SYMBOLS = string.ascii_letters + string.digits + " ,.!;?-"
_pair = functools.cache(Round)
_MARKS = [_pair(mark, mark) for mark in MARKS]
MAPPING_WORDS = 200
"""micro6 draws from this many of the most common words."""
SEQUENCES = load_phrasebook().sequences


class MappingTask(MicroTask):
    """A task with a fixed set of questions."""

    def knowledge(self, deal: RoundSource) -> Knows:
        """Expect knowledge once every key has been asked."""
        return know_when_seen(deal.keys)


class ConstantTask(MicroTask):
    """micro1: the answer to every question is one fixed symbol."""

    dotted, single = False, True

    def deal(self, stage: Stage) -> RoundSource:
        """Draw ten symbols, one of which is the answer."""
        alphabet = sample(stage.rng, SYMBOLS, stage.settings.alphabet_size or 10)
        answer = pick(stage.rng, alphabet)
        return draw_uniformly([Round(symbol, answer) for symbol in alphabet], stage.rng)

    def knowledge(self, deal: RoundSource) -> Knows:
        """Expect knowledge after the first right answer, or when all other symbols have been tried."""
        return know_after(len(SYMBOLS), lambda key: True)


class LettersTask(MicroTask):
    """micro2 to micro4: marks answer themselves, and the answers to letters depend on the task.

    Args:
        name: The task's id.
        answers: Draws the answers to the letters of an instance.
        knows: Makes the rule from when on the learner should know them.
    """

    dotted, single = False, True

    def __init__(
        self, name: str, answers: Callable[[Random, list[str]], Sequence[str]], knows: Callable[[RoundSource], Knows]
    ) -> None:
        super().__init__(name)
        self._answers, self._knows = answers, knows

    def deal(self, stage: Stage) -> RoundSource:
        """Draw a few letters and add all marks."""
        letters = sample(stage.rng, LETTERS, stage.settings.alphabet_size or 4)
        answers = self._answers(stage.rng, letters)
        return draw_shuffled([*map(_pair, letters, answers), *_MARKS], stage.rng)

    def knowledge(self, deal: RoundSource) -> Knows:
        """Return the rule of this task."""
        return self._knows(deal)


@dataclass(frozen=True)
class Shape:
    """The form of a micro5 mapping. Lengths are inclusive ranges of random digits."""

    question: tuple[int, int] | None = None
    """None: the ten digits themselves."""
    answer: tuple[int, int] | None = None
    """None: a permutation of the ten digits."""
    question_end: str = "."
    answer_end: str = "."
    feedback_end: str = ";"
    noise: tuple[int, int] | None = None
    """Random digits before the feedback."""
    noise_chance: float = 1.0
    short_praise: bool = False
    """Whether the dot is left out of the feedback after a right answer."""


class DigitsTask(MappingTask):
    """micro5.x: digits answer digits, and the feedback tells the answer."""

    dotted = False

    def __init__(self, name: str, shape: Shape) -> None:
        super().__init__(name)
        self.shape = shape
        self.round: Callable[[str, str], Round] = functools.partial(_digit_round, shape)
        if shape.question is None and shape.answer in (None, (1, 1)):
            self.round = functools.cache(self.round)  # a hundred rounds at most

    def deal(self, stage: Stage) -> RoundSource:
        """Draw a mapping of up to ten keys."""
        shape, rng = self.shape, stage.rng
        size = stage.settings.mapping_size or 10
        keys = list(string.digits) if shape.question is None else _draw_keys(shape.question, size, stage)
        answers = _draw_answers(shape, rng, len(keys))
        deck = draw_shuffled(list(map(self.round, keys, answers)), rng)
        return deck if shape.noise is None else RoundSource(lambda: _add_noise(deck.draw(), shape, rng), deck.keys)


class WordMapTask(MappingTask):
    """micro6: words answer words."""

    failed_task_tolerance = 2.0

    def deal(self, stage: Stage) -> RoundSource:
        """Draw eight words and eight answers."""
        common, size = load_words(stage.settings.vocabulary)[:MAPPING_WORDS], stage.settings.mapping_size or 8
        words, answers = sample(stage.rng, common, size), sample(stage.rng, common, size)
        return draw_uniformly(list(map(map_word, words, answers)), stage.rng)


class SequenceTask(MappingTask):
    """micro15: the next in a sequence of number words, forwards or (two times in three) backwards."""

    failed_task_tolerance = 2.0

    def deal(self, stage: Stage) -> RoundSource:
        """Draw one of the sequences and its direction."""
        sequence = pick(stage.rng, SEQUENCES).split()
        if stage.rng.random() < 2 / 3:
            sequence.reverse()
        return draw_uniformly(list(map(follow_word, sequence, sequence[1:])), stage.rng)


def map_word(word: str, answer: str) -> Round:
    """Make a round of micro6."""
    return make_round(f"random_map: {word}.", f"{answer}.")


def follow_word(word: str, then: str) -> Round:
    """Make a round of micro15."""
    return make_round(f"say next after: {word}.", f"{then}.")


def _add_noise(drawn: Round, shape: Shape, rng: Random) -> Round:
    """Put fresh random digits before the feedback."""
    if shape.noise is None or (shape.noise_chance < 1 and rng.random() >= shape.noise_chance):
        return drawn
    noise = _digits(rng, shape.noise)
    return Round(drawn.question, drawn.answer, noise + drawn.right, noise + drawn.wrong)


def _digit_round(shape: Shape, key: str, digits: str) -> Round:
    answer = digits + shape.answer_end
    wrong = answer + shape.feedback_end
    return Round(key + shape.question_end, answer, digits + shape.feedback_end if shape.short_praise else wrong, wrong)


def make_round(
    question: str, answer: str, told: str | None = None, accepts: Callable[[str], bool] | None = None
) -> Round:
    """Make a round with the feedback of most tasks: praise, or the answer (`told`, if that differs)."""
    return Round(question, answer, "good job! ;", f"wrong! {answer if told is None else told};", accepts)


def _draw_keys(lengths: tuple[int, int], size: int, stage: Stage) -> list[str]:
    """Draw random keys. Equal ones collapse, so there may be fewer than `size` unless they must be distinct."""
    keys: dict[str, None] = {}
    while stage.settings.distinct and len(keys) < min(size, 10 ** lengths[0]):
        keys[_digits(stage.rng, lengths)] = None
    if not keys:
        keys = dict.fromkeys(_digits(stage.rng, lengths) for _ in range(size))
    return list(keys)


def _draw_answers(shape: Shape, rng: Random, count: int) -> list[str]:
    if shape.answer is None:
        return sample(rng, string.digits, count)
    return [_digits(rng, shape.answer) for _ in range(count)]


def _digits(rng: Random, lengths: tuple[int, int]) -> str:
    least, most = lengths
    length = least if least == most else between(rng, least, most)
    if length == 1:
        return string.digits[int(rng.random() * 10)]
    return str(int(rng.random() * 10**length)).zfill(length)
