"""Pass the connections of a program in a sandbox without a network on to its server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

READ_BYTES = 1 << 16


@asynccontextmanager
async def forwarding(listening: socket.socket | None, host: str, port: int) -> AsyncIterator[None]:
    """Accept connections on a socket that was opened inside the sandbox; None forwards nothing.

    Args:
        listening: The socket, see `listener`.
        host: Where the server is.
        port: On which port.
    """
    if listening is None:
        yield
        return
    talks: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(begun := asyncio.ensure_future(_talk(reader, writer, host, port)))
        begun.add_done_callback(talks.discard)

    server = await asyncio.start_server(begin, sock=listening)
    try:
        yield
    finally:
        server.close()
        for begun in talks:
            begun.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    """Pass on everything in both directions."""
    try:
        answers, questions = await asyncio.open_connection(host, port)
        try:
            await asyncio.gather(_pass_on(reader, questions), _pass_on(answers, writer))
        finally:
            questions.close()
    except OSError:  # the server takes no more connections, or one side broke off
        pass
    finally:
        writer.close()


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(READ_BYTES):
        target.write(data)
        await target.drain()
    with suppress(OSError):
        target.write_eof()
