"""The TCP server for agents of the original game.

It reads bytes, executes the commands and queries of the conversation, and writes each reply in one piece.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openfield.core import Ask, Reply, Turn, World
from openfield.domains.birds.queries import answer_query
from openfield.domains.birds.wire.conversation import Answering, CommandResult, Conversation, WireCommand
from openfield.domains.birds.wire.messages import BadFrame, Request, RequestReader
from openfield.errors import AgentFault, InvalidInput, OpenfieldError
from openfield.serving.listen import check_port, receiving

if TYPE_CHECKING:
    from openfield.serving.remote import RemoteRollout
    from openfield.serving.wire import Dispatcher

PORT, OBSERVER_PORT = 2004, 2006
READ_BYTES = 1 << 16
STATE = 12
"""The request by which an agent learns that the evaluation is over."""
OBSERVER_CODES = (1, 11, 61, 62, 63, 64)
MIN_SECRET_TEAM, MAX_TEAM = 100_000, 2**32 - 1
"""A secret team number must not be easy to guess."""
QUERIES_OF_THE_LAST_LEVEL = (
    *("score", "ground truth", "noisy ground truth", "batch", "screenshot", "initial screenshot"),
)
"""Queries that are answered from the trial before until the agent has acted in the next one."""
NO_NAME = "remote"
"""The name that `serve` gives to agents by default."""


@dataclass
class BirdsWire:
    """The wire of birds: its ports and options."""

    port: int = PORT
    observer_port: int | None = None
    """Port for observers; None is 2006 beside the usual port, else any free one."""
    gtshoot_ints: int = 6
    """Numbers in request 38: newer clients send 6, older ones 5."""
    agent: str = NO_NAME
    """The name of agents; the team number is appended."""
    token: str | None = None
    """The team numbers that may connect, joined by commas; None lets every agent in.

    Agents of this game can send no other secret.
    """

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serve until cancelled."""
        if self.gtshoot_ints not in (5, 6):
            raise InvalidInput(f"--gtshoot-ints must be 5 or 6, not {self.gtshoot_ints}.")
        check_port(self.observer_port, "--observer-port")
        server = BirdsServer(dispatcher, self)
        async with AsyncExitStack() as open_ports:
            opened = await open_ports.enter_async_context(receiving(server.meet_agent, host, port))
            await self._open_observers(open_ports, server, host, port)
            ready(opened)
            await asyncio.Event().wait()

    async def _open_observers(self, open_ports: AsyncExitStack, server: BirdsServer, host: str, port: int) -> None:
        usual = OBSERVER_PORT if port == PORT else 0
        wanted = usual if self.observer_port is None else self.observer_port
        try:
            server.observer_port = await open_ports.enter_async_context(receiving(server.meet_observer, host, wanted))
        except OSError as error:
            if self.observer_port is not None:
                raise InvalidInput(f"Port {wanted} for observers cannot be opened: {error.strerror}.") from None
            warnings.warn(f"Port {wanted} is taken; observers cannot connect.", stacklevel=2)


def read_token(token: str) -> list[int]:
    """Return the team numbers in a token."""
    numbers = [int(part) if part.isdecimal() else 0 for part in token.replace(" ", "").split(",")]
    if not all(MIN_SECRET_TEAM <= number <= MAX_TEAM for number in numbers):
        raise InvalidInput(
            "Agents of birds send the number of their team as their token: --token 8472913, or several numbers joined "
            f"by commas, each from {MIN_SECRET_TEAM:,} to {MAX_TEAM:,}."
        )
    return numbers


