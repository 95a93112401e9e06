"""Agents of every kind whose process is killed in the midst of a trial: they go on as if nothing had happened."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import openfield as of
from conftest import Spawn
from support import stable_baselines3
from support.networks import write_linear
from support.stories import attempts, story, wait_until

WORLD = """
import os
import threading
import uuid
import gymnasium
import numpy as np
from gymnasium import spaces

class Held(gymnasium.Env):
    \"\"\"Numbers that the actions move. While there is a folder `held`, nothing goes on after some episodes.\"\"\"

    action_space = spaces.Discrete(2)
    observation_space = spaces.Box(-100.0, 100.0, (2,), np.float32)
    force, episodes = 1.0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps, self.episodes = self.np_random.normal(size=2).astype(np.float32), 0, self.episodes + 1
        return self.at.copy(), {}

    def step(self, action):
        self.steps += 1
        if (self.episodes, self.steps) == (3, 4) and os.path.isdir("held"):
            open(f"held/{uuid.uuid4().hex}", "w").close()
            threading.Event().wait()
        self.at[int(action)] += self.force * self.np_random.normal()
        return self.at.copy(), float(-abs(self.at).max()), False, False, {}
"""
AGENTS = """
import asyncio
import random
import openfield as of

class Table:
    \"\"\"An object with predict that keeps a state.\"\"\"

    def __init__(self):
        self.asked = 0

    def predict(self, seen):
        self.asked += 1
        return int(seen[0] > seen[1]) if self.asked % 3 else 1

class Patient:
    \"\"\"A coroutine with chance of its own.\"\"\"

    def __init__(self, spec, seed):
        self.rng = random.Random(seed)

    async def __call__(self, turn):
        await asyncio.sleep(0)
        return of.Reply(self.rng.randrange(2) if turn.ask is of.Ask.ACT else None)

FUNCTION = of.policy(lambda seen: int(seen[0] > seen[1]))
STACKED = of.policy(Table(), stack=2, preprocess=lambda seen: seen / 2)
WATCHED = of.with_detector(FUNCTION, "observations")
"""
SETTINGS = ("training=4", "before=3", "after=2", "unchanged=0", "max_steps=10", "reuse=true", "return=-20,0")


@pytest.mark.slow
def test_every_kind_of_agent_goes_on_after_a_kill(
    tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "world.py").write_text(WORLD)
    (tmp_path / "agents.py").write_text(AGENTS.replace("seen[0] > seen[1]", "seen.flat[0] > seen.flat[1]"))
    write_linear(tmp_path / "net.onnx", np.array([[1.0, -1.0], [-1.0, 1.0]]), ("n", 2))
    (tmp_path / "model.zip").write_text("[[1, 0], [0, 1]]")
    shutil.copy(stable_baselines3.__file__, tmp_path)  # for the process that is killed
    monkeypatch.setitem(sys.modules, "stable_baselines3", stable_baselines3)
    sources = ["agents.py:FUNCTION", "agents.py:STACKED", "agents.py:WATCHED", "agents.py:Patient", "onnx:net.onnx"]
    sources += ["sb3:RecurrentPPO:model.zip"]
    words = ["run", "gym:world.py:Held", "--trials", "1", "--novelty", "force=3", "--concurrency", str(len(sources))]
    words += [word for each in sources for word in ("--agent", each)]
    words += [word for each in SETTINGS for word in ("--set", each)]
    held = tmp_path / "held"
    held.mkdir()
    program = "import os, sys; os.chdir(sys.argv[1]); from openfield.cli import main; sys.argv[1:2] = []; main()"
    killed = spawn("-c", program, tmp_path, *words, "-o", "x.sqlite")
    wait_until(lambda: len(list(held.iterdir())) == len(sources))
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    held.rename(tmp_path / "let go")
    of.resume("x.sqlite", concurrency=len(sources))
    assert [(number, outcome) for number, outcome, _ in attempts(tmp_path / "x.sqlite")] == [(1, "done")] * len(sources)
    with of.journal.Run("x.sqlite") as run:
        cells = run.cells()
    of.run(
        {cell.agent: run_source for cell, run_source in zip(cells, sources, strict=True)}, cells[0].trial, "y.sqlite"
    )
    assert story(tmp_path / "x.sqlite") == story(tmp_path / "y.sqlite")
