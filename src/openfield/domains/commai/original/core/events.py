"""`core.events` and `core.obs.observer` of the original: which handler runs at which event, and the events themselves.

`EventManager` keeps triggers in the order of registration and runs all whose condition holds. The decorators of
`core/task.py` make the triggers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from openfield.errors import OpenfieldError, describe_error

Condition = Callable[[Any], Any]
Handler = Callable[[Any, Any], Any]


class TaskFailed(OpenfieldError):
    """Code of a task, a world or a scheduler raised an error. The run cannot go on."""


class Event:
    """Something that handlers can be attached to."""

    condition_outcome: Any = None
    """What the condition of the handler that runs now returned."""

    def get_match(self, group: int | str = 0) -> Any:
        """Return a group of the match of the handler's expression.

        Raises:
            AttributeError: The handler has no expression.
        """
        return self.condition_outcome.group(group)

    def get_match_groups(self) -> Any:
        """Return all groups of the match of the handler's expression."""
        return self.condition_outcome.groups()


class Start(Event):
    """An instance of a task begins."""


class Ended(Event):
    """An instance is about to be replaced."""


class WorldStart(Event):
    """A world becomes current."""


class Timeout(Event):
    """The time of an instance is over."""


class MessageReceived(Event):
    """The learner has said a character.

    Args:
        message: All it said in this instance.
        round1: Whether nothing ends with an empty suffix, as in Round 1.
    """

    def __init__(self, message: str, round1: bool = False) -> None:
        self.message = message
        self._round1 = round1

    def is_message(self, text: str, suffix: str = "") -> bool:
        """Return whether the words end with the text and the suffix."""
        if self._round1 and not suffix:
            return False
        return self.message.endswith(text + suffix)

    def is_message_exact(self, text: str, suffix: str = "") -> bool:
        """Return whether nothing but white space was said before the text and the suffix."""
        return self.is_message(text, suffix) and not self.message.removesuffix(text + suffix).strip()


class SequenceReceived(Event):
    """The learner has said a symbol: a bit, or in byte mode a character."""

    def __init__(self, sequence: str) -> None:
        self.sequence = sequence


class OutputMessageUpdated(Event):
    """The teacher has said a character."""

    def __init__(self, output_message: str) -> None:
        self.output_message = output_message


class OutputSequenceUpdated(Event):
    """The teacher has said a symbol."""

    def __init__(self, output_sequence: str) -> None:
        self.output_sequence = output_sequence


class StateChanged(Event):
    """The state of the task or of its world has changed.

    Args:
        state: The state of the world, or of the task if it has no world.
        second_state: The state of the task if it has a world.
    """

    def __init__(self, state: Any, second_state: Any = None) -> None:
        self.state, self.second_state = state, second_state


class Trigger(NamedTuple):
    """A handler with the event and the condition at which it runs."""

    type: type
    condition: Condition | None
    """Gets the event; None always holds."""
    event_handler: Handler
    """Gets its owner and the event."""


class EventManager:
    """The handlers of the current world and task, in the order in which they were registered."""

    def __init__(self) -> None:
        self._triggers: dict[type, list[tuple[Any, Trigger]]] = {}
        self.before: Callable[[], None] | None = None
        """Called before code of a user runs; None if there is nothing to do."""

    def register(self, owner: Any, trigger: Trigger) -> None:
        """Add a handler. If its event is being raised, it takes part."""
        self._triggers.setdefault(trigger.type, []).append((owner, trigger))

    def deregister(self, owner: Any, trigger: Trigger | None = None) -> None:
        """Remove a handler of an owner; without a trigger, all of them."""
        for kind, entries in self._triggers.items():
            self._triggers[kind] = [
                entry for entry in entries if entry[0] is not owner or (trigger is not None and entry[1] is not trigger)
            ]

    def clear(self) -> None:
        """Remove all handlers."""
        self._triggers.clear()

    def handles(self, kind: type) -> bool:
        """Return whether a handler waits for events of a kind."""
        return bool(self._triggers.get(kind))

    def raise_event(self, event: Event) -> bool:
        """Run every handler whose condition holds, and return whether any ran."""
        entries = self._triggers.get(type(event))
        handled, at = False, 0
        while entries is not None and at < len(entries):
            handled = self._run(event, *entries[at]) or handled
            at += 1
        return handled

    def _run(self, event: Event, owner: Any, trigger: Trigger) -> bool:
        handler = trigger.event_handler
        try:
            if self.before is not None and not getattr(handler, "draws_nothing", False):
                self.before()
            event.condition_outcome = True if trigger.condition is None else trigger.condition(event)
            if not event.condition_outcome:
                return False
            handler(owner, event)
        except TaskFailed:
            raise
        except (Exception, SystemExit) as error:
            name = getattr(handler, "__name__", repr(handler))
            kind = type(event).__name__
            raise TaskFailed(f"{type(owner).__name__}.{name}, at {kind}: {describe_error(error)}") from error
        return True


class Observable:
    """Functions that are called in order, with the same arguments, when it is called."""

    def __init__(self) -> None:
        self._observers: list[Callable[..., Any]] = []

    def register(self, observer: Callable[..., Any]) -> None:
        """Add a function."""
        self._observers.append(observer)

    def deregister(self, observer: Callable[..., Any]) -> None:
        """Remove a function."""
        self._observers.remove(observer)

    def __call__(self, *args: Any, **options: Any) -> None:
        """Call all functions."""
        for observer in [*self._observers]:
            observer(*args, **options)
