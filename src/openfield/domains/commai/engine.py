"""The environment: one symbol in, one symbol and a reward out, in the exact order of the original.

Sessions and worlds call `next`; tasks speak through it. The path that most steps take is kept free of anything that
can be done when an instance starts or ends instead.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

from openfield.domains.commai.schedulers import Scheduler
from openfield.domains.commai.serializers import (
    SPACE_BITS,
    BitReader,
    Identity,
    Serializer,
    next_character,
    strip_spaces,
    to_bits,
)
from openfield.domains.commai.settings import Settings
from openfield.domains.commai.task import Instance, Task
from openfield.errors import AgentProtocol

BYTES = frozenset(map(chr, range(256)))
BITS = frozenset("01")
SILENCE = " "


class Tally:
    """What a task has seen so far: instances, steps, rewards, verdicts."""

    __slots__ = ("instances", "reward", "solved", "steps")

    def __init__(self) -> None:
        self.instances = self.steps = self.reward = self.solved = 0


class Environment:
    """A teacher that follows a curriculum, in byte mode: a symbol is a character with a code below 256.

    `instance`, `task`, `finished`, `result` and `over` say where the conversation is. Nothing is shared with any other
    environment, provided that tasks and scheduler were made for this one.
    """

    symbols = BYTES

    def __init__(
        self,
        scheduler: Scheduler,
        settings: Settings | None = None,
        seed: int = 0,
        serializer: Serializer | None = None,
        learner: str = "the learner",
    ) -> None:
        self.settings = settings or Settings()
        self.scheduler = scheduler
        self.rng = random.Random(seed)
        self.learner = learner
        """Whom an error about a symbol blames."""
        self.finished = 0
        """How many instances have ended and been replaced."""
        self.result: bool | None = None
        """The verdict of the instance that was replaced last."""
        self.ended_task = ""
        """The name of the task that instance belonged to."""
        self.over = False
        """Whether the curriculum is finished."""
        self.task: Task | None = None
        self.instance: Instance | None = None
        self._serializer = serializer or Identity()
        self._reader = BitReader()
        self._cap = self.settings.max_reward_per_task
        self._keep_first = self.settings.compat != "round1"
        self._tallies: dict[str, Tally] = {}
        self._tally = Tally()
        self._text = ""
        self._at = 0
        self._spoken = 0  # where the last symbol that is not a space has been said
        self._priority = 0
        self._time = 0
        self._limit = 0
        self._ended = False
        self._separated = False
        self._verdict: bool | None = None
        self._pays = False
        self._hear: Callable[[str], int] = _deaf
        self._overhear: Callable[[str], int] = _deaf

    # What learners and sessions call

    def next(self, heard: str | int | None) -> tuple[str, int]:
        """Takes the learner's symbol (None: nothing heard), gives the teacher's and the reward for what was heard."""
        at = self._at
        if heard not in BYTES and heard is not None:
            raise self._foreign(heard)
        if at >= self._spoken:
            return self._listen(heard)  # type: ignore[arg-type]
        # The teacher is talking: nothing can end or time out here, and silence changes nothing.
        if heard == SILENCE or heard is None:
            self._at = at + 1
            self._time += 1
            return self._text[at], 0
        reward = self._overhear(heard)  # type: ignore[arg-type]
        self._at = at + 1
        self._time += 1
        return self._text[at], (self._pay(reward, self._tally) if reward else 0)

    def time_out(self) -> None:
        """Makes the running instance time out as soon as the teacher has nothing left to say."""
        self._limit = 0

    @property
    def talking(self) -> bool:
        """Whether something other than spaces is still to be said."""
        return self._at < self._spoken

    @property
    def ended(self) -> bool:
        """Whether the current instance has its verdict and only the last words are missing."""
        return self._ended

    @property
    def instance_steps(self) -> int:
        """How many steps the current instance has lasted."""
        return self._time

    def books(self) -> dict[str, Tally]:
        """What every task has seen so far, by name, in the order of first appearance."""
        copies = {name: copy.copy(tally) for name, tally in self._tallies.items()}
        if self.task is not None and not self.over:
            copies[self.task.name].steps += self._time
        return copies

    # What tasks and worlds call

    def say(self, text: str, priority: int = 1) -> None:
        """Queues a text behind what is still unsaid, unless that is more important."""
        if self._at < self._spoken and priority < self._priority:
            return
        self._priority = priority
        self._queue(self._serializer.encode(text))

    def finish(self, result: bool, text: str = "", pays: bool = True) -> None:
        """Ends the instance: the verdict goes to the scheduler and, if it pays, to the learner as the last reward.

        The first verdict is final; with `compat="round1"` a different one overturns it.
        """
        if self._verdict is not None and (self._keep_first or self._verdict == result):
            return
        self._verdict, self._pays, self._ended = result, pays, True
        if text:
            self.say(text)

    def understand(self, text: str) -> str:
        """What the learner's text means once the serializer has undone its work."""
        return self._serializer.decode(text)

    # The steps that do not just go on talking

    def _listen(self, heard: str | None) -> tuple[str, int]:
        """A step that begins with nothing but spaces to say."""
        tally = self._tally
        if self.instance is None:
            reward = 0
            self._switch()
        elif self._ended:
            reward = self._wind_up(heard)
        else:
            if self._time >= self._limit and self._at >= len(self._text):
                self._time_out()
            reward = self._hear(heard) if heard is not None else 0
            if self._ended and self._at >= len(self._text):
                self._switch()
        if reward:
            reward = self._pay(reward, tally)
        self._time += 1
        at = self._at
        if at < len(self._text):
            self._at = at + 1
            return self._text[at], reward
        return self._idle(), reward

    def _wind_up(self, heard: str | None) -> int:
        """After the verdict: the last words, a separator, the reward, the next instance."""
        if self._at < len(self._text):
            return self._hear(heard) if heard is not None else 0
        if self._separated:
            reward = int(self._verdict or 0) if self._pays else 0
            self._switch()
            return reward
        self._separated = True
        return 0

    def _time_out(self) -> None:
        instance = self.instance
        if instance is not None:
            instance.time_out()
        self._ended = True

    def _switch(self) -> None:
        """Reports the verdict and starts the next instance, or ends the curriculum."""
        self._tally.steps += self._time
        self._retire()
        task = self.scheduler.next_task(self.rng)
        self._text, self._at, self._spoken, self._time = "", 0, 0, 0
        self._verdict, self._ended = None, False
        if task is None:
            self._close()
            return
        if task.world is not (self.task.world if self.task else None) and task.world is not None:
            task.world.start(self)
        self.task, self._limit, self._separated = task, task.max_time, not task.separator
        self._tally = self._tallies.setdefault(task.name, Tally())
        self._tally.instances += 1
        self.instance = task.start(self)
        self._attach(task, self.instance)

    def _retire(self) -> None:
        if self.task is None:
            return
        self.finished += 1
        self.result, self.ended_task = self._verdict, self.task.name
        if self._verdict is not None:
            self._tally.solved += self._verdict
            self.scheduler.record(self._verdict)

    def _attach(self, task: Task, instance: Instance) -> None:
        """Worlds hear before tasks do."""
        world = task.world
        if world is None:
            self._hear, self._overhear = instance.hear, instance.overhear
            return

        def hear(symbol: str) -> int:
            world.hear(symbol)
            return instance.hear(symbol)

        def overhear(symbol: str) -> int:
            world.overhear(symbol)
            return instance.overhear(symbol)

        self._hear, self._overhear = hear, overhear

    def _close(self) -> None:
        self.over = self._ended = self._separated = True
        self._hear = self._overhear = _deaf
        self._tally = Tally()

    def _pay(self, reward: int, tally: Tally) -> int:
        """Books a reward on the task that earned it, which pays nothing once it has paid as much as the cap."""
        if tally.reward >= self._cap:
            return 0
        tally.reward += reward
        return reward

    def _queue(self, text: str) -> None:
        """Appends to what is unsaid. `_at` may move only when nothing is: `next` relies on it in mid-text."""
        if self._at >= len(self._text):
            self._text, self._at = text, 0
        else:
            self._text += text
        self._spoken = len(self._text.rstrip(SILENCE))

    def _idle(self) -> str:
        """Says one space because there is nothing to say."""
        return SILENCE

    def _foreign(self, heard: object) -> AgentProtocol:
        allowed = "one character with a code from 0 to 255" if self.symbols is BYTES else "'0' or '1'"
        return AgentProtocol(f"{self.learner} said {heard!r}. A symbol here is {allowed}.")


