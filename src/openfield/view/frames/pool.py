"""The workers that make pictures, and the pictures made lately.

A worker that says nothing for too long, or ends, costs its order a message; the next order gets a new worker.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

import msgspec

from openfield.errors import OpenfieldError
from openfield.runner.processes import Guard, read_last_line
from openfield.view.frames.messages import (
    HEAD_BYTES,
    MAX_MESSAGE,
    Answer,
    EpisodeOrder,
    Failed,
    Finished,
    Opened,
    Replayed,
    StopOrder,
    TurnPicture,
    WarmOrder,
    pack,
    read_answer,
)
from openfield.view.frames.reel import MAX_REEL_BYTES, Reel

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
COMMAND = (sys.executable, "-P", "-m", "openfield.view.frames.worker")
"""`-P` keeps modules in the folder of a stranger's run file from being imported."""


class WorkerLost(OpenfieldError):
    """A worker crashed, hung or spoke nonsense."""


class WorkerProcess:
    """A process that makes pictures."""

    def __init__(self, patience: float, environment: Mapping[str, str] | None = None) -> None:
        self._patience, self._environment = patience, environment
        self._answered = False
        self.was_idle = False
        """Whether it had nothing to do before its order, so that its end says nothing about the order."""
        self._guard: Guard | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._printed: IO[bytes] | None = None

    async def start(self) -> None:
        """Start the process, unless it runs."""
        if self._process is not None and self._process.returncode is None:
            return
        await self.end()
        self._answered = self.was_idle = False
        self._guard, self._printed = Guard(), tempfile.TemporaryFile()  # noqa: SIM115
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *COMMAND, stdin=pipe, stdout=pipe, stderr=self._printed, start_new_session=True, env=self._environment
        )
        self._guard.watch(self._process.pid)

    def send(self, order: EpisodeOrder | WarmOrder | StopOrder) -> None:
        """Give an order. If the process has ended, the next answer says so."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(ConnectionError, RuntimeError):
                self._process.stdin.write(pack(order))

    async def receive(self) -> Answer:
        """Return the next answer.

        Raises:
            WorkerLost: There will be none.
        """
        if self._process is None or self._process.stdout is None:
            raise WorkerLost("The process that replays was not started.")
        stream = self._process.stdout
        patience = self._patience if self._answered else max(START_SECONDS, self._patience)
        try:
            async with asyncio.timeout(patience):
                size = int.from_bytes(await stream.readexactly(HEAD_BYTES), "big")
                if size > MAX_MESSAGE:
                    raise WorkerLost("The process that replays sent a picture that is too large.")
                answer = read_answer(await stream.readexactly(size))
            self._answered = True
            return answer
        except TimeoutError:
            message = f"The replay did not answer for {patience:g} s and was stopped."
        except (asyncio.IncompleteReadError, ConnectionError):
            said = read_last_line(self._printed) if self._printed is not None else ""
            message = f"The process that replays has ended{f': {said[:300]}' if said else '.'}"
        except msgspec.DecodeError:
            message = "The process that replays sent something that cannot be read."
        raise WorkerLost(message)

    async def end(self) -> None:
        """End the process and all that it started."""
        process, self._process = self._process, None
        guard, self._guard = self._guard, None
        if guard is not None:
            await asyncio.to_thread(guard.end)
        if process is not None:
            await process.wait()
        if self._printed is not None:
            self._printed.close()
            self._printed = None


class FramePool:
    """Makes the pictures of episodes, a few at a time, and keeps those made lately."""

    def __init__(
        self,
        workers: int = MAX_WORKERS,
        patience: float = PATIENCE_SECONDS,
        cached_bytes: int = MAX_CACHED_BYTES,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start nothing yet.

        Args:
            workers: How many processes make pictures at the same time.
            patience: Seconds after which a process that says nothing is ended.
            cached_bytes: How many bytes of pictures are kept.
            environment: The environment of the processes; by default that of this one.
        """
        self._count, self._cached_bytes = workers, cached_bytes
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
            if total <= self._cached_bytes:
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
