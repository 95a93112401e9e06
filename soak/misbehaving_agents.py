"""More than fifty agents that misbehave in their fifth turn, each in its own way; `soak_agents.py` plays them."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import openfield as of

FATAL_TURN = 5


class Wordless(Exception):
    """An error whose text is another error."""

    def __str__(self) -> str:
        raise ValueError


class Odd(int):
    """A number that cannot be compared."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("not comparable")

    __hash__ = int.__hash__


def fill_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
    b"x" * (8 << 30)


def recurse(depth: int = 0) -> int:
    return recurse(depth + 1) + 1


def nested() -> Any:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


def itself() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def fork_and(then: Callable[[], object]) -> None:
    if not os.fork():
        then()
        os._exit(0)


def fork_twice() -> None:
    if not os.fork():
        os.setsid()
        if not os.fork():
            time.sleep(900)
        os._exit(0)


def raising(error: BaseException) -> Callable[[], object]:
    def fail() -> None:
        raise error

    return fail


def stay(seconds: float = 900) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            time.sleep(seconds)
        except BaseException:
            continue


def leave_folder() -> None:
    os.chdir(place := tempfile.mkdtemp())
    os.rmdir(place)


def start_thread(work: Callable[[], object], daemon: bool) -> None:
    threading.Thread(target=work, daemon=daemon).start()


def believe(novel: Any = 0.5, level: Any = None, detail: Any = None) -> of.Reply:
    return of.Reply("left", of.Belief(novel, level, detail))


DEEDS: dict[str, Callable[[], object]] = {
    # raising
    "raises": raising(ValueError("enough")),
    "raises_stop": raising(StopIteration()),
    "raises_exit": raising(SystemExit(0)),
    "raises_interrupt": raising(KeyboardInterrupt()),
    "raises_generator_exit": raising(GeneratorExit()),
    "raises_memory": raising(MemoryError()),
    "raises_wordless": raising(Wordless()),
    "raises_endless_text": raising(ValueError("x" * 10_000_000)),
    "raises_escape_codes": raising(ValueError("\x1b[2J\x1b]0;title\x07\r=cmd")),
    "raises_cancelled": raising(of.errors.Cancelled("by the agent")),
    "raises_world_fault": raising(of.errors.WorldFault("not mine")),
    "raises_mismatch": raising(of.errors.ReplayMismatch("not mine")),
    "raises_broken_pipe": raising(BrokenPipeError()),
    "recurses": recurse,
    "fills_memory": fill_memory,
    # answering
    "answers_none": lambda: None,
    "answers_text": lambda: "left",
    "answers_unknown": lambda: of.Reply("sideways"),
    "answers_nested": lambda: of.Reply(nested()),
    "answers_itself": lambda: of.Reply(itself()),
    "answers_object": lambda: of.Reply(object()),
    "answers_odd": lambda: of.Reply(Odd(1)),
    "answers_surrogate": lambda: of.Reply("\ud800"),
    "answers_huge": lambda: believe(detail="x" * 200_000_000),
    "answers_huge_number": lambda: of.Reply(10**5000),
    "believes_nan": lambda: believe(float("nan")),
    "believes_two": lambda: believe(2.0),
    "believes_text": lambda: believe("surely"),
    "believes_nothing": lambda: believe(()),
    "believes_object": lambda: believe(detail=object()),
    # hanging
    "sleeps": lambda: time.sleep(900),
    "stays": stay,
    "loops": lambda: [None for _ in iter(int, 1)],
    # harming its process
    "exits": lambda: os._exit(3),
    "aborts": os.abort,
    "crashes": lambda: ctypes.string_at(0),
    "kills_itself": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "terminates_itself": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "terminates_parent": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "interrupts_parent": lambda: os.kill(os.getppid(), signal.SIGINT),
    "terminates_group": lambda: os.killpg(0, signal.SIGTERM),
    "closes_files": lambda: os.closerange(3, 1_000),
    "closes_all_files": lambda: os.closerange(0, 1_000),
    "uses_up_files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3)),
    "ignores_signals": lambda: [signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGUSR1)],
    "leaves_fork": lambda: fork_and(lambda: time.sleep(900)),
    "leaves_orphan": fork_twice,
    "comes_back_twice": os.fork,
    "leaves_thread": lambda: start_thread(lambda: time.sleep(900), daemon=False),
    "leaves_folder": leave_folder,
    # harming others in its process
    "breaks_random": lambda: random.seed(0),
    "breaks_modules": lambda: sys.modules.pop("openfield.rollout", None),
    "stops_collector": gc.disable,
    "limits_recursion": lambda: sys.setrecursionlimit(60),
    "floods_output": lambda: os.write(2, b"noise \x1b[0m\n" * 1_000),
}
"""What each does; a `Reply` or anything else that it returns is its answer."""


class Misbehaving:
    """Walks at random until the fatal turn."""

    def __init__(self, deed: str, seed: int) -> None:
        self._deed, self._rng, self._turns = deed, random.Random(seed), 0

    def __call__(self, turn: of.Turn) -> Any:
        self._turns += 1
        answer: Any = of.Reply(self._rng.choice(("left", "right", "up", "down")))
        if turn.ask is not of.Ask.ACT or self._turns < FATAL_TURN:
            return answer if turn.ask is of.Ask.ACT else of.Reply()
        if self._turns == FATAL_TURN or self._deed.startswith(("answers", "believes")):
            said = DEEDS[self._deed]()
            answer = said if self._deed.startswith(("answers", "believes")) else answer
        return answer


def __getattr__(name: str) -> Any:
    """Return the factory of a misbehaving agent."""
    if name not in DEEDS:
        raise AttributeError(name)
    return lambda spec, seed: Misbehaving(name, seed)
