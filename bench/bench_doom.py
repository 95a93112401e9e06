"""What a Doom tick costs on top of the engine, how fast episodes turn over, and how fast maps are built."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from openfield.core import Reply
from openfield.domains.doom import ARENA
from openfield.domains.doom import engine as engines
from openfield.domains.doom.keeper import settings_name
from openfield.domains.doom.play import KEYS
from openfield.domains.doom.scenario import bind
from openfield.domains.doom.script import Script
from openfield.domains.doom.world import DoomWorld

TICKS = 250
ROUNDS = 60
ACTIONS = ("left", "forward", "right", "backward", "turn_left", "shoot", "nothing")


def report(figure: str, value: float, bar: float, better: str) -> None:
    ok = value >= bar if better == "higher" else value <= bar
    line = {"subject": "doom", "figure": figure, "value": round(value, 4), "bar": bar, "better": better, "ok": ok}
    print(json.dumps(line), flush=True)


def open_world(**settings: Any) -> DoomWorld:
    values = {"training": 0, "episodes": ROUNDS + 1, "limit": 2 * TICKS, "player_health": 200, **settings}
    values["enemy_damage"] = (0, 0)
    world = DoomWorld(ARENA, ARENA.trials(1, novelty="none", **values)[0])
    world.reset()
    return world


def raw_ticks(world: DoomWorld) -> Callable[[], None]:
    """The bare engine on the same WAD, with the same keys pressed."""
    game: Any = world._engine._game if world._engine else None
    actions = itertools.cycle([list(KEYS[name]) for name in ACTIONS])

    def tick() -> None:
        game.make_action(next(actions))

    return tick


def world_ticks(world: DoomWorld) -> Callable[[], None]:
    """The whole world: engine, scene, features, performance, truth."""
    actions = itertools.cycle(ACTIONS)

    def tick() -> None:
        world.step(Reply(next(actions)))

    return tick


def engine_of(world: DoomWorld) -> Path:
    """Where the kernel says how long a world's engine has worked, in nanoseconds."""
    name = str(world._engine.wad.parent / settings_name(world._engine._pulse.number)) if world._engine else ""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = command.read_bytes().decode().split("\0")
            if words[0].endswith("vizdoom") and name in words:  # not the shell that started it
                return command.with_name("schedstat")
    raise LookupError(name)


@contextmanager
def one_processor() -> Iterator[None]:
    """Keeps this process, and engines it starts, together: an engine and its owner take turns.

    A tick of the bare engine takes three quarters longer where they are on two processors. A virtual machine moves them
    to and fro, the world's more often than the bare ones: on one alone, or on two alone, ratios are higher and steady.
    """
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, processors)


def cpu_seconds(tick: Callable[[], None], engine: Path) -> float:
    """Processor time of one tick, of this process and of the engine: what a second is made of on a quiet machine."""
    own, theirs = time.process_time(), int(engine.read_text().split()[0])
    for _ in range(TICKS):
        tick()
    return (time.process_time() - own + (int(engine.read_text().split()[0]) - theirs) / 1e9) / TICKS


def ratios(where: str = "placed by the system") -> None:
    """The same episodes and actions for all, in turn, so that the engine does the same and a busy machine slows all.

    The fastest rounds count, where it disturbed least.
    """
    worlds = {kind: open_world(observation=kind) for kind in ("features", "array")}
    worlds["raw"] = open_world()
    found: dict[str, list[float]] = {kind: [] for kind in worlds}
    engine = {kind: engine_of(world) for kind, world in worlds.items()}
    for _ in range(ROUNDS):
        for kind, world in worlds.items():
            tick = raw_ticks(world) if kind == "raw" else world_ticks(world)
            found[kind].append(cpu_seconds(tick, engine[kind]))
            world.step(Reply("give_up"))
            world.step(Reply())
    cost = {kind: statistics.quantiles(seconds, n=8)[0] for kind, seconds in found.items()}
    for kind, bar in (("features", 0.60), ("array", 0.75)):
        report(f"ticks per second against raw make_action, {kind}, {where}", cost["raw"] / cost[kind], bar, "higher")
    for world in worlds.values():
        world.close()


@one_processor()
def ratios_on_one() -> None:
    engines.end_idle_engines()  # those started before would stay where they are
    ratios("on one processor")
    engines.end_idle_engines()


def turnover() -> None:
    world, times = open_world(episodes=300), []
    for _ in range(250):
        world.step(Reply("give_up"))
        started = time.perf_counter()
        world.step(Reply())
        times.append(1000 * (time.perf_counter() - started))
    world.close()
    report("episode turnover, median ms", statistics.median(times), 5.0, "lower")
    report("episode turnover, p95 ms", statistics.quantiles(times, n=20)[-1], 15.0, "lower")


def maps() -> None:
    """The usual ones, and those with the most things in them."""
    for novelty in ("203:hard", "201:hard"):
        trial = ARENA.trials(1, novelty=novelty, training=0, episodes=3000)[0]
        started = time.process_time()
        script = Script(ARENA, trial)
        bind("arena", script.layouts, script.settings)
        report(f"seconds for 3000 maps of {novelty}", time.process_time() - started, 5.0, "lower")


def many_ticks(ready: Any, count: int) -> None:
    world = open_world()
    tick = world_ticks(world)
    ready.wait()
    for _ in range(count):
        tick()
    world.close()


def seconds_of(workers: int, count: int) -> float:
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(workers + 1)
    processes = [context.Process(target=many_ticks, args=(ready, count)) for _ in range(workers)]
    for process in processes:
        process.start()
    ready.wait()
    started = time.perf_counter()
    for process in processes:
        process.join()
    return time.perf_counter() - started


def parallel() -> None:
    one = seconds_of(1, 6000) / 6000
    four = seconds_of(4, 6000) / 24000
    report("four agents in parallel against one", one / four, 1.6, "higher")


def main() -> Iterator[None]:
    for part in (ratios, ratios_on_one, turnover, maps, parallel):
        part()
        yield
    engines.end_idle_engines()


if __name__ == "__main__":
    for _ in main():
        pass
