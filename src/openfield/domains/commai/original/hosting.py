"""Tasks of the original in a trial: the environment that a world steps, on top of `core/environment.py`.

`HostedTask` is such a task as schedulers know it, and `HostedEnvironment` plays curricula that have one. Tasks of the
catalogue that stand beside them run in it too. Code of users draws from the global generator; it gets one of its own,
seeded with the trial's seed, so that a trial repeats and other draws stay as they are.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from typing import Any

from openfield.domains.commai.environment.environment import Environment, Tally
from openfield.domains.commai.environment.schedulers import Scheduler
from openfield.domains.commai.environment.serializers import Scrambler, strip_spaces
from openfield.domains.commai.environment.task import SILENCE, Instance, Stage, Task
from openfield.domains.commai.original.core import environment as core
from openfield.domains.commai.original.core import task as original
from openfield.domains.commai.original.core.events import TaskFailed
from openfield.domains.commai.original.core.serializer import StandardSerializer
from openfield.domains.commai.original.grid_world import GridWorld
from openfield.domains.commai.settings import CommaiSettings
from openfield.errors import describe_error

OURS = "openfield."


class HostedTask(Task):
    """A task of the original, as schedulers and reports know it.

    Args:
        hosted: The task.
        name: Its name in reports; by default that of its class.
        kind: What dependencies go by; by default the name of its class.
    """

    def __init__(self, hosted: original.Task, name: str = "", kind: str = "") -> None:
        super().__init__(name or hosted.get_name())
        self.kind = kind or hosted.get_name()
        self.hosted = hosted
        self.world: Any = hosted.get_world()

    @property
    def max_time(self) -> int:
        """Symbols after which an instance times out."""
        return int(self.hosted._max_time)

    @max_time.setter
    def max_time(self, symbols: int) -> None:
        self.hosted._max_time = symbols

    @property
    def foreign(self) -> bool:
        """Whether it, or its world, is code of a user."""
        return not all(type(part).__module__.startswith(OURS) for part in (self.hosted, self.world) if part is not None)

    def start(self, stage: Stage) -> Instance:
        """Refuse: only a hosted environment can start it."""
        raise TypeError(f"The task {self.name} was written for the original; a HostedEnvironment plays it.")


def make_hosted(kind: type, name: str, task: str, world: Any = None) -> HostedTask:
    """Make a task of an older set, with a grid world of its own if it needs one and gets none."""
    needs = inspect.signature(kind).parameters["world"].default is inspect.Parameter.empty
    made: original.Task = kind(world if world is not None or not needs else GridWorld())
    return HostedTask(made, name, task)


class ForeignScheduler(Scheduler):
    """A scheduler that a user wrote for the original, with `get_next_task()` and `reward(result)`."""

    def __init__(self, scheduler: Any) -> None:
        self.foreign = scheduler
        self._hosted: dict[int, Task] = {}
        self.tasks = [self._host(task) for task in getattr(scheduler, "tasks", ())]

    def next_task(self, rng: random.Random) -> Task | None:
        """Return the task that the scheduler chooses; None if it has none, or ends the process as the original's do."""
        try:
            chosen = self._ask("get_next_task")
        except SystemExit:
            return None
        return None if chosen is None else self._host(chosen)

    def record(self, result: int) -> None:
        """Tell the scheduler a verdict; the ancestor's have another name for it."""
        for name in ("reward", "step"):
            if hasattr(self.foreign, name):
                self._ask(name, result)
                return

    def _ask(self, name: str, *args: Any) -> Any:
        try:
            return getattr(self.foreign, name)(*args)
        except Exception as error:
            raise TaskFailed(f"{type(self.foreign).__name__}.{name}: {describe_error(error)}") from error

    def _host(self, task: Any) -> Task:
        if isinstance(task, Task):
            return task
        if id(task) not in self._hosted:
            self._hosted[id(task)] = HostedTask(task)
        return self._hosted[id(task)]


def draw_seeded(seed: int, make: Callable[[], Scheduler]) -> Scheduler:
    """Make a scheduler while the global generator has a seed, and keep the state in which that leaves it."""
    outer = random.getstate()
    random.seed(seed)
    try:
        scheduler = make()
        scheduler.random_state = random.getstate()
    finally:
        random.setstate(outer)
    return scheduler


