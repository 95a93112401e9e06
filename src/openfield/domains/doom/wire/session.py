"""The states of protocol 0.8: one session per registration, request in, reply out.

A session knows no bytes and no sockets; `server` carries its messages. It gets its rollouts from a `TrialSource`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from openfield.core import Ask, Belief, Reply, World
from openfield.domains.doom.novelty import MAX_LEVEL
from openfield.domains.doom.pictures import pack_image
from openfield.domains.doom.wire import messages
from openfield.domains.doom.wire.experiments import TrialSource
from openfield.domains.doom.wire.messages import Message, message
from openfield.errors import AgentProtocol
from openfield.record import UNWRITABLE, check_belief
from openfield.serving.remote import RemoteRollout

FULL, TRAINING, ONE_TRIAL, REMAINING = "full", "training", "one trial", "remaining trials"
"""The modes an agent may register for."""
INT64_LIMIT = 1 << 63
"""Below zero an agent may name any whole number the record can hold; -1 means unknown."""
TRAINING_OVER = "Training is over. Save the model."


def mode_of(request: messages.Registration) -> str:
    """Return the mode a registration asks for."""
    if isinstance(request, messages.RequestExperiment):
        return TRAINING if request.no_testing else FULL
    return ONE_TRIAL if request.just_one_trial else REMAINING


class AgentSession:
    """The state of one agent's experiment. Requests must come one at a time."""

    def __init__(self, source: TrialSource, secret: str, mode: str, number: int = 1, benchmark: bool = False) -> None:
        """Start in the first state; if `benchmark`, the agent is asked for the speed of its machine first."""
        self._source = source
        self._secret = secret
        """What the agent shows with every request for data."""
        self._mode = mode
        self._number = number
        self.state = "benchmark_request" if benchmark else "experiment_start"
        """The answer to the next `request_state`."""
        self.remote: RemoteRollout | None = None
        self._episode = self._trial = 0  # how many were announced; on the wire their numbers begin at 0
        self._ending = False
        self._clock: Callable[[], float] = time.time

    @property
    def training_gap(self) -> bool:
        """True while the agent learns from its training data and is disconnected."""
        return self.state == "training_model_end"

    @property
    def over(self) -> bool:
        """True when the end of the experiment was announced."""
        return self.state == "over"

    async def handle(self, request: messages.Request) -> Message:
        """Return the reply to a request; raise `AgentProtocol` if it does not fit the state, which then stays."""
        match request:
            case messages.RequestState():
                return await self._announce()
            case messages.BenchmarkData():
                if self.state != "experiment_start" or self._trial:
                    raise AgentProtocol("benchmark_data belongs between benchmark_request and experiment_start")
                self._source.note_machine(request.benchmark_data)
                return message("benchmark_ack")
            case messages.RequestData():
                return self._show(request)
            case messages.DataPrediction():
                return await self._act(request)
            case messages.EpisodeNovelty():
                return await self._believe(request)
            case messages.TrainingEndEarly():
                return await self._end_training()
            case messages.EndExperiment():
                self._identify(request)
                await self._leave_trial()
                self.state = "over"
                return message("experiment_end")
        raise AgentProtocol("an agent registers once; this queue belongs to an experiment under way")

    async def _announce(self) -> Message:
        """Return the current state, and move on to the next."""
        await self._pass_border()
        state = self.state
        if state in ("trial_start", "training_start"):
            return await self._start_trial()
        if state.endswith("_episode_start"):
            self.state = state.replace("_start", "_active")
            self._episode += 1
            return message(state, episode_number=self._episode - 1, total_episodes=0)
        if state == "training_end":
            self.state = "training_model_end"
            return message(state, message=TRAINING_OVER)
        if state in _NEXT:
            self.state = _NEXT[state]
        elif state == "experiment_start":
            self.state = "training_start" if self._mode in (FULL, TRAINING) else "trial_start"
        elif state == "training_model_end":
            self.state = "experiment_end" if self._mode == TRAINING else "trial_start"
        elif state == "trial_end":
            self.state = "experiment_end" if self._mode == ONE_TRIAL else "trial_start"
        if state == "benchmark_request":
            return message(state, benchmark_script="")
        return message("experiment_end" if state == "over" else state)

    async def _start_trial(self) -> Message:
        """Start the training or the next trial, if one is left."""
        training = self.state == "training_start"
        self.remote = await self._source.start(training)
        self._episode, self._ending = 0, False
        if training:
            self.state = "training_episode_start" if self.remote is not None else "training_end"
            return message("training_start")
        if self.remote is None:
            self.state = "over"
            return message("experiment_end")
        self._trial += 1
        self.state = "testing_start"
        return message(
            "trial_start",
            trial_number=self._source.number(self.remote),
            total_trials=self._source.trials,
            message="Reset the model to what it was after training.",
            novelty_description={},
        )

    def _show(self, request: messages.RequestData) -> Message:
        kind = "testing" if isinstance(request, messages.RequestTesting) else "training"
        self._identify(request)
        rollout = self._remote_in(kind).rollout
        turn, now = rollout.turn, self._clock()
        shown = {
            "secret": self._secret,
            "feature_vector": _feature_vector(turn.observation, rollout.world),
            "utc_remote_epoch_received": now,
            "utc_remote_epoch_sent": now,
        }
        if kind == "testing":
            return message("testing_data", **shown, novelty_indicator=turn.red_light)
        label = (turn.feedback or {}).get("label", {"action": "nothing"})
        return message("training_data", **shown, feature_label=label)

    async def _act(self, request: messages.DataPrediction) -> Message:
        kind = "testing" if isinstance(request, messages.TestingPrediction) else "training"
        self._identify(request)
        remote = self._remote_in(kind)
        action = request.label_prediction.action
        if remote.spec.actions is not None and not remote.spec.actions.contains(action):
            known = ", ".join(getattr(remote.spec.actions, "options", ()))
            raise AgentProtocol(f"unknown action '{action}'; known are {known}")
        turn = await remote.reply(Reply(action))
        self._ending |= bool(request.end_early)
        performance = turn.feedback["performance"]
        if turn.last is None:
            return message(f"{kind}_data_ack", secret=self._secret, performance=performance, feedback=None)
        last = self._ending or remote.rollout.world.over
        self.state = f"{kind}_end" if last else f"{kind}_episode_start"
        return message(f"{kind}_episode_end", performance=performance, feedback=None)

    async def _believe(self, request: messages.EpisodeNovelty) -> Message:
        kind = "testing" if isinstance(request, messages.TestingNovelty) else "training"
        at_border = (
            self.remote is not None and self.remote.rollout.turn.ask is Ask.NONE and not self.remote.rollout.over
        )
        if not at_border or not self.state.startswith(kind):
            raise AgentProtocol(f"{kind}_episode_novelty belongs right after {kind}_episode_end")
        await self._pass_border(_belief(request))
        return message(f"{kind}_episode_novelty_ack")

    async def _end_training(self) -> Message:
        """Make the current training episode the last one; between two episodes, end the training."""
        if self.state == "training_episode_active":
            self._ending = True
            return message(self.state)
        if self.state != "training_episode_start" or self.remote is None:
            raise AgentProtocol(f"training_end_early belongs into training; the state is {self.state}")
        if self.remote.rollout.turn.ask is not Ask.NONE:  # else an opinion on the last episode may still come
            await self._leave_trial()
        self.state = "training_end"
        return message(self.state, message=TRAINING_OVER)

    async def _pass_border(self, belief: Belief | None = None) -> None:
        """Leave an episode that ended, with or without a belief about it."""
        remote = self.remote
        if remote is None or remote.rollout.over or remote.rollout.turn.ask is not Ask.NONE:
            return
        await remote.reply(Reply(None, belief))
        if self.state.endswith("_end"):
            await self._leave_trial()

    async def _leave_trial(self) -> None:
        """Give the rollout back; truncate a trial that was ended early."""
        if self.remote is not None:
            if not self.remote.rollout.over:
                self.remote.rollout.cut()
            self.remote.left.set()
            self.remote = None
            await self._source.settle()

    def _identify(self, request: messages.RequestData | messages.DataPrediction | messages.EndExperiment) -> None:
        """Refuse a request that belongs to another experiment; the secret must be there, the number may be missing."""
        if request.secret != self._secret:
            raise AgentProtocol("the secret is wrong" if request.secret else "the secret is missing")
        number = None if isinstance(request, messages.DataPrediction) else request.model_experiment_id
        if number is not None and number != self._number:
            raise AgentProtocol(f"this is experiment {self._number}, not {number}")

    def _remote_in(self, kind: str) -> RemoteRollout:
        """Return the rollout if data of this kind may be asked for now."""
        if self.state != f"{kind}_episode_active" or self.remote is None:
            raise AgentProtocol(f"{kind} data belongs into a {kind} episode; the state is {self.state}")
        return self.remote


