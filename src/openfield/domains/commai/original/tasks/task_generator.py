"""`tasks.challenge.round1.task_generator` of the original: questions with their answers and feedback."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

Instancer = Callable[..., Sequence[Any]]


class TaskGenerator:
    """Makes the questions of a micro task.

    Args:
        instancer: A function that gets the generator and returns (question, answer) or (question, answer, feedback).
        input_sep: What is said behind every question.
        provide_feedback: The feedback: a text, a list to choose from, a function of (right, question), or True to tell
            the answer.
        feedback_sep: What is said behind the feedback.
        show_feedback_sep: Whether it is.
    """

    rng: Any = random

    def __init__(
        self,
        instancer: Instancer,
        input_sep: str = "",
        provide_feedback: Any = None,
        feedback_sep: str = "",
        show_feedback_sep: bool = True,
    ) -> None:
        if not isinstance(instancer, FunctionType):
            raise TypeError(f"The instancer must be a function, not {type(instancer).__name__}.")
        self.instancer, self.input_sep = instancer, input_sep
        self.provide_feedback, self.feedback_sep = provide_feedback, feedback_sep
        self.show_feedback_sep = show_feedback_sep
        self._answer: Any = None
        self._question = ""

    def get_task_instance(self) -> tuple[str, Any]:
        """Make a question and return it with its answer."""
        made = self.instancer(self)
        if len(made) > 2:
            self.provide_feedback = made[2]
        self._question, self._answer = made[0] + self.input_sep, made[1]
        return self._question, self._answer

    def get_original_question(self, question: str) -> str:
        """Return a question without what is said behind it."""
        return question.removesuffix(self.input_sep) if self.input_sep else question

    def check_answer(self, said: str, question: str | None = None) -> tuple[bool, bool, Any]:
        """Return whether an answer is finished, whether it is right, and its reward."""
        asked = self.get_original_question(self._question if question is None else question)
        if isinstance(self._answer, FunctionType | MethodType) or callable(self._answer):
            verdict, reward = self._answer(said, asked)
            return verdict is not None, verdict is True, reward
        right = said in self._answer
        return True, right, 1 if right else -1

    def get_feedback_text(self, right: bool, question: str | None = None) -> str:
        """Return the feedback to an answer, with what is said behind it."""
        told = self.provide_feedback
        if told is None or told is False:
            return ""
        asked = self.get_original_question(self._question if question is None else question)
        if told is True:
            text = "" if callable(self._answer) else str(self.rng.choice(self._answer))
        elif callable(told):
            text = told(right, asked)
        else:
            text = told if isinstance(told, str) else str(self.rng.choice(told))
        return text + (self.feedback_sep if self.show_feedback_sep else "")
