"""What a thousand agents at once cost a JSON-lines server, beside a bare asyncio echo server.

The servers are asked by the same client program, one after the other. The echo server runs on Python's own event loop,
as a person writes one, and on uvloop, which openfield uses where it is installed. A reply is answered when it is
committed. The figures are ratios within this run: `python bench/bench_serving.py [AGENTS] [SECONDS]`. With
`--broken COUNT` this number of connections is broken off, and the figure is by how much the memory of each server has
grown.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import resource
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import openfield as of
from openfield.serving.listen import fastest_loop

HELLO, REPLY = b'{"type":"hello","name":"agent-%d"}\n', b'{"type":"reply","action":1,"belief":{"novel":0.25}}\n'
SHOWN = {"cue": 1, "field": [0] * 12}
"""What the world shows. The echo of a reply is about as long as a turn with it."""
ROUNDS = 3


class Counting:
    """A world that does next to nothing: it counts, and an episode has 100 turns.

    Each world begins one turn later than the one before: or agents that come together would end episodes together.
    """

    _worlds = itertools.count()

    def __init__(self) -> None:
        self.over, self.truth = False, of.Truth()
        self._number, self._within = next(Counting._worlds), of.Truth()
        self._ended = of.Truth(episode_over=True, performance=1.0)

    def reset(self) -> of.Turn:
        return of.Turn(observation=SHOWN, first=True)

    def step(self, reply: of.Reply) -> of.Turn:
        self._number += 1
        self.truth = self._within if self._number % 100 else self._ended
        return of.Turn(observation=SHOWN, reward=float(reply.action))

    def look(self, query: str) -> None: ...

    def close(self) -> None: ...


class CountingDomain(of.Domain[of.Settings]):
    """Trials without end, for agents in other programs."""

    name, title, settings = "counting", "Count", of.Settings

    def spec(self, trial: of.Trial) -> of.Spec:
        return of.Spec(domain=self.name, task="Answer 1.", actions=of.spaces.Discrete(2))

    def phases(self, settings: of.Settings, novelty: tuple[str, ...]) -> tuple[of.Phase, ...]:
        return (of.Phase("test"),)

    def world(self, trial: of.Trial) -> of.World:
        return Counting()


DOMAIN = CountingDomain()


def main(agents: int, seconds: float) -> None:
    allow_files(agents)
    found: dict[str, list[dict[str, float]]] = {"echo": [], "echo on uvloop": [], "openfield": []}
    for _ in range(ROUNDS):
        for kind, figures in found.items():
            figures.append(measure(kind, agents, seconds))
            print(json.dumps({"subject": "serving", "server": kind, "agents": agents} | figures[-1]), flush=True)
    middle = {kind: {key: statistics.median(each[key] for each in figures) for key in figures[0]}
              for kind, figures in found.items()}  # fmt: skip
    ours, bars = middle["openfield"], {"echo": (0.5, 3.0), "echo on uvloop": (0.5, 3.0)}
    for kind, (least, most) in bars.items():
        echo, name = middle[kind], "an echo server's" + kind.removeprefix("echo")
        report(f"turns/s of {name}", ours["turns_per_second"] / echo["turns_per_second"], least, "higher")
        report(f"p99 of {name}", ours["p99_ms"] / echo["p99_ms"], most, "lower")
        report(f"processor time a turn, of {name}", ours["cpu_us"] / echo["cpu_us"], None, "lower")


def break_connections(count: int) -> None:
    """Break off connections to each kind of server, and report how its memory has grown since the first tenth."""
    ours = {"JSON lines": [__file__], "OND": ["ond", "--trials", "1"], "CommAI": ["commai", "--trials", "1"]}
    for name, words in ours.items():
        with tempfile.TemporaryDirectory() as folder, serving("openfield", Path(folder), words) as (port, process):
            for _ in range(count // 10):
                break_off(port)
            before = resident_bytes(process)
            for _ in range(count):
                break_off(port)
            grown = (resident_bytes(process) - before) / 1e6
        report(f"growth after {count:,} broken connections, {name}", grown, 5.0, "lower", "MB")


def break_off(port: int) -> None:
    """Open a connection, send the beginnings of several protocols, and reset it."""
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
        sent = random.choice(
            [b"", HELLO % 1, HELLO[:9], b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\xff\0", b"x" * 50_000]
        )
        peer.sendall(sent)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing sends a reset


def measure(kind: str, agents: int, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, serving(kind, Path(folder)) as (port, process):
        words = [sys.executable, __file__, "--client", kind, str(port), str(process), str(agents), str(seconds)]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


@contextmanager
def serving(kind: str, folder: Path, domain: Sequence[str] = (__file__, "--trials", "1")) -> Iterator[tuple[int, int]]:
    """Start a server in a process of its own, and yield its port and process."""
    ours = ["-m", "openfield", "serve", *domain, "--port", "0", "-o", str(folder / "run.sqlite")]
    words = ours if kind == "openfield" else [__file__, "--echo", kind]
    with subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True) as server:
        found = re.search(r":(\d+),", server.stdout.readline() if server.stdout else "")
        try:
            if found is None:
                raise SystemExit("The server did not start.")
            yield int(found[1]), server.pid
        finally:
            server.terminate()


async def echo() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # the client breaks off in the middle
            while line := await reader.readline():
                writer.write(line)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2_000)
    print(f"Serving on 127.0.0.1:{server.sockets[0].getsockname()[1]}, echoes", flush=True)
    await server.serve_forever()


class Peer(asyncio.Protocol):
    """An agent that answers every line at once."""

    def __init__(self, took: list[int]) -> None:
        self._took, self._rest, self._asked = took, b"", 0
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.playing = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def say(self, line: bytes) -> None:
        self._asked = time.perf_counter_ns()
        self._transport.write(line)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b'{"type":"welcome"'):
                continue
            if line.startswith(b'{"type":"bye"'):
                raise SystemExit(line.decode())
            if not self.playing:
                self.begun.set_result(None)
                continue
            self._took.append(time.perf_counter_ns() - self._asked)
            self.say(REPLY)


async def play(kind: str, port: int, server: int, agents: int, seconds: float) -> None:
    """Connect all agents, let them play, and print how many turns there were and how long they took."""
    took: list[int] = []
    peers: list[Peer] = []
    loop, began = asyncio.get_running_loop(), time.perf_counter()
    for number in range(agents):
        _, peer = await loop.create_connection(lambda: Peer(took), "127.0.0.1", port)
        peers.append(peer)
        peer.say(HELLO % number if kind == "openfield" else REPLY)
    await asyncio.gather(*(peer.begun for peer in peers))
    joined = time.perf_counter() - began
    for peer in peers:
        peer.playing = True
        peer.say(REPLY)
    await asyncio.sleep(1.0)
    took.clear()
    began, busy = time.perf_counter(), processor_seconds(server)
    await asyncio.sleep(seconds)
    busy = processor_seconds(server) - busy
    each, took_all = len(took) / (time.perf_counter() - began), sorted(took)
    figures = {"turns_per_second": round(each), "p50_ms": took_all[len(took_all) // 2] / 1e6}
    figures |= {"p99_ms": took_all[len(took_all) * 99 // 100] / 1e6, "joined_seconds": round(joined, 2)}
    figures["cpu_us"] = round(busy * 1e6 / len(took))
    print(json.dumps(figures))


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def allow_files(count: int) -> None:
    """Allow as many connections as there are agents."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 2 * count + 500), most))


def report(figure: str, value: float, bar: float | None, better: str, unit: str = "x") -> None:
    good = bar is None or (value <= bar if better == "lower" else value >= bar)
    line: dict[str, Any] = {"subject": "serving", "figure": figure, "value": round(value, 3), "unit": unit, "bar": bar}
    print(json.dumps(line | {"better": better, "ok": good}), flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--echo", kind]:
            with asyncio.Runner(loop_factory=None if kind == "echo" else fastest_loop()) as runner:
                runner.run(echo())
        case ["--broken", count]:
            break_connections(int(count))
        case ["--client", kind, port, server, agents, seconds]:
            with asyncio.Runner(loop_factory=fastest_loop()) as runner:
                runner.run(play(kind, int(port), int(server), int(agents), float(seconds)))
        case words:
            main(*(int(words[0]) if words else 1_000, float(words[1]) if words[1:] else 5.0))
