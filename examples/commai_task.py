"""A task of your own for the CommAI domain, and a perfect learner that solves it.

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
    """The learner says a word backwards, ten times in a row."""

    def ask(self, stage: Stage) -> Round:
        word = stage.rng.choice(["tea", "milk", "water", "juice"])
        answer = f"{word[::-1]}."
        return Round(f"backwards: {word}.", answer, right="yes! ;", wrong=f"no, {answer};")


if __name__ == "__main__":
    environment = make_environment(scheduler=ConsecutiveScheduler([Backwards()], success_threshold=3), seed=1)
    session = LearnerSession(environment, Oracle(environment))
    session.run()
    for name, tally in session.tallies().items():
        print(f"{name}: {tally.solved} of {tally.instances} instances solved in {tally.steps} steps")
