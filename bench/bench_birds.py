"""How fast birds are: physics, pictures, ground truth, and a trial over TCP; one JSON line per figure.

Ratios are taken within one run and in processor time, so that they hold on a slow or busy machine too.
`python bench/bench_birds.py 20` plays fewer levels.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np

from openfield.core import Spec
from openfield.domains.birds import DOMAIN, BirdsClient
from openfield.domains.birds.agents import NaiveShooter
from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.game import ITERATIONS, Game
from openfield.domains.birds.game.ground_truth import ground_truth
from openfield.domains.birds.game.level import Level, LevelObject
from openfield.domains.birds.game.physics import STEP
from openfield.domains.birds.game.scene import see, zoomed_out
from openfield.domains.birds.harness import HarnessState
from openfield.domains.birds.picture.painting import pixels
from openfield.domains.birds.picture.thumbnail import thumbnail
from openfield.domains.birds.wire.remote_agent import play_trials
from openfield.domains.birds.wire.server import BirdsWire
from openfield.journal.writer import Journal
from openfield.serving.dispatch import TrialDispatcher, serve_domain
from openfield.trial import Trial

SESSIONS = 16
GYM_NAME = "openfield.gym:openfield/Birds-v0"
VECTOR_ENVS, VECTOR_ROUNDS, VECTOR_SHOTS = 8, 4, 100


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    pool = LevelPool()
    names = [name for level in range(9) for kind in pool.types(level) for name in pool.names(level, kind)]
    random.Random(0).shuffle(names)
    levels = [pool.level(name) for name in names[:most]]
    measure_levels(levels)
    tower = Game(build_tower())
    show("a tower of 33 blocks forced awake, simulated against real time", speed_awake(tower), 15, "higher")
    measure_views(tower)
    measure_vector()
    measure_wire()


def measure_levels(levels: list[Level]) -> None:
    """Whole levels with random shots, against nothing but the engine's steps."""
    rng, rates, full, bare = random.Random(1), list[float](), 0.0, 0.0
    for level in levels:
        shots = [math.radians(rng.uniform(-10, 75)) for _ in level.birds]
        start = time.process_time()
        game, spans = shoot_all(level, shots)
        took = time.process_time() - start
        rates.append(game.seconds / took)
        full += took
        bare += step_only(level, shots, spans)
    show("rate of whole levels against bare steps of the engine", bare / full, 0.35, "higher")
    show("median of simulated against real time", statistics.median(rates), 300, "higher")


def shoot_all(level: Level, shots: list[float]) -> tuple[Game, list[int]]:
    """Plays a level to its end; also how many steps followed each shot."""
    game = Game(level)
    side, spans = (1 if level.sling[0] < 0 else -1), list[int]()
    for angle in shots:
        if not game.bird_ready:
            break
        start = game.steps
        game.shoot(side * math.cos(angle), math.sin(angle))
        game.settle()
        spans.append(max(0, game.steps - start - 50))
    return game, spans


def step_only(level: Level, shots: list[float], spans: list[int]) -> float:
    """Seconds that the engine alone needs for as many steps with the same bodies and launches."""
    game = Game(level)
    world, side, took = game.engine_world, (1 if level.sling[0] < 0 else -1), 0.0
    world.contactListener = None
    for angle, steps in zip(shots, spans, strict=False):
        game.shoot(side * math.cos(angle), math.sin(angle))
        game.flying = None
        game.queue = game.queue[1:]
        start = time.process_time()
        for _ in range(steps):
            world.Step(STEP, ITERATIONS, ITERATIONS)
        took += time.process_time() - start
        game.slow_ticks = 99
    return took


def build_tower() -> Level:
    """Eleven storeys of two posts and a beam."""
    things = [LevelObject(kind="Pig", type="BasicSmall", x=10.0, y=-3.29)]
    for storey in range(11):
        y = -3.5 + 0.604 * storey
        for x in (3.3, 4.1):
            things.append(LevelObject(kind="Block", type="SquareSmall", material="stone", x=x, y=y + 0.192))
        things.append(LevelObject(kind="Block", type="RectMedium", material="stone", x=3.7, y=y + 0.494))
    return Level(birds=("BirdRed",), objects=tuple(things))


