"""The environment: hear one symbol, answer with one symbol and a reward, in the exact order of the original.

Sessions and worlds call `next`, and tasks speak through `say` and `finish`. All work that can be done when an instance
starts or ends is done there, because almost every step only says the next symbol of a text.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from openfield.domains.commai.environment import serializers
from openfield.domains.commai.environment.schedulers import Scheduler
from openfield.domains.commai.environment.serializers import SPACE_BITS, BitReader, Scrambler
from openfield.domains.commai.environment.task import ASKED, SILENCE, Instance, Prices, Task
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import AgentProtocol


@dataclass(slots=True)
class Tally:
    """Counts of one task: instances, steps, reward and solved instances."""

    instances: int = 0
    steps: int = 0
    reward: int = 0
    solved: int = 0


class Environment:
    """A teacher that follows a curriculum in byte mode: a symbol is a character with a code below 256.

    `task`, `instance`, `finished`, `result` and `over` say where the conversation is. A world uses `text`, `at`,
    `spoken`, `prices` and `tally` to say the rest of a text by itself. An environment shares nothing with another one
    if its tasks and its scheduler were made for it alone.

    Args:
        scheduler: Chooses the tasks.
        settings: The settings that tasks read.
        seed: The seed of all randomness.
        serializer: Encodes the teacher's words and decodes the learner's; None leaves them as they are.
    """

    symbols = "one character with a code from 0 to 255"
    bit_mode = False
    alphabet: Mapping[int, int] = MappingProxyType({})
    """Which character stands for which; it must be its own inverse. Only bit mode uses it."""

    def __init__(
        self,
        scheduler: Scheduler,
        settings: CommaiSettings | None = None,
        seed: int = 0,
        serializer: Scrambler | None = None,
    ) -> None:
        self.settings = settings or CommaiSettings()
        self.scheduler = scheduler
        self.rng = random.Random(seed)
        self.task: Task | None = None
        self.instance: Instance | None = None
        self.finished = 0
        """Instances that have ended and been replaced."""
        self.result: bool | None = None
        """The verdict of the instance that was replaced last."""
        self.over = False
        """Whether the curriculum is finished."""
        self.running = False
        """Whether the current instance has no verdict yet."""
        self.halted = False
        """Whether a session must stop: the curriculum is finished, or `stop` was called."""
        self.penalties = 0
        """Interruptions so far that had a price."""
        self.watch: Callable[[], None] | None = None
        """Called whenever an instance has ended, before the next one starts."""
        self.serializer = serializer
        self._tallies: dict[str, Tally] = {}
        self.tally = Tally()
        self.text = ""
        self.at = 0  # symbols of the text said so far
        self._end = 0  # the length of the text
        self.spoken = 0  # its length without the spaces at its end
        self._due = 0  # symbols that may be said before the instance times out
        self._expires = False  # whether the budget of its task then ends it, with no verdict
        self._priority = 0
        self._limit = 0
        self._separated = True
        self._verdict: bool | None = None
        self._pays = False
        self.prices: Prices = ASKED
        self._hear: Callable[[str], int] = _deaf
        self._overhear: Callable[[str], int] = _deaf

    # For learners and sessions

    def next(self, heard: Any) -> tuple[str, int]:
        """Take the learner's symbol (None: nothing) and return the teacher's symbol with the reward for it.

        This is one function because one more call would cost a tenth of the step.
        """
        at = self.at
        tally = self.tally  # a reward counts for the task that earned it, even if another one starts now
        try:
            price = self.prices[heard]
        except (KeyError, TypeError):
            self._admit(heard)
            price = None
        if at < self.spoken:  # talking: nothing ends or times out here, and most symbols have a fixed price
            if price == 0:
                self.at = at + 1
                return self.text[at], 0
            self.penalties += 1
            reward = self._overhear(heard) if price is None else price  # before `at` moves on: it may queue text
            self.at = at + 1
            if tally.reward >= self.settings.max_reward_per_task:
                return self.text[at], 0
            tally.reward += reward
            return self.text[at], reward
        if self.running:
            if at >= self._due and at >= self._end:
                self._time_out()
            reward = self._hear(heard) if heard is not None else 0
            if not self.running and self.at >= self._end:
                self._switch()
        else:
            reward = self._wind_up(heard)
        if reward:
            reward = reward if tally.reward < self.settings.max_reward_per_task else 0
            tally.reward += reward
        at = self.at
        if at >= self._end:
            return self._pause(), reward
        self.at = at + 1
        return self.text[at], reward

    @property
    def unsaid(self) -> int:
        """Symbols left to say before only spaces remain."""
        return self.spoken - self.at if self.at < self.spoken else 0

    @property
    def instance_steps(self) -> int:
        """Steps of the current instance so far."""
        return self._limit - self._due + self.at

    def time_out(self) -> None:
        """Let the running instance time out as soon as the teacher has nothing left to say."""
        self._limit -= self._due
        self._due, self._expires = 0, False

    def tallies(self) -> dict[str, Tally]:
        """Return the counts of every task by name, in the order of first appearance."""
        copies = {name: copy.copy(tally) for name, tally in self._tallies.items()}
        if self.task is not None and not self.over:
            copies[self.task.name].steps += self.instance_steps
        return copies

    # For tasks and worlds

    def say(self, text: str, priority: int = 1) -> None:
        """Queue a text behind the unsaid rest, or drop it if that rest has a higher priority."""
        at = self.at
        if at < self.spoken and priority < self._priority:
            return
        self._priority = priority
        if self.serializer is not None:
            text = self.serializer.encode(text)
        if at < self._end:
            text = self.text + text  # `at` must stay as it is: `next` relies on it in mid-text
        else:
            self._due -= at
            self.at = 0
        end = len(text)
        self.text, self._end = text, end
        self.spoken = end if end and text[-1] != SILENCE else len(text.rstrip(SILENCE))
        if self._expires:
            self._cut()

    def finish(self, result: bool, text: str = "", pays: bool = True) -> None:
        """End the instance. The scheduler gets the verdict, and so does the learner as its last reward if it `pays`.

        The first verdict is final. With `compat="round1"` a different verdict replaces it.
        """
        if self._verdict is not None and (self.settings.compat != "round1" or self._verdict == result):
            return
        self._verdict, self._pays, self.running = result, pays, False
        if text:
            self.say(text)

    # The steps at which the teacher listens

    def _wind_up(self, heard: str | None) -> int:
        """Go on after the verdict: say the last words, then a separator, then pay and switch."""
        if self.at < self._end:
            return self._hear(heard) if heard is not None else 0
        if (self._separated or (self._expires and self.at >= self._due)) and not self.over:
            reward = int(self._pays and bool(self._verdict))
            self._switch()
            return reward
        self._separated = True
        return 0

    def _time_out(self) -> None:
        """End the instance; the symbol that comes now is still heard."""
        if self.instance is not None and not self._expires:
            self.instance.time_out()
        self.running = False

    def _cut(self) -> None:
        """Drop the words that the task has no steps left for. Words said into that gap are not an answer."""
        end = max(self._due, self.at)
        if end < self.spoken:
            self._hear = self._overhear
        if end < self._end:
            self.text, self._end, self.spoken = self.text[:end], end, min(self.spoken, end)

    def _switch(self) -> None:
        """Report the verdict and start the next instance, or end the curriculum."""
        previous = self.task
        if previous is not None:
            self._retire()
        task = self.scheduler.next_task(self.rng)
        self.text, self.at, self._end, self.spoken = "", 0, 0, 0
        self._verdict, self._pays = None, False
        if task is None:
            self._close()
            return
        if task.world is not None and (previous is None or task.world is not previous.world):
            task.world.start(self)
        self._begin(task)

    def _retire(self) -> None:
        self.finished += 1
        self.result = self._verdict
        steps = self.instance_steps
        self.tally.steps += steps
        self.scheduler.spend(steps)
        if self._verdict is not None:
            self.tally.solved += self._verdict
            self.scheduler.record(self._verdict)
        if self.watch is not None:
            self.watch()

    def _begin(self, task: Task) -> None:
        self.task, self._separated, self.running = task, not task.separator, True
        tally = self._tallies.get(task.name)
        if tally is None:
            tally = self._tallies[task.name] = Tally()
        tally.instances += 1
        self.tally = tally
        self._expires = False
        instance = self.instance = task.start(self)
        self._limit = self._due = task.max_time  # some draw it when they start
        self.prices, self._hear, self._overhear = instance.prices, instance.hear, instance.overhear
        if task.world is not None:
            self._hear = task.world.listen(instance.hear, talking=False)
            self._overhear = task.world.listen(instance.overhear, talking=True)
            self.prices = ASKED
        left = self.scheduler.steps_left
        if left is not None and left <= task.max_time:
            self._limit = self._due = left
            self._expires = True
            self._cut()

    def _close(self) -> None:
        """End the curriculum. Further steps hear spaces; the last step counts for the task it ended."""
        self.tally.steps += 1
        self.over = self.halted = self._separated = True
        self.running = False
        self.instance, self._hear, self._overhear = None, _deaf, _deaf
        self.tally = Tally()

    def _pause(self) -> str:
        """Say one space because nothing is queued."""
        self._due -= 1
        return SILENCE

    def _admit(self, heard: object) -> None:
        """Refuse a value that is not a symbol."""
        raise AgentProtocol(f"The learner said {heard!r}. A symbol here is {self.symbols}.")


def _deaf(symbol: str) -> int:
    return 0


class BitEnvironment(Environment):
    """The same teacher in bit mode: eight steps carry one byte of UTF-8, and all limits count bits."""

    symbols = "'0' or '1'"
    bit_mode = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._reader = BitReader()

    def next(self, heard: Any) -> tuple[str, int]:
        """Take the learner's bit (None: nothing) and return the teacher's bit with the reward for it."""
        character = None if heard is None else self._reader.feed(self._bit(heard))
        return super().next(character if character is None else character.translate(self.alphabet))

    @property
    def unsaid(self) -> int:
        """Characters left to begin before only spaces remain."""
        return max(0, (self.spoken - self.at) // 8)

    def _bit(self, heard: object) -> str:
        bit = str(heard)
        if bit not in ("0", "1"):
            super()._admit(heard)
        return bit

    def _admit(self, heard: object) -> None:
        """Accept every character that bits can spell."""

    def _switch(self) -> None:
        self._reader.clear()
        super()._switch()

    def say(self, text: str, priority: int = 1) -> None:
        """Replace the unsaid rest, except a character sent in part, unless that rest has a higher priority."""
        if not text or (self.at < self.spoken and priority < self._priority):
            return
        self._priority = priority
        if self.serializer is not None:
            text = self.serializer.encode(text)
        said = self.text[: serializers.next_character(self.text, self.at)]
        self.text = said + serializers.to_bits(text.translate(self.alphabet))
        self._end, self.spoken = len(self.text), serializers.strip_spaces(self.text)
        if self._expires:
            self._cut()

    def _pause(self) -> str:
        """Begin to say a space, which takes eight bits."""
        self._due -= self.at
        self.text, self.at, self._end, self.spoken = SPACE_BITS, 1, len(SPACE_BITS), 0
        if self._expires:
            self._cut()
        return self.text[0]
