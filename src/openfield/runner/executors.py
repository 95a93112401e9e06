"""Play cells in this process, or in worker processes that are watched from here.

The scheduler of `run` starts jobs on an executor, which emits entries. Another engine is one more short class.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections import Counter
from collections.abc import Callable, MutableSequence
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from openfield.clock import monotonic_ns, notice_stops
from openfield.errors import NO_HANDLES, InvalidInput, JournalError, too_many_files
from openfield.journal.reader import MAX_RETRIES, OUR_FAILURES
from openfield.journal.receipt import Receipt
from openfield.journal.recorder import Emit
from openfield.processes.channel import Channel
from openfield.processes.child import Child, check_signals, describe_exit, one_thread
from openfield.processes.forks import WORKER_NAME, Forks, need_handles, refuse_signals_to_parent
from openfield.record import REPLY_ENCODER, AttemptEnd, Entry
from openfield.runner.player import Job, Player

if TYPE_CHECKING:
    from openfield.runner.plan import Plan

GRACE_SECONDS = 0.5
"""How long after its deadline an agent is interrupted, and how long after that its worker is ended."""
POLL_SECONDS = 0.1
UNGUARDED, SEVERED = 113, 114
"""The exit statuses of a worker that was made to run the script it was started by, and of one whose pipe was closed."""


class Executor(Protocol):
    """Plays jobs and emits their entries, each job's `AttemptEnd` last."""

    @property
    def free(self) -> int:
        """How many more jobs may be started now."""
        ...

    def start(self, job: Job) -> None:
        """Start a job."""
        ...

    def poll(self) -> None:
        """Emit new entries; wait a moment if there are none."""
        ...

    def stop(self) -> None:
        """End every job after its current turn."""
        ...

    def close(self) -> None:
        """End at once what still runs, and free everything."""
        ...


class Inline:
    """Plays jobs in this process, one after the other. An agent that never answers is never ended."""

    def __init__(self, emit: Emit, plan: Plan) -> None:
        own = os.getpid()

        def emit_here(*entries: Entry) -> Receipt[None] | None:
            if os.getpid() != own:  # an agent forked, and its child came back here: one record has one writer
                os._exit(0)
            return emit(*entries)

        self._player = Player(emit_here, domains=plan.domains, factories=plan.factories)
        self.free = 1

    def start(self, job: Job) -> None:
        """Play the whole job."""
        self._player.play(job)

    def poll(self) -> None:
        """Do nothing: no entries come in later."""

    def stop(self) -> None:
        """End the job after its current turn."""
        self._player.stop()

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


