"""What the loop, the record and the command line cost, in calibration calls (`calibrate.py`) and seconds.

One JSON line per figure. Costs in calls are medians of differences between loops that took turns, in processor time of
all threads; seconds are wall-clock medians. `python bench/bench_core.py 100000` is a quick look at a smaller journal.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import openfield as of
from calibrate import calls_per_second
from openfield.cell import Cell
from openfield.errors import Cancelled
from openfield.isolation import Isolation
from openfield.journal.reader import Run
from openfield.journal.recorder import Recorder
from openfield.journal.writer import Journal
from openfield.registry import use_domain
from openfield.runner.isolation.agent import IsolatedFactory
from openfield.runner.isolation.bubblewrap import find_obstacle

REPEATS = 9
LOOP_TURNS = 100_000
ISOLATED_TURNS = 20_000
RESUMED_TURNS = 100_000
EPISODE_TURNS = 1_000


class Settings(of.Settings, frozen=True):
    """How long a trial of the trivial domain is."""

    turns: int = LOOP_TURNS


class Trivial:
    """A world that does next to nothing: it counts, and ends an episode now and then."""

    def __init__(self, turns: int, episode_turns: int) -> None:
        self.turns, self.episode_turns = turns, episode_turns
        self.number, self.truth = 0, of.Truth()
        self._within, self._ended = of.Truth(), of.Truth(episode_over=True, performance=1.0)

    @property
    def over(self) -> bool:
        return self.number >= self.turns

    def reset(self) -> of.Turn:
        self.number = 0
        return of.Turn(observation=0, first=True)

    def step(self, reply: of.Reply) -> of.Turn:
        self.number = number = self.number + 1
        if number % self.episode_turns:
            self.truth = self._within
            return of.Turn(observation=number & 255, reward=1.0)
        self.truth = self._ended
        return of.Turn(ask=of.Ask.NONE, observation=number & 255, last="terminated")

    def look(self, query: str) -> Any:
        return None

    def close(self) -> None:
        pass


class TrivialDomain(of.Domain[Settings]):
    """The domain of the trivial world."""

    name, title, settings = "trivial", "A world that counts", Settings

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(
            domain=self.name, task="Count along.", actions=of.spaces.Discrete(4), observations=of.spaces.Discrete(256)
        )

    def phases(self, settings: Settings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        return (of.Phase("test"),)

    def world(self, trial: of.Trial) -> of.World:
        return Trivial(self.settings_in(trial, trial.phases[0]).turns, EPISODE_TURNS)


TRIVIAL = TrivialDomain()


def answer(turn: of.Turn) -> of.Reply:
    """The trivial agent."""
    return of.Reply(1)


class Quitter:
    """An agent that leaves after some replies; the next time it stays for one more and says when that was."""

    leaves_after = RESUMED_TURNS
    started_anew = 0.0
    may_leave = True

    def __init__(self, spec: of.Spec, seed: int) -> None:
        self.replies = 0

    def __call__(self, turn: of.Turn) -> of.Reply:
        if self.replies == self.leaves_after:
            Quitter.started_anew = time.perf_counter()
            raise Cancelled("Enough.")
        self.replies += 1
        return of.Reply(1)


class SavingQuitter(Quitter):
    """The same with a memory."""

    def save(self) -> bytes:
        return b"%d" % self.replies

    def load(self, state: bytes) -> None:
        self.replies = int(state)


def main(journal_turns: int) -> None:
    use_domain(TRIVIAL)
    with tempfile.TemporaryDirectory() as folder:
        measure_loops(Path(folder))
        measure_journal(Path(folder) / "million.sqlite", journal_turns)
        for agent in (Quitter, SavingQuitter):
            measure_resume(Path(folder) / f"{agent.__name__}.sqlite", agent)
    measure_isolation()
    measure_help()


def measure_loops(folder: Path) -> None:
    """The loop beside a bare one, without and with a record on disk."""
    bare, plain, recorded, calls = [], [], [], []
    for number in range(REPEATS):
        calls.append(calls_per_second(0.1))
        bare.append(_processor_time(_loop_bare))
        plain.append(_processor_time(lambda: of.rollout.drive(of.rollout.Rollout(_world(LOOP_TURNS)), answer)))
        with Journal(folder / f"{number}.sqlite") as journal:
            recorded.append(_processor_time(partial(_record, journal, LOOP_TURNS)))
    call = 1 / statistics.median(calls)
    for name, times, bar in (("without journal", plain, 2.5), ("with journal", recorded, 6.5)):
        extra = statistics.median(time - bare_time for time, bare_time in zip(times, bare, strict=True))
        show(f"loop {name}, calls a turn more than a bare loop", extra / LOOP_TURNS / call, bar)


def measure_journal(path: Path, turns: int) -> None:
    """A journal of many small turns: its size, how fast it opens and is read."""
    with Journal(path) as journal:
        _record(journal, turns)
    show(f"journal of {turns} turns, MB", path.stat().st_size / 1e6, 25.0)
    show("journal opens, s", statistics.median(_wall_time(lambda: _open(path)) for _ in range(REPEATS)), 0.2)
    rates = [turns / _processor_time(lambda: _read(path)) / calls_per_second(0.2) for _ in range(3)]
    show("journal read back, turns a call", statistics.median(rates), 0.5, better="higher")


def measure_resume(path: Path, agent: type[Quitter]) -> None:
    """How long a cell that was left takes until its agent is asked something new."""
    (trial,) = of.trials(TRIVIAL, 1, turns=2 * RESUMED_TURNS, unchanged=0)
    seconds = []
    with suppress(Cancelled):
        of.run([agent], [trial], path)
    for _ in range(3):
        start = time.perf_counter()
        with suppress(Cancelled):
            of.run([agent], [trial], path)
        seconds.append(Quitter.started_anew - start)
    kind = "with save" if hasattr(agent, "save") else "without save"
    show(f"resume of {RESUMED_TURNS} turns, agent {kind}, s", statistics.median(seconds), 2.0)


def measure_isolation() -> None:
    """An isolated agent: how long its process takes to start, and turns a second."""
    if find_obstacle():
        print(json.dumps({"subject": "core", "figure": "isolated agent starts, s", "note": find_obstacle()}))
        return
    starts, rates = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        factory = IsolatedFactory("bench_core:answer", "bench_core:TRIVIAL", Isolation())
        starts.append(time.perf_counter() - start)
        agent, turn = factory(of.Spec(domain="trivial", task=""), 0), of.Turn(observation=1)
        seconds = _wall_time(lambda: [agent(turn) for _ in range(ISOLATED_TURNS)])  # noqa: B023 - called at once
        rates.append(ISOLATED_TURNS / seconds)
        factory.close()
    show("isolated agent starts, s", statistics.median(starts), 1.0)
    show("isolated agent, turns/s", statistics.median(rates), 10_000, better="higher")


def measure_help() -> None:
    """The command line's first word."""
    if importlib.util.find_spec("openfield.cli") is None:
        print(json.dumps({"subject": "core", "figure": "openfield --help, s", "note": "there is no command line yet"}))
        return
    command = [str(Path(sys.executable).parent / "openfield"), "--help"]
    times = [_wall_time(lambda: subprocess.run(command, capture_output=True, check=True)) for _ in range(REPEATS)]
    show("openfield --help, s", statistics.median(times), 0.3)


