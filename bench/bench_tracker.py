"""What a tracker and a study of live games cost, and how fast shards are counted: one JSON line per figure.

Shares are of processor time in the same run, medians over blocks that take turns. `python bench/bench_tracker.py quick`
counts 10^7 rows in shards instead of 10^8; `ray` counts them over Ray on this machine too. What 10^9 rows take is
computed from the figure, as shards are counted one by one.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from bench_objectives import best, save_sorted
from openfield.objectives import Tracker
from openfield.objectives.games import game_study
from openfield.objectives.games.learners import make_study_agent
from openfield.objectives.games.life_file import collect_life, make_study_env, read_life, write_life
from openfield.objectives.games.plan import LifeTask, StudyGame
from openfield.objectives.tracking.inputs import FunctionInputs, PictureInputs
from openfield.objectives.tracking.life import Life

BREAKOUT = StudyGame("breakout", "ale_py:ALE/Breakout-v5", {"obs_type": "grayscale"})
BLOCKS, STEPS = 9, 200
LIFE = 2000
"""Steps of a life whose bookkeeping is measured."""
SHARDS = """
import json, pathlib, re, sys, time
from openfield.objectives import evaluate_shards, map_over_ray
apply = map
if len(sys.argv) > 2:
    import logging, ray
    ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    apply = map_over_ray
