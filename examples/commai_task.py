"""Write a task of your own for the CommAI domain, and solve it with a perfect learner.

Try it: python examples/commai_task.py
"""

from openfield.domains.commai import (
    ConsecutiveScheduler,
    LearnerSession,
    MicroTask,
    Oracle,
    Round,
    Stage,
    make_environment,
)


class Backwards(MicroTask):
    """A task in which the learner spells a word backwards, ten times in a row."""

    def ask(self, stage: Stage) -> Round:
        """Return one question, the right answer, and what the teacher says to a right and a wrong one."""
        word = stage.rng.choice(["tea", "milk", "water", "juice"])
        answer = f"{word[::-1]}."
        return Round(f"backwards: {word}.", answer, right="yes! ;", wrong=f"no, {answer};")


if __name__ == "__main__":
    environment = make_environment(scheduler=ConsecutiveScheduler([Backwards()], success_threshold=3), seed=1)
    session = LearnerSession(environment, Oracle(environment))
    session.run()
    for name, tally in session.tallies().items():
        print(f"{name}: {tally.solved} of {tally.instances} instances solved in {tally.steps} steps")
