"""Micro tasks with a hidden mapping from questions to answers: micro1 to micro6 and micro15.

The mapping is drawn when an instance starts. The micro engine asks and judges.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import NamedTuple

from openfield.domains.commai.environment.task import Round, RoundSource, Stage, draw_shuffled, draw_uniformly
from openfield.domains.commai.tasks.draws import between, load_phrasebook, load_words, pick, sample
from openfield.domains.commai.tasks.micro import KnowAfter, KnowWhenSeen, MicroTask, Rule

LETTERS = string.ascii_lowercase
MARKS = ' !":?.,;'
SYMBOLS = string.ascii_letters + string.digits + " ,.!;?-"
_pair = functools.cache(Round)
_MARKS = [_pair(mark, mark) for mark in MARKS]
MAPPING_WORDS = 200
"""micro6 draws from this many of the most common words."""
SEQUENCES = load_phrasebook().sequences


@dataclass(frozen=True)
class Sampled:
    """Some of the options, all different, in random order."""

    options: Sequence[str]
    count: int

    def draw(self, rng: Random) -> list[str]:
        """Return the drawn options."""
        return sample(rng, self.options, self.count)


@dataclass(frozen=True)
class FixedTexts:
    """Texts that are not drawn."""

    texts: Sequence[str]

    def draw(self, rng: Random, keys: Sequence[str] = ()) -> Sequence[str]:
        """Return the texts as they are."""
        return self.texts


@dataclass(frozen=True)
class Numbers:
    """Random digits. Equal ones collapse, so there may be fewer than `count` unless they must be distinct."""

    lengths: tuple[int, int]
    count: int
    distinct: bool = False

    def draw(self, rng: Random) -> list[str]:
        """Return the numbers that were drawn, each once."""
        drawn: dict[str, None] = {}
        if self.distinct:
            while len(drawn) < min(self.count, 10 ** self.lengths[0]):
                drawn[draw_digits(rng, self.lengths)] = None
            return list(drawn)
        return list(dict.fromkeys(draw_digits(rng, self.lengths) for _ in range(self.count)))


@dataclass(frozen=True)
class Anew:
    """Answers that have nothing to do with the keys: some of the options, or random digits of these lengths."""

    options: Sequence[str] = ()
    lengths: tuple[int, int] = (0, 0)

    def draw(self, rng: Random, keys: Sequence[str]) -> Sequence[str]:
        """Return an answer to each key; equal numbers do not collapse here."""
        if self.options:
            return sample(rng, self.options, len(keys))
        return [draw_digits(rng, self.lengths) for _ in keys]


class Relation(Enum):
    """Answers that are keys themselves."""

    SAME = "the key itself"
    ONE = "one of the keys, for all of them"
    OTHERS = "the keys in another order"

    def draw(self, rng: Random, keys: Sequence[str]) -> Sequence[str]:
        """Return an answer to each key."""
        if self is Relation.SAME:
            return keys
        return [pick(rng, keys)] * len(keys) if self is Relation.ONE else sample(rng, keys, len(keys))


@dataclass(frozen=True)
class FeedbackNoise:
    """Random digits before the feedback, with a chance."""

    lengths: tuple[int, int]
    chance: float = 1.0

    def add(self, drawn: Round, rng: Random) -> Round:
        """Draw fresh digits, or leave the round as it is."""
        if self.chance < 1 and rng.random() >= self.chance:
            return drawn
        return prefix_digits(drawn, draw_digits(rng, self.lengths))


_symbols = functools.cache(functools.partial(Sampled, SYMBOLS))
_numbers = functools.cache(Numbers)
_DIGITS = FixedTexts(string.digits)


class MappingPlan(NamedTuple):
    """How the rounds of an instance are drawn. It is data, so that another engine can draw them as well."""

    keys: Sampled | FixedTexts | Numbers
    answers: Anew | FixedTexts | Relation
    make: Callable[[str, str], Round]
    """Makes the round of a key and its answer."""
    fixed: Sequence[Round] = ()
    """Rounds of every instance."""
    shuffled: bool = False
    """Whether each of n rounds is asked n times before any is asked again; if not, each is drawn alone."""
    noise: FeedbackNoise | None = None


class MappingTask(MicroTask):
    """A task with a fixed set of questions. Subclasses write `plan`."""

    rule: Rule = KnowWhenSeen()

    def plan(self, stage: Stage) -> MappingPlan:
        """Return how the instance is drawn. Choices between plans are drawn here."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `plan`.")

    def deal(self, stage: Stage) -> RoundSource:
        """Draw keys and answers."""
        plan, rng = self.plan(stage), stage.rng
        keys = plan.keys.draw(rng)
        return deal_rounds(plan, [*map(plan.make, keys, plan.answers.draw(rng, keys)), *plan.fixed], rng)


