"""What a cell costs the driver of a Ray cluster, beside worker processes on this machine.

Processor time of the driving process alone, from the end of the first cells to that of the last ones, in runs that took
turns. One JSON line per figure: `python bench/bench_ray.py [CELLS]`. Cells are played on one cluster of two processors.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openfield as of
from openfield.record import AttemptEnd, Entry
from openfield.registry import find_domain
from openfield.runner.cluster import Cluster
from openfield.runner.plan import Plan, make_plan
from openfield.runner.run import run_plan

ROUNDS = 3
WORKERS = 2
WARM = 50
"""Cells before the measurement: by then all workers play."""
HERE = Path(__file__).resolve().parent


def main(cells: int) -> None:
    domain = find_domain(f"{HERE / 'tiny_domain.py'}:DOMAIN")
    kinds = {"turns": {"before": 1, "after": 1}, "episodes": {"before": 25, "after": 25}}
    with tempfile.TemporaryDirectory() as name, cluster_of(WORKERS) as cluster:
        for kind, settings in kinds.items():
            plan = make_plan({"tiny": f"{HERE / 'tiny_domain.py'}:say_nothing"}, of.trials(domain, cells, **settings))
            taken: dict[str, list[float]] = {"processes": [], "ray": []}
            for number in range(ROUNDS):
                for executor, figures in taken.items():
                    path = Path(name) / f"{kind}-{executor}-{number}.sqlite"
                    figures.append(measure(plan, path, cluster if executor == "ray" else WORKERS))
            middle = {executor: statistics.median(figures) for executor, figures in taken.items()}
            episodes = sum(settings.values())
            for executor, seconds in middle.items():
                report(f"driver's processor ms a cell of {episodes} episodes, {executor}", seconds * 1e3, None)
            report(
                f"driver's time of Ray / of processes, {episodes} episodes", middle["ray"] / middle["processes"], 1.3
            )


def measure(plan: Plan, path: Path, workers: int | Cluster) -> float:
    """Play a plan, and return the processor seconds of this process for each cell."""
    moments: list[float] = []

    def watch(entry: Entry) -> None:
        if isinstance(entry, AttemptEnd):
            moments.append(time.process_time())

    run_plan(plan, path, workers, watch=watch)
    return (moments[-1] - moments[WARM]) / (len(moments) - 1 - WARM)


@contextmanager
def cluster_of(processors: int) -> Iterator[Cluster]:
    """Start a cluster of this many processors on this machine, and stop it in the end."""
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    from ray.cluster_utils import Cluster as LocalCluster

    head = {"num_cpus": processors, "include_dashboard": False}
    started: Any = LocalCluster(initialize_head=True, head_node_args=head)
    try:
        yield Cluster(started.address)
    finally:
        started.shutdown()


def report(figure: str, value: float, bar: float | None) -> None:
    """Print a figure as a JSON line."""
    good = bar is None or value <= bar
    line = {"subject": "ray", "figure": figure, "value": round(value, 3), "bar": bar, "better": "lower", "ok": good}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
