"""Agents for tests of the loop: good, forgetful, moody and bad ones, all of them for the cue world."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import msgspec
import numpy as np

from openfield.core import Ask, Belief, Reply, Spec, Turn

FATAL_CALL = 10
"""The call in which the bad ones do what they are named for."""


class Redriven:
    """Learns which answer is right, explores with a generator of its own, and cannot be saved."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self.rng = random.Random(seed)
        self.trust = [0.0, 0.0]
        self.said: int | None = None
        self.cue = 0

    def __call__(self, turn: Turn) -> Reply:
        if self.said is not None and not turn.first:
            self.trust = [0.7 * trust for trust in self.trust]
            self.trust[self.said ^ self.cue] += turn.reward - 0.4
        surprise = 1 / (1 + 2.0 ** (self.trust[0] - self.trust[1]))
        if turn.ask is Ask.NONE:
            self.said = None
            return Reply(None, Belief(surprise))
        self.cue = turn.observation["cue"]
        flip = int(self.trust[1] > self.trust[0]) if self.rng.random() < 0.8 else self.rng.randrange(2)
        self.said = self.cue ^ flip
        return Reply(self.said, Belief(surprise))


class Learner(Redriven):
    """The same, and can be saved."""

    def save(self) -> bytes:
        return msgspec.msgpack.encode([self.rng.getstate(), self.trust, self.said, self.cue])

    def load(self, state: bytes) -> None:
        (version, numbers, gauss), self.trust, self.said, self.cue = msgspec.msgpack.decode(state)
        self.rng.setstate((version, tuple(numbers), gauss))


class SlowLearner(Learner):
    """Leaves time to lose its machine in the middle of a trial."""

    def __call__(self, turn: Turn) -> Reply:
        time.sleep(0.05)
        return super().__call__(turn)


class Fickle:
    """Never answers the same twice, and cannot be saved."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self.rng = random.SystemRandom()

    def __call__(self, turn: Turn) -> Reply:
        return Reply(self.rng.randrange(2), Belief(self.rng.random()))


class FickleSaver(Fickle):
    """Never answers the same twice, although it can be saved."""

    def save(self) -> bytes:
        return b"nothing of importance"

    def load(self, state: bytes) -> None:
        if state != b"nothing of importance":
            raise ValueError(state)


class Stateless:
    """Answers from the turn alone, and says so."""

    stateless = True

    def __init__(self, spec: Spec, seed: int) -> None:
        self.seed = seed

    def __call__(self, turn: Turn) -> Reply:
        return Reply((turn.observation["cue"] + self.seed) % 2, Belief(0.25))


def copycat(turn: Turn) -> Reply:
    """Answers the cue; a plain function is an agent."""
    return Reply(turn.observation["cue"])


def numpy_believer(turn: Turn) -> Reply:
    """Answers with NumPy's own numbers."""
    return Reply(np.int64(turn.observation["cue"]), Belief(np.float32(0.75)))


class Bad:
    """Plays along until the fatal call."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self.calls = 0

    def __call__(self, turn: Turn) -> Reply:
        self.calls += 1
        if self.calls == FATAL_CALL:
            self.fail()
        return copycat(turn)

    def fail(self) -> None:
        raise NotImplementedError


class Crasher(Bad):
    def fail(self) -> None:
        raise ZeroDivisionError("no way out")


class Leaver(Bad):
    def fail(self) -> None:
        raise SystemExit(3)


class Sleeper(Bad):
    def fail(self) -> None:
        time.sleep(600)


class Looper(Bad):
    def fail(self) -> None:
        while True:
            pass


class ForkingLooper(Looper):
    """Hangs beside an orphan of its own in another session."""

    def fail(self) -> None:
        if not os.fork():
            os.setsid()
            if not os.fork():
                time.sleep(600)
            os._exit(0)
        super().fail()


class Swallower(Bad):
    """Hangs, and will not be told."""

    def fail(self) -> None:
        while True:
            try:
                time.sleep(600)
            except Exception:
                continue


class Suicide(Bad):
    def fail(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Lingerer(Bad):
    """Leaves a thread behind that keeps its process from ending."""

    def fail(self) -> None:
        threading.Thread(target=time.sleep, args=(600,)).start()


class Wanderer(Bad):
    """Goes to another folder."""

    def fail(self) -> None:
        os.chdir("/")


class BadCloser(Bad):
    def fail(self) -> None:
        pass

    def close(self) -> None:
        raise OSError("cannot close")


class BadSaver(Bad):
    def fail(self) -> None:
        pass

    def save(self) -> bytes:
        raise MemoryError("too much to remember")

    def load(self, state: bytes) -> None:
        raise NotImplementedError


async def walk(turn: Turn) -> Reply:
    """A coroutine that is an agent of the maze: it goes up."""
    return Reply("up") if turn.ask is Ask.ACT else Reply(None, Belief(0.5))
