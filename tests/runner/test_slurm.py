from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from openfield.errors import InvalidInput
from openfield.journal.reader import Run
from openfield.runner.slurm import SlurmPlan, check_options, make_jobs, submit_jobs, write_jobs
from support.places import MAZE
from support.slurm_cluster import find_missing, slurm_cluster, wait_for_jobs


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
    assert [job.waits for job in make_jobs(plan)] == [False, True, True, True]


@pytest.mark.parametrize("word", ["gpu", "--time=4\n#SBATCH --uid=0", ""])
def test_words_for_sbatch_cannot_write_further_lines(word: str) -> None:
    with pytest.raises(InvalidInput, match="What goes to sbatch"):
        check_options([word, "--time=4"])


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


@pytest.mark.skipif(bool(find_missing()), reason=find_missing())
def test_an_array_plays_an_experiment_and_goes_on_after_its_time(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "plan.toml").write_text(f'domain = "{MAZE}"\nagents = ["slow.py:slow"]\ntrials = 3\n')
    openfield = [sys.executable, "-m", "openfield"]
    with slurm_cluster(tmp_path / "cluster") as environment:
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
    assert "5 cells of 3 files" in told["all-merge.log"], told
    whole = tmp_path / "whole.sqlite"
    subprocess.run([*openfield, "run", "plan.toml", "-o", str(whole)], cwd=tmp_path, check=True, capture_output=True)
    found = []
    for path in (whole, tmp_path / "all.sqlite"):
        with Run(path) as run:
            found.append({cell.id: (cell.outcome, cell.episodes) for cell in run.cells()})
    assert found[0] == found[1]
