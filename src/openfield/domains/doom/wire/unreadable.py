"""Takes messages out of a queue that cannot be read: each ends the connection it comes through, and would come again.

At the rim, beside `server`. The library reads a message's properties before anybody can refuse it: a time stamp beyond
the year 9999 or a name that is not UTF-8 is an error of the whole connection, and the broker keeps what was not taken.
"""

from __future__ import annotations

import logging
from typing import Any

LOG = logging.getLogger(__name__)


async def drop_unreadable(pika: Any, url: str, queue: str) -> None:
    """Removes unreadable messages from the head of a queue; one that can be read stays where it is."""
    while not await _is_readable(pika, url, queue):
        LOG.warning("A message in %s cannot be read, and is removed.", queue)
        await _is_readable(pika, url, queue, keep=False)


async def _is_readable(pika: Any, url: str, queue: str, keep: bool = True) -> bool:
    """Whether the first message of a queue can be read, by a connection that may break of it."""
    try:
        async with await pika.connect(url) as connection:
            channel = await connection.channel()
            await (await channel.get_queue(queue, ensure=False)).get(no_ack=not keep, fail=False)
    except pika.exceptions.InvalidFrameError:
        return False
    return True
