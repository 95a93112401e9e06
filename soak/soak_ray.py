"""Ray on this machine in every domain: records equal those of one worker, whatever is killed and however full it is.

`--kills N` [20]. In each domain a process of the run, a slot of Ray or a worker, is killed now and then: every
second time as soon as there is one, otherwise after something was recorded. Then one run is played while the object
store of Ray is full, and one whose agent is a language model.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from common import QUICK, ROOT, complete, finish, folder, parameter, report, run_words, start, tell

MAX_KILLS = 4
"""In one run; a cell whose slot ends more than ten times fails."""
STORE_BYTES = 80 << 20
"""The size of an object store that is filled; Ray makes none that is much smaller."""


def main(kills: int) -> None:
    fates, totals = random.Random(20), Counter[str]()
    with folder() as place:
        for number, domain in enumerate(QUICK):
            whole, done = place / f"whole-{number}.sqlite", 0
            complete(run_words(domain, whole, 1))
            while done < kills // len(QUICK):  # a run may end before it is killed often
                path = place / f"ray-{number}-{done}.sqlite"
                command = start([*run_words(domain, path, 1), "--executor", "ray"])
                killed = [kill_one(command, path if kill % 2 else None, fates) for kill in range(MAX_KILLS)]
                _, said = command.communicate()
                done += max(sum(killed), 1)
                totals += Counter(kills=sum(killed), runs=1, failed=int(command.returncode != 0))
                totals["different"] += not path.exists() or tell(path) != tell(whole)
                print(said[-300:] if command.returncode else "", end="")
        for figure in ("failed", "different"):
            report("ray", figure, totals[figure], 0, kills=totals["kills"], runs=totals["runs"], domains=len(QUICK))
        domain = next(iter(QUICK))
        path = place / "full.sqlite"
        with full_cluster() as (address, used):
            status, said = complete([*run_words(domain, path, 1), "--executor", f"ray={address}"])
            print(said[-300:] if status else "", end="")
        lost = status != 0 or tell(path) != tell(place / "whole-0.sqlite")
        report(
            "ray", "different where the object store is full", int(lost), 0, store_bytes=STORE_BYTES, used_bytes=used
        )
        ask_model(place / "model.sqlite")


def ask_model(path: Path) -> None:
    """Let machines ask the language model of the example."""
    sys.path.insert(0, str(ROOT / "examples"))
    with import_module("local_model").serving() as url:
        words = ["run", "gym:MiniGrid-Empty-5x5-v0", "--agent", f"llm:walker(url={url})", "--trials", "2"]
        words += ["--novelty", "actions-permuted", "--set", "max_steps=20", "--output", str(path)]
        status, said = complete([*words, "--executor", "ray"])
    print(said[-300:] if status else "", end="")
    report("ray", "runs of a language model that failed", int(status != 0), 0)


def kill_one(command: subprocess.Popen[str], path: Path | None, fates: random.Random) -> bool:
    """Kill a slot or a worker process of a run; return whether there was one.

    Args:
        command: The run.
        path: Its file, to wait until something is recorded; None does not wait.
        fates: Choose the process and the moment.
    """
    before = count_rows(path)
    while command.poll() is None and path is not None and count_rows(path) == before:
        time.sleep(0.05)
    time.sleep(fates.uniform(0, 0.3))
    while command.poll() is None:
        found = [pid for pid in descendants(command.pid) if is_player(pid)]
        with suppress(ProcessLookupError, IndexError):
            os.kill(fates.choice(found), signal.SIGKILL)
            return True
        time.sleep(0.1)
    return False


def count_rows(path: Path | None) -> int:
    """Return how many chunks and ends of attempts a run file holds."""
    if path is None or not path.exists():
        return 0
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        query = "SELECT (SELECT count(*) FROM chunks) + (SELECT count(outcome) FROM attempts)"
        return int(db.execute(query).fetchone()[0])
    return 0


def is_player(pid: int) -> bool:
    """Return whether a process is a slot, or was started by one to play."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"ray::SlotActor" in words or b"spawn_main" in words
    return False


def descendants(pid: int) -> list[int]:
    """Return all processes below one."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


@contextmanager
def full_cluster() -> Iterator[tuple[str, int]]:
    """Start a cluster whose object store is full of arrays in use, and yield its address and what is used."""
    import numpy as np
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        held = [ray.get(ray.put(np.ones(1 << 20, np.uint8))) for _ in range(STORE_BYTES >> 20)]
        yield cluster.address, sum(each.nbytes for each in held)
    finally:
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    main(parameter("kills", 20, 5))
    finish()
