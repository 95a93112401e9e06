"""Kill -9 at random instants, in all domains, with and without workers: nothing is lost, nothing is played twice.

`--kills N` [500]. A run is killed up to three times, then finished and compared with one that was left alone. `--served
N` [100]: a JSON-lines server is killed so often under agents that come back, and has every turn they were told of.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from common import QUICK, ROOT, complete, count_episodes, finish, folder, parameter, report, run_words, start, tell

sys.path.insert(0, str(ROOT / "bench"))

import bench_serving
import openfield as of
from openfield.errors import NotARun
from openfield.journal.reader import Run

MAX_KILLS = 3
AGENTS = 30
RESTARTS = 10
"""How often a server is killed before it gets a new file."""


class SteadyWorld(bench_serving.Counting):
    """A world that is the same each time it is made, as resuming needs it."""

    def __init__(self) -> None:
        super().__init__()
        self._number = 0


class SteadyDomain(bench_serving.CountingDomain):
    """The domain of the server that is killed."""

    name = "steady"

    def world(self, trial: of.Trial) -> of.World:
        return SteadyWorld()


DOMAIN = SteadyDomain()


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


def kill_served(kills: int) -> None:
    """Kill a server under its agents again and again; nothing that they were told of is lost."""
    fates, told, totals = random.Random(18), Counter[str](), Counter[str]()
    with folder() as place:
        for number in range(kills):
            if number % RESTARTS == 0:
                told.clear()
            here = place / str(number // RESTARTS)
            with bench_serving.serving("openfield", here, [__file__, "--trials", "1"]) as (port, server):
                asyncio.run(answer_all(port, server, told, fates))
            with Run(here / "run.sqlite") as run:
                totals["in tails"] += len(run.tails())
                totals["faults"] += len(run.verify())
                for cell in run.cells():
                    turns = max(len(list(run.steps(cell.id, cell.attempt))) - 1, 0)
                    totals["lost"] += max(told[cell.agent] - turns, 0)
                    totals["twice"] += cell.attempt > 1 or not turns - 1 <= told[cell.agent]
                    told[cell.agent] = turns
    for figure in ("lost", "twice", "faults"):
        report("kill", f"served: {figure}", totals[figure], 0, kills=kills, tails=totals["in tails"])


async def answer_all(port: int, server: int, told: Counter[str], fates: random.Random) -> None:
    """Let all agents play, kill their server, and count the turns that each was told of."""
    begun = asyncio.Event()

    async def answer(number: int) -> None:
        with suppress(ConnectionError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(bench_serving.HELLO % number)
            await reader.readline()
            shown = await reader.readline()
            while shown:
                if number % 3 == 1:
                    await asyncio.sleep(fates.uniform(0, 0.02))  # some are slow
                writer.write(bench_serving.REPLY)
                shown = await reader.readline()
                told[f"agent-{number}"] += bool(shown)
                begun.set()
            writer.close()

    async def kill_server() -> None:
        await begun.wait()
        await asyncio.sleep(fates.uniform(0, 1.5))
        os.kill(server, signal.SIGKILL)

    await asyncio.gather(kill_server(), *map(answer, range(AGENTS)))


def kill(program: int, whole_group: bool) -> None:
    """Kill a run with its workers, or only its main process."""
    with suppress(ProcessLookupError):
        (os.killpg if whole_group else os.kill)(program, signal.SIGKILL)


if __name__ == "__main__":
    main(parameter("kills", 500, 15))
    kill_served(parameter("served", 100, 3))
    finish()
