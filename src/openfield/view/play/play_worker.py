"""The process in which the worlds of one person run. It may crash or hang: the server and other people go on.

Everything that a domain does happens here, in a thread of its own, so
that the process can say how long that takes.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec

from openfield.capabilities import PreparesTrials
from openfield.errors import JournalError, OpenfieldError
from openfield.journal.reader import Run
from openfield.journal.receipt import Receipt
from openfield.journal.recorder import Recorder
from openfield.processes.channel import Channel
from openfield.record import REPLY_ENCODER, Entry
from openfield.registry import use_recorded
from openfield.runner.player import explain_failure
from openfield.view.play import worker_messages as wire
from openfield.view.play.browser_channel import Gone, write_content
from openfield.view.play.messages import Message, read_message
from openfield.view.play.open_trial import OpenTrial
from openfield.view.play.play_session import PlaySession

ALIVE_SECONDS = 2.0
OPENING_SECONDS = 540.0
"""How much longer than other things the opening of a trial may take: it may be replayed."""
T = TypeVar("T")


def serve_person(server: Channel) -> None:
    """Play the trials of a person as the server asks for them. This is all the process does."""
    asyncio.run(PlayWorker(server).serve())
    os._exit(0)  # without waiting for threads of a domain


class PlayWorker:
    """Plays one trial after the other."""

    def __init__(self, server: Channel) -> None:
        self._server = server
        self._worlds = ThreadPoolExecutor(1)
        self._busy_since: float | None = None
        self._trial: OpenTrial | None = None
        self._channel: PipeChannel | None = None
        self._receipts: dict[int, Receipt[None]] = {}
        self._numbers = itertools.count()
        self._orders: asyncio.Queue[wire.Order | None] = asyncio.Queue()

    async def serve(self) -> None:
        """Carry out orders until the server is gone."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), daemon=True).start()
        alive = asyncio.ensure_future(self._tell_alive())
        playing: asyncio.Future[None] | None = None
        while (order := await self._orders.get()) is not None:
            match order:
                case wire.OpenOrder():
                    await self._open(order)
                case wire.PlayOrder():
                    self._channel = PipeChannel(self.send)
                    playing = asyncio.ensure_future(self._play(order, self._channel))
                case wire.MessageOrder(text) if self._channel is not None:
                    self._channel.put(read_message(text))
                case wire.LeaveOrder() if self._channel is not None:
                    self._channel.put(None)
                case wire.FinishOrder(outcome):
                    if playing is not None:
                        await asyncio.wait([playing])
                    await self._finish(outcome)
        alive.cancel()

    def send(self, answer: wire.Answer) -> None:
        """Send an answer; any thread may."""
        self._server.send(msgspec.msgpack.encode(answer))

    async def work(self, task: Callable[[], T], more: float = 0.0) -> T:
        """Do something with the world in its thread, to its end even if the one who waits is gone.

        Args:
            task: What to do.
            more: How many seconds longer it may take than other things.
        """
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._worlds, self._timed, task, more))

    def _timed(self, task: Callable[[], T], more: float) -> T:
        self._busy_since = time.monotonic() + more
        try:
            return task()
        finally:
            self._busy_since = None

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read orders, and settle at once what the thread of the world may wait for."""
        order: wire.Order | None
        while True:
            try:
                order = pickle.loads(self._server.receive())  # noqa: S301 - of the server
            except (EOFError, OSError):
                order = None
            if isinstance(order, wire.WrittenOrder):
                failure = JournalError(order.failure) if order.failure else None
                self._receipts.pop(order.number).settle(None, failure)
                continue
            loop.call_soon_threadsafe(self._orders.put_nowait, order)
            if order is None:
                return

    async def _tell_alive(self) -> None:
        while True:
            since = self._busy_since
            self.send(wire.Alive(0.0 if since is None else time.monotonic() - since))
            await asyncio.sleep(ALIVE_SECONDS)

    def _emit(self, *entries: Entry) -> Receipt[None]:
        """Have the server record entries."""
        number, receipt = next(self._numbers), Receipt[None]()
        self._receipts[number] = receipt
        self.send(wire.RecordEntries(number, REPLY_ENCODER.encode(entries)))
        return receipt

    async def _open(self, order: wire.OpenOrder) -> None:
        before, self._trial = self._trial, None
        try:
            if before is not None:  # it was opened for a page that was gone then, and nothing was played in it
                await self.work(before.rollout.world.close)
            self._trial = await self.work(partial(self._open_trial, order), OPENING_SECONDS)
        except Exception as error:
            self.send(wire.describe_failure(error))
            return
        if self._trial.over:  # a crash came between the last reply and the outcome
            await self._finish("")
        else:
            self.send(wire.TrialOpened())

    def _open_trial(self, order: wire.OpenOrder) -> OpenTrial:
        domain, cell = use_recorded(order.domain, order.cell.trial.domain), order.cell
        if isinstance(domain, PreparesTrials):
            domain.expect([cell.trial])
        if order.attempt is None:
            return OpenTrial(domain, cell, None)
        with Run(order.run) as run:
            past = list(run.raw_steps(cell.id, order.attempt))
        return OpenTrial(domain, cell, Recorder(cell.id, order.attempt, self._emit, len(past)), past)

    async def _play(self, order: wire.PlayOrder, channel: PipeChannel) -> None:
        """Play the trial that is open, to its end or until the page is gone."""
        trial = self._trial
        if trial is None:
            return
        try:
            await PlaySession(trial, channel, self.work).play(order.place, order.count, order.practice)
        except Gone:
            self.send(wire.Left())
        except Exception as error:
            outcome, note = explain_failure(error)
            await self._close(outcome, note)
            self.send(wire.describe_failure(error))
        else:
            await self._finish("cancelled" if order.practice else "")

    async def _finish(self, outcome: str) -> None:
        """End the trial, and say so."""
        await self._close(outcome)
        self.send(wire.Ended())

    async def _close(self, outcome: str, note: str = "") -> None:
        trial, self._trial = self._trial, None
        if trial is not None:
            with suppress(OpenfieldError):  # what could be recorded is, and the world is closed
                await self.work(partial(trial.finish, outcome, note))


class PipeChannel:
    """The connection to a browser, as a session sees it: the server passes on what both sides say."""

    def __init__(self, send: Callable[[wire.Answer], None]) -> None:
        self._send = send
        self._inbox: asyncio.Queue[Message | None] = asyncio.Queue()

    def put(self, message: Message | None) -> None:
        """Add a message of the page; None if it is gone."""
        self._inbox.put_nowait(message)

    async def show(self, what: str, **content: Any) -> None:
        """Send the page its next content."""
        self._send(wire.ShowText(write_content({"show": what, **content})))

    async def send_text(self, text: str) -> None:
        """Send the page its next content, as text."""
        self._send(wire.ShowText(text))

    async def send_picture(self, content: bytes) -> None:
        """Send a picture."""
        self._send(wire.ShowPicture(content))

    async def receive(self) -> Message:
        """Wait for a message.

        Raises:
            Gone: The page is gone.
        """
        return self._take(await self._inbox.get())

    def poll(self) -> Message | None:
        """Return a message that has come, or None.

        Raises:
            Gone: The page is gone.
        """
        return None if self._inbox.empty() else self._take(self._inbox.get_nowait())

    @property
    def waiting(self) -> bool:
        """Whether a message has come."""
        return not self._inbox.empty()

    async def refuse(self, reason: str) -> None:
        """Say what is wrong with a message."""
        self._send(wire.MessageRefused(reason))

    def _take(self, message: Message | None) -> Message:
        if message is None:
            raise Gone
        self._send(wire.MessageTaken())
        return message
