"""Listen on a port: check host and port, choose the event loop, and explain why an address cannot be used."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from openfield.errors import InvalidInput

LAST_PORT = 65_535
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the event loop: uvloop if it is installed, else Python's own."""
    try:
        import uvloop
    except ImportError:
        return None
    made: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return made


def check_exposure(host: str, token: str | None) -> None:
    """Refuse to open a server to other machines without a token."""
    if host not in ("127.0.0.1", "localhost", "::1") and not token:
        raise InvalidInput(f"Serving on {host} lets other machines in; that needs a token: --token SECRET.")


@asynccontextmanager
async def receiving(talk: Talk, host: str, port: int, **options: Any) -> AsyncIterator[int]:
    """Serve every connection as a task of its own, and yield the port. In the end all tasks are cancelled.

    The tasks are our own: those that Python starts for a server print long complaints when they are cancelled.
    """
    talks: dict[asyncio.Future[None], asyncio.StreamWriter] = {}

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks[begun := asyncio.ensure_future(talk(reader, writer))] = writer
        begun.add_done_callback(talks.pop)

    server = await asyncio.start_server(begin, host, port, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        going_on = list(talks.items())
        for begun, _ in going_on:
            begun.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        for _, writer in going_on:
            writer.transport.abort()  # one that had not begun yet has closed nothing
        await asyncio.sleep(0)  # connections are closed in the next turn of the loop


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
    """Refuse a number that is no port: some event loops take it for another one."""
    if port is not None and not 0 <= port <= LAST_PORT:
        raise InvalidInput(f"{flag} is a number from 0 to {LAST_PORT:,}, not {port}.")
