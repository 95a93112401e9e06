"""`openfield demo`: from start to page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from openfield.journal.reader import Run
from support.places import MAZE


def shell(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "openfield", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_the_demo_end_to_end(tmp_path: Path) -> None:
    done = shell(tmp_path, "demo", MAZE)
    assert done.returncode == 0, done.stderr
    assert "compass and random meet a change (left and right are swapped)." in done.stdout
    assert "Correct detection" in done.stdout
    assert f"openfield run {MAZE} --agent" in done.stdout
    assert "openfield view runs/demo.sqlite" in done.stdout
    assert "210/210 episodes" in done.stderr
    page = (tmp_path / "runs" / "demo.html").read_text()
    assert len(page) < 300_000
    with Run(tmp_path / "runs" / "demo.sqlite") as run:
        assert {cell.outcome for cell in run.cells()} == {"done"}
