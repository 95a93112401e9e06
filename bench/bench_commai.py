"""Speed of the CommAI domain's own loop: environment, learner and statistics, in steps per calibration call.

Prints one JSON line per figure; the original reaches 0.0167 with the echo learner and 0.0123 with the oracle.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import zmq

import openfield
from calibrate import calls_per_second
from openfield.domains.commai.agents.learners import EchoLearner
from openfield.domains.commai.agents.oracle import Oracle
from openfield.domains.commai.batched.factory import batch
from openfield.domains.commai.curriculum import make_environment
from openfield.domains.commai.environment.environment import Environment
from openfield.domains.commai.environment.learner_session import Learner, LearnerSession
from openfield.domains.commai.settings import CommaiSettings
from openfield.domains.commai.tasks.catalogue import MICRO, task_ids

STEPS = 30_000
REPEATS = 5
ORIGINAL = 0.0167
"""What the original reaches with the echo learner."""
CALIBRATION = 0.04
"""CPU seconds of calibration beside each run."""
BATCH, BATCH_STEPS = 1024, 200
TASKS = task_ids(["all"])
PEER = Path(__file__).with_name("commai_peer.py")


def main() -> None:
    """Measure and print every figure."""
    echo = {name: steps_per_call(name, lambda environment: EchoLearner()) for name in TASKS}
    oracle = {name: steps_per_call(name, Oracle) for name in TASKS}
    slowest = min(echo, key=lambda name: echo[name])
    show("echo, harmonic mean over 46 tasks", statistics.harmonic_mean(echo.values()), 0.35)
    show(f"echo, slowest task ({slowest})", echo[slowest], 0.15)
    show("oracle, harmonic mean over 46 tasks", statistics.harmonic_mean(oracle.values()), 0.30)
    show("echo through openfield.run, recorded", recorded_steps_per_call(), 6 * ORIGINAL)
    show("remote peer, CPU of a step, times a loop that only sends and receives", remote_ratio(), 2.0, better="lower")
    show("whole curriculum by the oracle, calls", curriculum_calls(), 1.5e5, better="lower")
    show("echo, a batch of 1, times the single engine, all micro tasks alike", batch_ratios("echo", 1)[0], 1.0)
    for learner in ("echo", "random"):
        mean, least, slowest = batch_ratios(learner)
        show(f"{learner}, 1,024 at once, times the single engine, all micro tasks alike", mean, 20.0)
        show(f"{learner}, 1,024 at once, times the single engine, least ({slowest})", least, 10.0)


def steps_per_call(name: str, learner: Callable[[Environment], Learner]) -> float:
    """Return the median of a few runs on one task, each beside its own calibration: the machine's speed drifts."""
    return statistics.median(_measure(name, learner, seed) for seed in range(REPEATS))


def curriculum_calls() -> float:
    """Return the cost of a perfect run of all tasks, in calibration calls."""

    def run(seed: int) -> float:
        unit = calls_per_second(CALIBRATION)
        environment = make_environment(CommaiSettings(), seed)
        start = time.process_time()
        LearnerSession(environment, Oracle(environment)).run()
        return (time.process_time() - start) * unit

    return statistics.median(run(seed) for seed in range(REPEATS))


def recorded_steps_per_call() -> float:
    """Return the speed of `openfield.run`, recorded and scheduled: all tasks in one run, equally long, once each."""

    def run(seed: int) -> float:
        unit = calls_per_second(CALIBRATION)
        with tempfile.TemporaryDirectory() as folder:
            options = {"seed": seed, "cyclic": True, "max_steps": STEPS}
            trials = [
                trial
                for name in TASKS
                for trial in openfield.trials("commai", 1, tasks=(name,), **options, unchanged=0)
            ]
            start = time.process_time()
            openfield.run(["echo"], trials, Path(folder) / "run.sqlite")
            return len(TASKS) * STEPS / (time.process_time() - start) / unit

    return statistics.median(run(seed) for seed in range(REPEATS))


