"""Open Doom worlds and play them to their end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from openfield.core import Reply, Turn
from openfield.domains.doom import ARENA, DUEL
from openfield.domains.doom.agents.reference import ReferenceAgent
from openfield.domains.doom.domain import DoomDomain
from openfield.domains.doom.world import DoomWorld
from openfield.record import ENCODER
from openfield.trial import Trial

SHORT = {"training": 0, "episodes": 2, "before": 1, "limit": 60}
TASKS = pytest.mark.parametrize("domain", [DUEL, ARENA], ids=lambda domain: domain.task.name)


def open_world(domain: DoomDomain, novelty: str = "none", red_light: bool = False, **settings: Any) -> DoomWorld:
    """Open the world of a short trial."""
    trial = domain.trials(1, novelty=novelty, red_light=red_light, **{**SHORT, **settings}, unchanged=0)[-1]
    return DoomWorld(domain, trial)


def play(world: DoomWorld, agent: Any) -> Iterator[Turn]:
    """Yield every turn of a trial, answered by an agent."""
    turn = world.reset()
    while True:
        yield turn
        if turn.last is not None and world.over:
            world.close()
            return
        turn = world.step(agent(turn))


def chance(domain: DoomDomain, seed: int = 0) -> Any:
    """Make an agent that acts at random."""
    rng, actions = random.Random(seed), [name for name in domain.task.actions if name != "give_up"]
    return lambda turn: Reply(None if turn.last else rng.choice(actions))


def trace(domain: DoomDomain, world: DoomWorld) -> list[bytes]:
    """Return the encoded turns of a trial with random actions."""
    return [ENCODER.encode(turn) for turn in play(world, chance(domain))]


def play_trial(domain: DoomDomain, trial: Trial, agent: Any = None) -> tuple[list[bytes], list[Turn], int]:
    """Return all turns of a trial, encoded and not, and the number of the first novel one."""
    world, agent = DoomWorld(domain, trial), agent or ReferenceAgent(domain.spec(trial), 0)
    turns, onset = [], None
    for turn in play(world, agent):
        if world.truth.novel and onset is None:
            onset = len(turns)
        turns.append(turn)
    return [ENCODER.encode(turn) for turn in turns], turns, len(turns) if onset is None else onset


def play_novelty(novelty: str, agent: Any, seed: int = 1, **settings: Any) -> list[Turn]:
    """Return the turns of an arena trial from the onset of its novelty on."""
    values = {"training": 0, "episodes": 2, "before": 1, "limit": 60, "player_health": 200, **settings}
    _, turns, onset = play_trial(ARENA, ARENA.trials(1, seed, novelty, **values, unchanged=0)[0], agent)
    return turns[onset:]


def still(turn: Turn) -> Reply:
    """Do nothing."""
    return Reply("nothing")
