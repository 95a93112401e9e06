from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from support.places import MAZE, ROOT


def test_only_what_follows_two_dashes_goes_to_sbatch(tmp_path: Path, openfield: Any) -> None:
    (tmp_path / "plan.toml").write_text(f'domain = "{MAZE}"\nagents = ["random"]\ntrials = 2\n')
    words = ("slurm", "plan.toml", "--array", "2", "-o", "all.sqlite")
    for wrong in ("--sumbit", "--time=4", "-p"):
        said = openfield(*words, wrong)
        assert said.status == 2
        assert f"Unknown option '{wrong.partition('=')[0]}'" in said.err
    assert not (tmp_path / "all.slurm").exists()
    assert openfield(*words, "--", "--time=4", "-p", "gpu").status == 0
    lines = (tmp_path / "all.slurm" / "all-play.sbatch").read_text().splitlines()
    assert {"#SBATCH --time=4", "#SBATCH -p gpu"} <= {*lines}


def test_a_file_that_cannot_be_merged_is_refused_before_anything_is_written(tmp_path: Path, openfield: Any) -> None:
    (tmp_path / "plan.toml").write_text(f'domain = "{MAZE}"\nagents = ["random"]\ntrials = 2\n')
    shutil.copy(ROOT / "tests" / "data" / "kept" / "maze.sqlite", tmp_path / "old.sqlite")
    with closing(sqlite3.connect(tmp_path / "old.sqlite")) as db:
        db.execute("PRAGMA user_version = 1")
    for name, words in (("old.sqlite", "has format 1, written by"), ("plan.toml", "is not a run of openfield")):
        said = openfield("slurm", "plan.toml", "--array", "2", "-o", name)
        assert (said.status, said.out) == (2, "")
        assert f"{name} {words}" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.sqlite", "plan.toml"]


def test_an_array_cannot_stop_by_itself(tmp_path: Path, openfield: Any) -> None:
    file = tmp_path / "e.toml"
    file.write_text(f'domain = "{MAZE}"\nuntil = "decided"\nagents = ["random", "compass"]\n')
    said = openfield("slurm", str(file), "--array", "2")
    assert said.status == 2
    assert "a task does not see the trials of the others: leave out --until 'decided'" in said.err


def test_an_array_is_not_registered(tmp_path: Path, openfield: Any) -> None:
    file = tmp_path / "e.toml"
    file.write_text(f'domain = "{MAZE}"\nregister = "asked.json"\n')
    said = openfield("slurm", str(file), "--array", "2")
    assert said.status == 2
    assert "registered as a whole, not share by share: leave out register" in said.err