class Processes:
    """Plays jobs in worker processes, and ends those whose agent does not answer in time."""

    def __init__(self, emit: Emit, workers: int) -> None:
        check_signals()
        self._emit = emit
        self._workers = workers
        self._stopping = False
        self._deaths: Counter[str] = Counter()  # how often the process of a cell died while its agent was asked
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []

    @property
    def free(self) -> int:
        """How many more jobs may be started now."""
        return self._workers - len(self._busy)

    def start(self, job: Job) -> None:
        """Send the job to an idle worker, or to a new one."""
        message = _pickled(job)
        knows_main = b"__main__" in message
        for worker in [each for each in self._idle if each.knows_main or not knows_main]:
            self._idle.remove(worker)
            if worker.send(message):
                break
            worker.end()  # it died between two jobs: an agent's leftovers may have ended it
        else:
            worker = self._start_worker(knows_main)
            worker.send(message)  # if it is dead already, `poll` finds out and says how it died
        worker.job = job
        self._busy.append(worker)

    def _start_worker(self, knows_main: bool) -> _Worker:
        try:
            return _Worker(knows_main)
        except OSError as error:
            if error.errno in NO_HANDLES:
                raise too_many_files() from None
            raise

    def poll(self) -> None:
        """Emit what the workers sent, and look after those that hang or died."""
        ready = wait([worker.channel.fileno() for worker in self._busy], timeout=POLL_SECONDS)
        for worker in list(self._busy):
            if worker.channel.fileno() in ready:
                self._receive(worker)
            elif worker.process.exitcode is not None:  # and a fork of it holds its end of the channel
                self._remove(worker)
            elif worker.overdue() > 2 * GRACE_SECONDS:
                self._give_up(worker, "agent_timeout", "No answer in time; its worker was ended.")
            elif worker.overdue() > GRACE_SECONDS:
                worker.interrupt()

    def stop(self) -> None:
        """End every job after its current turn."""
        self._stopping = True
        for worker in self._busy:
            worker.process.terminate()

    def close(self) -> None:
        """End all workers."""
        idle, busy = self._idle, self._busy
        self._idle, self._busy = [], []
        try:
            for worker in (*idle, *busy):
                worker.end(0.0 if worker in busy else 2 * GRACE_SECONDS)
        except BaseException:  # Ctrl-C in between: the interpreter would wait for those that are left when it ends
            for worker in (*idle, *busy):
                worker.kill()
                worker.channel.close()
            raise

    def _receive(self, worker: _Worker) -> None:
        while worker.job is not None and (worker.channel.waiting or wait([worker.channel.fileno()], 0)):
            try:
                entries = _ENTRIES.decode(worker.channel.receive())
            except (EOFError, OSError):
                self._remove(worker)
                return
            if not entries:
                self._release(worker)
            elif isinstance(entries[-1], AttemptEnd):
                worker.ending = entries
            else:
                self._emit(*entries)

    def _release(self, worker: _Worker) -> None:
        """Record how a job ended once its agent is closed, and free the worker for the next one.

        Not where it failed by no fault of the agent's: an earlier agent may have left its process unfit to play in.
        """
        if not self._stopping and any(_is_stop(entry) for entry in worker.ending):
            self._emit(*(entry for entry in worker.ending if not _is_stop(entry)))
            worker.ending = []
            self._blame_death(worker, "It was asked to stop, but not by openfield", asked=True)
            return
        entries, worker.ending, worker.job = worker.ending, [], None
        self._busy.remove(worker)
        if any(isinstance(entry, AttemptEnd) and entry.outcome in OUR_FAILURES for entry in entries):
            worker.end(2 * GRACE_SECONDS)  # an agent may have left a thread that never ends
        else:
            self._idle.append(worker)
        self._emit(*entries)

    def _remove(self, worker: _Worker) -> None:
        """Remove a dead worker and record its end. One that was stopped before it could listen can be resumed."""
        worker.process.join(GRACE_SECONDS)
        how = describe_exit(worker.process.exitcode)
        if worker.process.exitcode == UNGUARDED:
            raise InvalidInput(
                "Workers import the script that defines an agent. Put what the script does under "
                "`if __name__ == '__main__':`, define the agent in a module, or use workers=0."
            )
        if self._stopping:
            self._give_up(worker, "cancelled", "")
        elif worker.process.exitcode in (None, SEVERED):
            self._give_up(worker, "agent_error", "The agent closed the files of the process it ran in.")
        elif worker.ended_by_agent():
            self._give_up(worker, "agent_error", f"The agent ended the process it ran in ({how}).")
        else:
            self._blame_death(worker, f"Its worker process died ({how})", worker.asked)

    def _blame_death(self, worker: _Worker, how: str, asked: bool) -> None:
        """Take a death for a failure of ours, so that the cell is tried again; one after all tries is the agent's.

        An agent that ends its process whenever it does badly must not get rid of these trials.
        """
        job = worker.job
        if job is not None and not worker.ending:
            self._deaths[job.cell.id] += asked
            if self._deaths[job.cell.id] > MAX_RETRIES:
                note = f"{how}, each of {MAX_RETRIES + 1} times while the agent was asked."
                self._give_up(worker, "agent_error", note)
                return
        self._give_up(worker, "harness_error", f"{how}.", torn=True)

    def _give_up(self, worker: _Worker, outcome: str, note: str, torn: bool = False) -> None:
        """End a worker, and its job with this outcome unless the job had ended: then only its agent was left."""
        job, worker.job = worker.job, None
        self._busy.remove(worker)
        worker.end()
        if worker.ending:
            self._emit(*worker.ending)
        elif job is not None:
            self._emit(AttemptEnd(job.cell.id, job.attempt, outcome, note, 0.0, torn))


