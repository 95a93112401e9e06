"""How fast the viewer is: pages of a large run, a folder of many runs, and what watching costs a run that is played.

`python bench/bench_view.py [TURNS] [FILES]`. The viewer serves over HTTP on this machine. Times are medians; the cost
of watching is a ratio of processor times within this run. Where chromium is installed, a page of the large run is also
timed in it, from the address to the numbers and curves.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import openfield as of
from openfield.view import Library, ViewServer
from openfield.view.addresses import name_run, run_address

ROUNDS = 3
EPISODE_TURNS = 100
WATCHERS = 2
CHROMIUM = shutil.which("chromium")


class LongSettings(of.Settings, frozen=True):
    """The episodes of a trial."""

    before: int = 20
    after: int = 20
    turns: int = EPISODE_TURNS


class LongPlay:
    """An episode of a hundred turns or so."""

    def __init__(self, settings: LongSettings, rng: random.Random) -> None:
        self.observation, self.reward, self.performance = {"cue": 1}, 0.0, rng.random()
        self.ended: of.Ending | None = None
        self._left = settings.turns

    def move(self, action: Any) -> None:
        self._left -= 1
        self.ended = None if self._left else "terminated"


class LongDomain(of.Domain[LongSettings]):
    """Trials of thousands of turns that cost next to nothing."""

    name, title, settings = "long", "Long trials", LongSettings
    novelties = (of.Novelty("shorter", 1, "rules", "episodes are shorter", lambda s: s),)
    default_novelty = "shorter"
    metrics = ("performance", "detection", "adaptation")

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Say 0.", actions=of.Discrete(1))

    def phases(self, settings: LongSettings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        return of.Phase("test", settings.before), of.Phase("test", settings.after, novelty)

    def world(self, trial: of.Trial) -> of.World:
        return of.EpisodicWorld(self, trial, LongPlay)


DOMAIN = LongDomain()


class Teller:
    """An agent that says what it believes at random."""

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self._rng = random.Random(seed)

    def __call__(self, turn: of.Turn) -> of.Reply:
        return of.Reply(0, of.Belief(self._rng.random()) if turn.first else None)


def main(turns: int = 1_000_000, files: int = 1_000) -> None:
    """Print all figures."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        play(place / "large.sqlite", turns)
        play(place / "small.sqlite", 10 * 2 * 40)
        with open_client(place / "small.sqlite") as client:
            client.get(run_address(name_run(place / "small.sqlite")))  # modules are loaded from now on
        report("view_first_page_ms", 1000 * measure(lambda: time_page(place / "large.sqlite")), 300)
        report("view_all_numbers_s", measure(lambda: time_page(place / "large.sqlite", ".json")), None)
        if CHROMIUM is not None:
            report("view_browser_s", measure(lambda: time_browser(place / "large.sqlite", CHROMIUM)), 2)
        first, again = time_folder(place, files)
        report("view_folder_first_s", first, 1.5)
        report("view_folder_again_s", again, 0.2)
        report("view_watching_ratio", time_watching(place), 1.05)


def report(name: str, value: float, limit: float | None) -> None:
    """Print a figure."""
    print(json.dumps({"name": name, "value": round(value, 3), "limit": limit, "ok": limit is None or value <= limit}))


def measure(work: Callable[[], float]) -> float:
    """Return the median of a few rounds."""
    return statistics.median(work() for _ in range(ROUNDS))