class BitEnvironment(Environment):
    """The same teacher in bit mode: eight steps carry a byte of UTF-8, and all limits count bits."""

    symbols = BITS

    def next(self, heard: str | int | None) -> tuple[str, int]:
        """Takes the learner's bit (None: nothing heard), gives the teacher's and the reward for what was heard."""
        character = None if heard is None else self._reader.feed(self._bit(heard))
        if self._at >= self._spoken:
            return self._listen(character)
        reward = self._overhear(character) if character not in (None, SILENCE) else 0  # type: ignore[arg-type]
        self._at += 1
        self._time += 1
        return self._text[self._at - 1], (self._pay(reward, self._tally) if reward else 0)

    def _bit(self, heard: str | int) -> str:
        bit = str(heard)
        if bit not in BITS:
            raise self._foreign(heard)
        return bit

    def _switch(self) -> None:
        self._reader = BitReader()
        super()._switch()

    def _queue(self, text: str) -> None:
        """Replaces what is unsaid except for a character sent in part."""
        self._text = self._text[: next_character(self._text, self._at)] + to_bits(text)
        self._spoken = strip_spaces(self._text)

    def _idle(self) -> str:
        self._text, self._at, self._spoken = SPACE_BITS, 1, 0
        return self._text[0]


def _deaf(symbol: str) -> int:
    return 0
