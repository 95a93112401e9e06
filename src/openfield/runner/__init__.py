"""Run a plan: cells are started, played and resumed, here or in worker processes.

Start with `experiment`, which says what is wanted, and `plan`, which pairs agents with trials; `campaign` joins the
plans of several domains. `run` plays a plan: its `scheduler` starts cells on one of the `executors` or on `threads`,
and `player` plays one cell, with a `deadline` for agents that do not answer. `ray` plays on a cluster, `shares` and
`slurm` divide a run among machines, `cluster` says which of these it is, and `isolation` closes agents off. `sealing`
hides the seed of trials, `duration` forecasts a run, and `importing` records results from elsewhere.
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
