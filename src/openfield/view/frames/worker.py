"""The process that plays episodes again and draws them: `python -P -m openfield.view.frames.worker`.

It may crash or hang: the server ends it then, and starts another one.
"""

from __future__ import annotations

import io
import os
import queue
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from openfield.errors import OpenfieldError, describe_error
from openfield.journal.reader import Run
from openfield.lazy import import_extra
from openfield.processes.channel import Channel, open_channel
from openfield.report.film import EpisodeReplay, write_film
from openfield.view.frames.messages import (
    ORDERS,
    Answer,
    EpisodeOrder,
    Failed,
    Finished,
    Opened,
    Replayed,
    StopOrder,
    TurnPicture,
    WarmOrder,
)

MAX_MEMORY = 6 << 30
"""Bytes of address space: a world that wants more raises an error here and does not take the machine along."""
ALIVE_SECONDS = 0.5
"""How often a worker says that it is alive while it plays turns without a picture."""
SMALL_PICTURE = 160
"""Pixels. Smaller pictures are sent as PNG, because every pixel of them counts; larger ones as JPEG."""
JPEG_QUALITY = 88


class Stopped(Exception):
    """The server does not want any more of this."""


class FrameWorker:
    """Carries out orders one after the other."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._orders: queue.Queue[EpisodeOrder | WarmOrder | None] = queue.Queue()
        self._stop = threading.Event()

    def serve(self) -> None:
        """Carry out orders until the server is gone."""
        threading.Thread(target=self._read, daemon=True).start()
        while (order := self._orders.get()) is not None:
            self._stop.clear()
            if isinstance(order, WarmOrder):
                make_ready(order)
            else:
                self._send(self._try(order))

    def _read(self) -> None:
        """Read orders while others are carried out, so that one can be stopped."""
        with suppress(EOFError, OSError):
            while True:
                order = ORDERS.decode(self._channel.receive())
                if isinstance(order, StopOrder):
                    self._stop.set()
                else:
                    self._orders.put(order)
        self._orders.put(None)
        self._stop.set()

    def _try(self, order: EpisodeOrder) -> Finished | Failed:
        try:
            return Finished(self._make(order))
        except Stopped:
            return Failed("It was stopped for other pictures. Ask again.", again=True)
        except OpenfieldError as error:
            return Failed(str(error))
        except MemoryError:
            return Failed(f"The replay needs more than {MAX_MEMORY >> 30} GB of memory.")
        except Exception as error:
            return Failed(f"The replay failed: {describe_error(error)}")

    def _make(self, order: EpisodeOrder) -> int:
        """Make what was ordered, and return how many pictures it has."""
        with Run(Path(order.run)) as run:
            cell = run.cell(order.cell)
            if order.film:
                return write_film(run, cell, order.episode, Path(order.film), order.trust, self._replayed)
            replay = EpisodeReplay(run, cell, order.episode, order.trust)
            self._send(Opened(replay.milliseconds))
            count = 0
            for picture in replay.pictures(self._replayed):
                self._check()
                self._send(TurnPicture(picture.turn, compress_picture(picture.pixels)))
                count += 1
            return count

    def _replayed(self, turn: int) -> None:
        """Say from time to time that this process is alive."""
        self._check()
        self._channel.beat(ALIVE_SECONDS, msgspec.msgpack.encode(Replayed(turn)))

    def _check(self) -> None:
        """Go no further if no reader wants it any more."""
        if self._stop.is_set():
            raise Stopped

    def _send(self, answer: Answer) -> None:
        self._channel.send(msgspec.msgpack.encode(answer))


def make_ready(order: WarmOrder) -> None:
    """Import what the pictures of a cell need; what goes wrong is reported when they are asked for."""
    with suppress(Exception), Run(Path(order.run)) as run:
        EpisodeReplay(run, run.cell(order.cell), 0, order.trust).close()


def compress_picture(pixels: Any) -> bytes:
    """Return a picture as a file that browsers show."""
    image = import_extra("PIL.Image", "view", "A picture").fromarray(pixels)
    data = io.BytesIO()
    if max(image.size) < SMALL_PICTURE:
        image.save(data, "PNG")
    else:
        image.save(data, "JPEG", quality=JPEG_QUALITY)
    return data.getvalue()


def _limit_memory() -> None:
    """Set the limit where the system has one: Windows has none, macOS refuses it."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


def main() -> None:
    """Serve the process that started this one."""
    _limit_memory()
    FrameWorker(open_channel()).serve()
    os._exit(0)  # without waiting for threads of a domain


if __name__ == "__main__":
    main()
