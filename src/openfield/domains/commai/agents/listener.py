"""A person in a conversation with the teacher: what they hear and say, and when it is their turn.

The terminal and the browser use it; it shows nothing itself.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, Literal

from openfield.core import Ask, Reply, Turn
from openfield.domains.commai.agents.learner_agent import REPLIES
from openfield.domains.commai.environment.serializers import SPACE_BITS, BitReader, to_bits
from openfield.domains.commai.tasks.draws import load_phrasebook

_KEPT = 500
_REWARD_SIGNS = {1: "+", -1: "-"}
Mode = Literal["line", "dot", "immediate"]
"""When a person is asked: at the beginning and at every pause; at a dot; at every step.

A pause is the dot of a question, not one in the feedback to an answer, or a silence. A teacher who never pauses, as in
micro1 to micro5.2, asks with every symbol: who answers there, and earns or loses something at once, is asked again at
once. If that goes on, a dot and a silence are questions like all others.
"""
_SILENCE = " "
_PAUSE = _SILENCE * 8
"""A silence after which a person is asked. Questions of micro8 have up to seven spaces in a row."""
_PAID_IN_A_ROW = 2
"""Rewards, step after step, that show that every symbol is a question."""
_MAX_UNASKED = 200
"""Steps after which a person in line mode is asked even if the teacher never pauses."""
_END = ";"
"""What ends the feedback of a micro task."""
_BOOK = load_phrasebook()
_VERDICTS = {
    text.rstrip(".!").lower()
    for text in (*_BOOK.congratulations, *_BOOK.failed, *_BOOK.feedback.values(), "the right answer is")
}
_VERDICT = re.compile(rf"(?:^|[.!?;]) *(?:{'|'.join(sorted(_VERDICTS))})(?:: [^.!?]*)?\.$", re.IGNORECASE)
"""A sentence about the last answer, as mini tasks and the older sets have them: the question follows it."""
_FIRST = "The teacher has begun. Press Enter to listen on, or type an answer."
_NO_PAUSE = "The teacher does not pause here. Press Enter to listen on, or type an answer."


class Streams:
    """The last symbols of teacher and learner, and the rewards between them."""

    def __init__(self) -> None:
        self.teacher: deque[str] = deque(maxlen=_KEPT)
        self.learner: deque[str] = deque(maxlen=_KEPT)
        self.rewards: deque[str] = deque(maxlen=_KEPT)
        self.total = self.steps = 0
        self.map = ""

    def hear(self, symbol: str, reward: int, world_map: str) -> None:
        """Add the teacher's symbol and the reward that comes with it."""
        self.teacher.append(symbol if symbol.isprintable() else "?")
        self.rewards.append(_REWARD_SIGNS.get(reward, " "))
        self.total += reward
        self.steps += 1
        self.map = world_map

    def say(self, symbol: str) -> None:
        """Add the learner's symbol."""
        self.learner.append(symbol if symbol.isprintable() else "?")

    def rows(self, width: int) -> list[str]:
        """Return the streams as lines, step under step, the newest at the right. Silence is a low line."""
        said = [*self.learner, " "] if len(self.learner) < len(self.teacher) else list(self.learner)
        streams = (("teacher", self.teacher), ("you", said), ("reward", self.rewards))
        return [f"{name:>8} {_last(symbols, width - 9, name != 'reward')}" for name, symbols in streams]

    @property
    def status(self) -> str:
        """Reward and time so far."""
        return f"reward {self.total}, step {self.steps}"


