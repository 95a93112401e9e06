from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import openfield as of
from openfield.errors import InvalidInput
from openfield.installation import BARE
from openfield.journal.reader import Run
from openfield.journal.writer import Journal
from openfield.runner.plan import make_plan
from openfield.runner.run import run_plan
from openfield.runner.shares import Share, share_plan
from openfield.runner.slurm import SlurmPlan, check_options, make_jobs, submit_jobs, write_jobs
from support.places import MAZE
from support.players import copycat
from support.slurm_cluster import slurm_cluster, wait_for_jobs
from support.worlds import tiny_trials


def test_the_scripts_are_plain_and_correct_shell(tmp_path: Path) -> None:
    plan = SlurmPlan(tmp_path / "my plan.toml", tmp_path / "all.sqlite", {"first": 1, "rest": 7}, ("--time=4:00:00",))
    scripts = write_jobs(plan)
    assert [path.name for path in scripts] == [
        *("first-play.sbatch", "first-merge.sbatch", "rest-play.sbatch", "rest-merge.sbatch")
    ]
    for path in scripts:
        subprocess.run(["bash", "-n", str(path)], check=True)
        lines = path.read_text().splitlines()
        assert "#SBATCH --time=4:00:00" in lines[: lines.index(f"cd {Path.cwd()} || exit 1")]
    text = scripts[2].read_text()
    assert "#SBATCH --array=0-6" in text
    assert f"run '{tmp_path}/my plan.toml' --share \"$share/7:rest\"" in text
    assert f'cp {tmp_path}/all.slurm/first.sqlite "$file"' in text
    assert '${SLURM_CPUS_PER_TASK:+--workers "$SLURM_CPUS_PER_TASK"} &' in text
    assert 'echo "This share is kept in $kept.' in text
    assert "--workers" not in make_jobs(plan._replace(uses_processors=False))[0].text
    assert [job.waits for job in make_jobs(plan)] == [False, True, True, True]


@pytest.mark.parametrize("word", ["gpu", "--time=4\n#SBATCH --uid=0", ""])
def test_words_for_sbatch_cannot_write_further_lines(word: str) -> None:
    with pytest.raises(InvalidInput, match="What goes to sbatch"):
        check_options([word, "--time=4"])


@pytest.mark.parametrize("word", ["--array=0-99", "--array", "--arr=3", "-a0-99", "-a"])
def test_only_we_number_the_tasks(word: str) -> None:
    with pytest.raises(InvalidInput, match="The tasks are counted by --array NUMBER before the --, not by"):
        check_options(["--time=4", word])


def merge_by_script(plan: SlurmPlan) -> subprocess.CompletedProcess[str]:
    """Run the last script as SLURM would."""
    return subprocess.run(["bash", str(write_jobs(plan)[-1])], capture_output=True, text=True)


def list_cells(path: Path) -> set[str]:
    with Run(path) as run:
        return {cell.id for cell in run.cells()}


def test_the_file_that_is_there_is_one_more_part(tmp_path: Path) -> None:
    (folder := tmp_path / "it's my plan").mkdir()
    job = SlurmPlan(folder / "plan.toml", folder / "all.sqlite", {"all": 2})
    of.run({"other": copycat}, tiny_trials(4), job.output)
    before, plan = list_cells(job.output), make_plan([copycat], tiny_trials(2))
    text = job.output.read_bytes()
    assert merge_by_script(job).returncode == 2  # nothing was played
    assert job.output.read_bytes() == text
    for number, status in ((0, 1), (1, 0)):
        run_plan(share_plan(plan, Share(number, 2)), folder / f"all.slurm/shares/all-{number}.sqlite")
        for _ in range(2):  # the second time it is whole already
            said = merge_by_script(job)
            assert said.returncode == status, said.stderr
            assert said.stdout.endswith(f"This file is now {job.output}.\n")
            assert "lacks the shares 1/2 of" in said.stderr if status else not said.stderr
            assert len(list_cells(job.output) - before) == number + 1
            assert before < list_cells(job.output)
    assert sorted(path.name for path in folder.iterdir()) == ["all.slurm", "all.sqlite"]


