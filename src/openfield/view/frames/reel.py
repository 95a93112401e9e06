"""The pictures of one episode, which several readers may follow while they are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager

from openfield.view.frames.messages import EpisodeOrder, TurnPicture

MAX_REEL_BYTES = 96 << 20
"""Bytes of the pictures of one episode; the rest is left out, and the page says so."""


class Reel:
    """The pictures of an episode, as far as they are made."""

    def __init__(self, order: EpisodeOrder, left: Callable[[], None] | None = None) -> None:
        """Begin without pictures; `left` is called when the last reader has gone."""
        self.order, self._left = order, left
        self.milliseconds: float | None = None
        """How long each picture is shown; None until the replay begins."""
        self.frames: list[TurnPicture] = []
        self.size = 0
        """Bytes of all pictures."""
        self.over = False
        self.message = ""
        """Why there are no more pictures, if it is not the end of the episode."""
        self.again = False
        """Whether they may come if they are asked for again: what kept them was no fault of the episode."""
        self.replayed = -1
        """The turn that the replay has reached."""
        self.watchers = 0
        self.was_watched = False
        """Whether there was a reader, who may be gone; the one who asked for it needs a moment to begin."""
        self._changed = asyncio.Event()

    @property
    def is_whole(self) -> bool:
        """Whether all pictures of the episode were made."""
        return self.over and not self.message

    def add(self, frame: TurnPicture) -> None:
        """Add a picture."""
        self.frames.append(frame)
        self.size += len(frame.data)
        self.reach(frame.turn)

    def reach(self, turn: int) -> None:
        """Note how far the replay is."""
        self.replayed = turn
        self._wake()

    def end(self, message: str = "", again: bool = False) -> None:
        """End the pictures, with the reason if some are missing, and whether to ask again for them."""
        if not self.over:
            self.over, self.message, self.again = True, message, again
            self._wake()

    async def follow(self) -> AsyncGenerator[TurnPicture, None]:
        """Yield all pictures, and wait for those that are still being made."""
        number = 0
        with self._watched():
            while True:
                while number < len(self.frames):
                    yield self.frames[number]
                    number += 1
                if self.over:
                    return
                await self._changed.wait()

    async def picture_at(self, turn: int) -> TurnPicture | None:
        """Return the picture that shows a turn: its last one, or the last one before it; None if there is none."""
        with self._watched():
            while not self.over and self.replayed <= turn:
                await self._changed.wait()
        return next((frame for frame in reversed(self.frames) if frame.turn <= turn), None)

    async def wait_begun(self) -> None:
        """Wait until the replay begins, or fails."""
        with self._watched():
            while self.milliseconds is None and not self.over:
                await self._changed.wait()

    def begin(self, milliseconds: float) -> None:
        """Note that the replay begins."""
        self.milliseconds = milliseconds
        self._wake()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        self.watchers += 1
        self.was_watched = True
        try:
            yield
        finally:
            self.watchers -= 1
            if not self.watchers and self._left is not None:
                self._left()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