def play(path: Path, turns: int, workers: int = 0) -> float:
    """Play trials with so many turns, and return the seconds it took."""
    trials = max(1, turns // (2 * 40 * EPISODE_TURNS))
    sizes = {} if turns >= 10_000 else {"turns": 1}
    made = of.trials(DOMAIN, count=trials if turns >= 10_000 else 10, unchanged=0, **sizes)
    began = time.perf_counter()
    of.run({"one": Teller, "two": Teller}, made, path, workers)
    return time.perf_counter() - began


@contextmanager
def open_client(*places: Path) -> Iterator[httpx.Client]:
    """Serve a viewer that has seen nothing yet, and yield a client that is let in."""
    server = ViewServer(Library(places), port=0)
    with server.serving(), httpx.Client(base_url=server.origin, timeout=120) as client:
        client.get(server.address())
        yield client


def time_page(path: Path, twin: str = "") -> float:
    """Return the seconds until a page of a run that was not looked at before is there."""
    with open_client(path) as client:
        began = time.perf_counter()
        client.get(run_address(name_run(path)) + twin).raise_for_status()
        return time.perf_counter() - began


def time_browser(path: Path, chromium: str) -> float:
    """Return the seconds until a browser shows the numbers and curves of a run that was not looked at before."""
    from playwright.sync_api import sync_playwright

    server = ViewServer(Library([path]), port=0)
    with server.serving(), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto("about:blank")
        began = time.perf_counter()
        page.goto(server.address(run_address(name_run(path))))
        page.locator(".leaders .figure").first.wait_for()
        took = time.perf_counter() - began
        browser.close()
    return took


def time_folder(place: Path, files: int) -> tuple[float, float]:
    """Return the seconds until the list of a folder is there, the first time and afterwards."""
    folder = place / "many"
    folder.mkdir()
    for index in range(files):
        shutil.copy(place / "small.sqlite", folder / f"run{index}.sqlite")
    found = []
    for _ in range(ROUNDS):
        with open_client(folder) as client:
            times = []
            for _ in range(2):
                began = time.perf_counter()
                client.get("/").raise_for_status()
                times.append(time.perf_counter() - began)
            found.append(times)
    first, again = zip(*found, strict=True)
    return statistics.median(first), statistics.median(again)


def time_watching(place: Path) -> float:
    """Return by what a run takes longer if two browsers watch it on a machine whose processors are all busy.

    It is a ratio of processor times: that of the run with its workers, and that of the viewer besides.
    """
    found = []
    for number in range(ROUNDS):
        with watching(path := place / f"watched{number}.sqlite") as viewer:
            start, before = read_cpu(viewer.pid), spent()
            play(path, 400_000, workers=2)
            found.append(1 + (read_cpu(viewer.pid) - start) / (spent() - before))
    return statistics.median(found)


def spent() -> float:
    """Return the processor time of this process and of those it has waited for, in seconds."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (0, resource.RUSAGE_CHILDREN)))


def read_cpu(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def watching(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Let two clients watch a run as a browser does, through a viewer in a process of its own."""
    play(path, 800)  # the viewer is given files that exist
    words = [sys.executable, "-m", "openfield", "view", str(path), "--no-browser", "--port", "0", "--token", "bench"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as viewer:
        assert viewer.stdout is not None
        address = viewer.stdout.readline().split()[2]
        begun = threading.Barrier(WATCHERS + 1)
        for _ in range(WATCHERS):
            threading.Thread(target=watch, args=(address, run_address(name_run(path)), begun), daemon=True).start()
        begun.wait()
        try:
            yield viewer
        finally:
            viewer.terminate()


def watch(address: str, page: str, begun: threading.Barrier) -> None:
    """Ask for a page again whenever there is news of the run, at most a tenth of the time, as `live.js` does.

    Args:
        address: The address that lets in.
        page: The path of the page.
        begun: Waited for when the page was there for the first time, with its numbers.
    """
    base = address.partition("/?")[0]
    with httpx.Client(base_url=base, timeout=None) as client:
        client.get(address)
        client.get(f"{page}.json")
        client.get(page)
        begun.wait()
        try:
            with client.stream("GET", f"/events?run={page.rpartition('/')[2]}") as events:
                for line in events.iter_lines():
                    if line == "event: change":
                        began = time.perf_counter()
                        client.get(page)
                        time.sleep(max(1.5, 10 * (time.perf_counter() - began)))
        except httpx.HTTPError:
            return  # the viewer has ended


if __name__ == "__main__":
    import bench_view  # workers find its domain and agents by the name of the module

    bench_view.main(*map(int, sys.argv[1:]))
