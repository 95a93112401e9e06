"""Write the scripts of a SLURM job array that plays shares of an experiment, and of the job that merges them.

A task plays on the disk of its node and copies its file to the common folder when it ends, or when SLURM signals that
its time is nearly up. Then it is queued again and goes on from that copy.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

from openfield.errors import InvalidInput
from openfield.files.atomic import replacing
from openfield.installation import find_program
from openfield.runner.shares import Stage

SIGNAL_SECONDS = 120
"""How long before the end of its time a task is asked to stop."""
STOPPED = 130
"""The exit status of a run that was asked to stop; it goes on when its task is started again."""

_ARRAY = Template("""\
#!/bin/bash
# Plays the shares of an experiment, one task each. Made by: openfield slurm
#SBATCH --job-name=$name
#SBATCH --array=$tasks
#SBATCH --signal=B:TERM@$seconds
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=$play_log
$options
player=; warned=
trap 'warned=yes; [ -n "$$player" ] && kill -TERM "$$player" 2>/dev/null' TERM  # its time is nearly up
share=$$SLURM_ARRAY_TASK_ID
kept=$shares/$stage-$$share.sqlite
scratch=$$(mktemp -d "$${SLURM_TMPDIR:-$${TMPDIR:-/tmp}}/openfield-$$SLURM_JOB_ID-XXXXXX") || exit 1
file=$$scratch/share.sqlite
cd $here || exit 1
if [ -f "$$kept" ]; then cp "$$kept" "$$file"$begin; fi

keep() {  # the copy appears whole or not at all
  cp "$$file" "$$kept.part" && mv "$$kept.part" "$$kept"
}

$openfield run $experiment --share "$$share/$of$suffix" --output "$$file"$workers &
player=$$!
[ -n "$$warned" ] && kill -TERM "$$player"
wait "$$player"; status=$$?
while kill -0 "$$player" 2>/dev/null; do wait "$$player"; status=$$?; done
[ -f "$$file" ] && keep && echo "This share is kept in $$kept. The file named above is gone with the task."
rm -rf "$$scratch"
if [ "$$status" -eq $stopped ] || { [ "$$status" -ne 0 ] && [ -n "$$warned" ]; }; then
  scontrol requeue "$${SLURM_ARRAY_JOB_ID}_$$SLURM_ARRAY_TASK_ID" && sleep 600
fi
exit "$$status"
""")
_MERGE = Template("""\
#!/bin/bash
# Merges the shares of an experiment. Made by: openfield slurm
#SBATCH --job-name=$name-merge
#SBATCH --open-mode=append
#SBATCH --output=$merge_log
$options
cd $here || exit 1
rm -f $output.part.sqlite
before=()
$before$openfield merge "$${before[@]}" $shares/$stage-*.sqlite --output $output.part.sqlite
status=$$?
if [ "$$status" -le 1 ]; then
  if [ -e $output-wal ]; then  # entries written meanwhile would be lost
    echo $output "is being written, or was when its command was killed. It is not replaced." >&2
    echo "The merged run is" $output.part.sqlite >&2
    exit 2
  fi
  mv $output.part.sqlite $output && echo "This file is now" $output. || exit 2
