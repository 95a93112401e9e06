"""The engine of all micro tasks: question after question until ten answers in a row are right or patience ends.

The catalogue (catalogue.py) fills it with questions; a new task of this kind needs `ask` and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from openfield.domains.commai.environment.rounds import Round, RoundScript, RoundSource
from openfield.domains.commai.environment.stage import Stage
from openfield.domains.commai.environment.task import PENALISED, Instance, Task
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.rewording import RewordedRounds

_NEVER = math.inf


class MicroTask(Task):
    """A task of single questions. Subclasses write `ask`, or `deal` if an instance has something to remember."""

    separator = False
    dotted: bool = True
    """Whether an answer ends with its first dot; otherwise with as many symbols as the expected one has."""
    single: bool = False
    """Whether every answer is a single symbol; saves asking each time."""
    failed_task_tolerance: float = 1.0
    script: RoundScript | None = None
    """Rounds that replace the task's own."""

    def start(self, stage: Stage) -> Instance:
        """Draws what the instance hides and asks the first question."""
        deal, settings = self.script.deal() if self.script else self.deal(stage), stage.settings
        if settings.feedback or settings.synonyms:
            deal = RewordedRounds(deal, stage)
        if self.dotted:
            return DottedInstance(stage, self, deal)
        return (SingleInstance if self.single and not self.script else CountedInstance)(stage, self, deal)

    def deal(self, stage: Stage) -> RoundSource:
        """Where the rounds of a new instance come from."""
        return GeneratedRounds(self.ask, stage)

    def ask(self, stage: Stage) -> Round:
        """A new question with its answer and feedback."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `ask` or `deal`.")

    def knowledge(self, deal: RoundSource) -> Knows:
        """What decides from when on the learner should know the answers: at once, unless a subclass says otherwise."""
        return know_at_once

    def patience(self, settings: CommaiSettings) -> float:
        """How much longer than until the soft limit an instance goes on, as a factor."""
        own = settings.failed_task_tolerance
        return self.failed_task_tolerance if own is None else own


class MicroInstance(Instance):
    """One instance: it asks, judges and counts. What completes an answer is up to the two kinds below."""

    __slots__ = (
        "_cover",
        "_draw",
        "_heard",
        "_knows",
        "_late",
        "_limit",
        "_penalties",
        "_required",
        "_task",
        "_watched",
        "_wrong",
        "asked",
        "round",
        "streak",
    )
    prices = PENALISED

    def __init__(self, stage: Stage, task: MicroTask, deal: RoundSource) -> None:
        settings = stage.settings
        self.stage = stage
        self._task = task
        self._draw = deal.draw
        self._knows: Knows | None = task.knowledge(deal)
        self._required = settings.required_consecutive_rewards
        self._limit = _NEVER  # questions until the soft limit once that is known, then until the hard one
        self._late = False  # whether the soft limit has passed
        self._watched = True  # whether every answer may change a limit or a cover, not only some
        self._cover = StrictCriterion(deal.keys, settings, task) if settings.strict else None
        self._penalties = stage.penalties
        self._heard: list[str] = []
        self._wrong: list[int] = []  # which answers were; noting the right ones too would slow down good learners
        self.asked = self.streak = 0
        drawn = self.round = deal.draw()
        stage.say(drawn.question)

    @property
    def marks(self) -> str:  # type: ignore[override]
        """How its questions were answered so far."""
        marks = ["+"] * self.asked
        for number in self._wrong:
            marks[number - 1] = "-"
        return "".join(marks)

    @property
    def original(self) -> bool | None:  # type: ignore[override]
        """What the original criterion said first, if a strict one decides."""
        return None if self._cover is None else self._cover.original

    def overhear(self, symbol: str) -> int:
        """Punishes an interruption where a world asks for every symbol."""
        return -1

    def time_out(self) -> None:
        """Fails, and pays nothing."""
        self.stage.finish(False, pays=False)

    def hint(self) -> str:
        """The rest of the answer."""
        return self.round.answer[len(self._heard) :]

    def judge(self, answer: str) -> int:
        """Takes a complete answer, gives feedback, and asks the next question unless there was a verdict."""
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
        if self._watched or streak >= self._required or asked > self._limit:
            verdict = self._decide(judged.question, right)
            if verdict is not None:
                stage.finish(verdict, feedback, pays=False)
                return reward
        drawn = self.round = self._draw()
        stage.say(feedback + drawn.question)
        return reward

    def _decide(self, question: str, right: bool) -> bool | None:
        """The verdict after an answer, None if the instance goes on."""
        asked = self.asked
        known = self._knows is not None and self._knows(question, right)
        if known:
            self._knows = None
        if self._cover is not None:
            return self._cover.decide(question, asked, self.streak, known)
        if self.streak >= self._required:
            return not self._late and asked <= self._limit
        if known:
            self._watched = False
            self._limit = asked + self._required * (1 + self.stage.settings.success_tolerance)
        elif asked > self._limit:
            if self._late:
                return False
            self._late, self._limit = True, asked * (1 + self._task.patience(self.stage.settings))
        return None


class DottedInstance(MicroInstance):
    """An instance whose answers end with a dot."""

    __slots__ = ()

    def hear(self, symbol: str) -> int:
        """Adds a symbol to the answer; a dot completes it."""
        heard = self._heard
        heard.append(symbol)
        if symbol != ".":
            return 0
        answer = "".join(heard)
        heard.clear()
        return self.judge(answer)


class CountedInstance(MicroInstance):
    """An instance whose answers end when they are as long as the expected one."""

    __slots__ = ()

    def hear(self, symbol: str) -> int:
        """Adds a symbol to the answer, which may complete it."""
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

    __slots__ = ()
    hear = MicroInstance.judge  # type: ignore[assignment]


class QuestionLimits:
    """How many questions an instance may take: success counts up to a soft limit, and the hard one ends it.

    Args:
        questions: From when the learner should know to the soft limit.
        patience: How much longer the hard limit is, as a factor.
    """

    def __init__(self, questions: float, patience: float) -> None:
        self._questions, self._patience = questions, patience
        self._limit, self._late = _NEVER, False

    def decide(self, asked: int, won: bool, known: bool) -> bool | None:
        """The verdict after so many questions, None if there is none yet."""
        if won:
            return not self._late and asked <= self._limit
        if known:
            self._limit = asked + self._questions
        elif asked > self._limit:
            if self._late:
                return False
            self._late, self._limit = True, asked * (1 + self._patience)
        return None


class StrictCriterion:
    """The strict criterion, beside the original one: a winning streak must contain all keys.

    The questions are those of the original, so that both are about the same instance; since it takes longer until all
    keys have come, every key adds one to the streak that the strict limits are made for.
    """

    def __init__(self, keys: Sequence[str], settings: CommaiSettings, task: MicroTask) -> None:
        self._keys = frozenset(keys)
        self._seen: set[str] = set()
        self._required = settings.required_consecutive_rewards
        tolerance, patience = 1 + settings.success_tolerance, task.patience(settings)
        self._ours = QuestionLimits((self._required + len(self._keys)) * tolerance, patience)
        self._theirs = QuestionLimits(self._required * tolerance, patience)
        self.original: bool | None = None
        """The verdict of the original criterion, which comes first."""

    def decide(self, question: str, asked: int, streak: int, known: bool) -> bool | None:
        """Takes the question that made the streak this long; the verdict, None if the instance goes on."""
        if streak <= 1:
            self._seen.clear()
        if streak:
            self._seen.add(question)
        long_enough = streak >= self._required
        if self.original is None:
            self.original = self._theirs.decide(asked, long_enough, known)
        return self._ours.decide(asked, long_enough and self._seen >= self._keys, known)


class GeneratedRounds:
    """Asks the task itself for every round."""

    keys: Sequence[str] = ()

    def __init__(self, ask: Callable[[Stage], Round], stage: Stage) -> None:
        self._ask, self._stage = ask, stage

    def draw(self) -> Round:
        """A new round."""
        return self._ask(self._stage)


Knows = Callable[[str, bool], bool]
"""Told the key of a question and whether it was answered right, says whether the learner should know it all by now."""


def know_at_once(key: str, right: bool) -> bool:
    """The learner should know from the first question on."""
    return True


def know_when_seen(keys: Sequence[str]) -> Knows:
    """The learner should know once every key has been asked."""
    unseen = set(keys)

    def knows(key: str, right: bool) -> bool:
        unseen.discard(key)
        return not unseen

    return knows


def know_after(guesses: int, telling: Callable[[str], bool]) -> Knows:
    """The learner should know after its first right answer to a telling question, or when its guesses are used up."""
    left = guesses

    def knows(key: str, right: bool) -> bool:
        nonlocal left
        if left == 0 or (right and telling(key)):
            return True
        if not right:
            left -= 1
        return False

    return knows


def know_by_elimination(options: dict[str, int]) -> Knows:
    """The learner should know once every key was answered right or has one option left."""
    left = {key: count for key, count in options.items() if count > 1}

    def knows(key: str, right: bool) -> bool:
        if key in left:
            left[key] = 1 if right else left[key] - 1
            if left[key] == 1:
                del left[key]
        return not left

    return knows
