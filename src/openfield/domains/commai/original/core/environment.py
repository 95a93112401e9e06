"""`core.environment` of the original: the teacher that runs tasks with decorated handlers, one symbol at a time.

The order within a step, at a verdict and between two instances is that of Round 1. Its mistakes are repaired:
the reward of a verdict without a text is paid, the first verdict is final, and clearing the heard text is not an event.
`compat="round1"` restores that.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

from openfield.domains.commai.original.core import channels
from openfield.domains.commai.original.core.events import (
    Event,
    EventManager,
    MessageReceived,
    Observable,
    OutputMessageUpdated,
    OutputSequenceUpdated,
    SequenceReceived,
    StateChanged,
    TaskFailed,
    Trigger,
)
from openfield.domains.commai.original.core.serializer import ScramblingSerializerWrapper
from openfield.domains.commai.original.core.task import Task, World
from openfield.errors import describe_error


class Environment:
    """A teacher with the curriculum of a scheduler.

    Args:
        serializer: Turns text into bits and back; in byte mode only its silence and its words are used.
        scheduler: Chooses the tasks, with `get_next_task()` and `reward(result)`.
        scramble: Whether words are replaced by made-up ones.
        max_reward_per_task: What all instances of a task may pay together.
        byte_mode: Whether a symbol is a character.
        compat: `round1` restores those mistakes.
    """

    rng: Any = random
    """Draws what our own tasks draw."""

    def __init__(
        self,
        serializer: Any,
        scheduler: Any,
        scramble: bool = False,
        max_reward_per_task: float = 10_000,
        byte_mode: bool = False,
        compat: str = "",
    ) -> None:
        self._serializer = ScramblingSerializerWrapper(serializer) if scramble else serializer
        self._task_scheduler = scheduler
        self._max_reward_per_task = max_reward_per_task
        self._round1 = compat == "round1"
        self.byte_mode = byte_mode
        self.event_manager = EventManager()
        self.task_updated, self.world_updated = Observable(), Observable()
        self._open_channels()
        self._reward_per_task: Counter[str] = Counter()
        self._current_task: Task | None = None
        self._current_world: World | None = None
        self._added: list[tuple[Any, Trigger]] = []
        self._kept: list[tuple[Any, Trigger]] = []
        self._live = False
        """Whether the current task has started, so that changes of its state are reported."""
        self._task_time: float = 0
        self._skipping = False
        self._priority = 0
        self._separated = False
        self._result: Any = None
        self._last_result: Any = None
        self._reward: Any = None
        self._immediate_reward: Any = None
        self.over = False
        """Whether the scheduler has no further task."""

    def next(self, symbol: Any) -> tuple[str, Any]:
        """Take the learner's symbol (None: nothing) and return the teacher's symbol with the reward."""
        self._last_result = None
        if self._current_task is None and not self.over:
            self._switch_task()
        earner = self._current_task
        reward = self._hear(symbol)
        output = self._output_channel
        if output.is_empty():
            task = self._current_task
            output.set_message(self._serializer.SILENCE_TOKEN if task is None else task.get_default_output())
        said = output.consume()
        self._output_channel_listener.consume(said)
        self._task_time += 1
        if reward is None and self._immediate_reward is not None:
            reward, self._immediate_reward = self._immediate_reward, None
        return said, self._pay(reward, earner)

    def is_silent(self) -> bool:
        """Return whether the teacher has nothing but spaces left to say."""
        return bool(self._output_channel.is_silent())

    def set_message(self, message: str, priority: int = 1) -> None:
        """Say a text, unless something more important is still to be said."""
        if priority < self._priority and not self._output_channel.is_empty():
            return
        self._priority = priority
        self._output_channel.set_message(message)

    def add_message(self, message: str) -> None:
        """Say a text behind all that is still to be said."""
        self._output_channel.add_message(message)

    def set_result(
        self, result: Any, message: str = "", priority: int = 1, provide_result_as_reward: bool = True
    ) -> None:
        """End the current instance. The first verdict is final; in Round 1 only the same boolean is ignored."""
        same = isinstance(result, bool) and self._result is result
        if self._result is not None and (same or not self._round1):
            return
        self._result = result
        if provide_result_as_reward:
            self._reward = result
        if self._current_task is not None:
            self._current_task.end()
        self.set_message(message, priority)

    def set_immediate_reward(self, reward: Any) -> None:
        """Pay a reward in this step; of several the last counts."""
        self._immediate_reward = reward

    def raise_event(self, event: Event) -> bool:
        """Run the handlers of an event."""
        return self.event_manager.raise_event(event)

    def raise_state_changed(self) -> bool:
        """Tell handlers that a state has changed, if the current task has started."""
        task, world = self._current_task, self._current_world
        if not self._live or task is None:
            return False
        return self.raise_event(StateChanged(task.state) if world is None else StateChanged(world.state, task.state))

    def ignore_last_char(self) -> None:
        """Replace the last character heard by a space."""
        text = self._input_channel.get_text()
        if text:
            self._input_channel.set_deserialized_buffer(f"{text[:-1]} ")

    def add_handler(self, owner: Any, trigger: Trigger, is_method: bool = True) -> None:
        """Add a handler until the current instance is replaced. Round 1 never removed plain functions.

        Args:
            owner: The task or world that adds it.
            trigger: The handler.
            is_method: Whether it is a method of its owner.
        """
        (self._added if is_method or not self._round1 else self._kept).append((owner, trigger))
        self.event_manager.register(owner, trigger)

    def get_reward_per_task(self) -> dict[str, Any]:
        """Return what each task has paid, by its name."""
        return dict(self._reward_per_task)

    def skip(self) -> None:
        """Let the current instance time out as soon as nothing is left to say."""
        self._skipping = True

    def cut(self) -> None:
        """End the current instance here: unsaid words are lost, and no separator follows."""
        self._output_channel.clear()
        self._separated = True
        if self._current_task is not None:
            self._current_task.end()

    def _hear(self, symbol: Any) -> Any:
        """Let the current instance hear a symbol, or go on after its end; return the reward of its end, if any."""
        task, output = self._current_task, self._output_channel
        if task is None:
            return None
        if not task.has_ended():
            task.check_timeout(math.inf if self._skipping else self._task_time)
            if symbol is not None:
                self._input_channel.consume(symbol)
            if not (task.has_ended() and output.is_empty()):
                return None
            reward = None if self._round1 else self._reward
            self._switch_task()
            return reward
        if not output.is_empty():
            if symbol is not None:
                self._input_channel.consume(symbol)
        elif self._separated or getattr(task, "skip_task_separator", False):
            reward = self._reward or 0
            self._switch_task()
            return reward
        else:
            output.set_message(self._serializer.SILENCE_TOKEN)
            self._separated = True
        return None

    def _pay(self, reward: Any, earner: Task | None) -> Any:
        """Return the reward of a step: a whole number, and nothing beyond what the task may pay."""
        if not reward:
            return 0
        task = self._current_task if earner is None else earner
        name = "" if task is None else task.get_name()
        if self._reward_per_task[name] >= self._max_reward_per_task:
            return 0
        reward = int(reward) if reward == int(reward) else reward
        self._reward_per_task[name] += reward
        return reward

    def _switch_task(self) -> None:
        """Replace the current instance by the next one."""
        if self._current_task is not None:
            self._retire(self._current_task)
        task = self._choose_task()
        self._current_task, self.over = task, task is None
        self._enter_world(None if task is None else task.get_world())
        self._task_time, self._skipping = 0, False
        self._reward, self._separated = None, False
        self._clear_channels()
        if task is not None:
            task.start(self)
            self._live = True
            self.task_updated(task)

    def _retire(self, task: Task) -> None:
        task.deinit()
        self._live = False
        self.event_manager.deregister(task)
        for owner, trigger in self._added:
            self.event_manager.deregister(owner, trigger)
        self._added = []
        for owner, trigger in self._kept:
            if owner is task:
                self.event_manager.register(owner, trigger)
        if self._result is not None:
            self._last_result = self._result
            self._report(self._result)
            self._result = None

    def _report(self, result: Any) -> None:
        """Tell the scheduler a verdict; the ancestor's schedulers have another name for it."""
        self._ask_scheduler("reward" if hasattr(self._task_scheduler, "reward") else "step", result)

    def _choose_task(self) -> Task | None:
        try:
            return self._ask_scheduler("get_next_task")  # type: ignore[no-any-return]
        except SystemExit:  # the original's way to say that all is learned
            return None

    def _ask_scheduler(self, name: str, *args: Any) -> Any:
        """Call a method of the scheduler, which may be a user's."""
        self._prepare()
        try:
            return getattr(self._task_scheduler, name)(*args)
        except Exception as error:
            kind = type(self._task_scheduler).__name__
            raise TaskFailed(f"{kind}.{name}: {describe_error(error)}") from error

    def _prepare(self) -> None:
        """Do what must be done before code of a user runs."""
        if self.event_manager.before is not None:
            self.event_manager.before()

    def _enter_world(self, world: World | None) -> None:
        if world is self._current_world:
            return
        if self._current_world is not None:
            self._current_world.end()
            self.event_manager.deregister(self._current_world)
        self._current_world = world
        if world is not None:
            world.start(self)
        self.world_updated(world)

    def _open_channels(self) -> None:
        heard = channels.ByteInputChannel if self.byte_mode else channels.InputChannel
        said = channels.ByteOutputChannel if self.byte_mode else channels.OutputChannel
        self._input_channel: Any = heard(self._serializer)
        self._output_channel: Any = said(self._serializer)
        self._output_channel.round1 = self._round1
        self._output_channel_listener: Any = heard(self._serializer)
        self._input_channel.message_updated.register(self._tell_message)
        self._input_channel.sequence_updated.register(self._tell_sequence)
        self._output_channel_listener.message_updated.register(self._tell_output_message)
        self._output_channel_listener.sequence_updated.register(self._tell_output_sequence)

    def _clear_channels(self) -> None:
        heard = self._input_channel.get_text()
        self._input_channel.clear()
        self._output_channel.clear()
        self._output_channel_listener.clear()
        if heard and self._round1:
            self._tell_message("")

    def _tell_message(self, text: str) -> None:
        if self.event_manager.handles(MessageReceived):
            self.raise_event(MessageReceived(text, self._round1))

    def _tell_sequence(self, sequence: str) -> None:
        if self.event_manager.handles(SequenceReceived):
            self.raise_event(SequenceReceived(sequence))

    def _tell_output_message(self, text: str) -> None:
        if self.event_manager.handles(OutputMessageUpdated):
            self.raise_event(OutputMessageUpdated(text))

    def _tell_output_sequence(self, sequence: str) -> None:
        if self.event_manager.handles(OutputSequenceUpdated):
            self.raise_event(OutputSequenceUpdated(sequence))
