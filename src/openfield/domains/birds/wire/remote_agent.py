"""An agent of this package as a program that plays over TCP.

`python -m openfield.domains.birds.wire.remote_agent naive --port 2004 --team 1` plays until the evaluation is over.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Sequence

from openfield.core import Reply, Spec
from openfield.domains.birds.agents import NaiveShooter, Planner, RandomShooter, Shooter
from openfield.domains.birds.agents.observed_level import observe_level
from openfield.domains.birds.harness import SET_STATES, HarnessState
from openfield.domains.birds.wire.client import BirdsClient

SHOOTERS: dict[str, type[Shooter]] = {"random": RandomShooter, "naive": NaiveShooter, "planner": Planner}


def play_trials(client: BirdsClient, shooter: Shooter) -> None:
    """Play trial after trial until none is left."""
    while (state := client.state()) is not HarnessState.TERMINATED:
        if state is HarnessState.NEW_TRIAL or state in SET_STATES:
            client.ready()
        elif state is HarnessState.REQUEST_BELIEF:
            client.report(0.0)
        elif state is HarnessState.PLAYING:
            _shoot(client, shooter)
        else:
            _load(client)


async def play_replies(host: str, port: int, replies: Sequence[Reply]) -> None:
    """Send given replies, one for each turn that asks for something, then disconnect."""

    def talk() -> None:
        with BirdsClient(host, port) as client:
            client.configure(1)
            for reply in replies:
                _give(client, reply)

    await asyncio.to_thread(talk)


def main(words: Sequence[str] | None = None) -> None:
    """Play as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agent", choices=SHOOTERS)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=2004)
    parser.add_argument("--team", type=int, default=1)
    chosen = parser.parse_args(words)
    spec = Spec(domain="birds", task="Destroy all pigs.")
    try:
        with BirdsClient(chosen.host, chosen.port) as client:
            client.configure(chosen.team)
            play_trials(client, SHOOTERS[chosen.agent](spec, chosen.team))
    except OSError as error:
        parser.exit(1, f"No game on {chosen.host}:{chosen.port}: {error.strerror or error}\n")


def _load(client: BirdsClient) -> None:
    """Load the level after the last one if the set allows a choice, else the next available one."""
    last, count = client.level(), client.levels()
    chosen = client.ready().selection and any(client.load((last + step) % count + 1) for step in range(count))
    if not chosen:
        client.load_next()


def _shoot(client: BirdsClient, shooter: Shooter) -> None:
    sight = observe_level(client.ground_truth())
    launch, tap = shooter.choose(sight)
    x, y = sight.release(launch)
    if not client.shoot(x, y, math.ceil(tap)):
        client.watch(50, 1)  # no bird is ready yet: let a second pass


def _give(client: BirdsClient, reply: Reply) -> None:
    state = client.state()
    if state is HarnessState.NEW_TRIAL or state in SET_STATES:
        client.ready()
    elif state is HarnessState.REQUEST_BELIEF and reply.belief is not None:
        client.report(reply.belief.highest, reply.belief.level or 0)
    elif state is HarnessState.PLAYING:
        client.shoot(reply.action["x"], reply.action["y"], reply.action["tap"])
    else:
        client.load_next()


if __name__ == "__main__":
    main()
