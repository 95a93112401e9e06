"""The process of a person as the server sees it: it opens and plays trials there, and notices when it is lost."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import pkgutil
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any

import msgspec

from openfield.domain import Domain
from openfield.errors import JournalError, WorldFault
from openfield.journal.writer import Journal
from openfield.processes.child import Child, describe_exit, one_thread
from openfield.record import Entry
from openfield.view.play import worker_messages as wire
from openfield.view.play.browser_channel import MAX_WAITING, BrowserChannel, Gone
from openfield.view.play.play_worker import serve_person

SILENT_SECONDS = 30.0
"""How long a process may say nothing; it says every two seconds that it is alive."""
STEP_SECONDS = 60.0
"""How long a world may take for one thing."""
LEAVE_SECONDS = 10.0
"""How long a process may take to leave or to end a trial."""
_ENTRIES: msgspec.msgpack.Decoder[list[Entry]] = msgspec.msgpack.Decoder(list[Entry])


class ProcessLost(WorldFault):
    """The process of a person crashed or hung."""


class PlayProcess:
    """A process that runs."""

    def __init__(self, journal: Journal, loop: asyncio.AbstractEventLoop) -> None:
        """Start a process, which takes a moment.

        Args:
            journal: Where its trials are recorded.
            loop: The event loop of the server.
        """
        self._journal, self._loop = journal, loop
        self._answers: asyncio.Queue[wire.Answer | ProcessLost] = asyncio.Queue()
        self._reason = ""
        self._recorded: tuple[str, int | None] = "", None
        self._child = Child(serve_person, method="forkserver", environment=one_thread())
        self._child.channel.wait_at_most(SILENT_SECONDS)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    async def open(self, order: wire.OpenOrder) -> bool:
        """Open a trial, and return whether it is open; else it was over.

        Raises:
            OpenfieldError: It cannot be played here.
            ProcessLost: The process is gone.
        """
        while not self._answers.empty():  # of a trial before
            self._check(self._answers.get_nowait())
        self._recorded = order.cell.id, order.attempt
        self._send(order)
        while True:
            match self._check(await self._answers.get()):
                case wire.TrialOpened():
                    return True
                case wire.Ended() as ended:
                    if ended.failure:
                        raise wire.restore_failure(ended)
                    return False

    async def play(self, channel: BrowserChannel, order: wire.PlayOrder) -> None:
        """Let the person at a connection go on with the trial that is open, to its end.

        Raises:
            Gone: The connection is; the trial stays open.
            OpenfieldError: The trial has failed, which is recorded.
            ProcessLost: The process is gone, which is not recorded.
        """
        room, has_left = asyncio.Semaphore(MAX_WAITING), False
        self._send(order)
        passing = asyncio.ensure_future(self._pass_messages(channel, room))
        try:
            while True:
                match self._check(await self._answers.get()):
                    case wire.ShowText(text):
                        await channel.send_text(text)
                    case wire.ShowPicture(data):
                        await channel.send_picture(data)
                    case wire.MessageRefused(reason):
                        await channel.refuse(reason)
                    case wire.MessageTaken():
                        room.release()
                    case wire.Left():
                        has_left = True
                        raise Gone
                    case wire.Ended() as ended:
                        if ended.failure:
                            raise wire.restore_failure(ended)
                        return
        except (Gone, asyncio.CancelledError):
            if not has_left:  # it says so once
                await self._leave()
            raise
        finally:
            passing.cancel()

    async def finish(self, outcome: str) -> None:
        """End the trial that is open.

        Raises:
            ProcessLost: The process is gone.
        """
        self._send(wire.FinishOrder(outcome))
        await self._wait_for(wire.Ended)

    async def end(self) -> None:
        """End the process and all that it started."""
        self.kill("It was ended.")
        await asyncio.to_thread(self._reader.join)
        self._child.end()

    def kill(self, reason: str) -> None:
        """End the process at once; any thread may."""
        self._reason = self._reason or reason
        self._child.kill()

    async def _leave(self) -> None:
        """Report to the process that the page is gone, and wait until it shows nothing more."""
        self._send(wire.LeaveOrder())
        with suppress(ProcessLost):
            answer = await self._wait_for(wire.Left, wire.Ended)
            if isinstance(answer, wire.Ended):
                self._answers.put_nowait(answer)  # for the page that comes next

    async def _wait_for(self, *kinds: type[wire.Answer]) -> wire.Answer:
        while True:
            try:
                answer = self._check(await asyncio.wait_for(self._answers.get(), LEAVE_SECONDS))
            except TimeoutError:
                self.kill(f"It did not answer for {LEAVE_SECONDS:g} s.")
                continue
            if isinstance(answer, kinds):
                return answer

    async def _pass_messages(self, channel: BrowserChannel, room: asyncio.Semaphore) -> None:
        try:
            while True:
                message = await channel.receive()
                await room.acquire()
                self._send(wire.MessageOrder(msgspec.json.encode(message)))
        except Gone:
            self._send(wire.LeaveOrder())

    def _check(self, answer: wire.Answer | ProcessLost) -> wire.Answer:
        if isinstance(answer, ProcessLost):
            self._answers.put_nowait(answer)  # it stays lost
            raise answer
        return answer

    def _send(self, order: wire.Order) -> None:
        """Give an order; any thread may. If the process is gone, the next answer says so."""
        with suppress(OSError):
            self._child.channel.send(pickle.dumps(order))

    def _read(self) -> None:
        """Read answers until the process is gone. One that hangs is ended."""
        try:
            while True:
                match wire.ANSWERS.decode(self._child.channel.receive(wire.MAX_ANSWER)):
                    case wire.Alive(busy) if busy > STEP_SECONDS:
                        self.kill(f"The world took longer than {STEP_SECONDS:g} s.")
                    case wire.Alive():
                        pass
                    case wire.RecordEntries() as answer:
                        self._record(answer)
                    case answer:
                        self._tell(answer)
        except TimeoutError:
            self.kill(f"It did not answer for {SILENT_SECONDS:.0f} s.")
        except (EOFError, OSError, ValueError):  # it is gone, or did not send an answer
            self.kill("")
        self._child.process.join()
        how = describe_exit(self._child.process.exitcode)
        self._tell(ProcessLost(self._reason or f"Its process died ({how})."))

    def _tell(self, answer: wire.Answer | ProcessLost) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nothing waits any more
            self._loop.call_soon_threadsafe(self._answers.put_nowait, answer)

    def _record(self, answer: wire.RecordEntries) -> None:
        """Record entries of the trial that is open, and say so when they are on disk."""
        entries = _ENTRIES.decode(answer.entries)
        if any((entry.cell, entry.attempt) != self._recorded for entry in entries):
            raise msgspec.DecodeError("entries of another trial")
        try:
            receipt = self._journal.add(*entries)
        except JournalError as error:
            self._send(wire.WrittenOrder(answer.number, str(error)))
            return

        def tell() -> None:
            self._send(wire.WrittenOrder(answer.number, str(receipt.failure or "")))

        receipt.then(tell)


def preload(domain: Domain[Any]) -> None:
    """Let new processes begin with the modules of a domain: a process is then there in a moment, and shares them."""
    modules = [serve_person.__module__, Child.__module__]
    package = type(domain).__module__.rpartition(".")[0]
    if package.startswith("openfield.domains."):
        found = pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
        modules += [each.name for each in found if not {"wire", "server", "commands"} & set(each.name.split("."))]
    multiprocessing.set_forkserver_preload(modules)
