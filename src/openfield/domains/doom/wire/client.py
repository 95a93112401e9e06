"""A client of protocol 0.8: lets any openfield agent play on a server of this protocol, ours or another."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from openfield.core import Ask, Belief, Reply, Turn
from openfield.domains.doom.pictures import unpack_image
from openfield.domains.doom.wire.ini import MODELS, read_client, write_client
from openfield.domains.doom.wire.messages import REGISTRATION_QUEUE, Message
from openfield.domains.doom.wire.rpc import Rpc
from openfield.errors import AgentFault, InvalidInput

AgentCall = Callable[[Turn], Reply]
HALF = 0.5


class AmqpClient:
    """Plays an experiment with an agent, in any of the four modes."""

    experiment_type = "SAIL-ON"

    def __init__(
        self, rpc: Rpc, agent: AgentCall, model: str = "openfield agent", models: Path | None = None, **about: str
    ) -> None:
        """Make a client.

        Args:
            rpc: A connection to the broker.
            agent: The agent; its `save` and `load` are used as the server says, if it has them.
            model: The model's name in results.
            models: A folder for the trained model, so that another process can play its trials later.
            about: More about the model: organization, description, aiq_username, aiq_secret.
        """
        self._rpc = rpc
        self._agent = agent
        fields = {"organization": "", "description": "", "aiq_username": "", "aiq_secret": "", **about}
        self._model = msgspec.json.encode({"obj_type": "model", "model_name": model, **fields}).decode()
        """The description of the model for a registration, as JSON inside JSON."""
        self._models = models
        self._server = ""
        self._id = 0
        self.secret: str | None = None
        self._saved: bytes | None = None
        self.performances: list[float] = []
        """The final performance of each episode, training included."""

    async def play(self, *asked: Any, **named: Any) -> None:
        """Register with the arguments of `register`, and play until the experiment's end."""
        await self.register(*asked, **named)
        await self.follow_states()

    async def register(
        self,
        secret: str | None = None,
        no_testing: bool = False,
        just_one_trial: bool = False,
        seed: int | None = None,
        episode_seed: int | None = None,
    ) -> None:
        """Register for a new experiment, or for the trials of the one with this secret that was trained before."""
        if just_one_trial and secret is None:
            raise InvalidInput("One trial alone needs the secret of an experiment that was trained.")
        own: Message = {"obj_type": "request_experiment_trials", "experiment_secret": secret}
        own["just_one_trial"] = just_one_trial
        if secret is None:
            own = {"obj_type": "request_experiment", "novelty": 0, "novelty_visibility": 0, "git_version": None}
            own |= {"seed": seed, "no_testing": no_testing, "description": ""}
        shared = {
            "model": self._model,
            "client_rpc_queue": self._rpc.queue,
            "experiment_type": self.experiment_type,
            "domain_dict": {"cartpole": False, "vizdoom": True, "smartenv": False},
            "epoch": None,
            "generator_config": {"episode_seed": episode_seed, "start_zeroed_out": False, "start_world_state": None},
        }
        reply = _checked(await self._rpc.call(REGISTRATION_QUEUE, {**shared, **own}))
        self._server, self._id = reply["server_rpc_queue"], reply["model_experiment_id"]
        self.secret = reply["experiment_secret"]

    async def follow_states(self) -> None:
        """Do what the server's states ask for, until the last."""
        while True:
            state = await self._ask({"obj_type": "request_state"})
            match state["obj_type"]:
                case "experiment_end":
                    return
                case "benchmark_request":
                    await self._ask({"obj_type": "benchmark_data", "benchmark_data": _machine()})
                case "training_end":
                    self._save()
                case "trial_start":
                    self._reset()
                case "training_episode_start":
                    await self._episode("training")
                case "testing_episode_start":
                    await self._episode("testing")

    async def _episode(self, kind: str) -> None:
        """Play an episode: two requests per tick, then a belief."""
        first, ended, feedback, belief = True, False, None, None
        while not ended:
            data = await self._ask(
                {"obj_type": f"request_{kind}_data", "model_experiment_id": self._id, "secret": self.secret}
            )
            received = time.time()
            turn = _turn(data, kind, feedback, first)
            reply = self._agent(turn)
            while reply.action is None and reply.belief is not None:  # a belief alone shows the same turn again
                belief, reply = reply.belief, self._agent(turn)
            belief, first = reply.belief or belief, False
            answer = await self._ask(_prediction(kind, data["secret"], reply.action, received))
            feedback = {"performance": answer["performance"]}
            ended = answer["obj_type"].endswith("_episode_end")
        self.performances.append(answer["performance"])
        last = Turn(ask=Ask.NONE, observation=turn.observation, feedback=feedback, phase=turn.phase, last="terminated")
        await self._send_belief(kind, self._agent(last).belief or belief)

    async def _send_belief(self, kind: str, belief: Belief | None) -> None:
        belief = belief or Belief(0.0)
        detail = belief.detail if isinstance(belief.detail, dict) else {}
        await self._ask(
            {
                "obj_type": f"{kind}_episode_novelty",
                "novelty_probability": belief.highest,
                "novelty_threshold": _threshold(belief, detail.get("threshold")),
                "novelty": belief.level or 0,
                "novelty_characterization": detail.get("characterization", {}),
            }
        )

    def _save(self) -> None:
        if hasattr(self._agent, "save"):
            self._saved = self._agent.save()
            if self._models is not None:
                self._models.mkdir(parents=True, exist_ok=True)
                self._file.write_bytes(self._saved)

    def _reset(self) -> None:
        if self._saved is None and self._models is not None and self._file.exists():
            self._saved = self._file.read_bytes()
        if self._saved is not None and hasattr(self._agent, "load"):
            self._agent.load(self._saved)

    @property
    def _file(self) -> Path:
        """Where clients of this protocol keep a trained model."""
        return (self._models or Path()) / f"model.TA2.vizdoom.{self.secret}.file"

    async def _ask(self, content: Message) -> Message:
        return _checked(await self._rpc.call(self._server, content))


