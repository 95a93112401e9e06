"""Listen on a port: check host and port, choose the event loop, and explain why an address cannot be used.

Also checks which server a request was meant for, so that pages of foreign sites cannot use a server.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from openfield.errors import InvalidInput

LAST_PORT = 65_535
MAX_FILES = 16_384
BACKLOG = 1_024
"""Connections that may wait to be accepted: a thousand agents may come at once."""
FORGET_SECONDS = 3_600.0
"""A client that was not seen for so long is forgotten: what it holds is freed, and its trial can be resumed."""
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop: uvloop if it is installed, else Python's own."""
    try:
        import uvloop
    except ImportError:
        return None
    made: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return made


def allow_connections() -> None:
    """Let this process open as many files as the system grants: a thousand agents need more than the usual 1,024."""
    try:
        import resource
    except ImportError:  # not on every system
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_FILES if hard == resource.RLIM_INFINITY else min(MAX_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def is_local(host: str) -> bool:
    """Return whether a server on this address lets no other machine in."""
    return host in ("127.0.0.1", "localhost", "::1")


def check_exposure(host: str, has_token: bool) -> None:
    """Refuse to open a server to other machines without a token."""
    if not is_local(host) and not has_token:
        raise InvalidInput(f"Serving on {host} lets other machines in; that needs a token: --token SECRET.")


def is_own_host(host: str, names: Container[str]) -> bool:
    """Return whether a `Host` is ours: a known name, or an address, which no foreign site can be called by."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name.lower() in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_own_origin(origin: str | None, host: str) -> bool:
    """Return whether a request with this `Origin` is from a page of this server, or from no page at all."""
    return origin is None or origin.lower() in (f"http://{host}".lower(), f"https://{host}".lower())


class MemoryBudget:
    """The bytes that all connections of a server may hold together."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    def take(self, size: int) -> bool:
        """Take some bytes, and return whether there were as many left. Taken are they all the same."""
        self._left -= size
        return self._left >= 0

    def free(self, size: int) -> None:
        """Give back bytes that were taken."""
        self._left += size


class ConnectionTasks:
    """The conversations of a server, each a task of its own.

    The tasks are our own: those that Python starts for a server print long complaints when they are cancelled.
    """

    def __init__(self) -> None:
        self._going_on: dict[asyncio.Future[None], asyncio.WriteTransport] = {}

    def begin(self, talk: Awaitable[None], transport: asyncio.WriteTransport) -> None:
        """Start a conversation."""
        self._going_on[begun := asyncio.ensure_future(talk)] = transport
        begun.add_done_callback(self._going_on.pop)

    @asynccontextmanager
    async def until_closed(self, server: asyncio.Server) -> AsyncIterator[int]:
        """Yield the port of a server. In the end all conversations are cancelled."""
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            going_on = list(self._going_on.items())
            for begun, _ in going_on:
                begun.cancel()
            await asyncio.gather(*self._going_on, return_exceptions=True)
            for _, transport in going_on:
                transport.abort()  # one that had not begun yet has closed nothing
            await asyncio.sleep(0)  # connections are closed in the next turn of the loop


@asynccontextmanager
async def receiving(talk: Talk, host: str, port: int, **options: Any) -> AsyncIterator[int]:
    """Serve every connection as a task of its own, and yield the port. In the end all tasks are cancelled."""
    tasks = ConnectionTasks()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        finally:
            broken = reader.exception()
            if broken is not None:  # its frames hold the last reply, until Python looks for cycles
                broken.__traceback__ = None

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.begin(converse(reader, writer), writer.transport)

    async with tasks.until_closed(await asyncio.start_server(begin, host, port, **options)) as opened:
        yield opened


@contextmanager
def refusing_place(host: str, port: int | None) -> Iterator[None]:
    """Explain why an address cannot be listened on."""
    try:
        yield
    except OSError as error:
        raise refuse_place(error, host, port) from None


def refuse_place(error: OSError, host: str, port: int | None) -> InvalidInput:
    """Return why an address cannot be listened on, and what to change: the host, or the port."""
    where = host if port is None else f"{host}:{port}"
    if isinstance(error, socket.gaierror):
        return InvalidInput(f"Cannot listen on {where}: {error.strerror}. This machine: --host 127.0.0.1.")
    reason = os.strerror(error.errno or 0)  # an event loop's own words repeat the place
    advice = "This machine: --host 127.0.0.1." if error.errno == errno.EADDRNOTAVAIL else "Another port: --port 0."
    return InvalidInput(f"Cannot listen on {where}: {reason}. {advice}")


def check_port(port: int | None, flag: str) -> None:
    """Refuse a number that is not a port: some event loops take it for another one."""
    if port is not None and not 0 <= port <= LAST_PORT:
        raise InvalidInput(f"{flag} is a number from 0 to {LAST_PORT:,}, not {port}.")
