"""`core.task` of the original: tasks and worlds whose methods are attached to events by decorators.

A task author subclasses `Task` or `World`. Handlers are found by the names of an object's methods when an instance
starts, and run in alphabetical order, those of the world first. The environment of `core/environment.py` calls them.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from openfield.domains.commai.original.core.events import (
    Condition,
    Ended,
    Event,
    MessageReceived,
    Observable,
    OutputMessageUpdated,
    OutputSequenceUpdated,
    SequenceReceived,
    Start,
    StateChanged,
    Timeout,
    Trigger,
    WorldStart,
)

if TYPE_CHECKING:
    from openfield.domains.commai.original.core.environment import Environment

Notify = Callable[[], None]
__all__ = [
    "Ended",
    "Event",
    "MessageReceived",
    "OutputMessageUpdated",
    "OutputSequenceUpdated",
    "SequenceReceived",
    "Start",
    "State",
    "StateChanged",
    "Task",
    "Timeout",
    "Trigger",
    "World",
    "WorldStart",
    "on_ended",
    "on_message",
    "on_output_message",
    "on_output_sequence",
    "on_sequence",
    "on_start",
    "on_state_changed",
    "on_timeout",
    "on_world_start",
]

_MARK = "_commai_trigger"
F = TypeVar("F", bound=Callable[..., Any])


class State:
    """Any attributes of a task or a world; assigning one calls a function.

    A dictionary becomes a watched copy when it is assigned. Lists, sets and whatever lies deeper are not watched, as in
    the original.
    """

    __slots__ = ("__dict__", "__weakref__", "_notify")

    def __init__(self, notify: Notify) -> None:
        object.__setattr__(self, "_notify", notify)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, _watch(value, self._notify))
        self._notify()


class WatchedDict(dict[Any, Any]):
    """A dictionary that calls a function when an item is set. `update`, `pop` and `del` call nothing."""

    def __init__(self, items: dict[Any, Any], notify: Notify) -> None:
        super().__init__(items)
        self._notify = notify

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._notify()


class WatchedDefaultDict(defaultdict[Any, Any]):
    """The same with a factory of missing items, which are set when they are read."""

    def __init__(self, items: defaultdict[Any, Any], notify: Notify) -> None:
        super().__init__(items.default_factory, items)
        self._notify = notify

    def __missing__(self, key: Any) -> Any:
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = value = self.default_factory()
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._notify()


def _watch(value: Any, notify: Notify) -> Any:
    if isinstance(value, defaultdict):
        return WatchedDefaultDict(value, notify)
    return WatchedDict(value, notify) if type(value) in (dict, WatchedDict) else value


class AddedHandler:
    """A bound method that was decorated in order to be added. The method itself stays as it is."""

    def __init__(self, kind: type, condition: Condition | None, method: Callable[[Any], Any]) -> None:
        def run(owner: Any, event: Any) -> Any:
            return method(event)

        run.__name__ = getattr(method, "__name__", repr(method))
        self.trigger = Trigger(kind, condition, run)


def _attach(kind: type, condition: Condition | None = None) -> Callable[[F], Any]:
    """Return a decorator that attaches a function to an event."""

    def mark(function: F) -> Any:
        if isinstance(function, MethodType):
            return AddedHandler(kind, condition, function)
        setattr(function, _MARK, Trigger(kind, condition, function))
        return function

    return mark


def on_start() -> Callable[[F], Any]:
    """Attach a method to the start of an instance."""
    return _attach(Start)


def on_ended() -> Callable[[F], Any]:
    """Attach a method to the moment at which an instance is replaced."""
    return _attach(Ended)


def on_world_start() -> Callable[[F], Any]:
    """Attach a method to the start of a world."""
    return _attach(WorldStart)


def on_timeout() -> Callable[[F], Any]:
    """Attach a method to the end of the time of an instance."""
    return _attach(Timeout)


def on_message(expression: str | re.Pattern[str] | None = None) -> Callable[[F], Any]:
    """Attach a method to every character heard, if the expression is found in all that was heard."""
    return _attach(MessageReceived, _search(expression, "message"))


def on_sequence(expression: str | re.Pattern[str] | None = None) -> Callable[[F], Any]:
    """Attach a method to every symbol heard, if the expression is found in all symbols."""
    return _attach(SequenceReceived, _search(expression, "sequence"))


def on_output_message(expression: str | re.Pattern[str] | None = None) -> Callable[[F], Any]:
    """Attach a method to every character the teacher has said, if the expression is found in all it said."""
    return _attach(OutputMessageUpdated, _search(expression, "output_message"))


def on_output_sequence(expression: str | re.Pattern[str] | None = None) -> Callable[[F], Any]:
    """Attach a method to every symbol the teacher has said, if the expression is found in all symbols."""
    return _attach(OutputSequenceUpdated, _search(expression, "output_sequence"))


def on_state_changed(condition: Callable[..., Any]) -> Callable[[F], Any]:
    """Attach a method to changes of a state, if the condition holds for the task's, or the world's and the task's."""

    def holds(event: StateChanged) -> Any:
        states = (event.state,) if event.second_state is None else (event.state, event.second_state)
        return condition(*states)

    return _attach(StateChanged, holds)