async def play_file(path: Path, agent: AgentCall, ignore_secret: bool = False) -> AmqpClient:
    """Play as a client's INI file says, in any mode; write the secret of a new experiment into the file.

    The trained model is kept in a folder `model` beside it. If `ignore_secret`, a new experiment is always started.
    """
    config = read_client(path)
    secret = None if ignore_secret else config.experiment_secret
    about = {"organization": config.organization, "description": config.description}
    about |= {"aiq_username": config.username, "aiq_secret": config.secret}
    async with Rpc(config.amqp) as rpc:
        client = AmqpClient(rpc, agent, config.model_name, path.parent / MODELS, **about)
        client.experiment_type = config.experiment_type
        await client.register(secret, config.no_testing, config.just_one_trial, config.seed, config.episode_seed)
        write_client(path, path, {"sail-on": {"experiment_secret": client.secret}})
        await client.follow_states()
    return client


async def play_replies(url: str, replies: Sequence[Reply]) -> None:
    """Play these replies, one for each tick, and send no belief; leave when there are no more."""
    script = iter(replies)

    def choose(turn: Turn) -> Reply:
        reply = Reply() if turn.ask is Ask.NONE else next(script, None)
        if reply is None:
            raise _ScriptEnded
        return reply

    async with Rpc(url) as rpc:
        with suppress(_ScriptEnded):
            await _ScriptedClient(rpc, choose, "peer").play()


class _ScriptEnded(Exception):
    """All replies are played."""


class _ScriptedClient(AmqpClient):
    """Plays a script, and sends no belief."""

    async def _send_belief(self, kind: str, belief: Belief | None) -> None:
        pass


def _checked(reply: Message) -> Message:
    if reply.get("status") == "error":
        raise AgentFault(f"The server refuses: {reply['error_message']}")
    if reply.get("obj_type") == "experiment_exception":
        raise AgentFault(f"The server failed: {reply['message']}")
    return reply


def _threshold(belief: Belief, stated: object) -> float:
    """Return the agent's own threshold, else one half, or one that agrees with the level the agent named."""
    if isinstance(stated, int | float):
        return stated
    if belief.level is None or (belief.level > 0) == (belief.highest >= HALF):
        return HALF
    return belief.highest if belief.level > 0 else math.nextafter(belief.highest, 2.0)


def _turn(data: Message, kind: str, feedback: Message | None, first: bool) -> Turn:
    """Make the turn of a message; the label is a part of the feedback."""
    label = data.get("feature_label")
    return Turn(
        observation=_unpack(data["feature_vector"]),
        feedback={**(feedback or {}), **({"label": label} if label else {})} or None,
        phase="training" if kind == "training" else "test",
        first=first,
        red_light=data.get("novelty_indicator"),
    )


def _unpack(vector: Any) -> Any:
    """Return a feature vector with its image as an array, if it has one."""
    if isinstance(vector, dict) and isinstance(vector.get("image"), str):
        return {**vector, "image": unpack_image(vector["image"])}
    return vector


def _prediction(kind: str, secret: str, action: Any, received: float) -> Message:
    return {
        "obj_type": f"{kind}_data_prediction",
        "secret": secret,
        "utc_remote_epoch_received": received,
        "utc_remote_epoch_sent": time.time(),
        "label_prediction": action if isinstance(action, dict) else {"action": action},
        "end_early": False,
    }


def _machine() -> Message:
    """Describe this machine, without a benchmark."""
    cores = os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"num_physical_cpu": cores, "num_logical_cpu": cores, "cpu_max_speed": None, "physical_ram": memory}