def remote_ratio() -> float:
    """Return the CPU time of a step with an unmodified ZeroMQ peer in another process, all of our side included.

    It is given in those of `bare_microseconds`: the machine and libzmq are most of it.
    """

    def run(steps: int, seed: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            trials = openfield.trials("commai", 1, seed=seed, cyclic=True, max_steps=steps, unchanged=0)
            start = time.process_time()
            openfield.run([f"wire:{sys.executable} {PEER} {{port}}"], trials, Path(folder) / "run.sqlite")
            return time.process_time() - start

    def compare(seed: int) -> float:
        return (run(STEPS, seed) - run(100, seed)) / (STEPS - 100) * 1e6 / bare_microseconds()

    return statistics.median(compare(seed) for seed in range(REPEATS))


def bare_microseconds() -> float:
    """Return the CPU time of a step with the same peer and nothing on our side but two sends and a receive."""
    with zmq.Context() as context, context.socket(zmq.PAIR) as line:
        line.linger = 0
        port = line.bind_to_random_port("tcp://127.0.0.1")
        with subprocess.Popen([sys.executable, str(PEER), str(port)]) as peer:
            line.recv()
            start = time.process_time()
            for _ in range(STEPS):
                line.send(b"0")
                line.send(b"a")
                line.recv()
            took = time.process_time() - start
            peer.kill()
    return took / STEPS * 1e6


def batch_ratios(learner: str, size: int = BATCH) -> tuple[float, float, str]:
    """Return how many times the steps/s of one environment a batch makes: over all tasks, and on the slowest."""
    runs = [{name: _time_both(name, learner, seed, size) for name in MICRO} for seed in range(REPEATS)]
    means = [sum(one for one, _ in run.values()) / sum(many for _, many in run.values()) for run in runs]
    ratios = {name: statistics.median(run[name][0] / run[name][1] for run in runs) for name in MICRO}
    slowest = min(ratios, key=lambda name: ratios[name])
    return statistics.median(means), ratios[slowest], slowest


def show(figure: str, value: float, bar: float, better: str = "higher") -> None:
    """Print a figure as one JSON line, with its bar."""
    ok = value >= bar if better == "higher" else value <= bar
    line = {"subject": "commai", "figure": figure, "value": round(value, 3), "bar": bar, "better": better, "ok": ok}
    print(json.dumps(line))


def _measure(name: str, learner: Callable[[Environment], Learner], seed: int) -> float:
    environment = make_environment(CommaiSettings(tasks=(name,), cyclic=True), seed)
    session = LearnerSession(environment, learner(environment))
    unit = calls_per_second(CALIBRATION)
    start = time.process_time()
    session.run(STEPS)
    return STEPS / (time.process_time() - start) / unit


def _time_both(name: str, learner: str, seed: int, size: int) -> tuple[float, float]:
    """Return the CPU seconds of a step of a single environment, and of one in a batch; no learner is counted."""
    settings = CommaiSettings(tasks=(name,), cyclic=True)
    rng = random.Random(seed)
    environment, said = make_environment(settings, seed), [chr(rng.randrange(32, 127)) for _ in range(STEPS // 3)]
    exchange, heard = environment.next, environment.next(None)[0]
    start = time.process_time()
    if learner == "echo":
        for _ in said:
            heard = exchange(heard)[0]
    else:
        for symbol in said:
            exchange(symbol)
    one = (time.process_time() - start) / len(said)
    many, steps = batch([name], size, settings, seed), BATCH_STEPS * (1 if size > 1 else BATCH // 32)
    symbols = many.reset()
    answers = np.random.default_rng(seed).integers(32, 127, (steps, size))
    for _ in range(steps // 4):  # the first steps also make the memory their own
        symbols, _ = many.step(symbols)
    start = time.process_time()
    for number in range(steps):
        symbols, _ = many.step(symbols if learner == "echo" else answers[number])
    return one, (time.process_time() - start) / steps / size


if __name__ == "__main__":
    main()
