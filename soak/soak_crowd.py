"""A thousand agents at once for ten minutes on a JSON-lines server: all go on, and its memory stays.

`--agents N` [1,000], `--seconds N` [600]. The client and the world are those of `bench/bench_serving.py`.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from common import ROOT, finish, folder, parameter, report

sys.path.insert(0, str(ROOT / "bench"))

import json

import bench_serving

SAMPLE_SECONDS = 1.0
WARM = 0.25
"""The share of the time after which memory should not grow any more."""


def main(agents: int, seconds: int) -> None:
    bench_serving.allow_files(agents)
    sizes: list[int] = []
    with folder() as place, bench_serving.serving("openfield", place) as (port, process):
        over = threading.Event()
        watch = threading.Thread(target=sample, args=(process, sizes, over))
        watch.start()
        words = [sys.executable, bench_serving.__file__, "--client", "openfield", str(port), str(process)]
        done = subprocess.run([*words, str(agents), str(seconds)], stdout=subprocess.PIPE, text=True)
        over.set()
        watch.join()
    figures = json.loads(done.stdout) if done.returncode == 0 else {}
    report("crowd", "agents that were dropped", done.returncode, 0, agents=agents, seconds=seconds, **figures)
    early, late = max(sizes[: int(len(sizes) * WARM) or 1]), max(sizes)
    report("crowd", "memory grown by MB", (late - early) >> 20, 64, late_mb=late >> 20)


def sample(process: int, sizes: list[int], over: threading.Event) -> None:
    while not over.wait(SAMPLE_SECONDS):
        try:
            sizes.append(int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096)
        except OSError:
            return


if __name__ == "__main__":
    main(parameter("agents", 1_000, 100), parameter("seconds", 600, 10))
    finish()
