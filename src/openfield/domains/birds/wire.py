"""The TCP server that agents of this game connect to, unchanged.

A thin shell around protocol and dialogue: it reads bytes, has the dialogue answer, and writes each reply in one piece.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openfield.core import Ask, Reply, Turn
from openfield.domains.birds.dialogue import OBSERVER_CODES, Dialogue, Do, Look
from openfield.domains.birds.protocol import BadFrame, Request, RequestReader
from openfield.errors import AgentFault, InvalidInput, OpenfieldError

if TYPE_CHECKING:
    from openfield.serve import Desk, Seat

PORT, OBSERVER_PORT = 2004, 2006
READ_BYTES = 1 << 16


@dataclass
class BirdsWire:
    """Serves the protocol of the game."""

    port: int = PORT
    observer_port: int | None = None
    """Where observers connect; if not given, 2006 beside the usual port, else any free one."""
    gtshoot_ints: int = 6
    """How many numbers request 38 has: newer clients send 6, older ones 5."""

    async def serve(self, desk: Desk, host: str, port: int, ready: Callable[[int], None]) -> None:
        """Serves until cancelled."""
        if self.gtshoot_ints not in (5, 6):
            raise InvalidInput(f"--gtshoot-ints is 5 or 6, not {self.gtshoot_ints}.")
        hall = Hall(desk, self.gtshoot_ints)
        server = await asyncio.start_server(hall.meet_agent, host, port)
        watching = await self._open_observers(hall, host, port)
        ready(server.sockets[0].getsockname()[1])
        try:
            async with server:
                await server.serve_forever()
        finally:
            if watching is not None:
                watching.close()

    async def _open_observers(self, hall: Hall, host: str, port: int) -> asyncio.Server | None:
        usual = OBSERVER_PORT if port == PORT else 0
        wanted = usual if self.observer_port is None else self.observer_port
        try:
            server = await asyncio.start_server(hall.meet_observer, host, wanted)
        except OSError as error:
            if self.observer_port is not None:
                raise InvalidInput(f"Port {wanted} for observers cannot be opened: {error.strerror}.") from None
            warnings.warn(f"Port {wanted} is taken; observers cannot connect.", stacklevel=2)
            return None
        hall.observer_port = server.sockets[0].getsockname()[1]
        return server


class Table:
    """Where a team plays: its seat, and what is said there. It outlives a broken connection."""

    def __init__(self, seat: Seat, name: str) -> None:
        self.name = name
        self.lock = asyncio.Lock()
        self.writer: asyncio.StreamWriter | None = None
        self.done = False
        """Whether all trials are played."""
        self.heard = time.monotonic()
        self.dialogue = Dialogue(seat.rollout.turn)
        self.sit(seat)

    def sit(self, seat: Seat) -> None:
        """Takes a seat: the first, or that of the next trial."""
        self.seat = seat.__enter__()

    def return_to(self, writer: asyncio.StreamWriter) -> None:
        """Goes on over another connection; the old one is closed."""
        if self.writer is not None and self.writer is not writer:
            self.writer.close()
        self.writer = writer
        self.seat.__enter__()

    def leave(self, error: OpenfieldError | None = None) -> None:
        """Leaves the seat, because its trial is over, the connection broke, or the agent failed."""
        self.seat.__exit__(None, error, None)


class Hall:
    """Leads agents to their tables, each with a game of its own."""

    def __init__(self, desk: Desk, gtshoot_ints: int) -> None:
        self._desk, self._gtshoot_ints = desk, gtshoot_ints
        self._tables: dict[int, Table] = {}
        self._latest: Table | None = None
        self.observer_port = 0

    async def meet_agent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talks with an agent until it leaves or says what cannot be understood."""
        requests, table = RequestReader(self._gtshoot_ints), None
        try:
            while data := await reader.read(READ_BYTES):
                for request in requests.feed(data):
                    if table is None or request.code == 1:
                        table = await self._table(request, writer)
                    writer.write(await self._serve(table, request))
                    await writer.drain()
        except (BadFrame, ConnectionError, OpenfieldError):
            pass  # the record stands; the same team may come back, and the others are not concerned
        finally:
            if table is not None and table.writer is writer and not table.done:
                table.leave()
            writer.close()

    async def meet_observer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Lets somebody look at the game of a team, or at the one that came last."""
        requests, table = RequestReader(self._gtshoot_ints), None
        with suppress(BadFrame, ConnectionError, OpenfieldError):
            while data := await reader.read(READ_BYTES):
                for request in requests.feed(data):
                    if request.code == 1:
                        table = self._tables.get(request.fields[0])
                    seen = table or self._latest
                    if seen is not None and request.code in OBSERVER_CODES:
                        async with seen.lock:
                            writer.write(await self._answer(seen, request, 0.0, observing=True))
                        await writer.drain()
        writer.close()

    async def _table(self, request: Request, writer: asyncio.StreamWriter) -> Table:
        """The table of a team; one that never said who it is, is team 0."""
        team = request.fields[0] if request.code == 1 else 0
        table = self._tables.get(team)
        if table is None:
            name = f"team-{team}"
            table = self._tables[team] = Table(await self._desk.seat(name), name)
        if not table.done:
            table.return_to(writer)
        self._latest = table
        return table

    async def _serve(self, table: Table, request: Request) -> bytes:
        async with table.lock:
            elapsed, table.heard = time.monotonic() - table.heard, time.monotonic()
            return await self._answer(table, request, elapsed)

    async def _answer(self, table: Table, request: Request, elapsed: float, observing: bool = False) -> bytes:
        """Does what the dialogue asks for until it has its answer; for observers nothing is done and no time passes."""
        talk = table.dialogue.answer(request, elapsed)
        answer: Any = None
        while True:
            try:
                step = talk.send(answer)
            except StopIteration as end:
                return bytes(end.value)
            if isinstance(step, Look):
                answer = await self._see(table, step.query)
            elif not observing:
                answer = await self._do(table, step)

    async def _see(self, table: Table, query: str) -> Any:
        return await asyncio.to_thread(table.seat.rollout.world.look, query)

    async def _do(self, table: Table, step: Do) -> Turn:
        """Replies for the agent, passes over what asks for nothing, and goes on to its next trial."""
        if table.done:
            return table.dialogue.turn
        try:
            await table.seat.reply(Reply(step.action, step.belief))
            while table.seat.rollout.turn.ask is Ask.NONE and not table.seat.rollout.over:
                await table.seat.reply(Reply())
        except (OpenfieldError, ConnectionError) as error:
            table.leave(error if isinstance(error, OpenfieldError) else None)
            self._tables = {team: other for team, other in self._tables.items() if other is not table}
            raise
        if table.seat.rollout.over:
            await self._next_trial(table)
        table.dialogue.turn = table.seat.rollout.turn
        return table.dialogue.turn

    async def _next_trial(self, table: Table) -> None:
        table.leave()
        try:
            table.sit(await self._desk.seat(table.name))
        except AgentFault:
            table.done = True
