"""CommAI in a browser: a conversation with the teacher, line by line."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import Any

from openfield.core import Ask, Reply, Turn, World
from openfield.domains.commai.agents.commai_writer import CommaiWriter
from openfield.domains.commai.agents.listener import Listener, find_foreign
from openfield.domains.commai.world import SKIP
from openfield.errors import AgentProtocol

MAX_LINE = 1_000
"""Characters that a person may say at once."""
MAX_STEPS, MAX_SHOWN = 2_000, 100
"""Steps that a page shows at once, and how many such parts it shows again when it is opened again."""


class ConversationPage:
    """Plays a trial of CommAI: a person hears the teacher up to the next pause, and answers with a line."""

    kind = "conversation"

    def __init__(self, bits: bool, skips: bool) -> None:
        """Begin to listen.

        Args:
            bits: Whether symbols are bits.
            skips: Whether an exercise may be given up.
        """
        self._listener, self._bits, self._skips = Listener("line", bits), bits, skips
        self._steps: list[tuple[str, str, int]] = []  # the words to the teacher, the answer, and the reward
        self._shown: deque[list[tuple[str, str, int]]] = deque(maxlen=MAX_SHOWN)
        self._said = ""
        self._turn: Turn | None = None
        self._asked = False

    def describe(self) -> dict[str, Any]:
        """Return whether an exercise may be given up, and the conversation before."""
        return {"task": CommaiWriter.task, "skips": self._skips, "parts": list(self._shown)}

    def show(self, turn: Turn, world: World) -> dict[str, Any]:
        """Return the words since the last turn that was shown."""
        self._hear(turn)
        steps, self._steps = self._steps[-MAX_STEPS:], []
        if steps:
            self._shown.append(steps)
        streams = self._listener.streams
        return {
            "steps": steps,
            "note": self._listener.note,
            "map": streams.map,
            "values": {"reward": str(streams.total)},
        }

    def act(self, act: Any, turn: Turn) -> Generator[Reply, Turn, None]:
        """Yield the symbols of a line, and silence until the teacher pauses."""
        if not isinstance(act, str) or len(act) > MAX_LINE or "\n" in act:
            raise AgentProtocol(f"Say one line of at most {MAX_LINE} characters.")
        if foreign := find_foreign(act):
            raise AgentProtocol(f"'{foreign}' is not a symbol here. Try another word.")
        self._hear(turn)
        if act == SKIP and self._skips:
            self._turn = None
            yield Reply(SKIP)
            return
        self._listener.say(act)
        asked = False
        while not asked and turn.ask is Ask.ACT:
            turn = yield self._speak()
            asked = self._hear(turn)

    def remember(self, turn: Turn, reply: Reply) -> None:
        """Take note of a turn that was played before, and of its words."""
        self._hear(turn)
        if not self._bits and isinstance(reply.action, int):
            self._listener.say(chr(reply.action))
        self._speak()

    def _hear(self, turn: Turn) -> bool:
        """Listen to a turn, once, and return whether it is time to speak. The same turn may come again later."""
        if turn is not self._turn:
            self._turn, before = turn, self._listener.streams.total
            self._asked = self._listener.hear(turn)
            if self._listener.heard:
                self._steps.append((self._said, self._listener.heard, self._listener.streams.total - before))
                self._said = ""
        return self._asked

    def _speak(self) -> Reply:
        reply = self._listener.reply()
        if self._listener.heard:
            self._said = self._listener.streams.learner[-1]
        self._turn = None
        return reply
