"""Learners to compare with: simple ones, the floor under every result, and one that really learns.

They speak the environment's symbols, bytes or bits. `NoticingLearner` adds a belief to another learner.
"""

from __future__ import annotations

import random
import string
from collections import Counter, deque
from typing import Any

from openfield.domains.commai.environment.learner_session import Learner


class EchoLearner(Learner):
    """Repeats what it hears."""

    def next(self, symbol: str) -> str:
        """Return the symbol itself."""
        return symbol


class SilentLearner(Learner):
    """Says only spaces."""

    def next(self, symbol: str) -> str:
        """Return a space."""
        return " "


class RandomLearner(Learner):
    """Says random symbols of an alphabet, by default the printable ones."""

    def __init__(self, seed: int = 0, alphabet: str = "".join(map(chr, range(32, 127)))) -> None:
        self._rng = random.Random(seed)
        self._alphabet = alphabet

    def next(self, symbol: str) -> str:
        """Return a random symbol of its alphabet."""
        return self._alphabet[int(self._rng.random() * len(self._alphabet))]


class MemorisingLearner:
    """Repeats the last text that earned a reward, and is silent until there is one."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._best = ""
        self._at = 0

    def next(self, symbol: str) -> str:
        """Return the next symbol of the remembered text."""
        said = self._best[self._at % len(self._best)] if self._best else " "
        self._at += 1
        self._said.append(said)
        return said

    def reward(self, reward: int) -> None:
        """Remember the text since the last reward if it was good, and forget the remembered one if it was bad."""
        if reward > 0:
            self._best, self._at = "".join(self._said), 0
        elif reward < 0:
            self._best = ""
        if reward:
            self._said.clear()


CALIBRATION_SYMBOLS = 600
"""Symbols after which a new one is a surprise."""
SURPRISES, WITHIN = 4, 30
"""This many new symbols within this many symbols mean a change; an instance has at most two by then, mostly none."""
SURE = 0.9


class NoticingLearner:
    """Lets another learner talk, and believes that the world has changed when several unknown symbols come at once."""

    def __init__(self, learner: Any) -> None:
        self._learner = learner
        self._answer = learner.next
        self.reward = learner.reward
        self.belief: float | None = None
        """The probability that the world has changed; None until there is something to say."""
        self._known: set[str] = set()
        self._heard = 0
        self._surprises: deque[int] = deque(maxlen=SURPRISES)

    def next(self, symbol: str) -> Any:
        """Return the other learner's answer."""
        self._heard += 1
        if symbol not in self._known:
            self._notice(symbol)
        return self._answer(symbol)

    def _notice(self, symbol: str) -> None:
        self._known.add(symbol)
        if self._heard < CALIBRATION_SYMBOLS:
            return
        self._surprises.append(self._heard)
        if len(self._surprises) == SURPRISES and self._heard - self._surprises[0] <= WITHIN:
            self.belief = SURE


SILENCE = " "
_SYMBOLS = string.ascii_lowercase + string.digits + string.ascii_uppercase + ' ,.!;?-:"'
_TRIAL_VERDICTS = 200
"""Verdicts without a streak after which it tries another moment to speak."""
_STREAK = 8
_IDLE = 2