class BirdsServer:
    """Leads every agent to its session; each agent has a game of its own."""

    def __init__(self, dispatcher: Dispatcher, wire: BirdsWire) -> None:
        self._dispatcher, self._gtshoot_ints, self._agent = dispatcher, wire.gtshoot_ints, wire.agent
        self._teams = None if wire.token is None else read_token(wire.token)
        self._sessions: dict[str, TeamSession] = {}
        self._join_locks: defaultdict[int | None, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._latest = TeamSession("")
        self.observer_port = 0

    async def meet_agent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer an agent until it disconnects or sends bytes that are not a request."""
        requests, session = RequestReader(self._gtshoot_ints), None
        try:
            while data := await reader.read(READ_BYTES):
                for request in requests.feed(data):
                    if session is None or request.code == 1:
                        session = await self._join(session, request, writer)
                    await _send(writer, await self._serve(session, request))
            if session is not None and session.writer is writer and session.remote is not None:
                session.remote.hung_up = True
        except (BadFrame, ConnectionError, OpenfieldError):
            pass  # the record stands; the same team may come back
        finally:
            await self._leave(session, writer)
            writer.close()

    async def meet_observer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer an observer about the game of its team, or about the latest game."""
        requests, session, known = RequestReader(self._gtshoot_ints), None, self._teams is None
        with suppress(BadFrame, ConnectionError, OpenfieldError):
            while data := await reader.read(READ_BYTES):
                for request in requests.feed(data):
                    if request.code == 1 or not known:
                        session, known = self._sessions.get(self._name(request)), True
                    seen = session or self._latest
                    if request.code in OBSERVER_CODES:
                        async with seen.lock:
                            answer = await self._follow(seen, seen.conversation.observe(request))
                        await _send(writer, answer)
        writer.close()

    async def _join(self, old: TeamSession | None, request: Request, writer: asyncio.StreamWriter) -> TeamSession:
        """Return the session of a team, or of a new agent without a team; a known team goes on where it was."""
        team = request.fields[0] if request.code == 1 else None
        async with self._join_locks[team]:  # two connections of one team share a session
            name = self._name(request)
            session = self._sessions.get(name)
            if session is None or session.forgotten:  # then its trial is resumed from the record
                session = self._sessions[name] = TeamSession(name)
                session.take(await self._next_trial(name))
                await self._pass_on(session)  # a recorded trial may have only its last words left
            if old is not session:
                await self._leave(old, writer)
            session.return_to(writer)
        self._latest = session
        return session

    def _name(self, request: Request) -> str:
        """Return the name of an agent: its team, or the next free name if it never sends a team.

        If team numbers are secret, the name has the position of the team in the token instead.
        """
        team = "team" if self._agent == NO_NAME else self._agent
        if self._teams is not None:
            if request.code != 1 or request.fields[0] not in self._teams:
                raise AgentFault("Only agents with a known team number may connect.")
            return f"{team}-{self._teams.index(request.fields[0]) + 1}"
        if request.code == 1:
            return f"{team}-{request.fields[0]}"
        names = itertools.chain([self._agent], (f"{self._agent}.{number}" for number in itertools.count(2)))
        return next(name for name in names if name not in self._sessions or self._sessions[name].writer is None)

    async def _leave(self, session: TeamSession | None, writer: asyncio.StreamWriter) -> None:
        """Leave a session, unless the agent has come back over another connection."""
        if session is None or session.writer is not writer:
            return
        session.writer, session.left = None, time.monotonic()
        with suppress(ConnectionError, OpenfieldError):  # the server ends or cannot write; the run can be resumed
            async with session.lock:
                await session.finish()
        if session.writer is None:
            session.leave()

    async def _next_trial(self, name: str) -> RemoteRollout | None:
        try:
            return await self._dispatcher.join(name)
        except AgentFault:  # all its trials are played
            return None

    async def _serve(self, session: TeamSession, request: Request) -> bytes:
        async with session.lock:
            elapsed, session.heard = time.monotonic() - session.heard, time.monotonic()
            talk = session.conversation.answer(request, elapsed, time.monotonic() - session.replied)
            answer = await self._follow(session, talk)
            if request.code == STATE and session.remote is None:
                await session.finish()  # the agent knows now that the evaluation is over
            return answer

    async def _follow(self, session: TeamSession, talk: Answering) -> bytes:
        """Execute the commands and queries of an answer until it is complete."""
        answer: Any = None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as end:
                return bytes(end.value)
            if isinstance(step, str):
                answer = await self._see(session, step)
            else:
                answer = await self._do(session, step)

    async def _see(self, session: TeamSession, query: str) -> Any:
        world = session.before if session.before is not None and query in QUERIES_OF_THE_LAST_LEVEL else session.world
        if world is None:
            return answer_query(None, query)
        return await asyncio.to_thread(world.look, query)

    async def _do(self, session: TeamSession, step: WireCommand) -> CommandResult:
        """Reply for the agent, skip turns that ask for nothing, and go on to the next trial.

        Words after the last level of a trial belong to that level, until the agent goes on.
        """
        try:
            if session.ended is not None:
                await session.say(Reply(step.action, step.belief))
                return CommandResult()
            if session.remote is None:
                return CommandResult()
            session.before = None
            done = await self._reply(session.remote, Reply(step.action, step.belief))
        except (OpenfieldError, ConnectionError) as error:
            session.leave(error if isinstance(error, OpenfieldError) else None)
            self._sessions = {name: other for name, other in self._sessions.items() if other is not session}
            raise
        session.replied = time.monotonic()
        session.conversation.turn = session.remote.rollout.turn
        await self._pass_on(session)
        return done

    async def _pass_on(self, session: TeamSession) -> None:
        """Go on from a trial that is over, or in which only words about its last level may follow."""
        remote = session.remote
        if remote is None or not (remote.rollout.over or session.played_out):
            return
        if remote.rollout.over:
            session.leave()
        following = await self._next_trial(session.name)
        if following is not None and following.rollout is remote.rollout:  # a dispatcher of one trial returns it again
            following.__enter__()
            remote, following = following, None
        session.ended = None if remote.rollout.over else remote
        session.take(following)

    async def _reply(self, remote: RemoteRollout, reply: Reply) -> CommandResult:
        """Send a reply and return its result, read before the end of the trial closes the world.

        The end of a level is shown until the agent goes on, so that it can report on that level.
        """
        rollout = remote.rollout
        turn = await remote.reply(reply)
        done = CommandResult(rollout.world.look("result"), rollout.world.look("frames"))
        while turn.ask is Ask.NONE and not rollout.over and not rollout.world.look("lingers"):
            turn = await remote.reply(Reply())
            if not rollout.over:
                done = CommandResult(rollout.world.look("result"), rollout.world.look("frames"))
        return done


class TeamSession:
    """What the server knows about one agent."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = asyncio.Lock()
        self.writer: asyncio.StreamWriter | None = None
        """The connection; None while the agent is away."""
        self.heard = self.replied = self.left = time.monotonic()
        """Times of the last request, of the last request that became a reply, and of the last disconnection."""
        self.remote: RemoteRollout | None = None
        """The trial in play; None if nothing is left to play."""
        self.ended: RemoteRollout | None = None
        """The trial before, as long as the agent may still report on its last level."""
        self.world: World | None = None
        """The world that queries read, also after the last trial."""
        self.before: World | None = None
        """The world of the trial before, until the agent has acted in the next one."""
        self.conversation = Conversation(Turn(ask=Ask.NONE))

    @property
    def played_out(self) -> bool:
        """True if the last level of the trial has ended."""
        rollout = None if self.remote is None else self.remote.rollout
        return rollout is not None and rollout.turn.last is not None and rollout.world.over

    @property
    def forgotten(self) -> bool:
        """Whether the agent was away for so long that its rollout was closed."""
        return self.remote is not None and self.remote.closed and not self.remote.rollout.over

    def take(self, remote: RemoteRollout | None) -> None:
        """Take the rollout of the first or the next trial."""
        self.remote = remote
        if remote is not None:
            remote.__enter__()
            self.before, self.world = self.world, remote.rollout.world
            if self.ended is None:
                self.conversation.turn = remote.rollout.turn

    async def say(self, reply: Reply) -> None:
        """Record words about the last trial; any other reply goes on to the next trial."""
        if self.ended is None or not self.ended.rollout.world.stays(reply):  # type: ignore[attr-defined]
            await self.finish()
            return
        try:
            await self.ended.reply(reply)
        except AgentFault as fault:  # the last trial has failed; the next one goes on
            self._part(fault)

    async def finish(self) -> None:
        """Go on from the last trial, if that has not happened yet."""
        if self.ended is not None:
            await self.ended.reply(Reply())
            self._part()

    def _part(self, fault: AgentFault | None = None) -> None:
        remote, self.ended = self.ended, None
        if remote is not None:
            remote.__exit__(None, fault, None)
        if self.remote is not None:
            self.conversation.turn = self.remote.rollout.turn

    def return_to(self, writer: asyncio.StreamWriter) -> None:
        """Continue over another connection, and close the old one."""
        if self.writer is not None and self.writer is not writer:
            self.writer.close()
        if self.writer is None:  # the time away does not count
            away = time.monotonic() - self.left
            self.heard, self.replied = self.heard + away, self.replied + away
        self.writer = writer
        if self.remote is not None:
            self.remote.__enter__()

    def leave(self, error: OpenfieldError | None = None) -> None:
        """Release the rollout, because its trial is over, the connection broke, or the agent failed."""
        for remote in (self.ended, self.remote):
            if remote is not None:
                remote.__exit__(None, error, None)
                error = None


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write a reply in one piece; raise `ConnectionError` if the agent has disconnected."""
    if writer.is_closing():
        raise ConnectionError("the agent has hung up")
    writer.write(data)
    await writer.drain()
