"""Objectives as scalars for logs of training: when they are due, what they are, and who writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from openfield.errors import InvalidInput
from openfield.objectives.frames.encode import whole
from openfield.objectives.tracking.life import Life
from openfield.objectives.tracking.measured import measure_life

GROWTH = 1.1
"""How much a life must have grown until it is measured again as a whole, which takes as long as it was."""


class ScalarLog:
    """Computes the objectives of a life and of its window every so many transitions."""

    def __init__(self, life: Life, every: int, draws: int, log: Any = None) -> None:
        """Set what is measured and where it goes.

        Args:
            life: The life.
            every: Transitions between two logs.
            draws: How many times actions are shuffled for the null of empowerment.
            log: A writer with `add_scalar`, or a function of name, value and step.
        """
        if whole(every, "setting every") < 1:
            raise InvalidInput(f"The setting every is {every}; it must be positive.")
        if whole(draws, "setting draws") < 0:
            raise InvalidInput(f"The setting draws is {draws}; it must not be negative.")
        self._life, self._every, self._draws = life, every, draws
        self._add = None if log is None else _adder(log)
        self._whole = 0.0
        self.due = every
        """The transitions from which the next log is due."""

    def write(self) -> dict[str, float]:
        """Write the scalars of this moment, and return them."""
        found = self.scalars()
        if self._add is not None:
            for name, value in found.items():
                self._add(name, value, self._life.transitions)
        return found

    def scalars(self) -> dict[str, float]:
        """Return the scalars of this moment: those of the window, and those of the life if it has grown enough."""
        at = self._life.transitions
        self.due = at - at % self._every + self._every
        parts = {}
        if at >= self._whole:
            self._whole = at * GROWTH
            parts["life"] = measure_life(self._life, draws=self._draws)
        if window := min(self._life.window, at):
            parts["window"] = measure_life(self._life, window, draws=self._draws)
        return {
            f"objectives/{part}/{name}": value
            for part, found in parts.items()
            for name, value in found.scalars().items()
        }


def _adder(log: Any) -> Callable[[str, float, int], Any]:
    """Return the function that adds a scalar to a log."""
    add = getattr(log, "add_scalar", log)
    if not callable(add):
        raise InvalidInput(
            f"The setting log is {log!r}. Give a writer with add_scalar, such as SummaryWriter(FOLDER) of torch or "
            "tensorboardX, or a function of name, value and step."
        )
    found: Callable[[str, float, int], Any] = add
    return found
