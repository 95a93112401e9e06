"""The server of protocol 0.8: all sessions on one broker, any number of agents at once.

It carries messages between queues and sessions. An `AgentSession` decides on the answers.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from openfield.domains.doom.wire import experiments, ini, messages
from openfield.domains.doom.wire.messages import REGISTRATION_QUEUE, VERSION, encode_message, error_message, message
from openfield.domains.doom.wire.rpc import load_aio_pika
from openfield.domains.doom.wire.session import AgentSession, mode_of
from openfield.errors import AgentGone, AgentProtocol, InvalidInput, JournalError, OpenfieldError, WorldFault
from openfield.serving.dispatch import SingleDispatcher, TrialDispatcher
from openfield.serving.wire import Dispatcher
from openfield.trial import Trial, derive

if TYPE_CHECKING:
    from openfield.domains.doom.wire.amqp import AmqpWire

PORT = 5672
ANNOUNCED_LESS = 5.0
"""Seconds by which the announced timeout is shorter than ours, as in the original; of a short one a fifth."""
SILENCE_CHECK_SECONDS = 1.0
CONNECT_SECONDS = 30.0
TURN_QUEUE = "openfield.turn"
"""The server that has declared it plays a single cell; the others wait."""
TURN_SECONDS = 0.2
FAREWELL_SECONDS = 10.0
"""How long a finished session still answers."""
MAX_DROPPED = 100
"""Dropped sessions whose agents still learn why; each takes milliseconds when the broker comes back."""
LOG = logging.getLogger(__name__)


class AmqpServer:
    """All sessions on one broker."""

    def __init__(self, options: AmqpWire, dispatcher: Dispatcher, url: str) -> None:
        self._options = options
        self._dispatcher = dispatcher
        self._url = url
        self._active: dict[str, PrivateQueue] = {}
        self._queues: dict[str, PrivateQueue] = {}
        """By their names. The last dropped ones stay, so that agents who come back learn why."""
        self._pika = load_aio_pika()
        self._lost = (self._pika.exceptions.AMQPError, ConnectionError, RuntimeError)
        """The errors that are raised when the broker is gone."""

    @property
    def busy(self) -> bool:
        """True while a message to an agent is still to be sent."""
        return any(not queue.session.over or queue.busy for queue in self._active.values())

    async def run(self, ready: Callable[[int], None]) -> None:
        """Take registrations until cancelled."""
        async with await self._connect() as connection:
            self._channel = await connection.channel(publisher_confirms=False)
            self._sure_channel = await connection.channel(publisher_confirms=True)
            await self._channel.set_qos(prefetch_count=1)
            self._channel.reopen_callbacks.add(self._listen_again)
            if isinstance(self._dispatcher, SingleDispatcher):
                await self._wait_for_turn(connection)
            registrations = await self._registrations()
            await self._remove_unreadable()
            connection.close_callbacks.add(self._connection_lost)
            await registrations.consume(self._register)
            ready(connection.transport.connection.url.port or PORT)
            await self._drop_silent(connection)

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
        """Declare the queue in which all agents register."""
        place = without_password(self._url)
        try:
            return await self._channel.declare_queue(REGISTRATION_QUEUE, durable=True)
        except self._pika.exceptions.ChannelPreconditionFailed:
            raise InvalidInput(
                f"The queue {REGISTRATION_QUEUE} at {place} exists with other properties; the protocol needs it "
                f"durable and shared. Remove it: rabbitmqctl delete_queue {REGISTRATION_QUEUE}"
            ) from None
        except self._pika.exceptions.ChannelClosed as error:
            raise InvalidInput(f"The broker at {place} refuses its queues to this user: {error}") from None

    async def _wait_for_turn(self, connection: Any) -> None:
        """Wait until no other cell plays on this broker: all programs register in the same queue."""
        while True:
            channel = await connection.channel()
            try:
                await channel.declare_queue(TURN_QUEUE, exclusive=True)
                return
            except self._pika.exceptions.ChannelClosed:
                await asyncio.sleep(TURN_SECONDS)

    async def _connection_lost(self, _: object, reason: object) -> None:
        """Remove unreadable registrations before the next connection: one of them may have ended this one."""
        if isinstance(reason, self._pika.exceptions.InvalidFrameError):
            await self._remove_unreadable()

    async def _remove_unreadable(self) -> None:
        """Remove unreadable registrations from the head of their queue.

        The library reads a message's properties before they can be refused. A time stamp beyond the year 9999 or a name
        that is not UTF-8 ends the whole connection, and the broker would send the message again.
        """
        with suppress(*self._lost):
            while not await self._is_readable():
                LOG.warning("A message in %s cannot be read, and is removed.", REGISTRATION_QUEUE)
                await self._is_readable(keep=False)

    async def _is_readable(self, keep: bool = True) -> bool:
        """Check whether the first registration can be read, with a connection that may break."""
        try:
            async with await self._pika.connect(self._url) as connection:
                channel = await connection.channel()
                await (await channel.get_queue(REGISTRATION_QUEUE, ensure=False)).get(no_ack=not keep, fail=False)
        except self._pika.exceptions.InvalidFrameError:
            return False
        return True

    async def _register(self, incoming: Any) -> None:
        """Open a session for a registration, unless its sender is gone; a registration that fails comes once more."""
        try:
            async with incoming.process(requeue=True, reject_on_redelivered=True, ignore_processed=True):
                if incoming.reply_to is not None:
                    await self._answer_registration(incoming)
        except Exception as error:
            if not (isinstance(error, self._lost) or self._channel.is_closed):  # then the library raises anything
                raise
            LOG.info("A registration was lost with the broker: it will come again, or its agent will register again.")

    async def _answer_registration(self, incoming: Any) -> None:
        """Reply to a registration; it comes again if the broker was gone before it was acknowledged."""
        sender = incoming.reply_to, incoming.correlation_id
        again = (queue for queue in self._active.values() if queue.sender == sender and not queue.session.over)
        known = next(again, None) if incoming.correlation_id is not None else None
        try:
            queue = known or await self._open(messages.decode_registration(incoming.body), incoming)
        except OpenfieldError as error:
            await self.send(incoming.properties, encode_message(error_message(type(error).__name__, str(error))))
            return
        if not await self._send_surely(incoming, queue.response) and known is None:
            LOG.info("A registration was stale: its agent is gone.")
            await self._close(queue)

    async def _open(self, request: messages.Registration, incoming: Any) -> PrivateQueue:
        if not request.domain_dict.get("vizdoom"):
            raise AgentProtocol("this server has the domain vizdoom and no other")
        options = self._options
        asked = request.experiment_secret if isinstance(request, messages.RequestTrials) else None
        secret = asked if asked is not None else options.secret or uuid.uuid4().hex
        source = await self._trial_source(request, secret)
        name = f"rpc.server.v{VERSION}.{uuid.uuid4().hex}"
        declared = await self._channel.declare_queue(name, exclusive=True, auto_delete=True)
        number = experiments.experiment_number(secret)
        session = AgentSession(source, secret, mode_of(request), number, options.benchmark)
        response = message(
            "experiment_response",
            server_rpc_queue=name,
            experiment_secret=secret,
            model_experiment_id=number,
            experiment_timeout=max(1, round(options.lease - min(ANNOUNCED_LESS, options.lease / 5))),
        )
        queue = PrivateQueue(
            self, session, declared, (incoming.reply_to, incoming.correlation_id), encode_message(response)
        )
        self._active[name] = self._queues[name] = queue  # if the broker goes now, it comes back with the others
        await self._listen(queue)
        return queue

    async def _listen(self, queue: PrivateQueue) -> None:
        """Let a private queue take requests as they come in.

        This uses the lower half of the library, which knows channels only. The upper half makes a message and a task
        for each request, which takes a tenth more processor time.
        """
        channel = await self._channel.get_underlay_channel()
        await channel.basic_consume(queue.declared.name, queue.take)

    async def _listen_again(self, _: object) -> None:
        """Listen to all queues after the broker was gone: the upper half of the library has declared them again."""
        for queue in list(self._queues.values()):
            await self._listen(queue)

    async def _close(self, queue: PrivateQueue) -> None:
        """Delete a private queue."""
        self._active.pop(queue.declared.name, None)
        self._queues.pop(queue.declared.name, None)
        deletion = queue.declared.delete(if_unused=False, if_empty=False)
        await asyncio.gather(deletion, return_exceptions=True)  # a broker that falls silent cancels what waits for it

    async def _trial_source(self, request: messages.Registration, secret: str) -> experiments.TrialSource:
        if isinstance(self._dispatcher, SingleDispatcher):
            return experiments.SingleTrial(self._dispatcher, self._options.secret or secret, secret)
        if not isinstance(self._dispatcher, TrialDispatcher):
            raise InvalidInput("Protocol 0.8 needs a dispatcher with trials.")
        name = experiments.agent_name(request.model, secret)
        await self._dispatcher.recover()
        if isinstance(request, messages.RequestTrials):
            return await experiments.find_experiment(self._dispatcher, secret)
        trials = await asyncio.to_thread(self._trials, request)
        fact = experiments.describe_registration(request, name)
        return experiments.ExperimentTrials(self._dispatcher, name, trials, fact)

    def _trials(self, request: messages.RequestExperiment) -> list[Trial]:
        """Return the trials of a new experiment: those of the configuration, or those of the command."""
        episode_seed = experiments.episode_seed(request.generator_config or {})
        if self._options.config is None and isinstance(self._dispatcher, TrialDispatcher):
            return experiments.without_reply_limits(
                experiments.reseeded(self._dispatcher.trials, request.seed, episode_seed)
            )
        drawn = request.seed is None
        seed = derive(uuid.uuid4().int, "experiment") if request.seed is None else request.seed
        config = self._options.config or ini.ServerConfig()
        epoch = time.time() if drawn and episode_seed is None else None  # with a seed, two runs show the same
        return experiments.without_reply_limits(experiments.make_experiment_trials(config, seed, episode_seed, epoch))

    async def _drop_silent(self, connection: Any) -> None:
        """Drop agents that have been silent for too long.

        Silence does not count while there is no broker, while this process was held up, or while the agent waits for a
        reply, for example for an engine that starts.
        """
        clock, pause = asyncio.get_running_loop().time, min(SILENCE_CHECK_SECONDS, self._options.lease / 4)
        slow = (self._options.config or ini.ServerConfig()).training_timeout_multiplier
        while True:
            due = clock() + pause
            await asyncio.sleep(pause)
            deaf = not connection.connected.is_set() or clock() > due + pause
            for name, queue in list(self._active.items()):
                if deaf or queue.busy:
                    queue.reset_silence()
                elif queue.session.over:
                    if queue.silence() > FAREWELL_SECONDS:
                        await self._close(queue)
                elif queue.silence() > self._options.lease * (slow if queue.session.training_gap else 1.0):
                    await self.drop(name, AgentGone(f"The agent said nothing for {queue.silence():.0f} s."))

    async def fail(self, name: str, fault: OpenfieldError) -> None:
        """Drop a session that failed, or all of them if the journal cannot be written: new ones may find room."""
        for each in list(self._active) if isinstance(fault, JournalError) else [name]:
            await self.drop(each, fault)

    async def drop(self, name: str, fault: OpenfieldError) -> None:
        """End a session; the trial of an agent that is gone is offered again."""
        queue = self._active.pop(name, None)
        if queue is None:
            return
        queue.dropped = str(fault)
        self._queues[name] = self._queues.pop(name)  # the last to be forgotten
        remote, queue.session.remote = queue.session.remote, None  # a world is large, and the queue stays
        if remote is not None and isinstance(self._dispatcher, TrialDispatcher):
            with suppress(OpenfieldError):  # what cannot be recorded, on a full disk, must still be answered
                await self._dispatcher.leave(remote.session, fault)
        for old in [queue for queue in self._queues.values() if queue.dropped][:-MAX_DROPPED]:
            await self._close(old)

    async def send(self, asked: Any, body: bytes) -> None:
        """Reply to a request with these properties once there is a broker; if it goes again, the agent will repeat."""
        reply = type(asked)(correlation_id=asked.correlation_id, delivery_mode=1)
        with suppress(*self._lost):
            await self._channel.ready()
            channel = await self._channel.get_underlay_channel()
            await channel.basic_publish(body, routing_key=asked.reply_to, properties=reply, wait=False)

    async def _send_surely(self, incoming: Any, body: bytes) -> bool:
        """Reply, and return whether there was a queue to reply to."""
        for channel in (self._channel, self._sure_channel):  # they come back one after the other, queues last
            await channel.ready()
        try:
            await self._sure_channel.default_exchange.publish(
                self._pika.Message(body, correlation_id=incoming.correlation_id, delivery_mode=1), incoming.reply_to
            )
        except self._pika.exceptions.DeliveryError:
            return False
        return True


class PrivateQueue:
    """The queue of one session: takes one request at a time and answers a repeated one as before."""

    def __init__(
        self, server: AmqpServer, session: AgentSession, declared: Any, sender: tuple[str | None, ...], response: bytes
    ) -> None:
        self._server = server
        self.session = session
        self.declared = declared
        """The queue as the library knows it."""
        self.sender = sender
        """Where the reply to the registration went, and its id; a repeated registration has the same."""
        self.response = response
        """The reply to the registration."""
        self._lock = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self._last: tuple[str | None, bytes] = (None, b"")
        self.dropped = ""
        """Why the session was dropped, for an agent that comes back."""
        self.reset_silence()

    @property
    def busy(self) -> bool:
        """True while a request is being handled."""
        return self._lock.locked()

    def silence(self) -> float:
        """Return the seconds since the agent's last message."""
        return asyncio.get_running_loop().time() - self._heard

    def reset_silence(self) -> None:
        """Count the agent's silence from now on."""
        self._heard = asyncio.get_running_loop().time()

    async def take(self, incoming: Any) -> None:
        """Handle a request to its end: if the connection breaks meanwhile, the same request will come again."""
        work = asyncio.create_task(self._handle(incoming))  # this callback would be cancelled with the connection
        self._under_way.add(work)
        work.add_done_callback(self._under_way.discard)

    async def _handle(self, incoming: Any) -> None:
        """Reply to a request, and acknowledge it only then."""
        async with self._lock:
            self.reset_silence()
            asked, (known, body) = incoming.header.properties, self._last
            if known is None or known != asked.correlation_id:
                body = await self._answer(incoming.body)
                self._last = asked.correlation_id, body
            if asked.reply_to is not None:
                await self._server.send(asked, body)
            with suppress(Exception):  # a broker that is gone has forgotten it by itself
                await incoming.channel.basic_ack(incoming.delivery_tag, wait=False)
            self.reset_silence()

    async def _answer(self, body: bytes) -> bytes:
        if self.dropped:
            return encode_message(message("experiment_exception", message=self.dropped))
        try:
            return encode_message(await self.session.handle(messages.decode_request(body)))
        except AgentProtocol as error:
            return encode_message(error_message(type(error).__name__, str(error)))
        except Exception as error:
            fault = error if isinstance(error, OpenfieldError) else WorldFault(f"{type(error).__name__}: {error}")
            LOG.error("A session failed: %s", fault, exc_info=LOG.isEnabledFor(logging.DEBUG))
            await self._server.fail(self.declared.name, fault)
            return encode_message(message("experiment_exception", message=str(fault)))


def without_password(url: str) -> str:
    """Return a broker's address without user and password."""
    head, at, tail = url.rpartition("@")
    return f"amqp://...@{tail}" if at and head else url