class Listener:
    """Hears the teacher symbol by symbol, and says a person's words.

    Args:
        mode: When the person is asked.
        bits: Whether symbols are bits. They are joined to characters for the person.
    """

    def __init__(self, mode: Mode = "line", bits: bool = False) -> None:
        self.streams = Streams()
        self.heard = ""
        """The character that the last turn has completed; with bits most turns complete none."""
        self.note = ""
        """The words to show a person at their turn."""
        self._mode = mode
        self._typed: deque[str] = deque()
        self._reader = BitReader() if bits else None
        self._bits = deque(SPACE_BITS)
        self._last = ""
        self._own_reader = BitReader()
        self._in_feedback = False  # whether feedback is heard that ends with a semicolon
        self._ends_feedback = True  # whether this teacher has feedback that ends with a semicolon
        self._words = ""  # the last ones heard
        self._earned = 0
        self._unasked = 0  # steps since the person was asked
        self._waits = False  # whether the person was asked at a pause, or said nothing: the next pause is awaited
        self._answers = False  # whether the person was asked at a pause, and the teacher has been silent since
        self._was_silent = False  # whether the person said nothing last
        self._paid = 0  # steps in a row with a reward that is not the price of an interruption

    def hear(self, turn: Turn) -> bool:
        """Take a turn, and return whether it is time to ask the person."""
        self._earned += int(turn.reward)
        found = chr(turn.observation) if self._reader is None else self._reader.feed(str(turn.observation))
        self.heard = found or ""
        if found is None:
            return False
        self.streams.hear(found, self._earned, turn.feedback or "")
        self._unasked += 1
        self._waits = self._waits or (not self._earned and not self._typed)
        self._take_reward()
        self._answers = self._answers and found == _SILENCE
        self._last = (self._last + found)[-len(_PAUSE) :]
        self._follow(found)
        if turn.ask is Ask.NONE or self._typed or not self._is_time(turn.first):
            return False
        self.note = ""
        if self._mode == "line" and not self._pauses():
            self.note = _FIRST if self.streams.steps == 1 else _NO_PAUSE
        self._answers = self._pauses()
        self._unasked, self._waits = 0, self._answers and not self._asks_always()
        return True

    def recall(self, turn: Turn, action: Any) -> None:
        """Take a turn that was played before, and its answer."""
        self.hear(turn)
        if not isinstance(action, int):
            return
        said = chr(action) if self._reader is None else self._own_reader.feed(str(action))
        if said is not None:
            self._note(said)

    def say(self, line: str) -> None:
        """Take what the person typed; an empty line is silence."""
        self._typed.extend(re.sub(r"\.+", ".", line) or _SILENCE)  # a second dot would answer the next question

    def reply(self) -> Reply:
        """Return the current symbol."""
        if self._reader is None:
            return REPLIES[ord(self._say_next())]
        bit = REPLIES[int(self._bits.popleft())] if self._bits else REPLIES[0]
        if self.heard:
            self._bits.extend(to_bits(self._say_next()))
        return bit

    def _say_next(self) -> str:
        said = self._typed.popleft() if self._typed else _SILENCE
        if self._reader is not None and said != _SILENCE and not self._typed:
            self._last = ""  # the last bits are on their way: the teacher's next character cannot be an answer
        self._note(said)
        return said

    def _note(self, said: str) -> None:
        """Take note of a symbol that is said."""
        self.streams.say(said)
        self._was_silent = said == _SILENCE

    def _take_reward(self) -> None:
        """Find out from the reward whether feedback begins, and whether every symbol is a question."""
        if self._earned and self._answers and self._ends_feedback:
            self._in_feedback = True
        if not self._earned:
            self._paid = 0
        elif self._earned > 0 or self._was_silent:
            self._paid += 1
        if self._asks_always():
            self._in_feedback = self._waits = False
        self._earned = 0

    def _asks_always(self) -> bool:
        """Return whether the teacher pays for each symbol, as in micro1 to micro4."""
        return self._paid >= _PAID_IN_A_ROW

    def _follow(self, found: str) -> None:
        """Find out whether the teacher still comments on the last answer: dots in there are no questions."""
        self._words = (self._words + found)[-_KEPT:]
        if self._in_feedback and self._words.endswith((_END, _PAUSE)):
            self._ends_feedback = self._ends_feedback and not self._words.endswith(_PAUSE)
            self._in_feedback = False
        elif found == _END:
            self._ends_feedback = True

    def _is_time(self, first: bool) -> bool:
        if self._mode != "line":
            return self._mode == "immediate" or self._ends_sentence()
        return first or self._pauses() or not self._waits or self._unasked > _MAX_UNASKED

    def _pauses(self) -> bool:
        """Return whether the teacher has ended a sentence, or is silent for a while."""
        return self._ends_sentence() or self._last == _PAUSE

    def _ends_sentence(self) -> bool:
        """Return whether the teacher has ended a sentence that is not about the last answer."""
        return self._last.endswith(".") and not self._in_feedback and not _VERDICT.search(self._words)


def find_foreign(line: str) -> str:
    """Return the first character of a line that is not a symbol; empty if all are."""
    return next((symbol for symbol in line if ord(symbol) > 255), "")


def _last(symbols: Any, width: int, padded: bool) -> str:
    text = "".join(symbols)[-width:]
    return text.replace(" ", "_").rjust(width, "_") if padded else text.rjust(width)
