"""What openfield costs beside a bare loop over an environment of Gymnasium, and how large the record becomes.

One JSON line per figure. Times are processor times of all threads; a ratio is the median over loops that took turns.
The bare loop keeps one environment for all episodes. `python bench/bench_gym.py CartPole` measures one of them.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium

import openfield as of
from openfield.cell import Cell
from openfield.journal.recorder import Recorder
from openfield.journal.writer import Journal
from openfield.registry import find_domain

ROUNDS, PAIRS = 7, 15
BARS = {" over 40": 1.03, " as sine(period=30)": 1.03, " over 400 turns": 1.1, " as sine(period=300) in turns": 1.1}
"""How many times as long as with the change at once a recorded turn may take, by process. One that moves in every turn
misses its bar where a plain turn takes no more than 12 us: a sine is 1.17 to 1.20. Another truth to tell, write and
compress in every turn is 1.07 by itself. To ask for the strength and what is true then makes that 1.15, and setting the
attribute as for any environment is the rest. On a walk each strength is a new one, with settings of its own, and it is
1.34."""
RECORDED_STEPS = 10_000
EPISODES = 20_000
"""Of a trial: as many as it has steps at most, so that it never ends before they are played."""


class Subject(NamedTuple):
    """An environment with its bars."""

    id: str
    steps: int
    """Of one loop."""
    alone: float
    """How many times as long as the bare loop the world may take."""
    recorded: float
    """The same with a journal."""
    megabytes: float
    """Of the record of 10,000 steps."""
    module: str = "gymnasium"
    """What registers it."""


SUBJECTS = {
    "CartPole": Subject("CartPole-v1", 20_000, 1.5, 3.0, 1.0),
    "Pendulum": Subject("Pendulum-v1", 10_000, 2.0, 2.6, 1.0),
    "MiniGrid": Subject("MiniGrid-Empty-8x8-v0", 3_000, 1.2, 1.4, 0.5, "minigrid"),
    "Breakout": Subject("ALE/Breakout-v5", 500, 1.15, 1.45, 0.5, "ale_py"),
}
FRAMES = 1_000_000


def main(names: list[str]) -> None:
    for name in names or SUBJECTS:
        measure(name, SUBJECTS[name])


def measure(name: str, subject: Subject) -> None:
    """Play the same actions in a bare loop, in a world, and with a record."""
    gymnasium.register_envs(__import__(subject.module))
    domain: of.Domain[Any] = find_domain(f"gym:{subject.id}")
    (trial,) = domain.trials(1, unchanged=0, novelty="none", before=EPISODES, after=0)
    drawn = draw_actions(subject.id, max(subject.steps, RECORDED_STEPS))
    actions = drawn[: subject.steps]
    bare, alone, recorded = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            bare.append(processor_time(partial(play_bare, subject, actions)))
            alone.append(processor_time(partial(play_world, domain.world(trial), actions)))
            path = Path(folder) / f"{number}.sqlite"
            recorded.append(processor_time(partial(play_recorded, path, domain.world(trial), trial, actions)))
        path = Path(folder) / "large.sqlite"
        play_recorded(path, domain.world(trial), trial, drawn[:RECORDED_STEPS])
        size = path.stat().st_size / 1e6
    for label, times, bar in (("world", alone, subject.alone), ("world and record", recorded, subject.recorded)):
        ratio = statistics.median(one / other for one, other in zip(times, bare, strict=True))
        show(f"{name}: {label}, times the bare loop", ratio, bar)
    show(f"{name}: record of {RECORDED_STEPS} steps, MB", size, subject.megabytes)
    if name == "CartPole":
        measure_processes(domain)
    if name == "Breakout":
        show("Breakout: record of a million frames, extrapolated, MB", size * FRAMES / RECORDED_STEPS, 100.0)


def measure_processes(domain: of.Domain[Any]) -> None:
    """Play recorded runs of a change at once, and of the same change by a process; an agent balances the pole.

    A process costs a part of a turn as runs play it: of the world, the agent, the rollout and the record together.
    Where the agent fails after 22 turns, an episode's share of that is larger.
    """
    made: dict[str, Any] = {"before": 2, "onset": 2, "unchanged": 0}
    for agent, episodes, bars in ((balance, 60, BARS), ("random", 400, dict.fromkeys(BARS))):
        trials = {kind: domain.trials(1, novelty=f"force_mag=12{kind}", after=episodes, **made) for kind in ("", *BARS)}
        times: dict[str, list[float]] = {kind: [] for kind in trials}
        with tempfile.TemporaryDirectory() as folder:
            for number in range(PAIRS):
                for kind in trials:
                    path = Path(folder) / f"{number}{kind}.sqlite"
                    times[kind].append(time_turn(agent, trials[kind], path))
        base = statistics.median(times[""])
        player = "recorded" if agent is balance else f"recorded, {agent} agent"
        for kind, bar in bars.items():
            ratio = statistics.median(one / other for one, other in zip(times[kind], times[""], strict=True))
            show(f"CartPole: a change{kind}, {player}, times the change at once ({base:.1f} us a turn)", ratio, bar)


def balance(turn: of.Turn) -> of.Reply:
    """Push to where the pole falls: an agent that costs little and plays hundreds of turns."""
    seen = turn.observation
    return of.Reply(int(seen[2] + seen[3] > 0)) if turn.last is None else of.Reply()


def time_turn(agent: Any, trials: list[of.Trial], path: Path) -> float:
    """Play a recorded run and return its processor time for a turn, in microseconds."""
    begun = time.process_time()
    (cell,) = of.run({"it": agent}, trials, path).cells
    return (time.process_time() - begun) / cell.turns * 1e6


def draw_actions(name: str, count: int) -> list[Any]:
    """Return random actions in the form that the environment takes."""
    space = gymnasium.make(name).action_space
    space.seed(0)
    drawn = [space.sample() for _ in range(count)]
    return [int(each) for each in drawn] if isinstance(space, gymnasium.spaces.Discrete) else drawn


def play_bare(subject: Subject, actions: list[Any]) -> None:
    env, rng = gymnasium.make(subject.id, disable_env_checker=True), random.Random(0)
    env.reset(seed=rng.getrandbits(31))
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset(seed=rng.getrandbits(31))
    env.close()


def play_world(world: of.World, actions: list[Any]) -> None:
    turn = world.reset()
    for action in actions:
        turn = world.step(of.Reply(action))
        if turn.last is not None:
            turn = world.step(of.Reply())
    world.close()


def play_recorded(path: Path, world: of.World, trial: of.Trial, actions: list[Any]) -> None:
    with Journal(path) as journal:
        cell = Cell("bench", trial)
        journal.enter([cell], {"bench": None}, {})
        rollout = of.rollout.Rollout(world, recorder=Recorder(cell.id, journal.begin(cell.id), journal.add))
        for action in actions:
            rollout.reply(of.Reply(action))
            if rollout.turn.last is not None:
                rollout.reply(of.Reply())
        rollout.close("cancelled")


def processor_time(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def show(figure: str, value: float, bar: float | None) -> None:
    line: dict[str, Any] = {"subject": "gym", "figure": figure, "value": round(value, 3)}
    barred = {} if bar is None else {"bar": bar, "better": "lower", "ok": value <= bar}
    print(json.dumps({**line, **barred}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
