"""The TCP server that agents of this game connect to, unchanged.

A thin shell around protocol and dialogue: it reads bytes, has the dialogue answer, and writes each reply in one piece.
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

from openfield.core import Ask, Reply
from openfield.domains.birds.queries import LEVEL_LOOKS, nothing_to_see
from openfield.domains.birds.wire.connection import Table
from openfield.domains.birds.wire.conversation import OBSERVER_CODES, Do, Done, Look, Talk
from openfield.domains.birds.wire.messages import BadFrame, Request, RequestReader
from openfield.errors import AgentFault, InvalidInput, OpenfieldError
from openfield.serving.listen import check_port, receiving

if TYPE_CHECKING:
    from openfield.serving.dispatch import Dispatcher
    from openfield.serving.remote import RemoteRollout

PORT, OBSERVER_PORT = 2004, 2006
READ_BYTES = 1 << 16
STATE = 12
"""The request that tells an agent whether all is over."""
FIRST_SECRET, LAST_TEAM = 100_000, 2**32 - 1
"""Teams have any number; one that is to be a secret is not a small one."""
NO_NAME = "remote"
"""What `serve` calls agents unless it is told otherwise."""


@dataclass
class BirdsWire:
    """Serves the protocol of the game."""

    port: int = PORT
    observer_port: int | None = None
    """Where observers connect; if not given, 2006 beside the usual port, else any free one."""
    gtshoot_ints: int = 6
    """How many numbers request 38 has: newer clients send 6, older ones 5."""
    agent: str = NO_NAME
    """What agents are called, with their team's number behind it."""
    token: str | None = None
    """The numbers of the teams that are let in, joined by commas; None lets everybody in.

    Agents of this game have no other secret they could show: they are started with the number of their team.
    """

    async def serve(self, dispatcher: Dispatcher, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serves until cancelled."""
        if self.gtshoot_ints not in (5, 6):
            raise InvalidInput(f"--gtshoot-ints is 5 or 6, not {self.gtshoot_ints}.")
        check_port(self.observer_port, "--observer-port")
        hall = Hall(dispatcher, self.gtshoot_ints, self.agent, None if self.token is None else read_token(self.token))
        async with AsyncExitStack() as open_ports:
            opened = await open_ports.enter_async_context(receiving(hall.meet_agent, host, port))
            await self._open_observers(open_ports, hall, host, port)
            ready(opened)
            await asyncio.Event().wait()

    async def _open_observers(self, open_ports: AsyncExitStack, hall: Hall, host: str, port: int) -> None:
        usual = OBSERVER_PORT if port == PORT else 0
        wanted = usual if self.observer_port is None else self.observer_port
        try:
            hall.observer_port = await open_ports.enter_async_context(receiving(hall.meet_observer, host, wanted))
        except OSError as error:
            if self.observer_port is not None:
                raise InvalidInput(f"Port {wanted} for observers cannot be opened: {error.strerror}.") from None
            warnings.warn(f"Port {wanted} is taken; observers cannot connect.", stacklevel=2)


def read_token(token: str) -> list[int]:
    """The numbers of teams behind a token."""
    numbers = [int(part) if part.isdecimal() else 0 for part in token.replace(" ", "").split(",")]
    if not all(FIRST_SECRET <= number <= LAST_TEAM for number in numbers):
        raise InvalidInput(
            "Agents of birds can show no token but the number of their team: --token 8472913, or several joined by "
            f"commas, each from {FIRST_SECRET:,} to {LAST_TEAM:,}."
        )
    return numbers


class Hall:
    """Leads agents to their tables, each with a game of its own."""

    def __init__(self, dispatcher: Dispatcher, gtshoot_ints: int, agent: str, teams: list[int] | None = None) -> None:
        self._dispatcher, self._gtshoot_ints, self._agent, self._teams = dispatcher, gtshoot_ints, agent, teams
        self._tables: dict[str, Table] = {}
        self._doors: defaultdict[int | None, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._latest = Table("")
        self.observer_port = 0

    async def meet_agent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talks with an agent until it leaves or says what cannot be understood."""
        requests, table = RequestReader(self._gtshoot_ints), None
        try:
            while data := await reader.read(READ_BYTES):
                for request in requests.feed(data):
                    if table is None or request.code == 1:
                        table = await self._change_table(table, request, writer)
                    await _send(writer, await self._serve(table, request))
        except (BadFrame, ConnectionError, OpenfieldError):
            pass  # the record stands; the same team may come back, and the others are not concerned
        finally:
            await self._stand_up(table, writer)
            writer.close()

    async def meet_observer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lets somebody look at the game of a team, or at the one that came last."""
        requests, table, known = RequestReader(self._gtshoot_ints), None, self._teams is None
        with suppress(BadFrame, ConnectionError, OpenfieldError):
            while data := await reader.read(READ_BYTES):
                for request in requests.feed(data):
                    if request.code == 1 or not known:
                        table, known = self._tables.get(self._name(request)), True
                    seen = table or self._latest
                    if request.code in OBSERVER_CODES:
                        async with seen.lock:
                            answer = await self._follow(seen, seen.dialogue.observe(request))
                        await _send(writer, answer)
        writer.close()

    async def _change_table(self, old: Table | None, request: Request, writer: asyncio.StreamWriter) -> Table:
        """The table of whoever says who it is, or of a stranger; it goes on where it was."""
        team = request.fields[0] if request.code == 1 else None
        async with self._doors[team]:  # of two connections of a team at once the second finds the table of the first
            name = self._name(request)
            table = self._tables.get(name)
            if table is None:
                table = self._tables[name] = Table(name)
                table.sit(await self._find_seat(name))
                await self._pass_on(table)  # what is on record may be a trial of which nothing is left but words
            if old is not table:
                await self._stand_up(old, writer)
            table.return_to(writer)
        self._latest = table
        return table

    def _name(self, request: Request) -> str:
        """What an agent is called: by its team, or, if it never says which, as the next stranger.

        Where the numbers of teams are secrets, agents are called by the place theirs has among them.
        """
        team = "team" if self._agent == NO_NAME else self._agent
        if self._teams is not None:
            if request.code != 1 or request.fields[0] not in self._teams:
                raise AgentFault("Here only agents are let in that say the number of a team which is known.")
            return f"{team}-{self._teams.index(request.fields[0]) + 1}"
        if request.code == 1:
            return f"{team}-{request.fields[0]}"
        names = itertools.chain([self._agent], (f"{self._agent}.{number}" for number in itertools.count(2)))
        return next(name for name in names if name not in self._tables or self._tables[name].writer is None)

    async def _stand_up(self, table: Table | None, writer: asyncio.StreamWriter) -> None:
        """Leaves a table, unless the agent has come back to it over another connection."""
        if table is None or table.writer is not writer:
            return
        table.writer, table.left = None, time.monotonic()
        with suppress(ConnectionError, OpenfieldError):  # the server ends, or cannot write: the record is gone on with
            async with table.lock:
                await table.finish()
        if table.writer is None:
            table.leave()

    async def _find_seat(self, name: str) -> RemoteRollout | None:
        try:
            return await self._dispatcher.join(name)
        except AgentFault:  # all its trials are played
            return None

    async def _serve(self, table: Table, request: Request) -> bytes:
        async with table.lock:
            elapsed, table.heard = time.monotonic() - table.heard, time.monotonic()
            talk = table.dialogue.answer(request, elapsed, time.monotonic() - table.replied)
            answer = await self._follow(table, talk)
            if request.code == STATE and table.remote is None:
                await table.finish()  # it knows now that all is over
            return answer

    async def _follow(self, table: Table, talk: Talk) -> bytes:
        """Looks at and does what the dialogue asks for until it has its answer."""
        answer: Any = None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as end:
                return bytes(end.value)
            if isinstance(step, Look):
                answer = await self._see(table, step.query)
            else:
                answer = await self._do(table, step)

    async def _see(self, table: Table, query: str) -> Any:
        world = table.before if table.before is not None and query in LEVEL_LOOKS else table.world
        if world is None:
            return nothing_to_see()[query]
        return await asyncio.to_thread(world.look, query)

    async def _do(self, table: Table, step: Do) -> Done:
        """Replies for the agent, passes over what asks for nothing, and goes on to its next trial.

        What is said after the last level of a trial is said of that level, until the agent goes on.
        """
        try:
            if table.ended is not None:
                await table.say(Reply(step.action, step.belief))
                return Done()
            if table.remote is None:
                return Done()
            table.before = None
            done = await self._reply(table.remote, Reply(step.action, step.belief))
        except (OpenfieldError, ConnectionError) as error:
            table.leave(error if isinstance(error, OpenfieldError) else None)
            self._tables = {name: other for name, other in self._tables.items() if other is not table}
            raise
        table.replied = time.monotonic()
        table.dialogue.turn = table.remote.rollout.turn
        await self._pass_on(table)
        return done

    async def _pass_on(self, table: Table) -> None:
        """Goes on from a trial that is over, or of which nothing is left but what is said of its last level."""
        remote = table.remote
        if remote is None or not (remote.rollout.over or table.played_out):
            return
        if remote.rollout.over:
            table.leave()
        following = await self._find_seat(table.name)
        if following is not None and following.rollout is remote.rollout:  # a dispatcher of one trial gives it again
            following.__enter__()
            remote, following = following, None
        table.ended = None if remote.rollout.over else remote
        table.sit(following)

    async def _reply(self, remote: RemoteRollout, reply: Reply) -> Done:
        """What came of a reply; it is read before the last word of a trial, which closes the world.

        The end of a level is passed over when the agent goes on: until then it may say what it thinks of it.
        """
        rollout = remote.rollout
        turn = await remote.reply(reply)
        done = Done(rollout.world.look("result"), rollout.world.look("frames"))
        while turn.ask is Ask.NONE and not rollout.over and not rollout.world.look("lingers"):
            turn = await remote.reply(Reply())
            if not rollout.over:
                done = Done(rollout.world.look("result"), rollout.world.look("frames"))
        return done


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Writes a reply in one piece, if there is still somebody to read it."""
    if writer.is_closing():
        raise ConnectionError("the agent has hung up")
    writer.write(data)
    await writer.drain()
