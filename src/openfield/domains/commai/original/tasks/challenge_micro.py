"""`tasks.challenge.round1.challenge_micro` of the original: the engine of micro tasks that user code subclasses.

`MicroBase` asks the questions of a `TaskGenerator`. The forty classes `Micro1Task` ... `Micro20Task` are here too: a
curriculum that names them plays the tasks of `tasks/catalogue.py`; a subclass of one runs on this engine, with the
questions of that task.
"""

from __future__ import annotations

import re
from typing import Any

from openfield.domains.commai.environment.task import Round, RoundSource
from openfield.domains.commai.original.core.task import Task, World, on_message, on_start, on_timeout
from openfield.domains.commai.original.tasks.task_generator import TaskGenerator
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import MICRO
from openfield.domains.commai.tasks.micro import Knows

REQUIRED_CONSECUTIVE_REWARDS = 10


class MicroBase(Task):
    """A task of single questions. Subclasses write `get_task_generator`."""

    reg_answer_end = r"\."
    """Found in the answer so far, it ends the answer; `.` ends it with every character."""
    SUCCESS_TOLERANCE = 4.0
    FAILED_TASK_TOLERANCE = 1.0
    skip_task_separator = True

    def __init__(self, world: World | None = None) -> None:
        super().__init__(max_time=10_000, world=world)

    def get_task_generator(self) -> TaskGenerator:
        """Make the generator of an instance's questions."""
        raise NotImplementedError(f"{type(self).__name__} needs a method get_task_generator().")

    def agent_should_know_answers(self) -> bool:
        """Return whether the learner should know the answers by now."""
        return True

    def question_answered(self, is_correct: bool) -> None:
        """Take note of an answer."""

    def preprocess_answer(self, message: str) -> str:
        """Return what is added to the answer: the last character heard."""
        return message[-1]

    def give_instructions(self) -> None:
        """Say the next question, behind the feedback to the last answer."""
        if self._follows_feedback:
            self.add_message(self.question)
        else:
            self.set_message(self.question)

    @on_start()
    def start_micro_instance(self, event: Any) -> None:
        """Make the generator and ask the first question."""
        self.tasker = self.get_task_generator()
        self.questions_asked = self.consecutive_reward = 0
        self.max_questions_for_success: float | None = None
        self.max_questions_nr: float | None = None
        self.marks = ""
        self._ask("")

    @on_message()
    def check_response(self, event: Any) -> None:
        """Take a character: an interruption, or a part of the answer."""
        if not self._env.is_silent():
            if event.message[-1:] != " ":
                self.set_immediate_reward(-1)
                self.consecutive_reward = 0
            return
        if self.has_ended() or not event.message:
            return
        before = self.agent_answer
        added = self.preprocess_answer(event.message)
        if self.agent_answer == before and added:  # some subclasses add to the answer themselves
            self.agent_answer += added
        if re.search(self.reg_answer_end, self.agent_answer, re.DOTALL):
            finished, right, reward = self.check_answer(self.agent_answer, self.question)
            if reward:
                self.set_immediate_reward(reward)
            if finished:
                self._judge(right)

    @on_timeout()
    def on_micro_timeout(self, event: Any) -> None:
        """Fail."""
        self.set_result(False, provide_result_as_reward=False)

    def _judge(self, right: bool) -> None:
        """Count an answer, and ask the next question or end."""
        self.questions_asked += 1
        self.consecutive_reward = self.consecutive_reward + 1 if right else 0
        self.marks += "+" if right else "-"
        self.question_answered(right)
        feedback, asked = self.tasker.get_feedback_text(right, self.question), self.questions_asked
        soft, hard = self.max_questions_for_success, self.max_questions_nr
        if self.consecutive_reward >= REQUIRED_CONSECUTIVE_REWARDS:
            self.set_result(soft is None or asked <= soft, feedback, provide_result_as_reward=False)
            return
        if soft is None and self.agent_should_know_answers():
            self.max_questions_for_success = soft = asked + REQUIRED_CONSECUTIVE_REWARDS * (1 + self.SUCCESS_TOLERANCE)
        if hard is None and soft is not None and asked > soft:
            self.max_questions_nr = hard = asked * (1 + self.FAILED_TASK_TOLERANCE)
        if hard is not None and asked > hard:
            self.set_result(False, feedback, provide_result_as_reward=False)
        else:
            self._ask(feedback)

    def _ask(self, feedback: str) -> None:
        self.agent_answer = ""
        self.question, _ = self.tasker.get_task_instance()
        self.check_answer = self.tasker.check_answer
        self._follows_feedback = bool(feedback)
        if feedback:
            self.set_message(feedback)
        self.give_instructions()


class _Stage:
    """What the tasks of the catalogue draw with."""

    serializer = None
    penalties = 0

    def __init__(self, rng: Any, settings: CommaiSettings) -> None:
        self.rng, self.settings = rng, settings


class CatalogueTask(MicroBase):
    """The base of `Micro1Task` and the like: the questions of a task in the catalogue."""

    native = ""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(world)
        made: Any = MICRO[self.native](self.native)
        self._task = made
        if not self._task.dotted:
            self.reg_answer_end = "."

    def get_task_generator(self) -> TaskGenerator:
        """Make a generator of the catalogue's rounds."""
        stage: Any = _Stage(self._env.rng, getattr(self._env, "settings", CommaiSettings()))
        source: RoundSource = self._task.deal(stage)
        self._knows: Knows | None = self._task.knowledge(source)
        self._knows_now = False

        def draw(generator: TaskGenerator) -> tuple[str, Any, Any]:
            drawn = source.draw()
            self._round = drawn
            return (
                drawn.question,
                _judge_round(drawn, self._task.dotted),
                lambda right, question: drawn.right if right else drawn.wrong,
            )

        return TaskGenerator(draw)

    def question_answered(self, is_correct: bool) -> None:
        """Let the task's own rule decide whether the learner should know."""
        if self._knows is not None and self._knows(self._round.question, is_correct):
            self._knows_now, self._knows = True, None

    def agent_should_know_answers(self) -> bool:
        """Return whether the learner should know."""
        return self._knows_now

    def hint(self) -> str:
        """Return the rest of the answer."""
        return self._round.answer[len(self.agent_answer) :]


def _judge_round(drawn: Round, dotted: bool) -> Any:
    """Return the function that judges an answer to a round."""

    def judge(said: str, question: str) -> tuple[bool | None, int]:
        if not dotted and len(said) < len(drawn.answer):
            return None, 0
        right = said == drawn.answer if drawn.accepts is None else drawn.accepts(said)
        return right, 1 if right else -1

    return judge


def class_name(native: str) -> str:
    """Return the class name of a micro task: `Micro5Sub2Task` for micro5.2."""
    number, _, part = native.removeprefix("micro").partition(".")
    return f"Micro{number}Sub{part}Task" if part else f"Micro{number}Task"


CLASSES: dict[str, type[CatalogueTask]] = {
    class_name(name): type(
        class_name(name),
        (CatalogueTask,),
        {
            "native": name,
            "__module__": __name__,
            "__doc__": f"The task {name}.",
            "FAILED_TASK_TOLERANCE": getattr(MICRO[name](name), "failed_task_tolerance", 1.0),
        },
    )
    for name in MICRO
}
globals().update(CLASSES)
