"""Protocol 0.8, the server: all sessions on one broker, any number of agents at once.

At the rim: queues in, queues out. `wire.Session` decides what is said, the dispatcher's remotes do what is done.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from openfield.domains.doom.wire import experiments, ini
from openfield.domains.doom.wire.messages import (
    REGISTRATION_QUEUE,
    VERSION,
    Registration,
    RequestExperiment,
    RequestTrials,
    decode_registration,
    encode,
    error_message,
    message,
)
from openfield.domains.doom.wire.private_queue import PrivateQueue
from openfield.domains.doom.wire.rpc import load_aio_pika
from openfield.domains.doom.wire.session import AgentSession, TrialSource, mode_of
from openfield.domains.doom.wire.unreadable import drop_unreadable
from openfield.errors import AgentFault, AgentGone, AgentProtocol, InvalidInput, JournalError, OpenfieldError
from openfield.serving.dispatch import SingleDispatcher, TrialDispatcher
from openfield.serving.wire import Dispatcher
from openfield.trial import Trial, derive

if TYPE_CHECKING:
    from openfield.domains.doom.wire.amqp import AmqpWire

PORT = 5672
ANNOUNCED_LESS = 5.0
"""Seconds by which the announced timeout is shorter than ours, as it always was; of a short one a fifth."""
PATROL_SECONDS = 1.0
CONNECT_SECONDS = 30.0
TURN_QUEUE = "openfield.turn"
"""Whoever has it plays a single cell; the others wait."""
TURN_SECONDS = 0.2
FAREWELL_SECONDS = 10.0
"""How long a finished session still answers."""
MAX_DROPPED = 100
"""Sessions that were ended whose agents are still told why; each takes milliseconds when the broker comes back."""
LOG = logging.getLogger(__name__)


class AmqpServer:
    """All sessions on one broker."""

    def __init__(self, wire: AmqpWire, dispatcher: Dispatcher, url: str) -> None:
        self._wire = wire
        self._dispatcher = dispatcher
        self._url = url
        self._sessions: dict[str, PrivateQueue] = {}
        self._lines: dict[str, PrivateQueue] = {}
        """By their queues; those of sessions that were ended last stay, so that agents who come back are told."""
        self._pika = load_aio_pika()
        self._lost = (self._pika.exceptions.AMQPError, ConnectionError, RuntimeError)
        """What is raised where the broker is gone."""

    @property
    def busy(self) -> bool:
        """Whether somebody is still to hear something."""
        return any(not line.session.over or line.at_work for line in self._sessions.values())

    async def run(self, ready: Callable[[int], None]) -> None:
        """Takes registrations until cancelled."""
        async with await self._connect() as connection:
            self._channel = await connection.channel(publisher_confirms=False)
            self._sure_channel = await connection.channel(publisher_confirms=True)
            await self._channel.set_qos(prefetch_count=1)
            self._channel.reopen_callbacks.add(self._listen_again)
            if isinstance(self._dispatcher, SingleDispatcher):
                await self._take_turn(connection)
            registrations = await self._registrations()
            await self._sift()
            connection.close_callbacks.add(self._broke)
            await registrations.consume(self._register)
            ready(connection.transport.connection.url.port or PORT)
            await self._patrol(connection)

    async def _connect(self) -> Any:
        place = without_password(self._url)
        try:
            return await asyncio.wait_for(self._pika.connect_robust(self._url, reconnect_interval=1), CONNECT_SECONDS)
        except self._pika.exceptions.ProbableAuthenticationError:
            raise InvalidInput(f"The broker at {place} refuses this user or password.") from None
        except TimeoutError:
            raise InvalidInput(f"There is no broker at {place}: no answer within {CONNECT_SECONDS:g} s.") from None
        except OSError as error:
            raise InvalidInput(f"There is no broker at {place}: {error}") from None
        except self._pika.exceptions.AMQPError:
            raise InvalidInput(f"The broker at {place} refuses the connection; is there such a virtual host?") from None

    async def _registrations(self) -> Any:
        """The queue all agents register in."""
        place = without_password(self._url)
        try:
            return await self._channel.declare_queue(REGISTRATION_QUEUE, durable=True)
        except self._pika.exceptions.ChannelPreconditionFailed:
            raise InvalidInput(
                f"The queue {REGISTRATION_QUEUE} at {place} was declared otherwise than the protocol has it, which is "
                f"durable and shared. Remove it: rabbitmqctl delete_queue {REGISTRATION_QUEUE}"
            ) from None
        except self._pika.exceptions.ChannelClosed as error:
            raise InvalidInput(f"The broker at {place} refuses its queues to this user: {error}") from None

    async def _take_turn(self, connection: Any) -> None:
        """Waits until no other cell plays on this broker: all programs register in the same queue."""
        while True:
            channel = await connection.channel()
            try:
                await channel.declare_queue(TURN_QUEUE, exclusive=True)
                return
            except self._pika.exceptions.ChannelClosed:
                await asyncio.sleep(TURN_SECONDS)

    async def _broke(self, _: object, reason: object) -> None:
        """Comes before the broker is connected to again: the connection may have broken of a registration."""
        if isinstance(reason, self._pika.exceptions.InvalidFrameError):
            await self._sift()

    async def _sift(self) -> None:
        """Takes out registrations that cannot be read."""
        with suppress(*self._lost):
            await drop_unreadable(self._pika, self._url, REGISTRATION_QUEUE)

    async def _register(self, incoming: Any) -> None:
        """Opens a session for a registration, unless its sender is gone already; one that fails comes once more."""
        try:
            async with incoming.process(requeue=True, reject_on_redelivered=True, ignore_processed=True):
                if incoming.reply_to is not None:
                    await self._welcome(incoming)
        except Exception as error:
            if not (isinstance(error, self._lost) or self._channel.is_closed):  # then the library raises anything
                raise
            LOG.info("A registration was lost with the broker: it will come again, or its agent will register again.")

    async def _welcome(self, incoming: Any) -> None:
        known = self._known(incoming)
        try:
            line = known or await self._open(decode_registration(incoming.body), incoming)
        except OpenfieldError as error:
            reply = error_message(type(error).__name__, str(error))
            await self.send(incoming.properties, encode(reply))
            return
        if not await self._send_surely(incoming, line.welcome) and known is None:
            LOG.info("A registration was stale: its agent is gone.")
            await self._close(line)

    def _known(self, incoming: Any) -> PrivateQueue | None:
        """The line of a registration that comes again, as when the broker was gone before it was acknowledged."""
        sender = incoming.reply_to, incoming.correlation_id
        found = (line for line in self._sessions.values() if line.sender == sender and not line.session.over)
        return next(found, None) if incoming.correlation_id is not None else None

    async def _open(self, request: Registration, incoming: Any) -> PrivateQueue:
        if not request.domain_dict.get("vizdoom"):
            raise AgentProtocol("this server has the domain vizdoom and no other")
        secret = (
            request.experiment_secret if isinstance(request, RequestTrials) else (self._wire.secret or uuid.uuid4().hex)
        )
        office = await self._office(request, secret)
        name = f"rpc.server.v{VERSION}.{uuid.uuid4().hex}"
        queue = await self._channel.declare_queue(name, exclusive=True, auto_delete=True)
        number = experiments.experiment_number(secret)
        session = AgentSession(office, secret, mode_of(request), number, self._wire.benchmark)
        reply = message(
            "experiment_response",
            server_rpc_queue=name,
            experiment_secret=secret,
            model_experiment_id=number,
            experiment_timeout=self._wire.lease - min(ANNOUNCED_LESS, self._wire.lease / 5),
        )
        line = PrivateQueue(self, session, queue, (incoming.reply_to, incoming.correlation_id), encode(reply))
        self._sessions[name] = self._lines[name] = line  # if the broker goes now, its queue comes back with the others
        await self._listen(line)
        return line

    async def _listen(self, line: PrivateQueue) -> None:
        """Has a line take requests as they come in.

        By the lower half of the library, which knows channels and no more: with a message and a task of the upper half
        for each of them, a request takes a tenth more of the processor's time.
        """
        channel = await self._channel.get_underlay_channel()
        await channel.basic_consume(line.queue.name, line.take)

    async def _listen_again(self, _: object) -> None:
        """After the broker was gone: the upper half has made the queues anew."""
        for line in list(self._lines.values()):
            await self._listen(line)

    async def _close(self, line: PrivateQueue) -> None:
        """Takes a line out of service for good."""
        self._sessions.pop(line.queue.name, None)
        self._lines.pop(line.queue.name, None)
        deletion = line.queue.delete(if_unused=False, if_empty=False)
        await asyncio.gather(deletion, return_exceptions=True)  # a broker that falls silent has whoever waits cancelled

    async def _office(self, request: Registration, secret: str) -> TrialSource:
        if isinstance(self._dispatcher, SingleDispatcher):
            if self._wire.secret not in (None, secret):
                raise AgentFault("there is no experiment with this secret")
            return experiments.SingleTrial(self._dispatcher)
        if not isinstance(self._dispatcher, TrialDispatcher):
            raise InvalidInput("Protocol 0.8 needs a dispatcher with trials.")
        name = experiments.agent_name(request.model, secret)
        await self._dispatcher.recover()
        if isinstance(request, RequestTrials):
            return await experiments.find_experiment(self._dispatcher, secret)
        trials = await asyncio.to_thread(self._trials, request)
        return experiments.ExperimentTrials(self._dispatcher, name, trials, experiments.registration(request, name))

    def _trials(self, request: RequestExperiment) -> list[Trial]:
        """The trials of a new experiment: by the configuration, or those everybody gets."""
        episode_seed = experiments.episode_seed(request.generator_config or {})
        if self._wire.config is None and isinstance(self._dispatcher, TrialDispatcher):
            return experiments.unhurried(experiments.reseeded(self._dispatcher.trials, request.seed, episode_seed))
        seed = request.seed if request.seed is not None else derive(uuid.uuid4().int, "experiment")
        made = experiments.make_experiment(self._wire.config or ini.ServerConfig(), seed, episode_seed)
        return experiments.unhurried(made)

    async def _patrol(self, connection: Any) -> None:
        """Looks for agents that have not been heard of for too long.

        Without a broker nobody can be heard, nor while this process itself was held up; whoever waits for a reply of
        ours, such as a trial whose engine starts, need not say anything.
        """
        clock, pause = asyncio.get_running_loop().time, min(PATROL_SECONDS, self._wire.lease / 4)
        while True:
            due = clock() + pause
            await asyncio.sleep(pause)
            deaf = not connection.connected.is_set() or clock() > due + pause
            for name, line in list(self._sessions.items()):
                if deaf or line.at_work:
                    line.excuse()
                elif line.session.over:
                    if line.silent() > FAREWELL_SECONDS:
                        await self._close(line)
                elif line.silent() > self._patience(line.session):
                    await self.drop(name, AgentGone(f"The agent said nothing for {line.silent():.0f} s."))

    def _patience(self, session: AgentSession) -> float:
        config = self._wire.config or ini.ServerConfig()
        return self._wire.lease * (config.training_timeout_multiplier if session.training_gap else 1.0)

    async def fail(self, name: str, fault: OpenfieldError) -> None:
        """Ends a session that failed, or all of them if nothing can be written: who comes anew may find room."""
        for each in list(self._sessions) if isinstance(fault, JournalError) else [name]:
            await self.drop(each, fault)

    async def drop(self, name: str, fault: OpenfieldError) -> None:
        """Ends a session; the trial of an agent that is gone is offered again."""
        line = self._sessions.pop(name, None)
        if line is None:
            return
        line.dropped = str(fault)
        self._lines[name] = self._lines.pop(name)  # the last to be forgotten
        remote, line.session.remote = line.session.remote, None  # a world is large, and the line stays
        if remote is not None and isinstance(self._dispatcher, TrialDispatcher):
            with suppress(OpenfieldError):  # what cannot be booked, on a full disk, must still be told
                await self._dispatcher.leave(remote.session, fault)
        for old in [line for line in self._lines.values() if line.dropped][:-MAX_DROPPED]:
            await self._close(old)

    async def send(self, asked: Any, body: bytes) -> None:
        """Replies to a request with these properties, once there is a broker; if it goes again, the agent will ask."""
        reply = type(asked)(correlation_id=asked.correlation_id, delivery_mode=1)
        with suppress(*self._lost):
            await self._channel.ready()
            channel = await self._channel.get_underlay_channel()
            await channel.basic_publish(body, routing_key=asked.reply_to, properties=reply, wait=False)

    async def _send_surely(self, incoming: Any, body: bytes) -> bool:
        """Replies, and says whether there was a queue to reply to."""
        for channel in (self._channel, self._sure_channel):  # which come back one after the other, queues last
            await channel.ready()
        try:
            await self._sure_channel.default_exchange.publish(
                self._pika.Message(body, correlation_id=incoming.correlation_id, delivery_mode=1), incoming.reply_to
            )
        except self._pika.exceptions.DeliveryError:
            return False
        return True


def without_password(url: str) -> str:
    """Where a broker is, for everybody to read."""
    head, at, tail = url.rpartition("@")
    return f"amqp://...@{tail}" if at and head else url
