"""Estimate how long a plan takes, before it is played: some turns of each domain are played with random actions.

Language models have an estimate of their own, which counts calls and tokens: `agents.llm.call_estimate`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing, suppress
from typing import Any

from openfield.cell import Cell
from openfield.domain import Domain, make_world, spec_of
from openfield.errors import OpenfieldError
from openfield.registry import find_agent
from openfield.rollout import Rollout
from openfield.runner.plan import Plan
from openfield.trial import Trial

SAMPLE_SECONDS = 0.5
"""How long the turns of a domain are played."""


def measure_part(trial: Trial, episodes: int, turns: int) -> float:
    """Return which part of a trial some episodes or turns are."""
    steps, planned = sum(phase.steps for phase in trial.phases), sum(phase.episodes for phase in trial.phases)
    part = turns / steps if steps else (episodes or 1) / planned if planned else 1.0
    return min(max(part, 1e-6), 1.0)


def estimate_seconds(plan: Plan, cells: Iterable[Cell]) -> float | None:
    """Return about how long these cells take if agents answer at once; None if no domain can be tried.

    Args:
        plan: The plan, for its domains and for how many cells it plays at a time.
        cells: Those of its cells that are left.
    """
    left: dict[str, list[Cell]] = {}
    for cell in cells:
        left.setdefault(cell.trial.domain, []).append(cell)
    total, known = 0.0, False
    for name, own in left.items():
        with suppress(OpenfieldError):  # a domain whose actions cannot be drawn, or whose extra is missing
            per_length = _time_turns(plan.domains[name], own[0].trial)
            total += per_length * sum(_measure(cell.trial) for cell in own)
            known = True
    return total / count_lanes(plan, sum(map(len, left.values()))) if known else None


def count_lanes(plan: Plan, cells: int) -> int:
    """Return how many cells of a plan are played at the same time."""
    return max(1, min(cells, plan.options.concurrency or plan.options.workers))


def _time_turns(domain: Domain[Any], trial: Trial) -> float:
    """Return the seconds that an episode of a trial takes, or a step where these are counted.

    A world is begun untimed: what its domain loads from disk is loaded once, not for every trial.
    """
    with closing(make_world(domain, trial)) as world:
        world.reset()
    agent = find_agent("random", domain)(spec_of(domain, trial), 0)
    begun = time.monotonic()
    episodes = 0
    with closing(make_world(domain, trial)) as world:
        rollout = Rollout(world)
        while not rollout.over and (not rollout.turns or time.monotonic() - begun < SAMPLE_SECONDS):
            rollout.reply(agent(rollout.turn))
            episodes += rollout.turn.last is not None
    part = 1.0 if rollout.over else measure_part(trial, episodes, rollout.turns)
    return (time.monotonic() - begun) / part / _measure(trial)


def _measure(trial: Trial) -> int:
    """Return the length of a trial: its steps where these are counted, else its episodes."""
    return sum(phase.steps or phase.episodes for phase in trial.phases) or 1
