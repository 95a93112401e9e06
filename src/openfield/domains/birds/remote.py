"""An agent of this package as a program that plays over TCP, as agents of this game do.

`python -m openfield.domains.birds.remote naive --port 2004 --team 1` plays until the evaluation is over.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from openfield.core import Spec
from openfield.domains.birds.agents import NaiveShooter, Planner, RandomShooter, Shooter
from openfield.domains.birds.client import BirdsClient
from openfield.domains.birds.harness import SET_STATES, State
from openfield.domains.birds.planner import read_sight, release

SHOOTERS: dict[str, type[Shooter]] = {"random": RandomShooter, "naive": NaiveShooter, "planner": Planner}


def play(client: BirdsClient, shooter: Shooter) -> None:
    """Plays trial after trial until there is none left."""
    while (state := client.state()) is not State.TERMINATED:
        if state is State.NEW_TRIAL or state in SET_STATES:
            client.ready()
        elif state is State.REQUEST_BELIEF:
            client.report(0.0)
        elif state is State.PLAYING:
            _shoot(client, shooter)
        else:
            client.load_next()


def main(words: Sequence[str] | None = None) -> None:
    """Plays as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agent", choices=SHOOTERS)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=2004)
    parser.add_argument("--team", type=int, default=1)
    chosen = parser.parse_args(words)
    spec = Spec(domain="birds", task="Destroy all pigs.")
    with BirdsClient(chosen.host, chosen.port) as client:
        client.configure(chosen.team)
        play(client, SHOOTERS[chosen.agent](spec, chosen.team))


def _shoot(client: BirdsClient, shooter: Shooter) -> None:
    sight = read_sight(client.ground_truth())
    launch, tap = shooter.choose(sight)
    x, y = release(sight, launch)
    if not client.shoot(x, y, math.ceil(tap)):
        client.watch(50, 1)  # no bird is ready yet: let a second pass


if __name__ == "__main__":
    main()
