"""`openfield slurm`: play an experiment as a SLURM job array."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.shared.parameters import Output
from openfield.options import Count


def slurm(
    experiment: Path,
    /,
    *sbatch: Annotated[str, Parameter(metavar="OPTION")],
    array: Count,
    output: Output = None,
    submit: bool = False,
) -> None:
    """Write the scripts of a SLURM job array that plays shares of an experiment, and of the job that merges them.

    Args:
        experiment: The experiment file.
        sbatch: After `--`: options that go to sbatch as they are.
        array: How many tasks share the experiment out.
        output: The merged run file [the one the experiment names]. Its present cells stay in it.
        submit: Give the scripts to sbatch.

    Example:
        openfield slurm experiment.toml --array 100 --submit -- --time=4:00:00
    """
    from openfield.errors import InvalidInput
    from openfield.journal.reader import Run
    from openfield.registry import find_domain
    from openfield.runner.campaign import Part, plan_parts
    from openfield.runner.experiment import RunOptions, naming_file, read_experiment
    from openfield.runner.shares import Stage, choose_stage
    from openfield.runner.slurm import SlurmPlan, check_options, submit_jobs, write_jobs

    check_options(sbatch)
    read = read_experiment(experiment)
    with naming_file(experiment):
        apart = read.change({"isolate": False}).split()  # the nodes isolate, if they can
        parts = [Part(part, find_domain(part.domain, part.settings)) for part in apart]
        merged = output or read.find_path(experiment.stem if read.domains else parts[0].domain.name)
        if read.sealed and read.secret is None:
            raise InvalidInput('the tasks of an array need the same sealed seed. Share it: secret = "FILE"')
        if read.register is not None:
            raise InvalidInput("a run is registered as a whole, not share by share: leave out register.")
        plan = plan_parts(parts, merged)
        if plan.stopping is not None:
            raise InvalidInput(f"a task does not see the trials of the others: leave out {plan.stopping.words}.")
    if merged.exists():
        Run(merged).close()  # another file is refused before the tasks play
    stages: tuple[Stage, ...] = ("first", "rest") if choose_stage(plan.cells, "first") else ("all",)
    shared = {stage: min(array, len(choose_stage(plan.cells, stage))) for stage in stages}
    usual = all(getattr(read, name) == getattr(RunOptions(), name) for name in ("workers", "executor", "concurrency"))
    scripts = write_jobs(SlurmPlan(experiment.absolute(), merged, shared, sbatch, uses_processors=usual))
    if not submit:
        print(*scripts, sep="\n")
        print(
            "Submit them in this order, each after the one before (sbatch --dependency=afterany:ID), or use --submit."
        )
        return
    for script, number in zip(scripts, submit_jobs(scripts), strict=True):
        print(f"{number}  {script}")
    print(f"The merged run will be {merged}.")
