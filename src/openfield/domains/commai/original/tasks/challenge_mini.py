"""`tasks.challenge.round1.challenge_mini` of the original, for user code that subclasses its tasks.

A curriculum that names `TaskSet1` plays the task of `tasks/mini.py`; a subclass runs here, with the questions of that
task.
"""

from __future__ import annotations

import random
from typing import Any

from openfield.domains.commai.original.core.task import World, on_message, on_start, on_timeout
from openfield.domains.commai.original.tasks.base import BaseTask
from openfield.domains.commai.tasks.mini import MINI, Description, draw_member, draw_nonmember


class TaskSetBase(BaseTask):
    """Tell whether a string belongs to the set that a description describes."""

    native = ""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=3000, world=world)
        self._task: Any = MINI[self.native](self.native) if self.native else None

    def make_round(self) -> tuple[str, str, str, str]:
        """Draw a question, its answer without the dot, praise and blame."""
        if self._task is None:
            raise NotImplementedError(f"{type(self).__name__} needs a method make_round().")
        drawn = self._task.ask(self._env.rng)
        return drawn.question, drawn.answer[:-1], drawn.right, drawn.wrong

    @on_start()
    def ask(self, event: Any) -> None:
        """Ask the question."""
        question, answer, self.state.right, self.state.wrong = self.make_round()
        self.state.answer = f"{answer}."
        self.set_message(question)

    @on_message(r"\.")
    def check_response(self, event: Any) -> None:
        """Judge the answer."""
        if event.is_message(self.state.answer[:-1], "."):
            self.set_result(True, self.state.right)
        else:
            self.set_result(False, self.state.wrong)

    @on_timeout()
    def on_time_over(self, event: Any) -> None:
        """Fail."""
        self.set_result(False, self.state.wrong)


CLASSES: dict[str, type[TaskSetBase]] = {
    f"TaskSet{name[4:]}": type(
        f"TaskSet{name[4:]}",
        (TaskSetBase,),
        {"native": name, "__module__": __name__, "__doc__": f"The task {name}."},
    )
    for name in MINI
}
globals().update(CLASSES)


class Automaton:
    """`fsa` of the original: a set of strings that a description describes."""

    def __init__(self, description: Description) -> None:
        self._description = description

    def is_string_correct(self, text: str) -> bool:
        """Return whether a string belongs to the set."""
        return self._description.accepts(text)

    def get_correct_string(self, length: int) -> str:
        """Return a string of the set that is at least a little longer than a length."""
        return draw_member(self._description, length, _global_generator())

    def get_wrong_string(self, length: int, randomization: Any = 0) -> str:
        """Return a string that nearly belongs to the set."""
        return draw_nonmember(self._description, length, _global_generator())


def build_automaton(description: Any, logical_op: str = "and") -> Automaton:
    """Make the set of a description: n-grams, `not` n-grams and `anything`, as a list or in one text.

    In a text they are separated by blanks. The operator may stand between them.
    """
    words = _split(description, logical_op) if isinstance(description, str) else [each.strip() for each in description]
    return Automaton(
        Description(
            required=tuple(word for word in words if word != "anything" and not word.startswith("not ")),
            banned=tuple(word.removeprefix("not ") for word in words if word.startswith("not ")),
            anything="anything" in words,
            operator=logical_op,
        )
    )


def _split(text: str, logical_op: str) -> list[str]:
    """Return the n-grams of a text, with the `not` that stands before some."""
    words: list[str] = []
    for word in text.split():
        if words and words[-1] == "not":
            words[-1] = f"not {word}"
        elif word != logical_op:
            words.append(word)
    return words


def _global_generator() -> random.Random:
    return random.Random(random.random())
