"""The workers that make pictures, and the pictures made lately.

A worker that says nothing for too long, or ends, costs its order a message; the next order gets a new worker.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from openfield.errors import OpenfieldError
from openfield.processes.program import Guard, ModuleProcess
from openfield.view.frames.messages import (
    ANSWERS,
    MAX_MESSAGE,
    Answer,
    EpisodeOrder,
    Failed,
    Finished,
    Opened,
    Order,
    Replayed,
    StopOrder,
    TurnPicture,
    WarmOrder,
)

MAX_REEL_BYTES = 96 << 20
"""Bytes of the pictures of one episode; the rest is left out, and the page says so."""
MAX_WORKERS = 2
"""Two agents side by side need two."""
MAX_WAITING = 4
"""Orders for pictures that wait for a worker; older ones are given up."""
MAX_FILMS = 16
"""Films that wait for a worker; a further one is to be asked for again."""
MAX_CACHED_BYTES = 256 << 20
PATIENCE_SECONDS = 30.0
"""How long a worker may say nothing. One that replays many turns says so twice a second."""
START_SECONDS = 60.0
"""How long a worker may need until its first answer: it imports the domain."""
MODULE = "openfield.view.frames.worker"


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
        """Whether they may come if they are asked for again: the episode was not to blame for their absence."""
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
        """Return the picture that shows a turn: its last one, or the last one before it, or None."""
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


class WorkerLost(OpenfieldError):
    """A worker crashed, hung or spoke nonsense."""


class WorkerProcess:
    """A process that makes pictures."""

    def __init__(self, patience: float, environment: dict[str, str] | None = None) -> None:
        self._patience, self._environment = patience, environment
        self._answered = False
        self.was_idle = False
        """Whether it had nothing to do before its order, so that its end says nothing about the order."""
        self._module: ModuleProcess | None = None

    async def start(self) -> None:
        """Start the process, unless it runs."""
        if self._module is not None and self._module.process.poll() is None:
            return
        await self.end()
        self._answered = self.was_idle = False
        self._module = ModuleProcess(MODULE, Guard(keep_errors=True), environment=self._environment)
        self._module.channel.wait_at_most(0)

    def send(self, order: Order) -> None:
        """Give an order. If the process has ended, the next answer says so."""
        if self._module is not None:
            with suppress(OSError):
                self._module.channel.send(msgspec.msgpack.encode(order))

    async def receive(self) -> Answer:
        """Return the next answer.

        Raises:
            WorkerLost: There will be none.
        """
        if self._module is None:
            raise WorkerLost("The process that replays was not started.")
        patience = self._patience if self._answered else max(START_SECONDS, self._patience)
        try:
            answer = ANSWERS.decode(await self._module.channel.receive_soon(patience, MAX_MESSAGE))
        except TimeoutError:
            raise WorkerLost(f"The replay did not answer for {patience:g} s and was stopped.") from None
        except (EOFError, OSError):
            said = self._module.guard.last_words()
            raise WorkerLost(f"The process that replays has ended{f': {said[:300]}' if said else '.'}") from None
        except msgspec.DecodeError:
            raise WorkerLost("The process that replays sent something that cannot be read.") from None
        except ValueError:
            raise WorkerLost("The process that replays sent a picture that is too large.") from None
        self._answered = True
        return answer

    async def end(self) -> None:
        """End the process and all that it started."""
        module, self._module = self._module, None
        if module is not None:
            await asyncio.to_thread(module.end)


class FramePool:
    """Makes the pictures of episodes, a few at a time, and keeps those made lately."""

    def __init__(
        self,
        workers: int = MAX_WORKERS,
        patience: float = PATIENCE_SECONDS,
        environment: dict[str, str] | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            workers: How many processes make pictures at the same time.
            patience: Seconds after which a process that says nothing is ended.
            environment: The environment of the processes; by default that of this one.
        """
        self._count = workers
        self._patience, self._environment = patience, environment
        self._reels: OrderedDict[EpisodeOrder, Reel] = OrderedDict()
        self._waiting: list[Reel] = []
        self._busy: dict[WorkerProcess, Reel | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: list[WorkerProcess] = []

    def open_reel(self, order: EpisodeOrder) -> Reel:
        """Return the pictures of an episode: those at hand, or those that are made from now on."""
        reel = self._reels.get(order)
        if reel is not None and not (reel.over and reel.message):
            self._reels.move_to_end(order)
            return reel
        reel = Reel(order, self._dispatch)
        if not order.film:
            self._reels[order] = reel
            self._reels.move_to_end(order)
        if order.film and sum(bool(each.order.film) for each in self._waiting) >= MAX_FILMS:
            reel.end("Many films are being made. Ask again in a moment.", again=True)
            return reel
        self._waiting.append(reel)
        self._dispatch()
        shown = [each for each in self._waiting if not each.order.film]
        for old in shown[:-MAX_WAITING]:  # who leafs through episodes wants the last one
            self._waiting.remove(old)
            self._reels.pop(old.order, None)
            old.end("Other pictures were asked for since. Open this episode again.", again=True)
        return reel

    def warm(self, order: WarmOrder) -> None:
        """Start a worker ahead of the first order for a cell, which then need not wait for it."""
        if not self._idle and not self._busy:
            self._start(None, order)

    async def close(self) -> None:
        """End all workers."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for worker in (*self._idle, *self._busy):
            await worker.end()
        self._idle.clear()
        self._busy.clear()

    def _dispatch(self) -> None:
        """Give waiting orders to workers, the newest first: it is the one a person looks at."""
        while self._waiting and (self._idle or len(self._busy) < self._count):
            self._start(self._waiting.pop())
        if self._waiting:
            self._stop_unwatched()

    def _stop_unwatched(self) -> None:
        """Stop an order that no reader follows any more."""
        for worker, reel in self._busy.items():
            if reel is not None and reel.was_watched and not reel.watchers:
                self._reels.pop(reel.order, None)  # a reader that comes now gets another reel
                worker.send(StopOrder())
                return

    def _start(self, reel: Reel | None, warm: WarmOrder | None = None) -> None:
        worker = self._idle.pop() if self._idle else WorkerProcess(self._patience, self._environment)
        self._busy[worker] = reel
        task = asyncio.create_task(self._carry_out(worker, reel, warm))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, worker: WorkerProcess, reel: Reel | None, warm: WarmOrder | None) -> None:
        """Have a worker make the pictures of a reel; without one, only start the worker and make it ready."""
        try:
            await worker.start()
            if warm is not None:
                worker.send(warm)
                worker.was_idle = True
            if reel is not None:
                await self._make(worker, reel)
        except (WorkerLost, OSError) as error:
            await worker.end()
            if reel is not None:
                reel.end(str(error), again=True)
        except asyncio.CancelledError:
            if reel is not None:
                reel.end("The viewer is closing.", again=True)
            raise
        self._busy.pop(worker, None)
        self._idle.append(worker)
        self._trim()
        self._dispatch()

    async def _make(self, worker: WorkerProcess, reel: Reel) -> None:
        """Have a worker make the pictures of a reel; one that ended while it had nothing to do is started again."""
        worker.send(reel.order)
        try:
            answer = await worker.receive()
        except WorkerLost:
            if not worker.was_idle:
                raise
            await worker.end()
            await worker.start()
            worker.send(reel.order)
            answer = await worker.receive()
        worker.was_idle = False
        _note(reel, answer, worker)
        while not reel.over:
            _note(reel, await worker.receive(), worker)
        worker.was_idle = True

    def _trim(self) -> None:
        """Forget the pictures that were looked at longest ago."""
        total = sum(reel.size for reel in self._reels.values())
        for order, reel in list(self._reels.items()):
            if total <= MAX_CACHED_BYTES:
                return
            if reel.over and not reel.watchers:
                total -= reel.size
                del self._reels[order]


def _note(reel: Reel, answer: Answer, worker: WorkerProcess) -> None:
    match answer:
        case Opened():
            reel.begin(answer.milliseconds)
        case TurnPicture():
            reel.add(answer)
            if reel.size > MAX_REEL_BYTES:
                worker.send(StopOrder())
        case Replayed():
            reel.reach(answer.turn)
        case Finished():
            reel.end()
        case Failed():
            cut = reel.size > MAX_REEL_BYTES
            if cut:
                reel.end("The rest has too many pictures to be shown; make a film of it.")
            else:
                reel.end(answer.message, answer.again)
