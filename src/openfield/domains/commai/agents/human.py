"""A person as a learner, asked at every pause, at every dot, or at every step.

`openfield play commai` and the human learners of the original use it. What the person types is said symbol by symbol
and recorded like any learner's answers.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Literal

from openfield.core import AgentFactory, Ask, Reply, Turn
from openfield.domains.commai.agents.learner_agent import REPLIES
from openfield.domains.commai.agents.terminal_view import LineView, ScreenView, Streams
from openfield.domains.commai.environment.serializers import SPACE_BITS, BitReader, speaks_bits, to_bits
from openfield.domains.commai.world import SKIP
from openfield.errors import Cancelled

Mode = Literal["line", "dot", "immediate"]
"""When a person is asked: at a dot or when the teacher was silent twice; at a dot; at every step."""
_SILENCE = " "
_MAX_UNASKED = 300
"""Steps after which a person in line mode is asked even if the teacher never pauses, as in micro1 to micro5.2."""


def make_human(mode: Mode = "line", screen: bool = False, delay: float = 0.0) -> AgentFactory:
    """Return a factory for the person at this terminal.

    Args:
        mode: When the person is asked.
        screen: Whether to use the whole screen.
        delay: Seconds to wait after each step.
    """
    return lambda spec, seed: Human(ScreenView(delay) if screen else LineView(delay), mode, bits=speaks_bits(spec))


class Human:
    """Says what a person types, one symbol a step, and is silent while nothing is typed.

    Args:
        view: Where the person looks and types.
        mode: When the person is asked.
        bits: Whether symbols are bits. They are joined to characters for the person.
    """

    stateless = True

    def __init__(self, view: LineView | ScreenView, mode: Mode = "line", bits: bool = False) -> None:
        self._view, self._mode = view, mode
        self._streams = Streams()
        self._typed: deque[str] = deque()
        self._reader = BitReader() if bits else None
        self._bits = deque(SPACE_BITS)
        self._heard = ""  # the last two characters of the teacher
        self._earned = 0
        self._unasked = 0  # steps since the person was asked

    def __call__(self, turn: Turn) -> Reply:
        """Show a turn, and ask the person when it is time."""
        self._earned += int(turn.reward)
        if self._reader is None:
            return self._step(chr(turn.observation), turn)
        bit = REPLIES[int(self._bits.popleft())] if self._bits else REPLIES[0]
        heard = self._reader.feed(str(turn.observation))
        if heard is None:
            return bit
        reply = self._step(heard, turn)
        if not isinstance(reply.action, int):
            return reply
        self._bits.extend(to_bits(chr(reply.action)))
        return bit

    def close(self) -> None:
        """Restore the terminal."""
        self._view.close()

    def _step(self, symbol: str, turn: Turn) -> Reply:
        self._streams.hear(symbol, self._earned, turn.feedback or "")
        self._unasked += 1
        self._earned = 0
        self._heard = (self._heard + symbol)[-2:]
        if turn.ask is Ask.NONE:
            return Reply()
        if not self._typed and self._is_time():
            line = self._ask()
            if line is None or line == "QUIT":
                raise Cancelled("The player left.")
            if line == SKIP:
                return Reply(SKIP)
            self._typed.extend(re.sub(r"\.+", ".", line) or _SILENCE)  # a second dot would answer the next question
        else:
            self._view.show(self._streams)
        said = self._typed.popleft() if self._typed else _SILENCE
        if self._reader is not None and said != _SILENCE and not self._typed:
            self._heard = ""  # the last bits are still on their way: the teacher's next character cannot be an answer
        self._streams.say(said)
        return REPLIES[ord(said)]

    def _ask(self) -> str | None:
        """Read a line, and ask again if it has a character that is not a symbol."""
        note = "The teacher does not pause here; --mode immediate asks at every step." if self._is_overdue() else ""
        self._unasked = 0
        line = self._view.ask(self._streams, note)
        while line is not None and (foreign := next((symbol for symbol in line if ord(symbol) > 255), "")):
            line = self._view.ask(self._streams, f"'{foreign}' is not a symbol: its code is above 255. Try again.")
        return line

    def _is_time(self) -> bool:
        if self._mode == "immediate":
            return True
        dot = self._heard.endswith(".")
        return dot if self._mode == "dot" else dot or self._heard == _SILENCE * 2 or self._is_overdue()

    def _is_overdue(self) -> bool:
        return self._mode == "line" and self._unasked > _MAX_UNASKED