def _search(expression: str | re.Pattern[str] | None, attribute: str) -> Condition | None:
    if not expression:
        return None
    search = re.compile(expression).search
    return lambda event: search(getattr(event, attribute))


@functools.cache
def _find_in_class(kind: Any) -> tuple[tuple[str, Trigger], ...]:
    found = ((name, getattr(kind, name, None)) for name in sorted(dir(kind)))
    return tuple((name, getattr(value, _MARK)) for name, value in found if hasattr(value, _MARK))


def find_handlers(owner: Any) -> list[Trigger]:
    """Return the triggers of an object's methods, in alphabetical order of their names."""
    own = {name: getattr(value, _MARK, None) for name, value in vars(owner).items() if isinstance(value, FunctionType)}
    kind: Any = type(owner)
    named = {**dict(_find_in_class(kind)), **own}
    return [trigger for _, trigger in sorted(named.items()) if trigger is not None]


class Scripted:
    """What tasks and worlds share: a state, handlers and ways to speak."""

    _env: Any = None
    _started = False
    _ended = False
    _priority = 0

    def __init__(self) -> None:
        self.state_updated = Observable()

    def get_name(self) -> str:
        """Return the name of the class."""
        return type(self).__name__

    def __str__(self) -> str:
        return self.get_name()

    def get_time(self) -> Any:
        """Return how many symbols were said in this instance."""
        return self._env._task_time

    def add_handler(self, handler: Any) -> None:
        """Add a decorated method or function as a handler for the rest of this instance."""
        is_method = isinstance(handler, AddedHandler)
        trigger = handler.trigger if is_method else getattr(handler, _MARK, None)
        if trigger is None:
            raise TypeError(
                f"{handler!r} is not a handler: decorate it, as in add_handler(on_message('x')(self.method))."
            )
        self._env.add_handler(self, trigger, is_method)

    def get_triggers(self) -> list[Trigger]:
        """Return the triggers of its own methods, in the order in which they run."""
        return find_handlers(self)

    def set_message(self, message: str, priority: int | None = None) -> None:
        """Say a text, unless something more important is being said."""
        self._env.set_message(message, self._priority if priority is None else priority)

    def add_message(self, message: str) -> None:
        """Say a text behind all that is still to be said."""
        self._env.add_message(message)

    def set_result(
        self, result: Any, message: str = "", priority: int | None = None, provide_result_as_reward: bool = True
    ) -> None:
        """End the current instance with a verdict and a last text."""
        importance = self._priority if priority is None else priority
        self._env.set_result(result, message, importance, provide_result_as_reward)

    def set_reward(self, reward: Any, message: str = "", priority: int | None = None) -> None:
        """End the current instance with a verdict: the ancestor's name of `set_result`."""
        self.set_result(reward, message, priority)

    def set_immediate_reward(self, reward: Any) -> None:
        """Pay a reward in this step."""
        self._env.set_immediate_reward(reward)

    def ignore_last_char(self) -> None:
        """Replace the last character heard by a space."""
        self._env.ignore_last_char()

    def has_started(self) -> bool:
        """Return whether it has been started; in `on_start` it has not yet."""
        return self._started

    def has_ended(self) -> bool:
        """Return whether there is a verdict or the time is over."""
        return self._ended

    def end(self) -> None:
        """Take note that it has ended."""
        self._ended = True

    def _begin(self, env: Environment) -> None:
        self._env, self._started, self._ended = env, False, False
        self.state = State(self._tell_change)
        for trigger in find_handlers(self):
            env.event_manager.register(self, trigger)

    def _tell_change(self) -> None:
        if (updated := getattr(self, "state_updated", None)) is not None:
            updated(self)
        self._env.raise_state_changed()


class World(Scripted):
    """A world that several tasks can share. Its handlers run before those of the task."""

    def start(self, env: Environment) -> None:
        """Begin with a new state."""
        self._begin(env)
        env.raise_event(WorldStart())
        self._started = True


class Task(Scripted):
    """A task. One object serves all its instances; `state` is new in each of them.

    Args:
        max_time: Symbols after which an instance times out.
        world: The world in which it takes place.
    """

    skip_task_separator = False
    _max_time: float = 10_000
    _world: World | None = None
    _priority = 1

    def __init__(self, max_time: float, world: World | None = None) -> None:
        super().__init__()
        self.ended_updated = Observable()
        self._max_time, self._world = max_time, world

    def get_world(self) -> Any:
        """Return the world of the task."""
        return self._world

    def start(self, env: Environment) -> None:
        """Begin an instance."""
        self._begin(env)
        env.raise_event(Start())
        self._started = True

    def end(self) -> None:
        """Take note that the instance has ended."""
        super().end()
        if (updated := getattr(self, "ended_updated", None)) is not None:
            updated(self)

    def deinit(self) -> None:
        """Tell handlers that the instance is about to be replaced."""
        self._env.raise_event(Ended())

    def check_timeout(self, time: float) -> None:
        """End the instance if its time is over and nothing is left to say."""
        if time >= self._max_time and self._env._output_channel.is_empty():
            self._raise_timeout()
            self.end()

    def get_default_output(self) -> str:
        """Return the symbol of silence."""
        silence: str = self._env._serializer.SILENCE_TOKEN
        return silence

    def _raise_timeout(self) -> None:
        self._env.raise_event(Timeout())
