"""How fast the viewer shows turns: pages of a run of a million turns, and pictures by replay.

`python bench/bench_view_turns.py [TURNS]`. The viewer serves over HTTP on this machine. Times of pages are the server's
own (`Server-Timing`), medians over turns that were not asked for before. A first picture includes the start of the
process that draws.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import openfield as of
from openfield.journal.reader import CellRecord, Run
from openfield.report.addresses import episode_address, name_run, trial_address, turn_address
from openfield.view import Library, ViewServer

EPISODE_TURNS = 100
ROUNDS = 25


class LengthySettings(of.Settings, frozen=True):
    """The episodes of a trial."""

    before: int = 50
    after: int = 50


class LengthyPlay:
    """An episode of a hundred turns."""

    def __init__(self, settings: LengthySettings, rng: random.Random) -> None:
        self.observation = {"cue": 1, "noise": [round(rng.random(), 3) for _ in range(8)]}
        self.reward, self.performance, self._left = 0.0, rng.random(), EPISODE_TURNS - 1
        self.ended: of.core.Ending | None = None

    def move(self, action: Any) -> None:
        self._left -= 1
        self.ended = None if self._left else "terminated"


class LengthyDomain(of.Domain[LengthySettings]):
    """Trials of ten thousand turns, or of as many as wanted, that cost next to nothing."""

    name, title, settings = "lengthy", "Lengthy trials", LengthySettings
    novelties = (of.Novelty("none-but-in-name", 1, "rules", "nothing one could see", lambda settings: settings),)
    default_novelty, metrics = "none-but-in-name", ("performance",)

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Say 0.", actions=of.spaces.Discrete(1))

    def phases(self, settings: LengthySettings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        return of.Phase("test", settings.before), of.Phase("test", settings.after, novelty)

    def world(self, trial: of.Trial) -> of.World:
        return of.EpisodicWorld(self, trial, LengthyPlay)


def believe(turn: of.Turn) -> of.Reply:
    """Answer 0 and state a belief when an episode starts."""
    return of.Reply(0, of.Belief(0.25) if turn.first else None)


def main(turns: int = 1_000_000) -> None:
    """Print all figures."""
    with tempfile.TemporaryDirectory() as folder:
        place, domain = Path(folder), LengthyDomain()
        many = of.trials(domain, count=max(turns // 10_000, 1), unchanged=0)
        of.run(believe, many, place / "many.sqlite", workers=0)
        half = max(turns // (2 * EPISODE_TURNS), 1)
        of.run(
            believe, of.trials(domain, count=1, unchanged=0, before=half, after=half), place / "one.sqlite", workers=0
        )
        for name in ("many", "one"):
            first, pages, trial = time_pages(place / f"{name}.sqlite")
            report(f"view_turn_first_page_ms_{name}", first, 100 if name == "many" else None)
            report(f"view_turn_page_ms_{name}", pages, 100)
            report(f"view_trial_page_ms_{name}", trial, 300)
        for name in ("doom", "birds"):
            path = place / f"{name}.sqlite"
            of.run(["random"], of.trials(name, count=1, unchanged=0), path, workers=0)
            start, pace = time_pictures(path)
            report(f"view_first_picture_s_{name}", start, 1.5)
            report(f"view_pictures_pace_{name}", pace, 1.0, least=True)


def report(name: str, value: float, limit: float | None, least: bool = False) -> None:
    """Print a figure; its limit is the most that is allowed, or the least."""
    ok = limit is None or (value >= limit if least else value <= limit)
    print(json.dumps({"name": name, "value": round(value, 3), "limit": limit, "ok": ok}), flush=True)


def time_pages(path: Path) -> tuple[float, float, float]:
    """Return milliseconds of the server for the first turn asked for, for further ones, and for the page of a trial."""
    cells, rng, key = read_cells(path), random.Random(0), name_run(path)
    with open_client(path) as client:

        def turn() -> float:
            cell = rng.choice(cells)
            return ask(client, turn_address(key, cell.id, rng.randrange(cell.steps - 1)))

        first = turn()
        later = [turn() for _ in range(ROUNDS)]
        trials = [ask(client, trial_address(key, rng.choice(cells).id)) for _ in range(ROUNDS)]
    return first, statistics.median(later), statistics.median(trials)


def time_pictures(path: Path) -> tuple[float, float]:
    """Return the seconds to the first picture of a late episode, and how much faster than played all of them come."""
    (cell, *_), key = read_cells(path), name_run(path)
    with open_client(path) as client:
        ask(client, trial_address(key, cell.id))
        began, parts, size, first = time.perf_counter(), 0, 0, 0.0
        address = f"{episode_address(key, cell.id, len(cell.episodes) - 1)}/frames"
        data, milliseconds = b"", 0.0
        with client.stream("GET", address) as answer:
            for piece in answer.iter_bytes():
                data += piece
                while len(data) >= 8 and len(data) >= 8 + (size := int.from_bytes(data[4:8], "big")):
                    if data[:4] == b"\xff" * 4:
                        milliseconds = json.loads(data[8 : 8 + size]).get("milliseconds") or milliseconds
                    else:
                        parts += 1
                        first = first or time.perf_counter() - began
                    data = data[8 + size :]
        took = time.perf_counter() - began - first
    return first, parts * milliseconds / 1000 / took


def ask(client: httpx.Client, address: str) -> float:
    """Return the server's own milliseconds for a page."""
    answer = client.get(address).raise_for_status()
    return float(answer.headers["server-timing"].rpartition("=")[2])


def read_cells(path: Path) -> list[CellRecord]:
    """Return the cells of a run."""
    with Run(path) as run:
        return run.cells()


@contextmanager
def open_client(path: Path) -> Iterator[httpx.Client]:
    """Serve a viewer that has seen nothing yet, and yield a client that is let in."""
    server = ViewServer(Library([path]), port=0)
    with server.serving(), httpx.Client(base_url=server.origin, timeout=120) as client:
        client.get(server.address())
        yield client


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