class HostSerializer(StandardSerializer):
    """UTF-8 with the made-up words and the other letters of a trial."""

    def __init__(self) -> None:
        self.scramble: Callable[[str], str] | None = None
        self.alphabet: Mapping[int, int] = {}

    def to_binary(self, message: str) -> str:
        """Return a text as bits."""
        text = message if self.scramble is None else self.scramble(message)
        return super().to_binary(text.translate(self.alphabet))

    def to_text(self, data: Any) -> str | None:
        """Return bits as a text; with made-up words None until a word has ended."""
        text = super().to_text(data)
        if text is None:
            return None
        text = text.translate(self.alphabet)
        if self.scramble is None:
            return text
        return None if text[-1:].isalnum() or text.endswith("_") else self.scramble(text)


class HostedInstance(Instance):
    """The facts that a world and the oracle need of an instance."""

    def __init__(self, task: original.Task) -> None:
        self._task = task

    @property
    def marks(self) -> str:  # type: ignore[override]
        """One `+` or `-` per answered question of a micro task."""
        marks = getattr(self._task, "marks", "")
        return marks if isinstance(marks, str) else ""

    @property
    def original(self) -> bool | None:  # type: ignore[override]
        """The verdict of the original criterion, where a strict one decides."""
        verdict: bool | None = getattr(self._task, "original_verdict", None)
        return verdict

    def hint(self) -> str:
        """Return what a perfect learner says now; tasks of users do not say it."""
        hint = getattr(self._task, "hint", None)
        return str(hint()) if callable(hint) and type(self._task).__module__.startswith(OURS) else ""


class CatalogueGuest(original.Task):
    """A task of the catalogue, or of a user of openfield, among tasks of the original: the stage of its instance."""

    def __init__(self, task: Task, settings: Callable[[], CommaiSettings]) -> None:
        super().__init__(task.max_time)
        self.skip_task_separator = not task.separator
        self.penalties = 0
        self.serializer = None
        self._task, self._get_settings = task, settings

    @property
    def rng(self) -> Any:
        """The generator of the environment."""
        return self._env.rng

    @property
    def settings(self) -> CommaiSettings:
        """The settings of the trial."""
        return self._get_settings()

    @property
    def unsaid(self) -> int:
        """Symbols left to say before only spaces remain."""
        return len(self._env._output_channel.unsaid.rstrip(SILENCE))

    def say(self, text: str, priority: int = 1) -> None:
        """Say a text."""
        self.set_message(text, priority)

    def finish(self, result: bool, text: str = "", pays: bool = True) -> None:
        """End the instance."""
        self.set_result(result, text, provide_result_as_reward=pays)

    @original.on_start()
    def begin(self, event: Any) -> None:
        """Start the instance."""
        self._heard = 0
        self.instance = self._task.start(self)  # type: ignore[arg-type]
        self._max_time = self._task.max_time

    @original.on_message()
    def hear(self, event: Any) -> None:
        """Let the instance hear each new character."""
        for symbol in event.message[self._heard :]:
            if self._env.is_silent():
                reward = self.instance.hear(symbol)
            else:
                price = self.instance.prices.get(symbol)
                self.penalties += price != 0
                reward = self.instance.overhear(symbol) if price is None else price
            if reward:
                self.set_immediate_reward(reward)
        self._heard = len(event.message)

    @original.on_timeout()
    def stop(self, event: Any) -> None:
        """Let the instance time out."""
        self.instance.time_out()

    @property
    def marks(self) -> str:
        """The marks of the instance."""
        return self.instance.marks

    @property
    def original_verdict(self) -> bool | None:
        """The verdict of the original criterion."""
        return self.instance.original

    def hint(self) -> str:
        """Return the hint of the instance."""
        return self.instance.hint()


class _Core(core.Environment):
    """The teacher behind a hosted environment, which chooses its tasks and keeps its books."""

    def __init__(self, host: HostedEnvironment, serializer: HostSerializer) -> None:
        settings = host.settings
        super().__init__(
            serializer, None, max_reward_per_task=float("inf"), byte_mode=not settings.bit_mode, compat=settings.compat
        )
        self._host = host
        self.rng = host.rng

    @property
    def settings(self) -> CommaiSettings:
        """The settings of the trial now."""
        return self._host.settings

    def _choose_task(self) -> original.Task | None:
        self._prepare()
        return self._host.choose()

    def _retire(self, task: original.Task) -> None:
        super()._retire(task)
        self._host.note_end(self._last_result)

    def _report(self, result: Any) -> None:
        self._prepare()
        self._host.scheduler.record(result)


