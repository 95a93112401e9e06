"""The learned agents as one: it makes the one that was trained for the domain, with a detector fitted in training.

Try it: openfield run doom --agent 'examples/baselines/learned.py:make(networks=examples/baselines/networks)'

The campaign examples/baselines.toml plays it in every domain. `watch` says what the detector watches, of transitions only
where observations are a list of numbers. In OND and CommAI the agents have a belief of their own.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from openfield.agents import onnx_agent, with_detector
from openfield.core import Agent, AgentFactory, Reply, Spec, Turn
from openfield.domains.doom.arrays import array_space
from openfield.errors import InvalidInput
from openfield.spaces import Box

BREAKOUT = "gym-ALE-Breakout-v5"
NETWORKS = {
    "gym-CartPole-v1": "cartpole.onnx",
    "gym-LunarLander-v3": "lunarlander.onnx",
    "gym-MiniGrid-DoorKey-5x5-v0": "doorkey.onnx",
    BREAKOUT: "breakout.onnx",
    "doom": "doom.onnx",
    "doom from pixels": "doom-pixels.onnx",
    "birds": "shooter.onnx",
    "ond": "reader.onnx",
    "commai": "learner.onnx",
}
OWN_BELIEF = ("ond", "commai")
"""Where agents need no detector."""
TICKS = 2000
"""The limit of a duel."""
WALLS = (-448, 64, -192, -192, -448, 64, 256, 256, -448, -448, -192, 256, 64, 64, -192, 256)
"""Of a duel, as an array has them."""
MAX_SHOWN = 4
FRAMES = 4
"""Pictures of Breakout that the network is shown at once."""
FIRE, AIR, PATIENCE = 1, (slice(93, 189), slice(8, 152)), 16
"""The action that serves, rows and columns of the picture where the ball is when it can be lost, and turns without one."""
TRANSITIONS = "cusum(watch=transition)"
COMMAI = Path(__file__).parent.parent / "train_commai" / "learner.onnx"


class Duelist:
    """Shows the feature vectors of a duel as arrays to an agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent, self._tick = agent, 0

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        self._tick = 0 if turn.first else self._tick + 1
        if isinstance(turn.observation, dict):
            turn = replace(turn, observation=self._list_numbers(turn.observation))
        return self._agent(turn)

    def _list_numbers(self, seen: dict[str, Any]) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        places = ("x_position", "y_position", "z_position")
        player, enemies, bolts = seen["player"], seen["enemies"], seen["projectiles"]
        numbers = [TICKS - self._tick, *(player[name] for name in (*places, "health"))]
        for those, names in ((enemies, (*places, "health")), (bolts, places)):
            rows = [[1.0, *(each[name] for name in names)] for each in those[:MAX_SHOWN]]
            rows += [[0.0] * (1 + len(names))] * (MAX_SHOWN - len(rows))
            numbers += [number for row in rows for number in row]
        return np.array([*numbers, *WALLS], np.float32)


class Server:
    """Serves where no ball has been seen for a while. The network served by chance in training; its best move never does."""

    def __init__(self, agent: Agent) -> None:
        self._agent, self._missing = agent, 0

    def __call__(self, turn: Turn) -> Reply:
        """Answer a turn."""
        reply = self._agent(turn)
        self._missing = 0 if turn.observation is None or np.any(turn.observation[AIR]) else self._missing + 1
        return replace(reply, action=FIRE) if self._missing and self._missing % PATIENCE == 0 else reply


def make(spec: Spec, seed: int, networks: str, watch: str = "transition") -> Agent:
    """Make the agent that was trained for a domain; its detector watches `transition`, `return` or `nothing`."""
    if spec.domain not in NETWORKS:
        raise InvalidInput(f"There is no learned agent for {spec.domain}. There are some for {', '.join(NETWORKS)}.")
    pictures = isinstance(spec.observations, Box) and len(spec.observations.shape) > 1
    player = find_player("doom from pixels" if spec.domain == "doom" and pictures else spec.domain, Path(networks))
    if watch == "nothing" or spec.domain in OWN_BELIEF:
        rule = ""
    elif watch == "return" or spec.domain == "birds" or pictures:
        rule = "cusum(watch=return)"
    else:
        rule = "cusum(watch=transition, features=[image, direction])" if "MiniGrid" in spec.domain else TRANSITIONS
    listed = spec.domain == "doom" and spec.observations is None
    shown = replace(spec, observations=array_space("duel", TICKS)) if listed else spec
    agent: Agent = (with_detector(player, rule) if rule else player)(shown, seed)
    if listed:
        return Duelist(agent)
    return Server(agent) if spec.domain == BREAKOUT else agent


def find_player(domain: str, networks: Path) -> AgentFactory:
    """Return what makes the player of a domain."""
    network = COMMAI if domain == "commai" else networks / NETWORKS[domain]
    if domain == "birds":
        from shooter import Shooter

        return functools.partial(Shooter, network=str(network))
    if domain == "ond":
        from reader import Reader

        return functools.partial(Reader, network=str(network))
    return onnx_agent(str(network), stack=FRAMES if domain == BREAKOUT else 1)
