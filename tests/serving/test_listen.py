"""Connections: what they leave behind."""

from __future__ import annotations

import asyncio
import gc
import socket
import tracemalloc
from contextlib import suppress

from openfield.serving.listen import receiving

REPLY = 4_000_000
"""More than the system takes at once, so that a part waits in the connection."""


def test_a_stranger_that_leaves_before_its_reply_costs_no_memory() -> None:
    met = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(await reader.read(100))
        with suppress(ConnectionError):
            for _ in range(10):
                reply = bytes(REPLY)
                writer.write(reply)
                await writer.drain()
        writer.close()

    async def serve() -> int:
        async with receiving(talk, "127.0.0.1", 0) as port:
            for _ in range(10):
                with socket.create_connection(("127.0.0.1", port)) as stranger:
                    stranger.sendall(b"GET / HTTP/1.0\r\n\r\n")
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.2)
            return tracemalloc.get_traced_memory()[0]

    gc.collect()
    gc.disable()  # a server looks for cycles seldom
    tracemalloc.start()
    try:
        left = asyncio.run(serve())
    finally:
        tracemalloc.stop()
        gc.enable()
    assert len(met) == 10
    assert left < REPLY
