"""How fast the viewer is: pages of a large run, a folder of many runs, and what watching costs a run that is played.

`python bench/bench_view.py [TURNS] [FILES]`. The viewer serves over HTTP on this machine. Times are medians. Where
chromium is installed, a page of the large run is also timed in it, from the address to the numbers and curves, and two
browsers watch a run while it is played on one processor: one as fast as it can be, and one of some ten thousand turns a
second (`_paced`). What watching costs is given as ratios within this run: `view_watching_ratio` adds the processor time
of the viewer to that of the run, `view_watched_work_ratio` is the run's own processor time beside that of the same run
alone, `view_watched_clock_ratio` its time by the clock, which the browsers themselves may take too.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import openfield as of
from openfield.installation import find_program
from openfield.report.addresses import name_run, run_address
from openfield.view import Library, ViewServer

ROUNDS = 3
EPISODE_TURNS = 100
WATCHERS = 2
WATCHED_TURNS = {"Teller": 4_000_000, "Thinker": 400_000}
"""The turns of a watched run, by agent: some 15 seconds, since what a page costs when it is opened is paid once."""
PAIRS = 3
CHROMIUM = find_program("chromium")


class LongSettings(of.Settings, frozen=True):
    """The episodes of a trial."""

    before: int = 20
    after: int = 20
    turns: int = EPISODE_TURNS


class LongPlay:
    """An episode of a hundred turns or so."""

    def __init__(self, settings: LongSettings, rng: random.Random) -> None:
        self.observation, self.reward, self.performance = {"cue": 1}, 0.0, rng.random()
        self.ended: of.core.Ending | None = None
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
        return of.Spec(domain=self.name, task="Say 0.", actions=of.spaces.Discrete(1))

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


class Thinker(Teller):
    """One that thinks for some hundredths of a millisecond: a run of some ten thousand turns a second."""

    def __call__(self, turn: of.Turn) -> of.Reply:
        sum(range(2_000))
        return super().__call__(turn)


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
        if CHROMIUM is not None:
            for agent, kind in (("Teller", ""), ("Thinker", "_paced")):
                share, work, clock = time_watching(place, CHROMIUM, agent)
                report(f"view_watching_ratio{kind}", share, 1.05)
                report(f"view_watched_work_ratio{kind}", work, 1.05)
                report(f"view_watched_clock_ratio{kind}", clock, 1.05)


def report(name: str, value: float, limit: float | None) -> None:
    """Print a figure."""
    ok = limit is None or value <= limit
    print(json.dumps({"name": name, "value": round(value, 3), "limit": limit, "ok": ok}), flush=True)


def measure(work: Callable[[], float]) -> float:
    """Return the median of a few rounds."""
    return statistics.median(work() for _ in range(ROUNDS))


def play(path: Path, turns: int, agent: type[Teller] = Teller) -> float:
    """Play trials with this number of turns, and return the seconds it took."""
    trials = max(1, turns // (2 * 40 * EPISODE_TURNS))
    sizes = {} if turns >= 10_000 else {"turns": 1}
    made = of.trials(DOMAIN, count=trials if turns >= 10_000 else 10, unchanged=0, **sizes)
    began = time.perf_counter()
    of.run({"one": agent, "two": agent}, made, path, workers=0)
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


def time_watching(place: Path, chromium: str, agent: str) -> tuple[float, float, float]:
    """Play the same run again and again, in turn alone and watched by two browsers, on one processor of several.

    Return the processor time of the viewer beside that of the run, and by what the run needs more processor time and
    more time if it is watched. The last one counts what the browsers themselves take from a machine with two
    processors; the first one is all that openfield does, as if the run had to wait for it.
    """
    share, work, clock = [], [], []
    for number in range(PAIRS):
        alone = play_apart(place / f"{agent}{number}.sqlite", agent)
        with watching(path := place / f"{agent}{number}_watched.sqlite", chromium) as viewer:
            watched = play_apart(path, agent, viewer.pid)
        share.append(1 + watched["viewer"] / watched["cpu"])
        work.append(watched["cpu"] / alone["cpu"])
        clock.append(watched["seconds"] / alone["seconds"])
    return statistics.median(share), statistics.median(work), statistics.median(clock)


def play_apart(path: Path, agent: str, viewer: int = 0) -> dict[str, float]:
    """Play a run in a process of its own; return its seconds, its processor time and meanwhile that of a viewer."""
    words = [sys.executable, __file__, "--play", str(path), agent]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        before = read_cpu(viewer) if viewer else 0.0
        child.stdin.write("play\n")
        child.stdin.flush()
        answer: dict[str, float] = json.loads(child.stdout.readline())
        return {**answer, "viewer": read_cpu(viewer) - before if viewer else 0.0}


def play_here(path: Path, agent: type[Teller]) -> None:
    """Play a run when told to, and print how long it took."""
    play(path, 800)  # the viewer is given files that exist; modules are loaded from now on
    print("ready", flush=True)
    sys.stdin.readline()
    before = time.process_time()
    print(
        json.dumps({"seconds": play(path, WATCHED_TURNS[agent.__name__], agent), "cpu": time.process_time() - before}),
        flush=True,
    )


def read_cpu(pid: int) -> float:
    """Return the processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def watching(path: Path, chromium: str) -> Iterator[subprocess.Popen[str]]:
    """Watch a run in browsers with a page each, through a viewer in a process of its own."""
    from playwright.sync_api import sync_playwright

    play(path, 800)
    words = [sys.executable, "-m", "openfield", "view", str(path), "--no-browser", "--port", "0", "--token", "bench"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as viewer, sync_playwright() as playwright:
        assert viewer.stdout is not None
        origin, _, token = viewer.stdout.readline().split()[2].partition("/?")
        launch = playwright.chromium.launch
        browsers = [launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]) for _ in range(WATCHERS)]
        pages = []
        for browser in browsers:
            pages.append(browser.new_page())
            pages[-1].goto(f"{origin}{run_address(name_run(path))}?{token}")
            pages[-1].locator(".leaders .figure").first.wait_for()
        try:
            yield viewer
            renewed = "performance.getEntriesByType('resource').filter((each) => each.initiatorType === 'fetch').length"
            assert all(page.evaluate(renewed) > 0 for page in pages)  # they did watch
        finally:
            for browser in browsers:
                browser.close()
            viewer.terminate()


if __name__ == "__main__":
    import bench_view  # workers find its domain and agents by the name of the module

    if sys.argv[1:2] == ["--play"]:
        bench_view.play_here(Path(sys.argv[2]), getattr(bench_view, sys.argv[3]))
    else:
        bench_view.main(*map(int, sys.argv[1:]))