found = evaluate_shards(sys.argv[1], apply, num_obs=400_000_000)
peak = re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]
print(json.dumps([found.values, int(peak) / 1024, time.process_time()]))
"""
WHOLE = SHARDS.replace("evaluate_shards(sys.argv[1], apply,", "evaluate(load_table(sys.argv[1]),").replace(
    "import evaluate_shards", "import evaluate, evaluate_shards, load_table"
)
SMALL = 10_000_000
"""Rows of a table that is also counted whole."""


def main() -> None:
    for figure in (*step_figures(), *breakout_figures(), *study_figures(), *shard_figures("quick" in sys.argv[1:])):
        print(json.dumps(figure), flush=True)


def report(figure: str, value: float, bar: float | None, better: str = "lower") -> dict[str, Any]:
    ok = bar is None or (value <= bar if better == "lower" else value >= bar)
    shown = float(f"{value:.4g}")
    return {"subject": "tracker", "figure": figure, "value": shown, "bar": bar, "better": better, "ok": bool(ok)}


def step_figures() -> Iterator[dict[str, Any]]:
    """Microseconds that a life takes for a step, beside those of the environment."""
    random = np.random.default_rng(0)
    codes, actions = random.integers(0, 100_000, 200_000).tolist(), random.integers(0, 6, 200_000).tolist()
    life = Life(FunctionInputs(lambda seen: seen))
    life.begin(0)

    def count() -> None:
        for code, action in zip(codes, actions, strict=True):
            life.step(action, code, False)

    yield report("a step with codes, us", best(count) / len(codes) * 1e6, 10)
    frames = random.integers(0, 256, (256, 210, 160, 3)).astype(np.uint8)
    for name, thresholds in (("", None), (", thresholds given", np.sort(random.random((8, 8, 3)) * 255))):
        seen = Life(PictureInputs(thresholds=thresholds))
        seen.begin(frames[0])
        seconds = best(partial(look, seen, frames), 5)
        yield report(f"a step with colour frames of Atari{name}, us", seconds / len(frames) * 1e6, 150)


def look(life: Life, frames: Any) -> None:
    for frame in frames:
        life.step(1, frame, False)


def breakout_figures() -> Iterator[dict[str, Any]]:
    """What tracking adds to a step of Breakout, in colours as it comes."""
    bare, tracked = (gymnasium.make("ale_py:ALE/Breakout-v5") for _ in range(2))
    tracked = Tracker(tracked)
    costs = medians([stepper(bare), stepper(tracked)])
    yield report("what tracking adds to a step of Breakout, share", costs[1] / costs[0] - 1, 0.25)


def stepper(env: Any) -> Callable[[], None]:
    env.reset(seed=0)
    random = np.random.default_rng(0)

    def run() -> None:
        for action in random.integers(0, 4, STEPS).tolist():
            if any(env.step(action)[2:4]):
                env.reset()

    return run


def medians(runs: list[Callable[[], Any]]) -> list[float]:
    """The median processor seconds of functions that take turns."""
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(BLOCKS):
        for run, seconds in zip(runs, found, strict=True):
            start = time.process_time()
            run()
            seconds.append(time.process_time() - start)
    return [statistics.median(seconds) for seconds in found]


def study_figures() -> Iterator[dict[str, Any]]:
    """What a study does beside playing: coding frames, writing, reading and measuring lives."""
    with tempfile.TemporaryDirectory(prefix="openfield-bench-") as folder:
        task = LifeTask(BREAKOUT, "count_bonus", 0, LIFE, Path(folder) / "life.npz")
        life = collect_life(task)
        bins = game_study.find_life_thresholds([life])
        assert bins is not None

        def keep() -> None:
            write_life(life, task.path)
            found = read_life(task.path)
            assert found is not None
            game_study.find_life_thresholds([found])
            game_study.measure(found, bins, game_study.count_life_inputs([found], bins), None)

        keep()
        played, kept, coded = [], [], []
        for _ in range(3):
            played.append(best(play_bare, 1))
            kept.append(best(keep, 1))
            coded.append(best(code_frames, 1))
        share = (statistics.median(kept) + statistics.median(coded)) / statistics.median(played)
        yield report("bookkeeping of a study beside its playing, share", share, 0.05)


def play_bare() -> None:
    """The environment and the agent of a life, and nothing else."""
    env = make_study_env(BREAKOUT)
    agent = make_study_agent("count_bonus", actions=4, noop=0, steps=LIFE, seed=0)
    frame = env.reset(seed=0)[0]
    for _ in range(LIFE):
        action = agent.act(frame)
        frame, reward, terminated, truncated, _ = env.step(action)
        agent.learn(action, float(reward), frame, terminated or truncated)
        if terminated or truncated:
            frame = env.reset()[0]
    env.close()


def code_frames() -> None:
    inputs, numbers = PictureInputs(), dict[bytes, int]()
    for frame in _FRAMES:
        for _ in range(LIFE // len(_FRAMES)):
            numbers.setdefault(inputs.key(frame), len(numbers))


_FRAMES = np.random.default_rng(1).integers(0, 256, (100, 210, 160)).astype(np.uint8)


def shard_figures(quick: bool) -> Iterator[dict[str, Any]]:
    """Counting in shards, against a table that is counted whole in memory; times for 10^9 are computed."""
    size = SMALL if quick else 10 * SMALL
    with tempfile.TemporaryDirectory(prefix="openfield-bench-") as folder:
        path = save_sorted(Path(folder) / "small.parquet", SMALL)
        found = run_code(SHARDS, path)
        others = [run_code(SHARDS, path, "ray")] if "ray" in sys.argv[1:] else []
        differ = [each for each in (run_code(WHOLE, path), *others) if each[0] != found[0]]
        yield report("results of shards that differ from the whole", len(differ), 0)
        if not quick:
            found = run_code(SHARDS, save_sorted(Path(folder) / "large.parquet", size))
        yield report(f"{size:,} rows in shards, CPU s", found[2], size / 1e7 * 6)
        yield report(f"{size:,} rows in shards, MB resident", found[1], 900)
        yield report("10^9 rows in shards on one core, computed, minutes", found[2] * 1e9 / size / 60, 30)


def run_code(code: str, *words: str | Path) -> list[Any]:
    """Run code in a process of its own; it prints values, its peak of memory in MB, and its processor seconds."""
    command = [sys.executable, "-c", code, *map(str, words)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: list[Any] = json.loads(said.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
