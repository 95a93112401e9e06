"""Connections that break leave nothing behind, however many there are."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from openfield.domains.ond.server.http import HttpConnection, serve_http
from support.connections import break_off, count_live
from support.ond.connections import GET, POST, Asked, make_echo

KINDS = (HttpConnection, RequestResponseCycle, asyncio.Task, asyncio.TimerHandle, asyncio.Transport, Asked)
SENT = (b"", GET[:9], GET, POST[:-2], POST, POST + GET[:9], b"junk\r\n\r\n", GET + GET)
"""What a client has sent when its connection breaks."""


async def ask(port: int) -> bytes:
    """Makes a request and waits for its answer, and so for the server to have seen what came before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GET.replace(b"Host: x", b"Connection: close"))
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.slow
def test_broken_connections_leave_no_objects_behind() -> None:
    counts: list[Counter[str]] = []
    asked: list[Asked] = []

    async def count(opened: asyncio.Future[int]) -> None:
        port = await opened
        for _ in range(3):
            for sent in SENT * 25:
                await break_off(port, sent)
            assert b"200 OK" in await ask(port)
            asked.clear()
            for _ in range(100):  # the last ones may still be being closed
                if not count_live(*KINDS)["HttpConnection"]:
                    break
                await ask(port)
            asked.clear()
            counts.append(count_live(*KINDS))

    async def serve() -> None:
        opened: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve_http(make_echo(asked), "127.0.0.1", 0, opened.set_result))
        await count(opened)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(serve())
    assert counts[0]["HttpConnection"] == 0
    assert counts[0] == counts[1] == counts[2]
