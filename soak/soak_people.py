"""Forty people at once in a study: all come to the end, quickly, though processes of some are killed meanwhile.

`--people N` [40] play the maze of the examples, `--kills N` [10] of their processes are killed at random moments, and
`--doom N` [2] people play Doom at the same time at its own pace. People are programs that speak as the page does.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from common import ROOT, finish, folder, parameter, report, start
from openfield.journal.reader import Run

MAZE = ["--set", "training=1", "--set", "before=3", "--set", "after=3", "--set", "patience=20", "--set", "onset=3"]
DOOM = ["--set", "training=0", "--set", "episodes=1", "--set", "before=0", "--set", "limit=350"]
MAX_ANSWER_MS = 1_000
MIN_PICTURES = 20.0


class Person:
    """A program that plays as a person does: it looks, acts and says what it believes."""

    def __init__(self, link: str, number: int) -> None:
        self.link, self.done = link, False
        self.answers: list[float] = []
        """Seconds from an act to what it led to."""
        self.ticks: list[float] = []
        """Moments at which pictures of a world came whose time runs."""
        self.stops = 0
        self._rng, self._sent = random.Random(number), 0.0

    async def play(self) -> None:
        """Play until all is done."""
        address = self.link.replace("http", "ws", 1) + "/socket"
        async with connect(address, origin=self.link.partition("/play")[0], max_size=None) as socket:  # type: ignore[arg-type]
            async for data in socket:
                if isinstance(data, str):
                    await self._heed(socket, json.loads(data))
                if self.done:
                    return

    async def _heed(self, socket: ClientConnection, told: dict[str, Any]) -> None:
        match told["show"]:
            case "trial":
                self._page = told["page"]
            case "turn":
                if self._sent:
                    self.answers.append(time.perf_counter() - self._sent)
                await self._answer(socket, told)
            case "tick":
                self.ticks.append(time.perf_counter())
                await socket.send('{"do": "seen"}')
            case "between":
                self.stops += told["title"] == "The game stopped."
                self._sent = 0.0
                await socket.send('{"do": "go"}')
            case "done":
                self.done = True

    async def _answer(self, socket: ClientConnection, told: dict[str, Any]) -> None:
        await socket.send('{"do": "seen"}')
        if told["ask"] == "act" and self._page.get("milliseconds"):
            message: dict[str, Any] = {"do": "go"}
        elif told["ask"] == "act":
            message = {"do": "act", "act": self._rng.randrange(len(self._page["actions"]))}
        elif told["asks"]:
            message = {"do": "believe", "novel": round(self._rng.random(), 2)}
        else:
            message = {"do": "go"}
        self._sent = time.perf_counter()
        await socket.send(json.dumps(message))


@contextmanager
def serving(domain: str, options: list[str], people: int, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Serve a study, and yield the number of its process and the links."""
    words = ["play", domain, *options, "--people", str(people), "--port", "0", "--no-browser", "-o", str(path)]
    with start(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        yield server.pid, [server.stdout.readline().split()[1] for _ in range(people)]
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGINT)


def list_workers(server: int) -> list[int]:
    """Return the processes of people: those that lead a session and were forked for this server."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            grandparent = Path(f"/proc/{fields[1]}/stat").read_text().rpartition(")")[2].split()[1]
            if int(grandparent) == server and int(fields[3]) == int(entry.name):
                found.append(int(entry.name))
    return found


def read_memory(processes: list[int]) -> int:
    """Return the bytes that processes have for themselves."""
    total = 0
    for process in processes:
        with suppress(OSError):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) << 10
    return total


async def let_play(server: int, people: list[Person], kills: int) -> int:
    """Let all people play, kill some of their processes, and return the most memory that all needed together."""
    playing = [asyncio.ensure_future(person.play()) for person in people]
    rng, killed, most = random.Random(0), 0, 0
    while not all(task.done() for task in playing):
        await asyncio.sleep(0.5)
        workers = list_workers(server)
        most = max(most, read_memory([server, *workers]))
        if killed < kills and len(workers) > 1:
            with suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
                killed += 1
    await asyncio.gather(*playing, return_exceptions=True)
    return most


def main(people: int, kills: int, doom: int) -> None:
    """Print all figures."""
    with folder() as place:
        path = place / "people.sqlite"
        with serving(str(ROOT / "examples" / "maze.py"), MAZE, people, path) as (server, links):
            players = [Person(link, number) for number, link in enumerate(links)]
            most = asyncio.run(let_play(server, players, kills))
        undone = sum(not each.done for each in players)
        report("people", "people who did not come to the end", undone, 0, people=people, kills=kills)
        report("people", "killed processes that people noticed", sum(each.stops for each in players), kills)
        answers = [1000 * seconds for each in players for seconds in each.answers]
        late = statistics.quantiles(answers, n=20)[-1]
        report(
            "people", "ms to an answer, 95 %", round(late, 1), MAX_ANSWER_MS, median=round(statistics.median(answers))
        )
        report("people", "MB of all processes", most >> 20, 64 * people)
        with Run(path) as run:
            report("people", "damaged or unfinished cells", count_bad(run), 0)
        play_doom(place / "doom.sqlite", doom)


def play_doom(path: Path, people: int) -> None:
    """Let people play Doom at once, and report how many pictures a second each got."""
    with serving("doom", DOOM, people, path) as (server, links):
        players = [Person(link, number) for number, link in enumerate(links)]
        asyncio.run(let_play(server, players, 0))
    paces = [
        (len(each.ticks) - 1) / (each.ticks[-1] - each.ticks[0]) if len(each.ticks) > 1 else 0.0 for each in players
    ]
    report("people", "pictures of Doom a second", round(min(paces), 1), MIN_PICTURES, "higher", people=people)


def count_bad(run: Run) -> int:
    """Return how many cells did not end as done, and how many faults the record has."""
    return len(run.verify()) + sum(cell.outcome != "done" for cell in run.cells(with_episodes=False))


if __name__ == "__main__":
    main(parameter("people", 40, 8), parameter("kills", 10, 2), parameter("doom", 2, 1))
    finish()