class MappingLearner:
    """Learns which answer belongs to which question.

    It speaks at one of four moments: after every symbol, after the second or the third since the last verdict, or after
    the dot of a question. If a moment brings no streak for a while, it tries the next one.
    """

    def __init__(self) -> None:
        self._moment = 0
        self._judged = self._streak = self._best = 0
        self._heard = ""  # what the teacher said since the last verdict
        self._plan = ""
        self._asked = ""  # the question being answered, and the answer given
        self._answer = ""
        self._known: dict[str, str] = {}
        self._proven: set[str] = set()  # questions whose answer has earned a reward
        self._tried: dict[str, set[str]] = {}
        self._selves: Counter[str] = Counter()  # how often a symbol was the answer to itself
        self._constants: dict[bool, str] = {}  # the last right answer to letters, and to everything else
        self._shape = ""  # the last answer that feedback revealed
        self._wrong = False

    def reward(self, reward: int) -> None:
        """Learn from a verdict."""
        if not reward:
            return
        self._count(reward)
        if self._asked:
            self._learn(reward > 0)
        self._wrong = reward < 0 and bool(self._asked)
        self._heard, self._plan, self._answer = "", "", ""

    def next(self, symbol: str) -> str:
        """Return a symbol of the answer when it is time to speak, otherwise silence."""
        self._heard += symbol
        if self._plan:
            return self._say()
        if self._answer:
            return self._wait()
        if not self._my_turn():
            return SILENCE
        feedback, question = self._split()
        if self._wrong and feedback and self._asked:
            self._correct(feedback)
        self._asked = question
        self._answer = self._plan = self._guess(question) or SILENCE
        return self._say()

    def _say(self) -> str:
        said, self._plan = self._plan[0], self._plan[1:]
        return said

    def _wait(self) -> str:
        """Add a dot to an answer that gets no verdict: after some silence, it was too short."""
        if not self._heard.endswith(SILENCE * (_IDLE + len(self._answer))):
            return SILENCE
        self._answer += "."
        return "."

    def _count(self, reward: int) -> None:
        """Count a verdict, and try another moment to speak if there was no streak for long."""
        self._judged += 1
        self._streak = self._streak + 1 if reward > 0 else 0
        self._best = max(self._best, self._streak)
        if self._judged >= _TRIAL_VERDICTS:
            if self._best < _STREAK:
                self._moment = (self._moment + 1) % 4
                self._forget()
            self._judged = self._best = 0

    def _learn(self, right: bool) -> None:
        asked, answer = self._asked, self._answer
        if right:
            self._known[asked] = answer
            self._proven.add(asked)
            self._constants[asked.isalpha()] = answer
            if answer == asked:
                self._selves[asked] += 1
        elif asked in self._proven:
            self._forget()
        else:
            self._tried.setdefault(asked, set()).add(answer)

    def _correct(self, feedback: str) -> None:
        """Learn the answer from feedback: the common end of all feedback to this question."""
        before = self._known.get(self._asked)
        self._known[self._asked] = feedback if before is None else _common_end(before, feedback)
        self._shape = self._known[self._asked]

    def _forget(self) -> None:
        """Forget the mapping: a proven answer failed, so there is another one."""
        self._known.clear()
        self._proven.clear()
        self._tried.clear()
        self._constants.clear()

    def _my_turn(self) -> bool:
        if self._moment < 3:
            return len(self._heard) >= self._moment + 1
        text = self._heard
        if text.endswith(SILENCE * _IDLE) and text.strip():
            return True
        return text.endswith(".") and ";" in text

    def _split(self) -> tuple[str, str]:
        """Split the teacher's words into the feedback to the last answer and the next question."""
        text = self._heard
        if self._moment == 0:
            return "", text[-1]
        if self._moment < 3:
            return text.strip()[:1] if len(text.strip()) > 1 else "", text.strip()[-1:]
        feedback, _, question = text.strip().rpartition(";")
        return feedback.rpartition(";")[2], question

    def _guess(self, question: str) -> str:
        if question in self._known:
            return self._known[question]
        if self._moment:
            return self._shape or "0"
        tried = self._tried.get(question, set())
        seen = sorted(self._known, key=lambda key: -self._selves[key])
        likely = question if self._selves[question] > 1 else self._constants.get(question.isalpha(), question)
        guesses: list[str] = [likely, question, *seen, *_SYMBOLS]
        return next((guess for guess in guesses if guess not in tried), SILENCE)


def _common_end(first: str, second: str) -> str:
    size = 0
    while size < min(len(first), len(second)) and first[-1 - size] == second[-1 - size]:
        size += 1
    return first[len(first) - size :] if size > 1 else second
