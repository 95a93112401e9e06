"""`tasks.challenge.round1.challenge_micro` of the original: the engine of micro tasks that user code subclasses.

`MicroBase` asks the questions of a `TaskGenerator`. The forty classes `Micro1Task` ... `Micro20Task` are here too: a
curriculum that names them plays the tasks of `tasks/catalogue.py`; a subclass of one runs on this engine, with the
questions of that task.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from openfield.domains.commai.environment.task import Round, RoundSource
from openfield.domains.commai.original.core.task import Task, World, on_message, on_start, on_timeout
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import MICRO
from openfield.domains.commai.tasks.mapping import MappingTask, deal_rounds
from openfield.domains.commai.tasks.micro import Knows

Instancer = Callable[..., Sequence[Any]]
REQUIRED_CONSECUTIVE_REWARDS = 10


class TaskGenerator:
    """Makes the questions of a micro task.

    Args:
        instancer: A function that gets the generator and returns (question, answer) or (question, answer, feedback).
        input_sep: The words after every question.
        provide_feedback: The feedback: a text, a list to choose from, a function of (right, question), or True to tell
            the answer.
        feedback_sep: The words after the feedback.
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
        """Return a question without the words after it."""
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
        """Return the feedback to an answer, with the words after it."""
        feedback = self.provide_feedback
        if feedback is None or feedback is False:
            return ""
        asked = self.get_original_question(self._question if question is None else question)
        if feedback is True:
            text = "" if callable(self._answer) else str(self.rng.choice(self._answer))
        elif callable(feedback):
            text = feedback(right, asked)
        else:
            text = feedback if isinstance(feedback, str) else str(self.rng.choice(feedback))
        return text + (self.feedback_sep if self.show_feedback_sep else "")


class MicroBase(Task):
    """A task of single questions. Subclasses write `get_task_generator`."""

    reg_answer_end = "."
    """Found in the answer so far, it ends the answer. The default ends it with every character; `\\.` with a dot."""
    answer: Any = None
    """The answer to the current question."""
    alphabet: list[str]
    """All questions of this instance, if they are a fixed set."""
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

    def under_time_limit_for_successfull_solution(self) -> bool:
        """Return whether the instance can still be solved: not too many questions were asked."""
        soft = self.max_questions_for_success
        return soft is None or self.questions_asked <= soft

    def preprocess_answer(self, message: str) -> str:
        """Return the next part of the answer: the last character heard."""
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
        self.marks = self._last_words = ""
        self._ask("")

    @on_message()
    def check_response(self, event: Any) -> None:
        """Take a character: an interruption, or a part of the answer."""
        if not self._env.is_silent():
            if event.message[-1:] != " ":
                self.set_immediate_reward(-1)
                self.consecutive_reward = 0
            return
        if not event.message:
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
        """Fail, after too long or too many questions."""
        self.set_result(False, self._last_words, provide_result_as_reward=False)

    def _judge(self, right: bool) -> None:
        """Count an answer, and ask the next question or end."""
        self.questions_asked += 1
        self.consecutive_reward = self.consecutive_reward + 1 if right else 0
        self.marks += "+" if right else "-"
        self.question_answered(right)
        feedback, asked = self.tasker.get_feedback_text(right, self.question), self.questions_asked
        soft, hard = self.max_questions_for_success, self.max_questions_nr
        if self.consecutive_reward >= REQUIRED_CONSECUTIVE_REWARDS:
            self.set_result(self.under_time_limit_for_successfull_solution(), feedback, provide_result_as_reward=False)
            return
        if soft is None and self.agent_should_know_answers():
            self.max_questions_for_success = soft = asked + REQUIRED_CONSECUTIVE_REWARDS * (1 + self.SUCCESS_TOLERANCE)
        if hard is None and soft is not None and asked > soft:
            self.max_questions_nr = hard = asked * (1 + self.FAILED_TASK_TOLERANCE)
        if hard is not None and asked > hard:
            self._last_words = feedback
            self._raise_timeout()
            if not self.has_ended():
                self.end()
        else:
            self._ask(feedback)

    def _ask(self, feedback: str) -> None:
        self.agent_answer = ""
        self.question, answer = self.tasker.get_task_instance()
        if not callable(answer):
            self.answer = answer
        self.check_answer = self.tasker.check_answer
        self._follows_feedback = bool(feedback)
        if feedback:
            self.set_message(feedback)
        self.give_instructions()


