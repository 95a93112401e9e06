"""Run a plan: cells are started, played and resumed, here or in worker processes.

Start with `plan`, which pairs agents with trials, then `run`, then `scheduler`, which starts cells on one of the
`executors`.
`player` plays one cell; `deadline` and `processes` end agents that do not answer. `experiment` reads experiment files,
and `campaign` plans them; `cluster` and `ray` play on several machines, and `isolation` closes agents off.
"""

from typing import TYPE_CHECKING

from openfield.lazy import attach

if TYPE_CHECKING:
    from openfield.journal.fingerprint import CodeVersion
    from openfield.provenance.provenance import Provenance
    from openfield.runner.executors import Executor, Inline, Processes
    from openfield.runner.experiment import Experiment, RunOptions, read_experiment
    from openfield.runner.plan import Plan, make_plan
    from openfield.runner.run import read_plan, run_plan
    from openfield.runner.scheduler import RunWarning

__all__ = [
    "CodeVersion",
    "Executor",
    "Experiment",
    "Inline",
    "Plan",
    "Processes",
    "Provenance",
    "RunOptions",
    "RunWarning",
    "make_plan",
    "read_experiment",
    "read_plan",
    "run_plan",
]

__getattr__, __dir__ = attach(__name__)