class HostedEnvironment(Environment):
    """A teacher for curricula with tasks of the original, in byte or bit mode.

    Args:
        scheduler: Chooses the tasks.
        settings: The settings of the trial.
        seed: The seed of all randomness.
        serializer: The words that are replaced; None leaves them as they are.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        settings: CommaiSettings | None = None,
        seed: int = 0,
        serializer: Scrambler | None = None,
    ) -> None:
        self._channel = HostSerializer()
        super().__init__(scheduler, settings, seed, serializer)
        self.bit_mode = self.settings.bit_mode
        self.symbols = "'0' or '1'" if self.bit_mode else Environment.symbols
        self._core = _Core(self, self._channel)
        self._guests: dict[int, CatalogueGuest] = {}
        self._left: int | None = None
        self._inside = False
        self._inner = scheduler.random_state or random.Random(seed).getstate()
        foreign = any(isinstance(task, HostedTask) and task.foreign for task in scheduler.tasks)
        if foreign or isinstance(scheduler, ForeignScheduler):
            self._core.event_manager.before = self._enter

    def next(self, heard: Any) -> tuple[str, Any]:
        """Take the learner's symbol (None: nothing) and return the teacher's symbol with the reward."""
        inner, tally = self._core, self.tally
        if heard is not None:
            self._check(heard)
        self.penalties += not self.bit_mode and heard not in (None, SILENCE) and not inner.is_silent()
        if self._left is not None and inner._task_time >= self._left:
            inner.cut()
        try:
            symbol, reward = inner.next(heard if heard is None else str(heard))
        finally:
            self._leave()
        if reward and tally.reward >= self.settings.max_reward_per_task:
            reward = 0
        tally.reward += reward
        current = inner._current_task
        self.running = current is not None and not current.has_ended()
        if inner.over and not self.over:
            self._close()
        return symbol, reward

    @property
    def serializer(self) -> Scrambler | None:
        """The words that are replaced. Tasks see the real ones."""
        return self._scrambler

    @serializer.setter
    def serializer(self, scrambler: Scrambler | None) -> None:
        self._scrambler = scrambler
        self._channel.scramble = None if scrambler is None else scrambler.encode

    @property
    def alphabet(self) -> Mapping[int, int]:
        """Which character stands for which, in bit mode."""
        return self._channel.alphabet

    @alphabet.setter
    def alphabet(self, table: Mapping[int, int]) -> None:
        self._channel.alphabet = table

    @property
    def unsaid(self) -> int:
        """Characters left to begin before only spaces remain."""
        unsaid = self._core._output_channel.unsaid
        return strip_spaces(unsaid) // 8 if self.bit_mode else len(unsaid.rstrip(SILENCE))

    @property
    def instance_steps(self) -> int:
        """Steps of the current instance so far."""
        return int(self._core._task_time)

    def time_out(self) -> None:
        """Let the running instance time out as soon as the teacher has nothing left to say."""
        self._core.skip()

    def choose(self) -> original.Task | None:
        """Return the next task, as the teacher plays it."""
        task = self.scheduler.next_task(self.rng)
        if task is None:
            return None
        self.task = task
        self.tally = self._tallies.setdefault(task.name, Tally())
        self.tally.instances += 1
        self._left = self.scheduler.steps_left
        played = task.hosted if isinstance(task, HostedTask) else self._invite(task)
        self.instance = HostedInstance(played)
        return played

    def note_end(self, result: Any) -> None:
        """Keep the books of an instance that has ended."""
        self.finished += 1
        self.result = None if result is None else bool(result > 0)
        self.tally.steps += self.instance_steps
        self.tally.solved += bool(self.result)
        self.scheduler.spend(self.instance_steps)
        if self.watch is not None:
            self.watch()

    def _invite(self, task: Task) -> CatalogueGuest:
        if id(task) not in self._guests:
            self._guests[id(task)] = CatalogueGuest(task, lambda: self.settings)
        return self._guests[id(task)]

    def _check(self, heard: Any) -> None:
        """Refuse anything but a symbol."""
        fits = str(heard) in ("0", "1") if self.bit_mode else isinstance(heard, str) and len(heard) == 1
        if not fits or (not self.bit_mode and ord(heard) > 255):
            self._admit(heard)

    def _enter(self) -> None:
        """Give code of a user its own generator."""
        if not self._inside:
            self._inside, self._outer = True, random.getstate()
            random.setstate(self._inner)

    def _leave(self) -> None:
        """Give all others theirs back."""
        if self._inside:
            self._inside, self._inner = False, random.getstate()
            random.setstate(self._outer)