def test_a_file_that_is_written_is_not_replaced(tmp_path: Path) -> None:
    job = SlurmPlan(tmp_path / "plan.toml", tmp_path / "all.sqlite", {"all": 1})
    of.run([copycat], tiny_trials(1), job.output)
    write_jobs(job)
    of.run([copycat], tiny_trials(2), tmp_path / "all.slurm/shares/all-0.sqlite")
    with Journal(job.output):
        before = job.output.read_bytes()
        said = merge_by_script(job)
        assert (said.returncode, job.output.read_bytes()) == (2, before)
    assert said.stderr.startswith(f"{job.output} is being written")
    assert said.stderr.endswith(f"The merged run is {job.output}.part.sqlite\n")
    assert len(list_cells(tmp_path / "all.sqlite.part.sqlite")) == 2


def test_jobs_that_are_queued_are_named_when_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sbatch").write_text(
        '#!/bin/sh\ncase "$*" in *rest*) echo "no such partition" >&2; exit 1;; esac\necho "17;main"\n'
    )
    (tmp_path / "sbatch").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv(BARE, raising=False)
    with pytest.raises(InvalidInput, match=r"rest-play.sbatch after .*scancel 17 17\): no such partition$"):
        submit_jobs([tmp_path / f"{name}.sbatch" for name in ("first-play", "first-merge", "rest-play")])
    with pytest.raises(InvalidInput, match=r"rest-play.sbatch: no such partition$"):
        submit_jobs([tmp_path / "rest-play.sbatch"])


def test_a_machine_without_slurm_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidInput, match="There is no sbatch here"):
        submit_jobs([tmp_path / "x.sbatch"])


SLOW = """\
import os
import time
from pathlib import Path

from openfield import Reply

HERE = Path(__file__).parent


def slow(turn):
    if not (HERE / "started").exists():
        mine = HERE / f"starting-{os.getpid()}"
        mine.write_text(os.environ["SLURM_ARRAY_TASK_ID"])
        mine.replace(HERE / "started")
        while not (HERE / "go").exists():
            time.sleep(0.05)
    return Reply("up" if turn.first else "left")
"""
"""An agent that waits in its first turn until it is let go."""


def wait_until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.1)  # SLURM tells nobody


@pytest.mark.smoke
@pytest.mark.slurm
def test_an_array_plays_an_experiment_and_goes_on_after_its_time(tmp_path: Path) -> None:
    cluster, tmp_path = tmp_path / "cluster", tmp_path / "it's 50%a of it"
    tmp_path.mkdir()
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "plan.toml").write_text(f'domain = "{MAZE}"\nagents = ["slow.py:slow"]\ntrials = 3\n')
    openfield = [sys.executable, "-m", "openfield"]
    there = [*openfield, "run", MAZE, "-a", "random", "--trials", "2", "-o", "all.sqlite"]
    subprocess.run(there, cwd=tmp_path, check=True, capture_output=True)
    before = list_cells(tmp_path / "all.sqlite")
    with slurm_cluster(cluster) as environment:
        words = ["slurm", "plan.toml", "--array", "3", "-o", "all.sqlite", "--submit", "--", "--time=10:00"]
        words += ["--job-name", "two words"]
        said = subprocess.run([*openfield, *words], env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert said.returncode == 0, said.stderr
        job = ["scontrol", "show", "job", said.stdout.split()[0]]
        assert "JobName=two words\n" in subprocess.run(job, env=environment, capture_output=True, text=True).stdout
        logs = tmp_path / "all.slurm" / "logs"
        wait_until((tmp_path / "started").exists)
        task = f"{said.stdout.split()[0]}_{(tmp_path / 'started').read_text()}"
        subprocess.run(["scancel", "--batch", "--signal=TERM", task], env=environment, check=True)  # time is nearly up
        wait_until(lambda: any("Stopping after the turn" in path.read_text() for path in logs.iterdir()))
        (tmp_path / "go").touch()
        wait_for_jobs(environment)
    told = {path.name: path.read_text() for path in logs.iterdir()}
    assert f"{5 + len(before)} cells of 4 files" in told["all-merge.log"], told
    whole = tmp_path / "whole.sqlite"
    subprocess.run([*openfield, "run", "plan.toml", "-o", str(whole)], cwd=tmp_path, check=True, capture_output=True)
    found = []
    for path in (whole, tmp_path / "all.sqlite"):
        with Run(path) as run:
            found.append({cell.id: (cell.outcome, cell.episodes) for cell in run.cells()})
    assert before == found[1].keys() - found[0].keys()
    assert found[0].items() <= found[1].items()
