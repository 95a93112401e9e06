"""The kinds of instance of the legacy tasks: a dialogue read sentence by sentence, and an exercise with one question.

Limits count symbols: bytes in byte mode, and bits in bit mode, for which these numbers were chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from openfield.domains.commai.environment.grid_world import GridWorld
from openfield.domains.commai.environment.task import Instance, Round, RoundScript, Stage, Task
from openfield.domains.commai.tasks.draws import blame, praise, time_is_out


class Dialogue(Instance):
    """An instance that reads sentences: what the learner said up to each dot while the teacher was silent.

    Subclasses write `begin` and `read`, and `hint` for the oracle.
    """

    def __init__(self, stage: Stage, task: Task) -> None:
        super().__init__(stage)
        self.task = task
        self.rng: Random = stage.rng
        self._heard: list[str] = []
        self.begin()

    def begin(self) -> None:
        """Say the first words."""
        raise NotImplementedError

    def read(self, sentence: str) -> None:
        """Take a sentence with its dot."""

    def hear(self, symbol: str) -> int:
        """Add a symbol to the sentence, which a dot ends."""
        self._heard.append(symbol)
        if symbol == ".":
            sentence = "".join(self._heard)
            self._heard.clear()
            if self.stage.serializer is not None:
                sentence = self.stage.serializer.decode(sentence)
            self.read(sentence)
        return 0

    def overhear(self, symbol: str) -> int:
        """Forget the sentence: what is said while the teacher talks is lost."""
        self._heard.clear()
        return 0

    def time_out(self) -> None:
        """Fail."""
        self.lose(time_is_out(self.rng))

    def say(self, text: str) -> None:
        """Queue a text."""
        self.stage.say(text)

    def win(self, text: str = "") -> None:
        """End with success and praise."""
        self.stage.finish(True, text or praise(self.rng))

    def lose(self, text: str = "") -> None:
        """End with failure and blame."""
        self.stage.finish(False, text or blame(self.rng))

    @property
    def world(self) -> GridWorld:
        """The grid world of the task."""
        if self.task.world is None:
            raise TypeError(f"The task {self.task.name} needs a grid world.")
        return self.task.world


class DialogueTask(Task):
    """A task whose instances are dialogues of one kind."""

    def __init__(
        self, name: str, kind: Callable[[Stage, Task], Dialogue], max_time: int, world: GridWorld | None = None
    ) -> None:
        super().__init__(name, world)
        self._kind, self.max_time = kind, max_time

    def start(self, stage: Stage) -> Instance:
        """Begin the dialogue."""
        return self._kind(stage, self)


class ExerciseTask(Task):
    """A task of one question per instance.

    Args:
        name: The task's id.
        make: Draws the question. `Round.right` and `Round.wrong` are said at the end, or defaults if they are empty.
        max_time: The limit in steps.
        retries: Whether the teacher ignores a wrong answer, so that the learner can try again.
    """

    script: RoundScript | None = None

    def __init__(self, name: str, make: Callable[[Random], Round], max_time: int, retries: bool = True) -> None:
        super().__init__(name)
        self._make, self.max_time, self.retries = make, max_time, retries

    def start(self, stage: Stage) -> Instance:
        """Ask the question."""
        drawn = self.script.deal().draw() if self.script else self._make(stage.rng)
        return Exercise(stage, self, drawn)


class Exercise(Dialogue):
    """An instance of one question. Text before the answer does no harm."""

    def __init__(self, stage: Stage, task: ExerciseTask, drawn: Round) -> None:
        self.round, self._retries = drawn, task.retries
        super().__init__(stage, task)

    def begin(self) -> None:
        """Ask the question."""
        self.say(self.round.question)

    def read(self, sentence: str) -> None:
        """Judge the answer."""
        accepts = self.round.accepts
        if accepts(sentence) if accepts else sentence.endswith(self.round.answer):
            self.win(self.round.right)
        elif not self._retries:
            self.lose(self.round.wrong)

    def time_out(self) -> None:
        """Fail, and tell the answer if the round says how."""
        self.lose(self.round.wrong or time_is_out(self.rng))

    def hint(self) -> str:
        """Return the answer."""
        return self.round.answer


def exercise(make: Callable[[Random], Round], max_time: int, retries: bool = True) -> Callable[[str], Task]:
    """Return a factory of exercise tasks."""
    return lambda name: ExerciseTask(name, make, max_time, retries)
