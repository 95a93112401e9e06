"""Agents for tests of isolation: each tries what an isolated agent must not be able to do. They play the cue world."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from openfield.core import Belief, Reply, Spec, Turn

CALL = 5
"""The call in which they try it."""


class Intruder:
    """Answers the cue, and tries something once. What it found goes into the detail of its belief."""

    def __init__(self, spec: Spec, seed: int) -> None:
        self.calls = 0

    def __call__(self, turn: Turn) -> Reply:
        self.calls += 1
        found = self.attempt() if self.calls == CALL else None
        return Reply(turn.observation["cue"], None if found is None else Belief(0.5, detail=found))

    def attempt(self) -> Any:
        raise NotImplementedError


class Peeker(Intruder):
    """Looks for everything that is not its own: processes, variables, open files, files beside it."""

    def attempt(self) -> Any:
        processes = [name for name in os.listdir("/proc") if name.isdecimal()]
        own = {str(os.getpid()), "1"}
        return {
            "environment": sorted(os.environ),
            "folder": sorted(os.listdir()),
            "processes": sorted(set(processes) - own),
            "commands": [Path(f"/proc/{name}/cmdline").read_text() for name in processes],
            "files": sorted(filter(None, map(_read_link, os.listdir("/proc/self/fd")))),
            "terminal": os.isatty(0) or os.isatty(1) or os.isatty(2),
            "input": sys.stdin.read(),
            "kernel": os.access("/proc/sys/kernel/core_pattern", os.W_OK),
        }


class Reader(Intruder):
    """Reads what it finds in a folder, whose name stands in a file beside it."""

    def attempt(self) -> Any:
        folder = Path(__file__).parent
        return {str(path.relative_to(folder)): _read(path) for path in sorted(folder.rglob("*")) if path.is_file()}


class Caller(Intruder):
    """Connects to every port it is told of in a file beside it."""

    def attempt(self) -> Any:
        port = int(Path(__file__).with_name("port.txt").read_text())
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=30):
                return "connected"
        except OSError as error:
            return type(error).__name__


class Nester(Intruder):
    """Replies with a few bytes that take much memory where they are read."""

    def attempt(self) -> Any:
        return [[]] * 600_000


class Assassin(Intruder):
    """Sends signals to its parent, its group and every process it may send one to."""

    def attempt(self) -> Any:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for target in (os.getppid(), -1):
            try:
                os.kill(target, signal.SIGTERM)
            except OSError:
                continue
        return "sent"


class Squatter(Intruder):
    """Leaves a process behind that has left its session and its parent."""

    def attempt(self) -> Any:
        mark = Path(__file__).with_name("mark.txt").read_text()
        program = "import os, sys, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  time.sleep(600)"
        subprocess.run([sys.executable, "-S", "-c", program, mark], check=True)
        return "left"


class Glutton(Intruder):
    """Takes memory until it is ended."""

    def attempt(self) -> Any:
        return [bytearray(os.urandom(1 << 20) * 16) for _ in range(256)] and None


class GluttonousFamily(Intruder):
    """Has children that take memory, each less than the limit."""

    def attempt(self) -> Any:
        program = "import time\nkept = bytearray(b'x' * (48 << 20))\ntime.sleep(600)"
        children = [subprocess.Popen([sys.executable, "-S", "-c", program]) for _ in range(4)]
        return [child.wait() for child in children]


class Hoarder(Intruder):
    """Keeps its memory in files."""

    def attempt(self) -> Any:
        for number in range(64):
            Path(f"{'/dev/shm' if number % 2 else '.'}/{number}").write_bytes(b"x" * (8 << 20))
        time.sleep(600)


class Hider(Intruder):
    """Keeps its memory in a file without a name."""

    def attempt(self) -> Any:
        number = os.memfd_create("hidden")
        for _ in range(64):
            os.write(number, b"x" * (8 << 20))
        time.sleep(600)


class Multiplier(Intruder):
    """Starts processes until it is ended."""

    def attempt(self) -> Any:
        for _ in range(200):
            if os.fork() == 0:
                time.sleep(600)
        time.sleep(600)


class Burner(Intruder):
    """Uses the processor for ever, in a child."""

    def attempt(self) -> Any:
        return subprocess.run([sys.executable, "-S", "-c", "while True: pass"]).returncode


class Writer(Intruder):
    """Writes a long file."""

    def attempt(self) -> Any:
        Path("long").write_bytes(b"x" * (4 << 20))
        return "written"


class Shouter(Intruder):
    """Prints to where messages might be, and closes it."""

    def attempt(self) -> Any:
        sys.stdout.write("k" * 100_000)
        sys.stderr.write("e" * 100_000)
        sys.stderr.flush()
        os.write(1, bytes(range(256)))
        for number in (0, 1, 2):
            os.close(number)
        return "shouted"


class Forker(Intruder):
    """Forks, and the child goes on as if it was the agent."""

    def attempt(self) -> Any:
        os.fork()
        return None


class Talker(Intruder):
    """Replies with more than can be meant."""

    def attempt(self) -> Any:
        return "x" * (17 << 20)


class Liar(Intruder):
    """Sends messages itself, instead of the process it runs in."""

    def attempt(self) -> Any:
        for name in os.listdir("/proc/self/fd"):
            if _read_link(name).startswith("socket:"):
                os.write(int(name), ((9).to_bytes(8, "little") + b"r\x81\xa1a\x01....") * 3)
        return None


class Leaver(Intruder):
    """Ends its process without a word."""

    def attempt(self) -> Any:
        os._exit(7)


class Hanger(Intruder):
    def attempt(self) -> Any:
        while True:
            time.sleep(600)


class Closer(Intruder):
    """Says when it is closed, and cannot be."""

    def attempt(self) -> Any:
        return None

    def close(self) -> None:
        raise OSError("cannot close")


class Rememberer(Intruder):
    """Is told its past, with what it was shown."""

    def __init__(self, spec: Spec, seed: int) -> None:
        super().__init__(spec, seed)
        self.past: list[Any] = []

    def attempt(self) -> Any:
        return self.past

    def remember(self, turn: Turn, reply: Reply) -> None:
        self.past.append([turn.observation["cue"], reply.action])


def describe(turn: Turn) -> Reply:
    """Says what it is shown."""
    return Reply(repr(turn.observation))


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        return type(error).__name__


def _read_link(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}").partition("[")[0]
    except OSError:
        return ""