fi
exit "$$status"
""")


class SlurmJob(NamedTuple):
    """A script, and whether it waits for the one before it."""

    name: str
    text: str
    waits: bool


class SlurmPlan(NamedTuple):
    """The shared plan, and its output."""

    experiment: Path
    output: Path
    """The merged run file."""
    stages: Mapping[Stage, int]
    """How many tasks play each stage: `all`, or `first` and `rest` where trials come after others."""
    options: Sequence[str] = ()
    """What goes to sbatch as it is."""
    uses_processors: bool = True
    """Whether a task plays in as many processes as it has processors (--cpus-per-task), if SLURM gives their number."""


def write_jobs(plan: SlurmPlan) -> list[Path]:
    """Write the scripts into a folder beside the merged file, and return them in the order of submission."""
    folder = job_folder(plan)
    (folder / "shares").mkdir(parents=True, exist_ok=True)
    (folder / "logs").mkdir(exist_ok=True)
    written = []
    for job in make_jobs(plan):
        path = folder / f"{job.name}.sbatch"
        with replacing(path) as draft:
            draft.write_text(job.text, encoding="utf-8")
        written.append(path)
    return written


def job_folder(plan: SlurmPlan) -> Path:
    """Return the folder of the scripts, the shares and the logs."""
    return plan.output.with_suffix(".slurm")


def make_jobs(plan: SlurmPlan) -> list[SlurmJob]:
    """Return the scripts: for every stage an array, and the job that merges it."""
    jobs: list[SlurmJob] = []
    for stage in plan.stages:
        words = _fill_in(plan, stage)
        jobs.append(SlurmJob(f"{stage}-play", _ARRAY.substitute(words), waits=bool(jobs)))
        jobs.append(SlurmJob(f"{stage}-merge", _MERGE.substitute(words), waits=True))
    return jobs


def submit_jobs(scripts: Sequence[Path]) -> list[str]:
    """Give scripts to sbatch, each to start when the one before has ended, however it ended; return their numbers.

    Raises:
        InvalidInput: There is no sbatch here, or it refuses a script.
    """
    if find_program("sbatch") is None:
        raise InvalidInput("There is no sbatch here. Submit the scripts where SLURM is installed.")
    numbers: list[str] = []
    for script in scripts:
        after = [f"--dependency=afterany:{numbers[-1]}"] if numbers else []
        command = ["sbatch", "--parsable", *after, str(script)]
        try:
            said = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - as the user's shell
        except subprocess.CalledProcessError as error:
            said_last = error.stderr.strip().rpartition("\n")[2]
            queued = f" after it queued others (to cancel them: scancel {' '.join(numbers)})" if numbers else ""
            raise InvalidInput(f"sbatch refuses {script}{queued}: {said_last or error}") from None
        numbers.append(said.stdout.strip().partition(";")[0])
    return numbers


def check_options(options: Sequence[str]) -> None:
    """Refuse words for sbatch that cannot stand on a line of a script, or number the tasks otherwise."""
    if options and not options[0].startswith("-"):
        raise InvalidInput(f"What goes to sbatch begins with an option, such as --time=4:00:00, not '{options[0]}'.")
    for word in options:
        if not word.isprintable():
            raise InvalidInput(f"What goes to sbatch is printable words, not {word!r}.")
        if word.startswith(("--ar", "-a")):  # sbatch takes names that are cut short
            raise InvalidInput(f"The tasks are counted by --array NUMBER before the --, not by '{word}' for sbatch.")


def _write_options(words: Sequence[str]) -> str:
    """Return the lines of a script that give sbatch these options. A value may be a word of its own."""
    lines: list[str] = []
    for word in words:
        before = "" if word.startswith("-") else f"{lines.pop()} "
        lines.append(before + shlex.quote(word))
    return "".join(f"#SBATCH {line}\n" for line in lines)


def _quote_pattern(folder: Path, name: str) -> str:
    """Return the path of a log as a word of an #SBATCH line, where a % in the name of a folder is written twice."""
    return shlex.quote(f"{str(folder).replace('%', '%%')}/{name}")


def _fill_in(plan: SlurmPlan, stage: Stage) -> dict[str, str]:
    folder, here = job_folder(plan).absolute(), Path.cwd()
    name = re.sub(r"[^\w.-]", "-", plan.output.stem)
    first, output = shlex.quote(str(folder / "first.sqlite")), shlex.quote(str(plan.output.absolute()))
    return {
        "name": f"openfield-{name}",
        "tasks": f"0-{plan.stages[stage] - 1}",
        "seconds": str(SIGNAL_SECONDS),
        "play_log": _quote_pattern(folder / "logs", f"{stage}-%a.log"),
        "merge_log": _quote_pattern(folder / "logs", f"{stage}-merge.log"),
        "shares": shlex.quote(str(folder / "shares")),
        "stage": stage,
        "suffix": "" if stage == "all" else f":{stage}",
        "begin": f'; elif [ -f {first} ]; then cp {first} "$file"' if stage == "rest" else "",
        "options": _write_options(plan.options),
        "here": shlex.quote(str(here)),
        "openfield": f"{shlex.quote(sys.executable)} -m openfield",
        "experiment": shlex.quote(str(plan.experiment)),
        "of": str(plan.stages[stage]),
        "output": first if stage == "first" else output,
        "before": "" if stage == "first" else f"[ -f {output} ] && before=({output})  # its cells and notes stay\n",
        "stopped": str(STOPPED),
        "workers": ' ${SLURM_CPUS_PER_TASK:+--workers "$SLURM_CPUS_PER_TASK"}' if plan.uses_processors else "",
    }