def speed_awake(game: Game) -> float:
    """Simulated seconds per second while nothing may sleep and every contact is reported."""
    for body in game.bodies:
        body.physical.sleepingAllowed = False
        body.physical.awake = True
    start, steps = time.process_time(), 500
    for _ in range(steps // 5):
        game.slow_ticks = 0
        game._tick()
    return steps * STEP / (time.process_time() - start)


def measure_views(game: Game) -> None:
    view = zoomed_out(game.level.camera)
    show(
        "ms for a ground truth", 1000 * per_call(lambda: msgspec.json.encode(ground_truth(see(game, view)))), 3, "lower"
    )
    show("ms for a screenshot", 1000 * per_call(lambda: pixels(see(game, view))), 10, "lower")
    show("ms for a picture of 84 x 84", 1000 * per_call(lambda: thumbnail(see(game, view))), 2, "lower")


def per_call(work: Callable[[], Any], calls: int = 50) -> float:
    work()
    start = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - start) / calls


def measure_vector() -> None:
    """Eight environments in processes against one: each kind shoots, and the clock and the processors are read."""
    options: dict[str, Any] = {
        "trial": DOMAIN.trials(1, novelty="none", before=40, after=0, observe="thumbnail", unchanged=0)[0]
    }
    one = gymnasium.make(GYM_NAME, **options)
    many = gymnasium.make_vec(GYM_NAME, VECTOR_ENVS, **options)
    for envs in (one, many):
        envs.action_space.seed(1)
        envs.reset(seed=1)
    seconds, busy = [0.0, 0.0], [0.0, 0.0]
    ended = np.zeros(VECTOR_ENVS, dtype=bool)
    for _ in range(VECTOR_ROUNDS):  # in turns, so that both meet the same machine
        clock, used = time.perf_counter(), processor_time(many)
        at_once = 0
        while at_once < VECTOR_SHOTS:
            at_once += int((~ended).sum())
            _, _, terminated, truncated, _ = many.step(many.action_space.sample())
            ended = terminated | truncated
        seconds[1] += (time.perf_counter() - clock) / at_once
        busy[1] += (processor_time(many) - used) / at_once
        clock, used = time.perf_counter(), time.process_time()
        for _ in range(VECTOR_SHOTS):
            _, _, over, cut, _ = one.step(one.action_space.sample())
            if over or cut:
                one.reset()
        seconds[0] += (time.perf_counter() - clock) / VECTOR_SHOTS
        busy[0] += (time.process_time() - used) / VECTOR_SHOTS
    one.close()
    many.close()
    show(
        "shots a second of eight environments at once against one (two idle cores)",
        seconds[0] / seconds[1],
        1,
        "higher",
    )
    show("processor time of a shot in eight environments against one", busy[1] / busy[0], 1.4, "lower")


def processor_time(envs: Any) -> float:
    """Seconds of processor time that this process and those of some environments have used."""
    used = time.process_time()
    for process in envs.processes:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def measure_wire() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with serving(Path(folder) / "one.sqlite", DOMAIN.trials(1, before=40, after=40, unchanged=0)) as port:
            start = time.perf_counter()
            play_as(port, 1)
            show("s for a trial of 40 + 40 levels over TCP", time.perf_counter() - start, 20, "lower")
        with serving(Path(folder) / "many.sqlite", DOMAIN.trials(1, before=1, after=1, unchanged=0)) as port:
            ends = list[HarnessState]()
            threads = [
                threading.Thread(target=lambda team=team: ends.append(play_as(port, team))) for team in range(16)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    show(
        "sessions at once that came to their end",
        sum(end is HarnessState.TERMINATED for end in ends),
        SESSIONS,
        "higher",
    )


def play_as(port: int, team: int) -> HarnessState:
    with BirdsClient(port=port) as client:
        client.configure(team)
        play_trials(client, NaiveShooter(Spec(domain="birds", task=""), team))
        return client.state()


@contextlib.contextmanager
def serving(path: Path, trials: list[Trial]) -> Iterator[int]:
    """A server in a thread of its own."""
    opened, ports, stops = threading.Event(), list[int](), list[Callable[[], Any]]()

    def ready(port: int) -> None:
        ports.append(port)
        opened.set()

    def run() -> None:
        loop = asyncio.new_event_loop()
        with Journal(path) as journal:
            dispatcher = TrialDispatcher(journal, DOMAIN, trials, "remote", None)
            task = loop.create_task(serve_domain(BirdsWire(), dispatcher, "127.0.0.1", 0, ready))
            stops.append(lambda: loop.call_soon_threadsafe(task.cancel))
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    opened.wait()
    yield ports[0]
    stops[0]()
    thread.join()


def show(figure: str, value: float, bar: float, better: str) -> None:
    ok = value >= bar if better == "higher" else value <= bar
    line = {"subject": "birds", "figure": figure, "value": round(value, 3), "bar": bar, "better": better, "ok": ok}
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
