"""Plan runs by what is to be known: how many trials that takes, and whether enough is known already.

`reach` says what a number of trials can show at best, `sample_size` how many a difference needs. `interim` looks at a
run that stops by itself between two batches. `registering` writes down what a run asks before its first trial.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from openfield.runner.experiment import RegisterOptions

if TYPE_CHECKING:
    from openfield.runner.plan import Plan
    from openfield.runner.stopping.batches import Look


def prepare_play(plan: Plan, run: Path) -> tuple[Plan, Look | None]:
    """Return a plan with its registration, if it has one, and what looks at its run between batches, if it stops.

    What needs metrics is imported only for these.
    """
    look = None
    if plan.stopping is not None:
        from openfield.planning.interim import make_look

        look = make_look(plan, plan.stopping, run)
    if isinstance(plan.options, RegisterOptions) and plan.options.register is not None:
        from openfield.planning.registering import register

        plan = register(plan, plan.options, plan.options.register, run)
    return plan, look
