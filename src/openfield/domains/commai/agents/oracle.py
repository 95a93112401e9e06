"""The oracle: a learner that reads all answers from the instance. It is the ceiling in reports and tests.

It needs the environment it talks to, so it plays only in the process that runs the world.
"""

from __future__ import annotations

from collections.abc import Callable

from openfield.core import Ask, Reply, Spec, Turn, World
from openfield.domains.commai.agents.learner_agent import REPLIES
from openfield.domains.commai.environment.environment import Environment
from openfield.domains.commai.environment.serializers import speaks_bits, to_bits
from openfield.domains.commai.environment.task import Instance
from openfield.domains.commai.world import CommaiWorld
from openfield.errors import InvalidInput

_SILENCE = " "


class Oracle:
    """Says the hint of the instance as soon as the teacher is silent, in the environment's own symbols."""

    next: Callable[[str], str]
    """The next symbol of the answer, or silence while the teacher talks."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._instance: Instance | None = None
        self._planned = iter("")
        self.next = self._spell if environment.bit_mode else self._speak

    def _speak(self, symbol: str) -> str:
        said = next(self._planned, None)
        if said is not None:
            return said
        self._planned = iter(self._plan())
        return next(self._planned, _SILENCE)

    def _spell(self, bit: str) -> str:
        """Return the next bit; a new instance hears no half character."""
        if self._instance is not self._environment.instance:
            self._instance, self._planned = self._environment.instance, iter("")
        said = next(self._planned, None)
        if said is not None:
            return said
        alphabet = self._environment.alphabet
        self._planned = iter(to_bits((self._plan() or _SILENCE).translate(alphabet)))
        return next(self._planned)

    def reward(self, reward: int) -> None:
        """Ignore the reward."""

    def _plan(self) -> str:
        """Return the answer, or as much silence as the teacher still needs."""
        environment = self._environment
        unsaid = environment.unsaid
        if unsaid:
            return _SILENCE * unsaid
        if environment.instance is None or not environment.running:
            return ""
        answer = environment.instance.hint()
        return answer if environment.serializer is None else environment.serializer.encode(answer)


class OracleAgent:
    """Knows all answers, because it is shown the world."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self._bits = speaks_bits(spec)
        self._world: CommaiWorld | None = None

    def attend(self, world: World) -> None:
        """Keep the world, which knows the answers."""
        if not isinstance(world, CommaiWorld):
            raise InvalidInput("The oracle knows only the answers of CommAI.")
        self._world, self._oracle = world, Oracle(world.environment)

    def __call__(self, turn: Turn) -> Reply:
        """Return the next symbol of the right answer, in the bytes the world uses now, or silence."""
        if self._world is None:
            raise InvalidInput("The oracle plays only in openfield's own process: openfield run commai.")
        if turn.ask is Ask.NONE:
            return Reply()
        said = self._oracle.next("")
        code = int(said) if self._bits else ord(said.translate(self._world.alphabet))
        return REPLIES[code]