def _feature_vector(observation: Any, world: World) -> Any:
    """Return an observation as this protocol has it: the image packed, in a vector of its own if it is all there is."""
    image = observation.get("image") if isinstance(observation, dict) else observation
    if not isinstance(image, np.ndarray) or image.ndim < 2:
        return observation
    packed = {"image": pack_image(image, getattr(world, "image_colour", "bgr"))}
    return {**observation, **packed} if isinstance(observation, dict) else packed


def _belief(request: messages.EpisodeNovelty) -> Belief | None:
    probability = request.novelty_probability
    if probability is None:
        return None
    if not 0 <= probability <= 1:
        raise AgentProtocol(f"novelty_probability is {probability}, not between 0 and 1")
    if request.novelty is not None and not -INT64_LIMIT <= request.novelty <= MAX_LEVEL:
        raise AgentProtocol(f"novelty is {request.novelty}, not a level up to {MAX_LEVEL}")
    detail = {"threshold": request.novelty_threshold, "characterization": request.novelty_characterization or {}}
    belief = Belief(float(probability), request.novelty, detail)
    try:
        check_belief(belief)  # a belief that cannot be written would end the rollout
    except (*UNWRITABLE, msgspec.DecodeError) as error:
        raise AgentProtocol(f"novelty_characterization cannot be put on record: {error}") from None
    return belief


_NEXT = {
    "benchmark_request": "experiment_start",
    "testing_start": "testing_episode_start",
    "testing_end": "trial_end",
    "experiment_end": "over",
}
