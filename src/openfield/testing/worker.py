"""A process that plays for the conformance kit and is ended when it hangs.

Its hash seed differs from that of this process, and its clocks can be made to drift under a world (`clocks.py`).
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeVar
from unittest import mock

import msgspec
import numpy as np

from openfield.errors import OpenfieldError
from openfield.testing.clocks import replace_clocks

T = TypeVar("T")
START_SECONDS = 60.0
HEARTBEAT_SECONDS = 0.05
_clock = time.monotonic


class Hung(OpenfieldError):
    """No sign of life for too long."""


class Worker:
    """A process that calls functions for this one; a new one starts when the last was ended."""

    def __init__(self, patience: float, inline: bool = False) -> None:
        """Start nothing yet.

        Args:
            patience: Seconds without a heartbeat after which the process is ended.
            inline: Call functions in this process, for what no other process can import. It cannot end what hangs.
        """
        self._patience = patience
        self.inline = inline
        self._process: Any = None

    def call(self, kind: type[T], function: Callable[..., T], *values: Any) -> T:
        """Call a function and return its result.

        Raises:
            Hung: No heartbeat came for `patience` seconds.
            OpenfieldError: It failed; the message says how.
        """
        if self.inline:
            return function(*values)
        self.ask(function, *values)
        return self.answer(kind)

    def ask(self, function: Callable[..., Any], *values: Any) -> None:
        """Let the process call a function while this one does something else. `answer` returns the result."""
        if self._process is None:
            self._start()
        self._connection.send((function, values))

    def answer(self, kind: type[T]) -> T:
        """Return the result of the earliest question that is not answered yet; errors are those of `call`."""
        message = self._receive(self._patience)
        failure, result = msgspec.msgpack.decode(message, type=tuple[str, msgspec.Raw])
        if failure:
            raise OpenfieldError(failure)
        return msgspec.msgpack.decode(result, type=kind)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"  # it orders sets of words otherwise
        with mock.patch.dict(os.environ, PYTHONHASHSEED=other):
            self._process.start()
        theirs.close()
        self._receive(START_SECONDS)

    def _receive(self, patience: float) -> bytes:
        """Return the next message that is not a heartbeat."""
        try:
            while self._connection.poll(patience):
                message = self._connection.recv_bytes()
                if message != _HEARTBEAT:
                    return message
        except (EOFError, OSError):
            self.close()
            raise OpenfieldError("the process it ran in died") from None
        self.close()
        raise Hung(f"no answer within {patience:g} s")

    def close(self) -> None:
        """End the process, if one was started."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
        self._process = None


def send_heartbeat() -> None:
    """Tell the parent that this worker is alive, at most once in `HEARTBEAT_SECONDS`."""
    global _last_heartbeat
    if _parent is not None and _clock() > _last_heartbeat + HEARTBEAT_SECONDS:
        _last_heartbeat = _clock()
        _parent.send_bytes(_HEARTBEAT)


@contextmanager
def global_random(seed: int) -> Iterator[None]:
    """Seed the global random sources, and restore them afterwards."""
    before, numpy_before = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(numpy_before)


def _serve(connection: Connection) -> None:
    """Answer calls until the parent goes away. Clocks are replaced before any domain can import a real one."""
    global _parent
    replace_clocks()
    connection.send_bytes(b"ready")
    _parent = connection
    try:
        while True:
            function, values = connection.recv()
            try:
                answer: tuple[str, Any] = ("", function(*values))
            except Exception as error:
                answer = (f"{type(error).__name__}: {error}", None)
            connection.send_bytes(msgspec.msgpack.encode(answer))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


_HEARTBEAT = b""
_parent: Connection | None = None
_last_heartbeat = 0.0
