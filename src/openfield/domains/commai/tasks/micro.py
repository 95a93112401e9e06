"""The engine of all micro tasks: ask questions until ten answers in a row are right or a limit is reached.

The catalogue fills it with questions. A new task of this kind needs only `ask`. The classes `Know...` decide from when
on a learner should know the answers; the limits of an instance begin to count there. The functions at the end put
questions and feedback in other words, as novelties do with every task.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from openfield.domains.commai.environment.task import PENALISED, Instance, Round, RoundScript, RoundSource, Stage, Task
from openfield.domains.commai.tasks.draws import load_phrasebook, pick

SYNONYMS = load_phrasebook().synonyms
KEYWORD = re.compile(rf"(?<!\w)({'|'.join(SYNONYMS)})(?=\W)")
_OTHER_WORDS = load_phrasebook().feedback
_VERDICT = re.compile("|".join(rf"^{word}(?=[!.])" for word in _OTHER_WORDS))


Knows = Callable[[str, bool], bool]
"""From the key of a question and whether it was answered right to whether the learner should know all answers."""


@dataclass(frozen=True)
class KnowAtOnce:
    """Expects knowledge from the first question on."""

    def start(self, keys: Sequence[str]) -> Knows:
        """Return the rule for a new instance."""
        return _always


@dataclass(frozen=True)
class KnowWhenSeen:
    """Expects knowledge once every key has been asked."""

    def start(self, keys: Sequence[str]) -> Knows:
        """Return the rule for a new instance."""
        unseen = set(keys)

        def knows(key: str, right: bool) -> bool:
            unseen.discard(key)
            return not unseen

        return knows


@dataclass(frozen=True)
class KnowAfter:
    """Expects knowledge after a right answer to a `telling` key (None: to any), or after all wrong `guesses`."""

    guesses: int
    telling: str | None = None

    def start(self, keys: Sequence[str]) -> Knows:
        """Return the rule for a new instance."""
        left = self.guesses

        def knows(key: str, right: bool) -> bool:
            nonlocal left
            if left == 0 or (right and self.tells(key)):
                return True
            if not right:
                left -= 1
            return False

        return knows

    def tells(self, key: str) -> bool:
        """Return True if a right answer to the key shows knowledge."""
        return self.telling is None or key in self.telling


@dataclass(frozen=True)
class KnowByElimination:
    """Expects knowledge once every `guessed` key was answered right or has this many options left."""

    options: int
    guessed: str

    def start(self, keys: Sequence[str]) -> Knows:
        """Return the rule for a new instance."""
        left = {key: self.options for key in keys if key in self.guessed}

        def knows(key: str, right: bool) -> bool:
            if key in left:
                left[key] = 1 if right else left[key] - 1
                if left[key] == 1:
                    del left[key]
            return not left

        return knows


Rule = KnowAtOnce | KnowWhenSeen | KnowAfter | KnowByElimination


def _always(key: str, right: bool) -> bool:
    return True


class MicroTask(Task):
    """A task of single questions. Subclasses write `ask`, or `deal` if an instance has hidden state."""

    separator = False
    dotted: bool = True
    """Whether an answer ends with its first dot. If not, it ends when it is as long as the expected one."""
    single: bool = False
    """Whether every answer is a single symbol, so that its length need not be compared."""
    failed_task_tolerance: float = 1.0
    """How much longer than the soft limit an instance goes on, as a factor, unless the settings say it."""
    rule: Rule = KnowAtOnce()
    """From when on the learner should know the answers; by default at once."""
    script: RoundScript | None = None
    """Rounds that replace the task's own."""

    def start(self, stage: Stage) -> Instance:
        """Draw the hidden state of the instance and ask the first question."""
        deal, settings = self.script.deal() if self.script else self.deal(stage), stage.settings
        if settings.feedback or settings.synonyms:
            drawn, free = deal, not deal.keys  # the questions of a fixed set stay, because they are counted
            deal = RoundSource(lambda: reword(drawn.draw(), stage, free), drawn.keys)
        if self.dotted:
            return DottedInstance(stage, self, deal)
        return (SingleInstance if self.single and not self.script else CountedInstance)(stage, self, deal)

    def deal(self, stage: Stage) -> RoundSource:
        """Return the source of a new instance's rounds."""
        return RoundSource(lambda: self.ask(stage))

    def ask(self, stage: Stage) -> Round:
        """Return a new question with its answer and feedback."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `ask` or `deal`.")

    def knowledge(self, deal: RoundSource) -> Knows:
        """Return the rule for a new instance."""
        return self.rule.start(deal.keys)


class MicroInstance(Instance):
    """One instance: it asks, judges and counts. Subclasses decide when an answer is complete."""

    prices = PENALISED

    def __init__(self, stage: Stage, task: MicroTask, deal: RoundSource) -> None:
        settings = stage.settings
        self.stage = stage
        self._draw = deal.draw
        self._knows: Knows | None = task.knowledge(deal)
        self._required = settings.required_consecutive_rewards
        tolerance, patience = 1 + settings.success_tolerance, settings.failed_task_tolerance
        patience = task.failed_task_tolerance if patience is None else patience
        self._limits = QuestionLimits(self._required * tolerance, patience)
        self._strict: StrictCriterion | None = None
        if settings.strict:
            strict = QuestionLimits((self._required + len({*deal.keys})) * tolerance, patience)
            self._strict = StrictCriterion(deal.keys, self._required, strict, self._limits)
        self._watched = True  # whether every answer may change a limit or a criterion
        self._penalties = stage.penalties
        self._heard: list[str] = []
        self._wrong: list[int] = []  # which answers were wrong; noting the right ones too would slow down good learners
        self.asked = self.streak = 0
        drawn = self.round = deal.draw()
        stage.say(drawn.question)

    @property
    def marks(self) -> str:  # type: ignore[override]
        """One `+` or `-` per answered question."""
        marks = ["+"] * self.asked
        for number in self._wrong:
            marks[number - 1] = "-"
        return "".join(marks)

    @property
    def original(self) -> bool | None:  # type: ignore[override]
        """The first verdict of the original criterion, if a strict one decides."""
        return None if self._strict is None else self._strict.original

    def overhear(self, symbol: str) -> int:
        """Punish an interruption. Called only where a grid world hears every symbol."""
        return -1

    def time_out(self) -> None:
        """Fail without a reward."""
        self.stage.finish(False, pays=False)

    def hint(self) -> str:
        """Return the rest of the answer."""
        return self.round.answer[len(self._heard) :]

    def judge(self, answer: str) -> int:
        """Judge a complete answer, give feedback, and ask the next question unless there is a verdict."""
        stage, judged = self.stage, self.round
        if stage.serializer is not None:
            answer = stage.serializer.decode(answer)
        right = judged.answer == answer if judged.accepts is None else judged.accepts(answer)
        if self._penalties != stage.penalties:  # an interruption since the last answer has broken the streak
            self._penalties, self.streak = stage.penalties, 0
        asked = self.asked = self.asked + 1
        if right:
            streak = self.streak = self.streak + 1
            reward, feedback = 1, judged.right
        else:
            streak = self.streak = 0
            self._wrong.append(asked)
            reward, feedback = -1, judged.wrong
        if self._watched or streak >= self._required or asked > self._limits.limit:
            verdict = self._decide(judged.question, right)
            if verdict is not None:
                stage.finish(verdict, feedback, pays=False)
                return reward
        drawn = self.round = self._draw()
        stage.say(feedback + drawn.question)
        return reward

    def _decide(self, question: str, right: bool) -> bool | None:
        """Return the verdict after an answer, or None if the instance goes on."""
        known = self._knows is not None and self._knows(question, right)
        if known:
            self._knows = None
        if self._strict is not None:
            return self._strict.decide(question, self.asked, self.streak, known)
        self._watched = self._watched and not known
        return self._limits.decide(self.asked, self.streak >= self._required, known)


class DottedInstance(MicroInstance):
    """An instance whose answers end with a dot."""

    def hear(self, symbol: str) -> int:
        """Add a symbol to the answer, which a dot completes."""
        heard = self._heard
        heard.append(symbol)
        if symbol != ".":
            return 0
        answer = "".join(heard)
        heard.clear()
        return self.judge(answer)


class CountedInstance(MicroInstance):
    """An instance whose answers end when they are as long as the expected answer."""

    def hear(self, symbol: str) -> int:
        """Add a symbol to the answer, which may complete it."""
        need = len(self.round.answer)
        if need > 1:
            heard = self._heard
            heard.append(symbol)
            if len(heard) < need:
                return 0
            symbol = "".join(heard)
            heard.clear()
        return self.judge(symbol)


class SingleInstance(MicroInstance):
    """An instance whose answers are single symbols."""

    hear = MicroInstance.judge  # type: ignore[assignment]


class QuestionLimits:
    """The limits on an instance's questions: success counts up to the soft limit, and the hard limit ends the instance.

    `limit` is infinite until the learner should know the answers, then the soft limit, then the hard one.

    Args:
        questions: Questions from when the learner should know the answers to the soft limit.
        patience: How much longer the hard limit is, as a factor.
    """

    def __init__(self, questions: float, patience: float) -> None:
        self._questions, self._patience = questions, patience
        self.limit = math.inf
        self._late = False  # whether the soft limit has passed

    def decide(self, asked: int, won: bool, known: bool) -> bool | None:
        """Return the verdict after `asked` questions, or None while it is open."""
        if won:
            return not self._late and asked <= self.limit
        if known:
            self.limit = asked + self._questions
        elif asked > self.limit:
            if self._late:
                return False
            self._late, self.limit = True, asked * (1 + self._patience)
        return None


class StrictCriterion:
    """The strict criterion, applied beside the original one: a winning streak must contain all keys.

    The questions are those of the original, so both criteria judge the same instance. The strict limits are longer,
    because it takes longer until all keys have been asked: each key adds one to the streak they are computed from.
    """

    def __init__(
        self, keys: Sequence[str], required: int, limits: QuestionLimits, original_limits: QuestionLimits
    ) -> None:
        self._keys, self._required = frozenset(keys), required
        self._limits, self._original_limits = limits, original_limits
        self._seen: set[str] = set()
        self.original: bool | None = None
        """The verdict of the original criterion, which comes first."""

    def decide(self, question: str, asked: int, streak: int, known: bool) -> bool | None:
        """Take the last question and the streak after it; return the verdict, or None if the instance goes on."""
        if streak <= 1:
            self._seen.clear()
        if streak:
            self._seen.add(question)
        long_enough = streak >= self._required
        if self.original is None:
            self.original = self._original_limits.decide(asked, long_enough, known)
        return self._limits.decide(asked, long_enough and self._seen >= self._keys, known)


def reword(drawn: Round, stage: Stage, free: bool = True) -> Round:
    """Return a round in the words of the settings; its question changes only if it is `free` to."""
    settings = stage.settings
    if settings.synonyms and free:
        drawn = ask_otherwise(drawn, replace_keywords(drawn.question, draw_synonyms(stage.rng)))
    if not settings.feedback:
        return drawn
    right, wrong = drawn.right, drawn.wrong
    if settings.feedback == "swapped":
        right, wrong = wrong, right
    elif settings.feedback == "withheld":
        right = wrong = ""
    else:
        right, wrong = (_VERDICT.sub(lambda match: _OTHER_WORDS[match[0]], text) for text in (right, wrong))
    return Round(drawn.question, drawn.answer, right, wrong, drawn.accepts)


def draw_synonyms(rng: Random) -> dict[str, str]:
    """Draw a synonym of every keyword."""
    return {keyword: pick(rng, synonyms) for keyword, synonyms in SYNONYMS.items()}


def replace_keywords(question: str, words: Mapping[str, str]) -> str:
    """Return the question with other words in the place of its keywords; those without one stay."""
    return KEYWORD.sub(lambda match: words.get(match[1], match[1]), question)


def ask_otherwise(drawn: Round, question: str) -> Round:
    """Return the same round with another question."""
    return Round(question, drawn.answer, drawn.right, drawn.wrong, drawn.accepts)