def deal_rounds(plan: MappingPlan, rounds: Sequence[Round], rng: Random) -> RoundSource:
    """Return a source of these rounds, in the order and with the noise of a plan."""
    source = (draw_shuffled if plan.shuffled else draw_uniformly)(rounds, rng)
    noise = plan.noise
    return source if noise is None else RoundSource(lambda: noise.add(source.draw(), rng), source.keys)


class ConstantTask(MappingTask):
    """micro1: the answer to every question is one fixed symbol."""

    dotted, single = False, True
    rule = KnowAfter(len(SYMBOLS))

    def plan(self, stage: Stage) -> MappingPlan:
        """Draw ten symbols, one of which is the answer."""
        return MappingPlan(_symbols(stage.settings.alphabet_size or 10), Relation.ONE, _pair)


class LettersTask(MappingTask):
    """micro2 to micro4: letters and marks. Each task says how the answers depend on the draws.

    Args:
        name: The task's id.
        answers: How the answers to the drawn symbols depend on them.
        rule: From when on the learner should know them.
        mixed: Whether marks are drawn as letters are. Otherwise all marks are asked, and each answers itself.
    """

    dotted, single = False, True

    def __init__(self, name: str, answers: Relation, rule: Rule, mixed: bool = False) -> None:
        super().__init__(name)
        self.rule = rule
        options, fixed = (LETTERS + MARKS, []) if mixed else (LETTERS, _MARKS)
        self._plan = functools.cache(lambda size: MappingPlan(Sampled(options, size), answers, _pair, fixed, True))

    def plan(self, stage: Stage) -> MappingPlan:
        """Draw a few symbols."""
        return self._plan(stage.settings.alphabet_size or 4)


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
        self._shape = shape
        self._answers = Anew(string.digits) if shape.answer is None else Anew(lengths=shape.answer)
        self._noise = None if shape.noise is None else FeedbackNoise(shape.noise, shape.noise_chance)
        self._round: Callable[[str, str], Round] = functools.partial(_digit_round, shape)
        if shape.question is None and shape.answer in (None, (1, 1)):
            self._round = functools.cache(self._round)  # a hundred rounds at most

    def plan(self, stage: Stage) -> MappingPlan:
        """Draw a mapping of up to ten keys."""
        settings, lengths = stage.settings, self._shape.question
        size = settings.mapping_size or 10
        keys = _DIGITS if lengths is None else _numbers(lengths, size, settings.distinct)
        return MappingPlan(keys, self._answers, self._round, (), True, self._noise)


class WordMapTask(MappingTask):
    """micro6: words answer words."""

    failed_task_tolerance = 2.0

    def plan(self, stage: Stage) -> MappingPlan:
        """Draw eight words and eight answers."""
        common = load_words(stage.settings.vocabulary)[:MAPPING_WORDS]
        return MappingPlan(Sampled(common, stage.settings.mapping_size or 8), Anew(common), map_word)


class SequenceTask(MappingTask):
    """micro15: the next in a sequence of number words, forwards or (two times in three) backwards."""

    failed_task_tolerance = 2.0

    def plan(self, stage: Stage) -> MappingPlan:
        """Draw one of the sequences and its direction."""
        sequence = pick(stage.rng, SEQUENCES).split()
        if stage.rng.random() < 2 / 3:
            sequence.reverse()
        return MappingPlan(FixedTexts(sequence[:-1]), FixedTexts(sequence[1:]), follow_word)


def map_word(word: str, answer: str) -> Round:
    """Make a round of micro6."""
    return make_round(f"random_map: {word}.", f"{answer}.")


def follow_word(word: str, then: str) -> Round:
    """Make a round of micro15."""
    return make_round(f"say next after: {word}.", f"{then}.")


def prefix_digits(drawn: Round, noise: str) -> Round:
    """Put digits before the feedback."""
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


def draw_digits(rng: Random, lengths: tuple[int, int]) -> str:
    """Draw digits of a random length, both ends included."""
    least, most = lengths
    length = least if least == most else between(rng, least, most)
    if length == 1:
        return string.digits[int(rng.random() * 10)]
    return str(int(rng.random() * 10**length)).zfill(length)
