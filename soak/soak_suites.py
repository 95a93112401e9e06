"""The conformance kit on environments of every suite of `gym:`, with all their novelties.

`--environments N` [0] checks the first so many of each suite; 0 means all that are named here.
"""

from __future__ import annotations

import time

from common import finish, parameter, report
from openfield.registry import find_domain
from openfield.testing import check_domain

ENVIRONMENTS = {
    "toy-text": ("FrozenLake-v1", "Blackjack-v1", "Taxi-v4", "CliffWalking-v1", "FrozenLake8x8-v1"),
    "classic-control": ("CartPole-v1", "MountainCar-v0", "Acrobot-v1", "Pendulum-v1", "MountainCarContinuous-v0"),
    "minigrid": (
        "MiniGrid-Empty-5x5-v0",
        "MiniGrid-DoorKey-5x5-v0",
        "MiniGrid-FourRooms-v0",
        "MiniGrid-SimpleCrossingS9N1-v0",
        "MiniGrid-LavaCrossingS9N1-v0",
        "MiniGrid-LavaGapS5-v0",
        "MiniGrid-Dynamic-Obstacles-5x5-v0",
        "MiniGrid-MultiRoom-N2-S4-v0",
        "MiniGrid-Fetch-5x5-N2-v0",
        "MiniGrid-KeyCorridorS3R1-v0",
    ),
    "atari": (
        "ALE/Breakout-v5",
        "ALE/Pong-v5",
        "ALE/SpaceInvaders-v5",
        "ALE/Freeway-v5",
        "ALE/Seaquest-v5",
        "ALE/MontezumaRevenge-v5",
    ),
    "crafter": ("CrafterReward-v1",),
}


def main(count: int) -> None:
    for suite, names in ENVIRONMENTS.items():
        for name in names[: count or None]:
            judge(suite, name)


def judge(suite: str, name: str) -> None:
    began = time.perf_counter()
    found = check_domain(find_domain(f"gym:{name}"))
    seconds = time.perf_counter() - began
    broken = [f"{each.name}: {each.detail}" for each in found.findings if not each.passed]
    unseen = [each.detail for each in found.findings if each.check == "novelties" and not each.judged]
    report(
        "suites",
        f"{suite} {name}: broken rules",
        len(broken),
        0,
        seconds=round(seconds, 1),
        broken=broken,
        unseen=unseen,
    )


if __name__ == "__main__":
    main(parameter("environments", 0, 1))
    finish()
