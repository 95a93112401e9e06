"""`learners.base`, `learners.sample_learners` and `learners.human_learner` of the original: what user code builds on.

The sample learners work as intended: in Round 1 a reward came with every step, 0 included, and made two of them forget
everything at once.
"""

from __future__ import annotations

import shlex
import subprocess
from typing import Any

from openfield.core import Turn
from openfield.domains.commai.agents.human import Human, LineView
from openfield.domains.commai.environment.serializers import SPACE_BITS, BitReader
from openfield.domains.commai.wire.line import is_hello
from openfield.domains.commai.wire.ports import SinglePort
from openfield.errors import AgentProtocol
from openfield.processes.program import Guard

SILENCE = " "
_BITS = ("0", "1")


class BaseLearner:
    """Repeats what it hears. Subclasses override `next` and `reward`."""

    def next(self, symbol: Any) -> Any:
        """Return the symbol."""
        return symbol

    def reward(self, reward: Any) -> None:
        """Ignore the reward."""

    def try_reward(self, reward: Any) -> None:
        """Take a reward, if one is given."""
        if reward is not None:
            self.reward(reward)


class SampleRepeatingLearner(BaseLearner):
    """Repeats what it hears."""


class SampleSilentLearner(BaseLearner):
    """Says only spaces: in bit mode their bits, one after the other."""

    _said = 0

    def next(self, symbol: Any) -> str:
        """Return the next bit of a space, or a space."""
        if str(symbol) not in _BITS:
            return SILENCE
        self._said += 1
        return SPACE_BITS[(self._said - 1) % len(SPACE_BITS)]


class SampleMemorizingLearner(BaseLearner):
    """Is silent until it has heard two spaces in a row, then repeats from the front what it has heard.

    A reward that is not 0 lets it forget everything.
    """

    def __init__(self) -> None:
        self._reader = BitReader()
        self._heard: list[str] = []
        self._text = ""
        self._at = -1  # where it plays its memory back; -1 while it listens

    def next(self, symbol: Any) -> str:
        """Return the next symbol of its memory, or of a space."""
        bit = str(symbol) in _BITS
        self._heard.append(str(symbol))
        self._text += (self._reader.feed(str(symbol)) or "") if bit else str(symbol)
        if self._at < 0 and not self._text.endswith(SILENCE * 2):
            return SPACE_BITS[(len(self._heard) - 1) % len(SPACE_BITS)] if bit else SILENCE
        self._at += 1
        return self._heard[self._at]

    def reward(self, reward: Any) -> None:
        """Forget everything after a reward that is not 0."""
        if reward:
            SampleMemorizingLearner.__init__(self)


class RemoteLearner(BaseLearner):
    """A learner in another program, over ZeroMQ.

    Args:
        cmd: The command that starts it, to which the port is added; None waits for a learner that is started elsewhere.
        port: The port to listen on.
        address: The address to listen on; by default every one, as in the original.
    """

    def __init__(self, cmd: str | None = None, port: int = 5556, address: str | None = None) -> None:
        door = SinglePort(address or "*", port)
        words = [*shlex.split(cmd), str(door.port)] if cmd else []
        if words:
            self._guard = Guard()  # the program must not outlive this process
            self._program = subprocess.Popen(words, **self._guard.options())  # noqa: S603 (the user named it)
            self._guard.watch(self._program.pid)
        handshake = door.wait_for_handshake()
        if handshake is None or handshake.problem or not is_hello(handshake.first):
            reason = handshake.problem if handshake is not None else ""
            raise AgentProtocol(reason or "A remote learner must say hello first.")
        self._line, self._earned = handshake.line, b"0"

    def try_reward(self, reward: Any) -> None:
        """Keep the reward, which is sent with the symbol; none is 0."""
        self._earned = str(int(reward or 0)).encode()

    def next(self, symbol: Any) -> str:
        """Send the reward and the symbol, and return the learner's symbol."""
        try:
            self._line.send(self._earned, str(symbol).encode())
            while (message := self._line.receive()) is None:
                pass
        except EOFError:
            raise AgentProtocol("The remote learner has hung up.") from None
        return b"".join(message).decode("utf-8", "replace")

    def set_view(self, view: Any) -> None:
        """Ignore the view."""


RemoteTimedLearner = RemoteLearner


class HumanLearner(BaseLearner):
    """A person, who is asked whenever the teacher pauses.

    Args:
        serializer: Not needed; the original's constructors have it.
        byte_mode: Whether symbols are characters.
    """

    mode: Any = "line"
    takes_mode = True
    """Whether its constructor gets a serializer and the mode."""

    def __init__(self, serializer: Any = None, byte_mode: bool = False) -> None:
        self._human = Human(LineView(), self.mode, bits=not byte_mode)
        self._byte_mode, self._earned = byte_mode, 0

    def reward(self, reward: Any) -> None:
        """Keep the reward for the screen."""
        self._earned = int(reward)

    def next(self, symbol: Any) -> str:
        """Return the next symbol that the person has typed."""
        seen = ord(symbol) if self._byte_mode else int(symbol)
        reply = self._human(Turn(observation=seen, reward=self._earned))
        self._earned = 0
        if not isinstance(reply.action, int):
            return SILENCE if self._byte_mode else "0"
        return chr(reply.action) if self._byte_mode else str(reply.action)

    def set_view(self, view: Any) -> None:
        """Ignore the view: the streams are printed anyway."""


class ImmediateHumanLearner(HumanLearner):
    """A person, who is asked at every step."""

    mode = "immediate"


class HaltOnDotHumanLearner(HumanLearner):
    """A person, who is asked at every dot."""

    mode = "dot"


class ManualHumanLearner(HumanLearner):
    """A person, who is asked whenever nothing is left to send; the ancestor's."""

    mode = "immediate"
