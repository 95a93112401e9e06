"""The engine of all micro tasks: question after question until ten answers in a row are right or patience ends.

The catalogue (catalogue.py) fills it with questions; a new task of this kind needs `ask` and nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from openfield.domains.commai.rounds import Deal, Round, Script
from openfield.domains.commai.task import Instance, Stage, Task

Knows = Callable[[str, bool], bool]
"""Told the key of a question and whether it was answered right, says whether the learner should know it all by now."""


class MicroTask(Task):
    """A task of single questions. Subclasses write `ask`, or `deal` if an instance has something to remember."""

    separator = False
    dotted: bool = True
    """Whether an answer ends with its first dot; otherwise with as many symbols as the expected one has."""
    failed_task_tolerance: float = 1.0
    script: Script | None = None
    """Rounds that replace the task's own."""

    def start(self, stage: Stage) -> Instance:
        """Draws what the instance hides and asks the first question."""
        deal = self.script.deal() if self.script else self.deal(stage)
        return MicroInstance(stage, self, deal)

    def deal(self, stage: Stage) -> Deal:
        """Where the rounds of a new instance come from."""
        return Asking(self.ask, stage)

    def ask(self, stage: Stage) -> Round:
        """A new question with its answer and feedback."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `ask` or `deal`.")

    def knowledge(self, keys: Sequence[str]) -> Knows:
        """What decides from when on the learner should know the answers: at once, unless a subclass says otherwise."""
        return know_at_once


class MicroInstance(Instance):
    """One instance: it asks, judges and counts."""

    __slots__ = (
        "_covered",
        "_dotted",
        "_draw",
        "_failing",
        "_hard",
        "_keys",
        "_knows",
        "_need",
        "_required",
        "_soft",
        "_tolerance",
        "asked",
        "heard",
        "round",
        "streak",
    )

    def __init__(self, stage: Stage, task: MicroTask, deal: Deal) -> None:
        super().__init__(stage)
        settings = stage.settings
        own = settings.failed_task_tolerance
        self._required = settings.required_consecutive_rewards
        self._tolerance = settings.success_tolerance
        self._failing = task.failed_task_tolerance if own is None else own
        self._keys = frozenset(deal.keys) if settings.strict else frozenset()
        self._covered: set[str] = set()
        self._dotted = task.dotted
        self._draw = deal.draw
        self._knows = task.knowledge(deal.keys)
        self._soft: float | None = None
        self._hard: float | None = None
        self.asked = self.streak = 0
        self.heard: list[str] = []
        self._ask("")

    def hear(self, symbol: str) -> int:
        """Adds a symbol to the answer, and judges the answer if that completes it."""
        heard = self.heard
        heard.append(symbol)
        if (symbol != ".") if self._dotted else (len(heard) < self._need):
            return 0
        return self._judge(self.stage.understand("".join(heard)))

    def overhear(self, symbol: str) -> int:
        """Punishes the interruption."""
        self.streak = 0
        self._covered.clear()
        return -1

    def time_out(self) -> None:
        """Fails, and pays nothing."""
        self.stage.finish(False, pays=False)

    def hint(self) -> str:
        """The rest of the answer."""
        return self.round.answer[len(self.heard) :]

    def _ask(self, feedback: str) -> None:
        drawn = self.round = self._draw()
        self.heard.clear()
        self._need = len(drawn.answer)
        self.stage.say(feedback + drawn.question)

    def _judge(self, answer: str) -> int:
        asked = self.round
        right = asked.accepts(answer) if asked.accepts else answer == asked.answer
        self.asked += 1
        self.streak = self.streak + 1 if right else 0
        feedback = asked.right if right else asked.wrong
        if self._keys:
            self._cover(asked, right)
        verdict = self._decide(asked, right)
        if verdict is None:
            self._ask(feedback)
        else:
            self.heard.clear()
            self.stage.finish(verdict, feedback, pays=False)
        return 1 if right else -1

    def _cover(self, asked: Round, right: bool) -> None:
        """Keeps which keys the streak contains; only a strict instance looks at them."""
        if right:
            self._covered.add(asked.key or asked.question)
        else:
            self._covered.clear()

    def _decide(self, judged: Round, right: bool) -> bool | None:
        """The verdict after an answer, None if the instance goes on."""
        asked = self.asked
        knows = self._soft is None and self._knows(judged.key or judged.question, right)
        if self.streak >= self._required and self._covered >= self._keys:
            return self._soft is None or asked <= self._soft
        if knows:
            self._soft = asked + self._required * (1 + self._tolerance)
        if self._hard is None and self._soft is not None and asked > self._soft:
            self._hard = asked * (1 + self._failing)
        return False if self._hard is not None and asked > self._hard else None


class Asking:
    """Asks the task itself for every round."""

    keys: Sequence[str] = ()

    def __init__(self, ask: Callable[[Stage], Round], stage: Stage) -> None:
        self._ask, self._stage = ask, stage

    def draw(self) -> Round:
        """A new round."""
        return self._ask(self._stage)


class Deck:
    """Deals rounds like cards: several copies of each, shuffled anew when all are gone."""

    def __init__(self, rounds: Sequence[Round], rng: random.Random, copies: int) -> None:
        self.keys = [entry.key or entry.question for entry in rounds]
        self._cards = list(rounds) * copies
        self._left: list[Round] = []
        self._random = rng.random

    def draw(self) -> Round:
        """The next card. Drawing from a random place is the same as shuffling first, and takes a third of the time."""
        left = self._left
        if not left:
            left.extend(self._cards)
        at = int(self._random() * len(left))
        card, left[at] = left[at], left[-1]
        left.pop()
        return card


class Urn:
    """Draws rounds uniformly and puts them back."""

    def __init__(self, rounds: Sequence[Round], rng: random.Random) -> None:
        self.keys = [entry.key or entry.question for entry in rounds]
        self._rounds, self._random = rounds, rng.random

    def draw(self) -> Round:
        """Any of the rounds."""
        return self._rounds[int(self._random() * len(self._rounds))]


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
