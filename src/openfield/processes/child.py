"""A process that runs a function of ours, and ends with all it forked: on request, or when its parent ends."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from types import ModuleType
from typing import Any, TypeVar

import msgspec

from openfield.errors import InvalidInput, OpenfieldError
from openfield.processes.channel import Channel
from openfield.processes.forks import Forks

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Workers are the parallelism: two of them with two BLAS threads each took 45 s for what takes 8 with one."""
START_SECONDS = 60.0
"""How long Python may take to start."""
HEARTBEAT_SECONDS = 0.05
T = TypeVar("T")
_starting = threading.Lock()
"""Held while a process starts: its inheritance is changed for that moment."""
_parent: Channel | None = None
"""The channel of a process that `Caller` started, for its heartbeats."""


class Child:
    """A process that runs a function, as its parent sees it.

    Without `forks` it leads a session, and all processes of it are ended together.
    """

    def __init__(
        self,
        work: Callable[..., object],
        *values: Any,
        method: str = "spawn",
        name: str | None = None,
        forks: Forks | None = None,
        script: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the process.

        Args:
            work: A function at the top of a module. It is called with the channel and the values.
            values: Its arguments.
            method: `spawn` or `forkserver`.
            name: The name of the process within Python.
            forks: Finds the forks of a process that stays in the session of this one.
            script: Whether the process needs the definitions in the script that this one was started with.
            environment: Variables that it has in addition.
        """
        context: Any = multiprocessing.get_context(method)
        ours, theirs = socket.socketpair()
        self.channel, self._forks, self._killed = Channel(ours), forks, False
        self.process = context.Process(target=_begin, name=name, args=(theirs, forks, work, values), daemon=True)
        marked = {**(environment or {}), **({} if forks is None else forks.mark)}
        try:
            with theirs, _starting, undisturbed(), _inherited(marked, script):
                self.process.start()
        except BaseException:
            self.channel.close()
            raise

    def kill(self) -> None:
        """End it at once. Any thread may, at any time."""
        with suppress(ValueError, OSError):  # it is closed, or has not begun
            if self._forks is None and not self._killed:  # once: the number may soon be that of another group
                self._killed = True
                os.killpg(self.process.pid, signal.SIGKILL)
        with suppress(ValueError, OSError):
            self.process.kill()

    def end(self, patience: float = 0.0) -> None:
        """End it and all it forked, after these seconds in which it may end by itself. It may be called again."""
        self.channel.close()
        with suppress(ValueError):  # it was ended before
            if patience:
                self.process.join(patience)
            self.kill()
            self.process.join()
            self.process.close()
        if self._forks is not None:
            self._forks.end()


class Caller:
    """A process that calls functions for this one; a new one starts when the last was ended."""

    def __init__(self, patience: float, prepare: Callable[[], object] = bool, **options: Any) -> None:
        """Start nothing yet.

        Args:
            patience: Seconds without a heartbeat after which the process is ended.
            prepare: What the process does first.
            options: Those of `Child`.
        """
        self._patience, self._prepare, self._options = patience, prepare, options
        self._child: Child | None = None

    def call(self, kind: type[T], function: Callable[..., T], *values: Any) -> T:
        """Call a function and return its result.

        Raises:
            Hung: No heartbeat came for `patience` seconds.
            OpenfieldError: It failed; the message says how.
        """
        self.ask(function, *values)
        return self.answer(kind)

    def ask(self, function: Callable[..., Any], *values: Any) -> None:
        """Let the process call a function while this one does something else. `answer` returns the result."""
        child = self._child or self._start()
        child.channel.send(pickle.dumps((function, values)))

    def answer(self, kind: type[T]) -> T:
        """Return the result of the earliest question that is not answered yet; errors are those of `call`."""
        failure, result = msgspec.msgpack.decode(self._receive(self._patience), type=tuple[str, msgspec.Raw])
        if failure:
            raise OpenfieldError(failure)
        return msgspec.msgpack.decode(result, type=kind)

    def close(self) -> None:
        """End the process, if one was started."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _start(self) -> Child:
        self._child = started = Child(_answer_calls, self._prepare, **self._options)
        self._receive(START_SECONDS)
        return started

    def _receive(self, patience: float) -> bytes:
        """Return the next message that is not a heartbeat."""
        try:
            if self._child is None:
                raise EOFError
            self._child.channel.wait_at_most(patience)
            while not (message := self._child.channel.receive()):
                pass
            return message
        except TimeoutError:
            self.close()
            raise Hung(f"no answer within {patience:g} s") from None
        except (EOFError, OSError):
            self.close()
            raise OpenfieldError("the process it ran in died") from None


class Hung(OpenfieldError):
    """No sign of life for too long."""


def send_heartbeat() -> None:
    """Show the parent that a call goes on, at most once in `HEARTBEAT_SECONDS`."""
    if _parent is not None:
        _parent.beat(HEARTBEAT_SECONDS)


def _answer_calls(channel: Channel, prepare: Callable[[], object]) -> None:
    """Answer calls until the parent goes away."""
    global _parent
    prepare()
    channel.send(b"ready")
    _parent = channel
    with suppress(EOFError, ConnectionError):
        while True:
            function, values = pickle.loads(channel.receive())  # noqa: S301 - of the parent
            try:
                answer: tuple[str, Any] = ("", function(*values))
            except Exception as error:
                answer = (f"{type(error).__name__}: {error}", None)
            channel.send(msgspec.msgpack.encode(answer))


def _begin(line: socket.socket, forks: Forks | None, work: Callable[..., object], values: tuple[Any, ...]) -> None:
    """Do what every child does first, and then its work."""
    line.set_inheritable(False)
    os.dup2(2, 1)  # what agents and domains print must not end up in what the parent prints for programs to read
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # for programs that are started here
    if forks is not None:
        forks.note()
        end_with_parent(forks.end)
    elif hasattr(os, "setsid"):
        os.setsid()
        end_with_parent(lambda: os.killpg(0, signal.SIGKILL))
    work(Channel(line), *values)


def end_with_parent(leave: Callable[[], object] = bool) -> None:
    """End this process when its parent ends, even if the parent is killed; `leave` is called before."""

    def wait_and_end() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
        try:
            leave()
        finally:
            os._exit(1)

    threading.Thread(target=wait_and_end, daemon=True).start()


def check_signals() -> None:
    """Refuse to start workers where they could not be asked to stop.

    Raises:
        InvalidInput: The system has no POSIX signals.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        raise InvalidInput("Worker processes need POSIX signals, which this system lacks. Use one process: --workers 0")


def one_thread() -> dict[str, str]:
    """Return the environment of a process that computes in one thread, unless the user set another number."""
    return {name: os.environ.get(name, "1") for name in ONE_THREAD}


def describe_exit(status: int | None, wrapped: bool = False) -> str:
    """Return how a process ended, in words. If `wrapped`, a status above 128 is that of a signal, as in shells."""
    number = 0 if status is None else status - 128 if wrapped and status > 128 else -status
    return f"signal {signal.Signals(number).name}" if number in set(signal.Signals) else f"exit status {status}"


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold back Ctrl-C until the end, and in processes begun meanwhile until they allow it.

    A process that is only starting would end in its first lines, with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which lets Ctrl-C through again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _inherited(environment: Mapping[str, str], script: bool) -> Iterator[None]:
    """Set the variables that a process started meanwhile inherits, and whether it knows the script of this one."""
    before, main = {name: os.environ.get(name) for name in environment}, sys.modules["__main__"]
    os.environ.update(environment)
    sys.modules["__main__"] = main if script else ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        for name, value in before.items():
            del os.environ[name]
            os.environ.update({} if value is None else {name: value})
