"""A small client for agents that play birds over TCP, on this or any other server of the game."""

from __future__ import annotations

import socket
import struct
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.domains.birds.harness import HarnessState
from openfield.domains.birds.wire.messages import PAD, Request, write_request

__all__ = ["BirdsClient", "SetFacts"]


class SetFacts(msgspec.Struct, frozen=True, array_like=True):
    """The facts of a set; a limit of 0 means no limit."""

    seconds: int
    interactions: int
    levels: int
    attempts: int
    testing: bool
    selection: bool
    informed: bool


class BirdsClient:
    """A connection to a game."""

    def __init__(self, host: str = "127.0.0.1", port: int = 2004, timeout: float | None = 60.0) -> None:
        self._socket = socket.create_connection((host, port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> BirdsClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the same team id finds its game again."""
        self._socket.close()

    def configure(self, team: int, mode: int = 0) -> tuple[int, int, int]:
        """Send the team id, and return round, minutes and number of levels."""
        round_, minutes, levels = self._ask(1, ">BBB", team, mode)
        return round_, minutes, levels

    def set_speed(self, speed: int) -> bool:
        """Set how fast time passes after a fast shot."""
        return bool(self._ask(2, ">B", speed)[0])

    def state(self) -> HarnessState:
        """Return the state of the game."""
        return HarnessState(self._ask(12, ">B")[0])

    def ready(self) -> SetFacts:
        """Begin the announced set, and return its facts."""
        return msgspec.convert(self._ask(68, ">IIIIBBB"), SetFacts, strict=False)

    def load(self, level: int) -> bool:
        """Load a level by its number, from 1 on."""
        return bool(self._ask(51, ">B", level)[0])

    def load_next(self) -> int:
        """Load the next available level and return its number; 0 after the last."""
        return int(self._ask(53, ">I")[0])

    def restart(self) -> bool:
        """Load the level again."""
        return bool(self._ask(52, ">B")[0])

    def shoot(self, x: int, y: int, tap: int = 0, fast: bool = False) -> bool:
        """Pull the bird to a pixel and let go; return when everything rests, or at once if fast."""
        return bool(self._ask(41 if fast else 31, ">B", x, y, 0, tap)[0])

    def shoot_and_watch(self, x: int, y: int, tap: int = 0, every: int = 5, short: bool = False) -> list[Any]:
        """Shoot, and return the ground truth at an interval of steps."""
        self._send(38, x, y, 0, tap, every, int(short))
        return self._ground_truths()

    def watch(self, every: int, frames: int) -> list[Any]:
        """Let time pass, and return some ground truths."""
        self._send(70, every, frames)
        return self._ground_truths()

    def zoom(self, way: str) -> bool:
        """Zoom `in` or `out`."""
        return bool(self._ask(35 if way == "in" else 34, ">B")[0])

    def score(self) -> int:
        """Return the score of the level."""
        return int(self._ask(65, ">I")[0])

    def scores(self) -> list[int]:
        """Return the best score of each level of the set."""
        (count,) = self._ask(23, ">I")
        return list(struct.unpack(f">{count}I", self._read(4 * count)))

    def level(self) -> int:
        """Return the number of the current level."""
        return int(self._ask(14, ">I")[0])

    def levels(self) -> int:
        """Return the number of levels in the set."""
        return int(self._ask(15, ">I")[0])

    def ground_truth(self, noisy: bool = False) -> list[Any]:
        """Return the ground truth."""
        self._send(64 if noisy else 62)
        return self._ground_truth()

    def screenshot(self, initial: bool = False) -> NDArray[np.uint8]:
        """Return a picture of the level, of now or as it was loaded."""
        width, height = self._ask(71 if initial else 11, ">II")
        data = self._read(3 * width * height)
        return np.frombuffer(data, dtype=np.uint8).reshape(height, width, 3)

    def report(self, novel: float, level: int = 0, objects: tuple[int, ...] = (), text: str = "") -> bool:
        """Report how likely it is that the world has changed."""
        return bool(self._ask(66, ">B", novel, 1 - novel, objects, level, text)[0])

    def describe(self, text: str) -> bool:
        """Say in words what has changed."""
        return bool(self._ask(67, ">B", text)[0])

    def novelty_info(self) -> int:
        """Return 1 or 0 if the trial reveals whether the level is novel, else -1."""
        return int(self._ask(69, ">i")[0])

    def _send(self, code: int, *fields: Any) -> None:
        self._socket.sendall(write_request(Request(code, fields)))

    def _ask(self, code: int, layout: str, *fields: Any) -> tuple[Any, ...]:
        self._send(code, *fields)
        return struct.unpack(layout, self._read(struct.calcsize(layout)))

    def _ground_truths(self) -> list[Any]:
        (count,) = struct.unpack(">I", self._read(4))
        return [self._ground_truth() for _ in range(count)]

    def _ground_truth(self) -> list[Any]:
        (length,) = struct.unpack(">I", self._read(4))
        return msgspec.json.decode(self._read(length)[: -len(PAD)], type=list[Any])

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(min(1 << 20, size - len(parts)))
            if not part:
                raise ConnectionError("The game hung up.")
            parts += part
        return bytes(parts)
