"""Kill -9 at random instants, in all domains, with and without workers: nothing is lost, nothing is played twice.

`--kills N` [500]. A run is killed up to three times, then finished and compared with one that was left alone.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from common import QUICK, complete, count_episodes, finish, folder, parameter, report, run_words, start, tell
from openfield.errors import NotARun
from openfield.journal.reader import Run

MAX_KILLS = 3


def main(kills: int) -> None:
    fates, totals = random.Random(18), Counter[str]()
    with folder() as place:
        whole = {domain: play_whole(domain, place) for domain in QUICK}
        while totals["kills"] < kills:
            domain = list(QUICK)[totals["runs"] % len(QUICK)]
            path, workers = place / f"{totals['runs']}.sqlite", fates.randrange(3)
            totals += kill_and_finish(domain, path, workers, whole[domain][1], min(MAX_KILLS, kills), fates)
            totals["different"] += tell(path) != whole[domain][0]
            path.unlink()
    for figure in ("lost", "twice", "different"):
        report("kill", figure, totals[figure], 0, kills=totals["kills"], runs=totals["runs"], domains=len(QUICK))


def play_whole(domain: str, place: Path) -> tuple[object, float]:
    """Play a run without disturbance; return what it tells, and how long it took."""
    began, path = time.monotonic(), place / "whole.sqlite"
    status, said = complete(run_words(domain, path, 2))
    if status:
        raise SystemExit(f"{domain} does not run: {said}")
    found = tell(path)
    path.unlink()
    return found, time.monotonic() - began


def kill_and_finish(
    domain: str, path: Path, workers: int, seconds: float, kills: int, fates: random.Random
) -> Counter[str]:
    found, done = Counter(runs=1), set[tuple[str, int, int]]()
    for _ in range(kills):
        program = start(run_words(domain, path, workers))
        time.sleep(fates.uniform(0, seconds))
        kill(program.pid, fates.random() < 0.5)
        program.communicate()
        found["kills"] += 1
        found["lost"] += len(done - (now := read_episodes(path)))
        done = now
    status, said = complete(run_words(domain, path, workers))
    if status:
        raise SystemExit(f"{domain} does not go on after kill -9 (status {status}): {said}")
    found["lost"] += len(done - count_episodes(path))
    with Run(path) as run:
        found["twice"] += sum(cell.attempt > 1 for cell in run.cells())
    return found


def read_episodes(path: Path) -> set[tuple[str, int, int]]:
    try:
        return count_episodes(path)
    except NotARun:  # killed before its tables were made
        return set()


def kill(program: int, whole_group: bool) -> None:
    """Kill a run with its workers, or only its main process."""
    with suppress(ProcessLookupError):
        (os.killpg if whole_group else os.kill)(program, signal.SIGKILL)


if __name__ == "__main__":
    main(parameter("kills", 500, 15))
    finish()