def show(figure: str, value: float, bar: float, better: str = "lower") -> None:
    ok = value >= bar if better == "higher" else value <= bar
    line = {"subject": "core", "figure": figure, "value": round(value, 3), "bar": bar, "better": better, "ok": ok}
    print(json.dumps(line), flush=True)


def _world(turns: int) -> Trivial:
    return Trivial(turns, turns)


def _loop_bare() -> None:
    world = _world(LOOP_TURNS)
    turn = world.reset()
    while turn.last is None:
        turn = world.step(answer(turn))


def _record(journal: Journal, turns: int) -> None:
    """Plays with everything on disk in the end."""
    (trial,) = of.trials(TRIVIAL, 1, turns=turns, unchanged=0)
    cell = Cell("answer", trial)
    journal.enter([cell], {"answer": None}, {})
    recorder = Recorder(cell.id, journal.begin(cell.id), journal.add)
    rollout = of.rollout.Rollout(_world(turns), recorder=recorder)
    rollout.close(of.rollout.drive(rollout, answer))
    journal.flush()


def _open(path: Path) -> None:
    with Run(path) as run:
        run.cells()


def _read(path: Path) -> None:
    with Run(path) as run:
        (cell,) = run.cells()
        rewards = sum(step.turn.reward for step in run.steps(cell.id, cell.attempt) if step.turn is not None)
    if not rewards:
        raise SystemExit("The journal is empty.")


def _processor_time(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _wall_time(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