class MicroMappingTask(MicroBase):
    """A task with a fixed answer to each of some questions. Subclasses write `_get_mapping`.

    An answer is complete when it is as long as the expected one. The learner should know all of them once each question
    was asked.
    """

    task_gen_kwargs: dict[str, Any] = {}
    """Further arguments of the `TaskGenerator`."""

    def _get_mapping(self) -> dict[str, str]:
        """Return the answer to each question, for one instance."""
        raise NotImplementedError(f"{type(self).__name__} needs a method _get_mapping().")

    def _get_feedback(self, answer: str) -> Any:
        """Return the feedback to a question with this answer; by default None."""
        return None

    def get_task_generator(self) -> TaskGenerator:
        """Make a generator that asks each of n questions n times before it starts again."""
        mapping = self._get_mapping()
        self.alphabet, self._unseen, deck = [*mapping], {*mapping}, list[str]()

        def draw(generator: TaskGenerator) -> tuple[Any, ...]:
            if not deck:
                deck.extend([*mapping] * len(mapping))
                self._env.rng.shuffle(deck)
            key = deck.pop()
            self._asked, self.answer = key, mapping[key]
            judge = _judge_round(Round(key, mapping[key]), dotted=False)
            feedback = self._get_feedback(mapping[key])
            return (key, judge) if feedback is None else (key, judge, feedback)

        return TaskGenerator(draw, **self.task_gen_kwargs)

    def question_answered(self, is_correct: bool) -> None:
        """Take note that a question was asked."""
        self._unseen.discard(self._asked)

    def agent_should_know_answers(self) -> bool:
        """Return whether every question was asked."""
        return not self._unseen


class FeedbackMappingTaskMixin(MicroMappingTask):
    """A mapping whose answers are given after each question."""

    def _get_feedback(self, answer: str) -> Any:
        """Tell the answer."""
        return answer


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
        if self._task.dotted:
            self.reg_answer_end = r"\."

    def get_task_generator(self) -> TaskGenerator:
        """Make a generator of the catalogue's rounds."""
        stage: Any = _Stage(self._env.rng, getattr(self._env, "settings", CommaiSettings()))
        source: RoundSource = self._deal(stage)
        self.alphabet = [*source.keys]
        self._knows: Knows | None = self._task.knowledge(source)
        self._knows_now = False

        def draw(generator: TaskGenerator) -> tuple[str, Any, Any]:
            drawn = source.draw()
            self._round = drawn
            self.answer = drawn.answer
            return (
                drawn.question,
                _judge_round(drawn, self._task.dotted),
                lambda right, question: drawn.right if right else drawn.wrong,
            )

        return TaskGenerator(draw)

    def _deal(self, stage: Any) -> RoundSource:
        source: RoundSource = self._task.deal(stage)
        return source

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


class CatalogueMappingTask(CatalogueTask, MicroMappingTask):
    """A task of the catalogue with a mapping, which a subclass may override."""

    def _get_mapping(self) -> dict[str, str]:
        """Draw the mapping as the task of the catalogue does."""
        stage: Any = _Stage(self._env.rng, getattr(self._env, "settings", CommaiSettings()))
        plan = self._task.plan(stage)
        keys = plan.keys.draw(stage.rng)
        fixed = {each.question: each.answer for each in plan.fixed}
        return {**dict(zip(keys, plan.answers.draw(stage.rng, keys), strict=True)), **fixed}

    def _deal(self, stage: Any) -> RoundSource:
        if type(self)._get_mapping is CatalogueMappingTask._get_mapping:
            return super()._deal(stage)
        plan = self._task.plan(stage)
        added = plan.make("", "").answer  # a dot, which the mapping may have too
        rounds = [plan.make(key, answer.removesuffix(added)) for key, answer in self._get_mapping().items()]
        return deal_rounds(plan, rounds, stage.rng)


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


CLASSES: dict[str, type[MicroBase]] = {
    class_name(name): type(
        class_name(name),
        (CatalogueMappingTask if isinstance(MICRO[name](name), MappingTask) else CatalogueTask,),
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
