"""How long 64 cells of an agent that waits take side by side, against the longest of them alone.

The endpoint answers after 200 ms. One JSON line per figure: `python bench/bench_concurrency.py`.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

import openfield as of
from openfield.core import Ask, Belief, Reply, Turn

CELLS, SECONDS, REPEATS = 64, 0.2, 3
LIMIT = 1.5
SMALL = {"training": 0, "before": 2, "after": 2, "patience": 5, "unchanged": 0}
MAZE = str(Path(__file__).parents[1] / "examples" / "maze.py")


async def wait(turn: Turn) -> Reply:
    """Answer after the time of an endpoint."""
    if turn.ask is not Ask.ACT:
        return Reply(None, Belief(0.5))
    await asyncio.sleep(SECONDS)
    return Reply("up")


def play(trials: list[of.Trial], concurrency: int) -> float:
    """Return the seconds that a run takes."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        of.run({"wait": wait}, trials, Path(folder) / "x.sqlite", concurrency=concurrency)
        return time.perf_counter() - began


def main() -> None:
    """Measure both in turn, and print the ratio."""
    trials = of.trials(MAZE, CELLS, **SMALL)
    alone = max((play([trial], 1), trial.id) for trial in trials[:3])
    longest = next(trial for trial in trials if trial.id == alone[1])
    pairs = [(play(trials, CELLS), play([longest], 1)) for _ in range(REPEATS)]
    ratio = statistics.median(many / one for many, one in pairs)
    figure = {"figure": "64 cells at 200 ms side by side / one alone", "value": round(ratio, 3), "limit": LIMIT}
    print(json.dumps(figure | {"seconds": [[round(each, 2) for each in pair] for pair in pairs]}))


if __name__ == "__main__":
    main()
