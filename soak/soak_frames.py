"""Mutated frames for every wire: each is taken, or refused with an error of ours. `--frames N` per wire [1,000,000].

JSON lines, Birds, Doom and CommAI are read by their codecs. OND gets requests on a socket, and must then still answer.
"""

from __future__ import annotations

import http.client
import logging
import random
import re
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from common import finish, folder, parameter, report, start
from openfield.domain import spec_of
from openfield.domains.birds.wire import messages as birds
from openfield.domains.commai.domain import CommaiDomain
from openfield.domains.commai.wire.line import is_hello
from openfield.domains.commai.wire.server import Codec, hello_token
from openfield.domains.doom.wire import messages as doom
from openfield.errors import OpenfieldError
from openfield.serving.jsonlines import LineDecoder

JSON_LINES = [
    b'{"type":"hello","protocol":1,"name":"ada","saves":true,"token":"t","session":null}\n',
    b'{"type":"reply","action":[1,2.5,"x",null],"belief":{"novel":0.5,"level":2,"detail":{"a":[1]}}}\n',
    b'{"type":"state","state":"AAEC"}\n{"type":"loaded"}\n',
]
BIRDS = [
    birds.write_request(birds.Request(birds.LIKELIHOOD, (0.3, 0.7, (1, 2, 3), 2, "objects"))),
    birds.write_request(birds.Request(birds.DESCRIPTION, ("a new object",))),
    bytes((1, 0, 0, 0, 9)) + bytes((12, 31, 2, 61, 33, 14, 51, 0)),
]
DOOM = [
    b'[{"obj_type":"request_experiment","model":"{}","novelty":0,"novelty_visibility":1,"client_rpc_queue":"q",'
    b'"git_version":"1","experiment_type":"sail-on","seed":1,"description":"d","no_testing":false,"secret":"s"}]',
    b'[{"obj_type":"testing_data_prediction","secret":"s","label":{"action":"shoot"},"novelty_probability":0.5,'
    b'"novelty":1,"novelty_characterization":{"level":1}}]',
    b'[{"obj_type":"testing_episode_novelty","secret":"s","novelty_probability":0.5,"novelty_threshold":0.8,"novelty":0,'
    b'"novelty_characterization":{}}]',
]
COMMAI = [b"a", b"\xc3\xa9", b"hello", b"hello token", b"a|b"]
OND = [
    b"POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 61\r\n\r\n"
    b'{"test_ids":["a"],"protocol":"OND","experiment_id":"e","x":1}',
    b"GET /test/metadata?session_id=a&test_id=b HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /session/results HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    b'Content-Length: 77\r\n\r\n--b\r\nContent-Disposition: form-data; name="session_id"\r\n\r\n'
    b"0123456789\r\n--b--\r\n",
]


def main(frames: int) -> None:
    logging.disable()
    codecs: dict[str, tuple[Sequence[bytes], Callable[[bytes], object]]] = {
        "JSON lines": (JSON_LINES, lambda data: list(LineDecoder().feed(data))),
        "Birds": (BIRDS, lambda data: list(birds.RequestReader().feed(data))),
        "Doom": (DOOM, read_doom),
        "CommAI": (COMMAI, CommaiReader()),
    }
    for wire, (valid, read) in codecs.items():
        fuzz(wire, frames, valid, read)
    ask_ond(frames)


def mutate(chance: random.Random, frames: Sequence[bytes]) -> bytes:
    """Change a valid frame: bits, bytes, pieces cut, doubled, swapped with another frame's, numbers blown up."""
    data = bytearray(chance.choice(frames))
    for _ in range(chance.choice((1, 1, 2, 8))):
        at, length = chance.randrange(len(data) + 1), chance.randrange(1, 17)
        match chance.randrange(7):
            case 0:
                data[at : at + 1] = bytes((chance.randrange(256),))
            case 1:
                del data[at : at + length]
            case 2:
                data[at:at] = data[at : at + length] * chance.randrange(1, 5)
            case 3:
                data[at:at] = chance.randbytes(length)
            case 4:
                data[at : at + length] = chance.choice(frames)[at : at + 2 * length]
            case 5:
                data[at : at + 4] = chance.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4), b"[" * 2_000, b"1e999"))
            case _:
                del data[at:]
    return bytes(data)


def fuzz(wire: str, frames: int, valid: Sequence[bytes], read: Callable[[bytes], object]) -> None:
    chance, wrong, taken, slowest = random.Random(wire), dict[str, int](), 0, 0.0
    for _ in range(frames):
        frame, began = mutate(chance, valid), time.perf_counter()
        try:
            read(frame)
            taken += 1
        except (OpenfieldError, birds.BadFrame):
            pass
        except Exception as error:
            wrong[type(error).__name__] = wrong.get(type(error).__name__, 0) + 1
        slowest = max(slowest, time.perf_counter() - began)
    more: dict[str, Any] = {"frames": frames, "taken": taken, "slowest_ms": round(slowest * 1e3, 1)}
    report("frames", f"{wire}: errors that are not ours", sum(wrong.values()), 0, kinds=wrong, **more)


def read_doom(data: bytes) -> None:
    for decode in (doom.decode_request, doom.decode_registration, doom.decode_message):
        with suppress(OpenfieldError):
            decode(data)


class CommaiReader:
    """Reads the messages that libzmq has put together; frames of one are separated by `|`."""

    def __init__(self) -> None:
        domain = CommaiDomain()
        self._codec = Codec(spec_of(domain, domain.trials(1)[0]))

    def __call__(self, data: bytes) -> None:
        message = data.split(b"|")
        if is_hello(message):
            hello_token(message)
        self._codec.read(message)


def ask_ond(frames: int) -> None:
    """Send requests to a real server, on connections that are used again while they last."""
    chance, silent = random.Random("OND"), False
    with folder() as place:
        words = ["serve", "ond", "--port", "0", "-o", str(place / "run.sqlite")]
        server = start(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            found = re.search(r":(\d+)", server.stdout.readline() if server.stdout else "")
            port = int(found[1]) if found else 0
            before = memory(server.pid)
            for _ in range(frames):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 30) as connection:
                    connection.sendall(mutate(chance, OND))
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(1 << 16):
                        pass
            silent = not answers(port)
            grown = memory(server.pid) - before
        finally:
            server.kill()
            said = server.communicate()[0]
    report("frames", "OND: server does not answer", int(silent), 0, frames=frames)
    report("frames", "OND: tracebacks", said.count("Traceback"), 0, frames=frames)
    report("frames", "OND: memory grown by MB", grown >> 20, 64, frames=frames)


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/openapi.json")
    return connection.getresponse().status == 200


def memory(process: int) -> int:
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * 4096


if __name__ == "__main__":
    main(parameter("frames", 1e6, 5_000))
    finish()
