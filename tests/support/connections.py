"""Connections that break, and what they leave behind in memory."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
from collections import Counter


def count_live(*kinds: type) -> Counter[str]:
    """Count the objects of these kinds, timers included; a loop drops cancelled timers when it likes."""
    gc.collect()
    found = [one for one in gc.get_objects() if isinstance(one, kinds)]
    return Counter(
        type(one).__name__ for one in found if not (isinstance(one, asyncio.TimerHandle) and one.cancelled())
    )


async def break_off(port: int, sent: bytes) -> None:
    """Open a connection, write something, and reset it."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    await writer.drain()
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing sends a reset
    writer.transport.abort()