class _Worker(Child):
    """A worker process as its parent sees it. Its heartbeat is shared memory: a message for every turn would cost."""

    def __init__(self, knows_main: bool) -> None:
        forks = Forks()
        self._pulse: MutableSequence[int] = multiprocessing.get_context("spawn").RawArray("q", 1)
        self.knows_main = knows_main
        self.job: Job | None = None
        self.ending: list[Entry] = []
        """The last entries of its job, which wait until the agent is closed."""
        values, environment = (self._pulse, forks), one_thread()
        super().__init__(_work, *values, name=WORKER_NAME, forks=forks, script=knows_main, environment=environment)

    def send(self, message: bytes) -> bool:
        """Send a job; return False if the process is dead."""
        try:
            self.channel.send(message)
        except OSError:
            return False
        return True

    def overdue(self) -> float:
        """Return by how many seconds its agent is late."""
        due = self._pulse[0]
        return (monotonic_ns() - due) / 1e9 if due else 0.0

    def ended_by_agent(self) -> bool:
        """Return whether the agent ended the dead process while it was asked, and not a signal from outside."""
        return self.asked and self.process.exitcode not in (-signal.SIGKILL, -signal.SIGTERM)

    @property
    def asked(self) -> bool:
        """Whether the process waits for its agent, or died while it did."""
        return bool(self._pulse[0])

    def interrupt(self) -> None:
        """End the agent's turn with an error inside the worker, so that all turns before it are kept."""
        os.kill(self.process.pid, signal.SIGUSR1)


def refuse_unguarded() -> None:
    """End a worker that imports the script its agent is defined in and is about to run the script again."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(UNGUARDED)


def _pickled(job: Job) -> bytes:
    try:
        return pickle.dumps(job)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InvalidInput(
            f"The agent '{job.cell.agent}' cannot be sent to a worker process ({error}). "
            "Define it at the top of a module, name it as 'package.module:name', or use workers=0."
        ) from None


def _work(channel: Channel, shared: Any, forks: Forks) -> None:
    """Play the jobs that are sent until the parent hangs up. This is all a worker process does."""
    own = os.getpid()

    def send(entries: tuple[Entry, ...]) -> None:
        if os.getpid() != own:  # an agent forked, and its child came back here: it is not the worker
            os._exit(0)
        channel.send(_ENCODE(entries))

    def emit(*entries: Entry) -> None:
        if entries:
            send(entries)

    pulse = memoryview(shared).cast("B").cast("q")
    player = Player(emit, pulse)
    refuse_signals_to_parent()
    notice_stops()
    signal.signal(signal.SIGTERM, lambda *_: player.stop())
    signal.signal(signal.SIGUSR1, lambda *_: player.interrupt())
    try:
        while True:
            job: Job = pickle.loads(channel.receive())  # noqa: S301 - of the parent
            try:
                player.play(job)
            except JournalError as error:  # it cannot be read here; whether it can be written, the parent will see
                emit(AttemptEnd(job.cell.id, job.attempt, "harness_error", str(error), 0.0, torn=True))
            forks.end()
            need_handles(channel.fileno())
            send(())  # ready for the next one
    except (EOFError, ConnectionError):  # the parent is gone
        return
    except OSError:  # an agent has closed what leads to the parent, or left this process unfit for the next cell
        os._exit(SEVERED)


def _is_stop(entry: Entry) -> bool:
    """Return whether an entry says that a cell was stopped on request."""
    return isinstance(entry, AttemptEnd) and entry.outcome == "cancelled" and not entry.note


_ENTRIES: msgspec.msgpack.Decoder[list[Entry]] = msgspec.msgpack.Decoder(list[Entry])
_ENCODE: Callable[[Any], bytes] = REPLY_ENCODER.encode
