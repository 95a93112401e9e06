"""`tasks.competition.base` of the original: a task that ignores words said while the teacher talks."""

from __future__ import annotations

from typing import Any

from openfield.domains.commai.original.core.task import Task, on_message
from openfield.domains.commai.original.tasks import messages


class DrawingTask(Task):
    """What our own tasks share: they draw from the environment's generator and know what a perfect learner answers."""

    def draw(self, options: Any) -> Any:
        """Return one of some options."""
        return self._env.rng.choice(options)

    def praise(self) -> str:
        """Draw the words said to a success."""
        return str(self.draw(messages.congratulations))

    def blame(self) -> str:
        """Draw the words said to a failure."""
        return str(self.draw(messages.failed))

    def hint(self) -> str:
        """Return what a perfect learner says now; empty for silence."""
        return str(getattr(self.state, "answer", ""))


def _erase(task: Any, event: Any) -> None:
    if event.message[-1:] != " " and not task._env.is_silent():
        task.ignore_last_char()


class BaseTask(DrawingTask):
    """A task in which characters said while the teacher talks become spaces.

    Handlers whose names come before `on_any_message` run before that, all others after.
    """

    @on_message()
    def on_any_message(self, event: Any) -> None:
        """Erase the last character if the teacher talks."""
        _erase(self, event)

    on_any_message.draws_nothing = True
