"""Nothing that only Linux has is imported at start; what needs it says so in one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openfield.domains.doom.engine.launch import load_vizdoom
from openfield.errors import InvalidInput
from openfield.isolation import Isolation
from openfield.runner.isolation.bubblewrap import adapt_isolation
from support.places import MAZE

WALK = Path(__file__).parent / "support/walk_commands.py"
WORKS = (
    "list domains",
    "list agents",
    "list novelties",
    "list metrics",
    "doctor",
    "run maze.py -a compass --trials 1 --workers 0 -o maze.sqlite",
    "resume maze.sqlite --workers 0",
    "report maze.sqlite",
    "show maze.sqlite",
    "verify maze.sqlite --replay",
    "export maze.sqlite",
    "watch maze.sqlite --once",
)
REFUSED = {
    "run maze.py -a compass --trials 1 --workers 1 -o other.sqlite": "Use one process: --workers 0",
    "serve maze.py --port 0": "Serving locks its run file with flock, which this system lacks. Use Linux.",
}


def test_commands_start_on_a_system_without_posix_and_extras(tmp_path: Path) -> None:
    shutil.copy(MAZE, tmp_path / "maze.py")
    (tmp_path / "orders.json").write_text(json.dumps([line.split() for line in (*WORKS, *REFUSED)]))
    words = [sys.executable, str(WALK), "orders.json", "answers.json", "--bare-system"]
    environment = {**os.environ, "PATH": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    answers: list[dict[str, Any]] = json.loads((tmp_path / "answers.json").read_text())
    for answer in answers:
        line = " ".join(answer["words"])
        if line in REFUSED:
            assert answer["status"] == 2, answer
            assert answer["err"].rstrip().endswith(REFUSED[line]), answer
        else:
            assert answer["status"] == 0, answer


def test_isolation_and_doom_name_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(InvalidInput, match="isolated on Linux only"):
        adapt_isolation(Isolation())
    with pytest.raises(InvalidInput, match="Doom plays on Linux only"):
        load_vizdoom()
