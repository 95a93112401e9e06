"""`openfield demo`: from start to page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openfield.cli.commands import demo as module
from openfield.domain import Domain
from openfield.journal.reader import Run
from openfield.registry import find_domain, use_domain
from support.places import MAZE

CURVES = re.compile(r"  compass [▁-█]{6}│[▁-█]{6} [▁-█]{6}│[▁-█]{6}   random [▁-█]{6}│[▁-█]{6} ▁{6}│▁{6}")


def shell(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "openfield", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def test_the_demo_end_to_end(tmp_path: Path) -> None:
    done = shell(tmp_path, "demo", MAZE)
    assert done.returncode == 0, done.stderr
    assert "maze: left and right are swapped. compass does best (0." in done.stdout
    assert ") and notices in 6 of 6 trials, " in done.stdout.replace("\n", " ")
    assert CURVES.search(done.stdout)
    assert "Correct detection" not in done.stdout
    assert f"openfield play {MAZE}" in done.stdout
    assert "openfield view runs/demo.sqlite" in done.stdout
    assert "episodes" not in done.stderr  # no bars without a terminal
    page = (tmp_path / "runs" / "demo.html").read_text()
    assert len(page) < 300_000
    with Run(tmp_path / "runs" / "demo.sqlite") as run:
        assert {cell.outcome for cell in run.cells()} == {"done"}


def make_domain(number: int) -> Domain[Any]:
    maze = find_domain(MAZE)
    made = object.__new__(type(maze))
    made.name, made.title = f"maze-with-a-long-name-{number}", f"Maze {number}"
    return made


@pytest.mark.parametrize("count", [1, 5, 9])
def test_the_demo_fits_a_screen(
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    domains = [use_domain(make_domain(number)) for number in range(count)]
    missing = {f"x{number}": f"extra{number}" for number in range(2)}
    monkeypatch.setattr(module, "_pick_domains", lambda names: (domains, missing))
    monkeypatch.setenv("COLUMNS", "80")
    module.demo(output=tmp_path / "demo.sqlite", workers=0, trials=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    shown = sum("│" in line for line in lines)
    assert min(count, 3) <= shown <= count
    left = [line for line in lines if "more domain" in line]
    assert left == ([f"{count - shown} more domains: on the page, and with --all"] if shown < count else [])
    page = (tmp_path / "demo.html").read_text()
    assert all(f"Maze {number}" in page for number in range(count))


def test_the_demo_shows_its_own_cells_only(openfield: Any, tmp_path: Path) -> None:
    openfield("run", MAZE, "--agent", "random", "--trials", 1, "-o", "runs/demo.sqlite", "--novelty", "slip:hard")
    said = openfield("demo", MAZE, "--trials", 1, "--all").out
    assert "half of all moves go astray" not in said
    assert "Correct detection" in said
    assert "demo --all" not in said
    assert "astray" not in (tmp_path / "runs" / "demo.html").read_text()
