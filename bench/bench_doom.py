"""What a Doom tick costs on top of the engine, how fast episodes turn over, and how fast maps are built."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np

from openfield.core import Reply
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.engine import engine as engines
from openfield.domains.doom.episode import KEYS
from openfield.domains.doom.maps.scenario import build_wad, map_name
from openfield.domains.doom.trials import TrialScript
from openfield.domains.doom.world import DoomWorld

ROUNDS = 30
ROUND_TICKS = 1000
EPISODES = (100, ROUND_TICKS)
"""Their ticks: as many as the reference agent needs, and enough that most are played where the system has put engine
and owner for good (`design/decisions.md`)."""
ACTIONS = {
    "arena": ("left", "forward", "right", "backward", "turn_left", "shoot", "nothing"),
    "duel": ("left", "right", "nothing"),  # a hit would end it
}
VECTOR_MODES = {"sync": 2.0, "async": 1.3, "vector_entry_point": 1.0}
"""How many times as fast as each the native vector environment must be; the last is itself."""
HARMLESS: dict[str, dict[str, Any]] = {
    "arena": {"player_health": 200, "enemy_damage": (0, 0)},
    "duel": {"player_health": 100, "enemy_damage": 0},
}


def report(figure: str, value: float, bar: float, better: str) -> None:
    ok = value >= bar if better == "higher" else value <= bar
    line = {"subject": "doom", "figure": figure, "value": round(value, 4), "bar": bar, "better": better, "ok": ok}
    print(json.dumps(line), flush=True)


def open_world(ticks: int = ROUND_TICKS, episodes: int = ROUNDS + 1, task: str = "arena", **settings: Any) -> DoomWorld:
    domain = DUEL if task == "duel" else ARENA
    values = {"training": 0, "episodes": episodes, "limit": ticks, **HARMLESS[task], **settings}
    world = DoomWorld(domain, domain.trials(1, novelty="none", **values, unchanged=0)[0])
    world.reset()
    return world


def raw_episodes(world: DoomWorld, ticks: int, task: str) -> Iterator[None]:
    """The bare engine on the same WAD and maps, with the same keys pressed; without end."""
    game: Any = world._engine._game if world._engine else None
    actions = itertools.cycle([list(KEYS[name]) for name in ACTIONS[task]])
    for number in itertools.count(1):
        for _ in range(ticks):
            game.make_action(next(actions))
        game.set_doom_map(map_name(world._maps.first + number))
        game.set_seed(world._script.seeds[number])
        game.new_episode()
        yield


def world_episodes(world: DoomWorld, ticks: int, task: str) -> Iterator[None]:
    """The whole world: engine, state, features, performance, truth."""
    actions = itertools.cycle(ACTIONS[task])
    while True:
        for _ in range(ticks):
            world.step(Reply(next(actions)))
        world.step(Reply())
        yield


def ratios() -> None:
    """Ticks per second, beginnings of episodes included: the same maps and actions for all, in turn."""
    for task, ticks in itertools.product(ACTIONS, EPISODES):
        count = ROUND_TICKS // ticks
        worlds = {kind: open_world(ticks, ROUNDS * count + 1, task, observation=kind) for kind in ("features", "array")}
        played = {kind: world_episodes(world, ticks, task) for kind, world in worlds.items()}
        worlds["raw"] = open_world(ticks, ROUNDS * count + 1, task)
        played["raw"] = raw_episodes(worlds["raw"], ticks, task)
        seconds = dict.fromkeys(played, 0.0)
        for _, (kind, episodes) in itertools.product(range(ROUNDS), played.items()):
            started = time.perf_counter()
            for _ in itertools.islice(episodes, count):
                pass
            seconds[kind] += time.perf_counter() - started
        for kind, bar in (("features", 0.60), ("array", 0.75)):
            figure = f"ticks per second against raw make_action, {task}, {kind}, episodes of {ticks} ticks"
            report(figure, seconds["raw"] / seconds[kind], bar, "higher")
        for world in worlds.values():
            world.close()


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
        trial = ARENA.trials(1, novelty=novelty, training=0, episodes=3000, before=900, unchanged=0)[0]
        started = time.process_time()
        script = TrialScript(ARENA, trial)
        build_wad("arena", script.layouts(), script.settings)
        report(f"seconds for 3000 maps of {novelty}", time.process_time() - started, 5.0, "lower")


def many_ticks(ready: Any, count: int) -> None:
    world = open_world(count + 1)
    actions = itertools.cycle(ACTIONS["arena"])
    ready.wait()
    for _ in range(count):
        world.step(Reply(next(actions)))
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


VECTOR_ENVS, VECTOR_STEPS, VECTOR_ROUNDS = 8, 50, 60


def vectors() -> None:
    """Steps per second of eight environments at once, which show pictures, against those made of single ones.

    All take turns in one run, so that a busy machine slows down all of them. Steps are compared by their medians: a
    step in which an episode begins, or in which the system ran something else, takes many times as long.
    """
    name = "openfield.gym:openfield/DoomDuel-v0"
    seen: Any = {"settings": {"observation": "pixels", "image_size": "160x120"}}
    kinds = {mode: gymnasium.make_vec(name, VECTOR_ENVS, vectorization_mode=mode, **seen) for mode in VECTOR_MODES}
    actions = np.random.default_rng(0).integers(6, size=(VECTOR_STEPS, VECTOR_ENVS))
    times: dict[str, list[float]] = {mode: [] for mode in kinds}
    for envs in kinds.values():
        envs.reset(seed=1)
    for _, (mode, envs) in itertools.product(range(VECTOR_ROUNDS), kinds.items()):
        for each in actions:
            started = time.perf_counter()
            envs.step(each)
            times[mode].append(time.perf_counter() - started)
    for envs in kinds.values():
        envs.close()
    middle = {mode: statistics.median(each) for mode, each in times.items()}
    for mode, bar in VECTOR_MODES.items():
        ratio = middle[mode] / middle["vector_entry_point"]
        report(f"eight environments at once against make_vec {mode}", ratio, bar, "higher")


def main() -> Iterator[None]:
    for part in (ratios, turnover, maps, parallel, vectors):
        part()
        yield
    engines.close_idle_engines()


if __name__ == "__main__":
    for _ in main():
        pass
