"""`core.obs.observer` of the original: a list of functions that are called together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
