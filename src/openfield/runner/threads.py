"""Play cells side by side in one process: an executor for agents that wait, as those that ask a language model do.

Every cell has a thread. Threads share the interpreter, so this is not faster for agents and worlds that compute. Agents
are trusted as with `workers=0`; one that does not answer in time is left behind.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from openfield.clock import monotonic_ns
from openfield.errors import Cancelled, JournalError
from openfield.journal.receipt import Receipt
from openfield.journal.recorder import Emit
from openfield.record import AttemptEnd, Chunk, Entry
from openfield.runner.executors import GRACE_SECONDS, POLL_SECONDS
from openfield.runner.player import Job, Player

END_SECONDS = 2.0
"""How long the threads may take in the end."""


class Threads:
    """Plays jobs at the same time, each in a thread. Entries are emitted by the thread that polls."""

    def __init__(self, emit: Emit, concurrency: int) -> None:
        self._emit = emit
        self._concurrency = concurrency
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._busy: dict[str, _PlayerThread] = {}  # by cell
        self._idle: list[_PlayerThread] = []

    @property
    def free(self) -> int:
        """How many more jobs may be started now."""
        return self._concurrency - len(self._busy)

    def start(self, job: Job) -> None:
        """Give the job to an idle thread, or to a new one."""
        thread = self._idle.pop() if self._idle else _PlayerThread(self._inbox)
        self._busy[job.cell.id] = thread
        thread.play(job)

    def poll(self) -> None:
        """Emit what the threads sent, and look after agents that do not answer."""
        try:
            message = self._inbox.get(timeout=POLL_SECONDS)
            while True:
                self._take(message)
                message = self._inbox.get_nowait()
        except queue.Empty:
            pass
        for cell, thread in list(self._busy.items()):
            if thread.overdue() > GRACE_SECONDS and thread.job is not None:
                job = thread.job
                thread.leave()
                del self._busy[cell]
                note = "No answer in time; its thread was left behind."
                self._emit(AttemptEnd(cell, job.attempt, "agent_timeout", note, 0.0))

    def stop(self) -> None:
        """End every job after its current turn."""
        for thread in list(self._busy.values()):
            thread.stop()

    def close(self) -> None:
        """End all threads. One whose agent still waits ends with this process; nothing it does is recorded any more."""
        until = time.monotonic() + END_SECONDS
        for thread in (*self._busy.values(), *self._idle):
            thread.leave()
        for thread in self._idle:
            thread.join(max(until - time.monotonic(), 0.0))
        self._busy, self._idle = {}, []

    def _take(self, message: _Message) -> None:
        if message.sender.left:
            message.answer(None, Cancelled("The run goes on without this cell."))
        elif message.failure is not None:
            raise message.failure
        elif message.entries:
            try:
                message.answer(self._emit(*message.entries), None)
            except BaseException as error:
                message.answer(None, JournalError(str(error)))
                raise
        else:  # the job is over
            for cell in [cell for cell, thread in self._busy.items() if thread is message.sender]:
                del self._busy[cell]
            self._idle.append(message.sender)


class _Message:
    """Entries on their way to the thread that polls; without any, the sender is free for the next job."""

    def __init__(self, sender: _PlayerThread, entries: tuple[Entry, ...], failure: BaseException | None = None) -> None:
        self.sender, self.entries, self.failure = sender, entries, failure
        self._taken = threading.Event()
        self._receipt: Receipt[None] | None = None
        self._refused: Exception | None = None

    def answer(self, receipt: Receipt[None] | None, refused: Exception | None) -> None:
        """Tell the sender what became of the entries."""
        self._receipt, self._refused = receipt, refused
        self._taken.set()

    def result(self, left: Callable[[], bool]) -> Receipt[None] | None:
        """Return the receipt of the entries, once they are taken."""
        while not self._taken.wait(POLL_SECONDS):
            if left():
                raise Cancelled("The run goes on without this cell.")
        if self._refused is not None:
            raise self._refused
        return self._receipt


class _PlayerThread:
    """A thread that plays one job at a time."""

    def __init__(self, inbox: queue.SimpleQueue[_Message]) -> None:
        self._inbox = inbox
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._heartbeat = [0]
        self._player = Player(self._send, self._heartbeat)
        self.job: Job | None = None
        self.left = False
        """Whether nothing it sends is taken any more."""
        self._thread = threading.Thread(target=self._play_jobs, name="openfield cell", daemon=True)
        self._thread.start()

    def play(self, job: Job) -> None:
        self.job = job
        self._jobs.put(job)

    def stop(self) -> None:
        self._player.stop()

    def leave(self) -> None:
        """Let the thread end as soon as its agent answers."""
        self.left = True
        self._player.stop()
        self._jobs.put(None)

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def overdue(self) -> float:
        """Return by how many seconds its agent is late."""
        due = self._heartbeat[0]
        return (monotonic_ns() - due) / 1e9 if due else 0.0

    def _play_jobs(self) -> None:
        while (job := self._jobs.get()) is not None and not self.left:
            try:
                self._player.play(job)
            except BaseException as error:
                self._inbox.put(_Message(self, (), error))
                return
            self.job = None
            self._inbox.put(_Message(self, ()))

    def _send(self, *entries: Entry) -> Receipt[None] | None:
        """Send entries, and wait until those that were paid for are on disk."""
        if self.left:
            raise Cancelled("The run goes on without this cell.")
        if not entries:
            return None
        if any(isinstance(entry, AttemptEnd) for entry in entries):
            self.job = None  # its agent's `close` no longer matters to the record
        message = _Message(self, entries)
        self._inbox.put(message)
        receipt = message.result(lambda: self.left)
        if receipt is not None and any(isinstance(entry, Chunk) and entry.costly for entry in entries):
            receipt.result()
        return receipt
