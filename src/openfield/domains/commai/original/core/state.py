"""The state of a task or a world: assigning to it tells its owner.

A dictionary becomes a watched copy when it is assigned. Lists, sets and whatever lies deeper is not watched, as in the
original.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

Notify = Callable[[], None]


class State:
    """Any attributes; assigning one calls a function."""

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
