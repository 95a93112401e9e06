"""What the server and its workers tell each other: orders one way, frames the other.

Each message is four bytes that say how long it is, and MessagePack.
"""

from __future__ import annotations

from typing import BinaryIO

import msgspec

HEAD_BYTES = 4
MAX_MESSAGE = 32 << 20
"""Bytes of a message. A worker runs code of domains, so what it sends is not trusted."""


class EpisodeOrder(msgspec.Struct, frozen=True, tag="episode"):
    """Asks for the pictures of an episode, or for a film of it in a file."""

    run: str
    """The path of the run file."""
    cell: str
    attempt: int
    episode: int
    steps: int = 0
    """How many steps were recorded, for an episode that is not over: a later order may show more."""
    trust: bool = False
    film: str = ""
    """Where to write the film; empty to have the pictures sent."""


class WarmOrder(msgspec.Struct, frozen=True, tag="warm"):
    """Asks to make ready for the pictures of a cell, which a reader may want soon. It has no answer."""

    run: str
    cell: str
    trust: bool = False


class StopOrder(msgspec.Struct, frozen=True, tag="stop"):
    """Asks to end what is being made: it is not wanted any more."""


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """Says that the replay begins."""

    milliseconds: float
    """How long each picture is shown."""


class TurnPicture(msgspec.Struct, frozen=True, tag="frame"):
    """A picture."""

    turn: int
    """The turn that it leads to."""
    data: bytes
    """A JPEG or PNG file."""


class Replayed(msgspec.Struct, frozen=True, tag="replayed"):
    """Says that the worker is alive, and which turn it has played again."""

    turn: int


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Says that all pictures were made."""

    count: int


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Says why there are no (more) pictures."""

    message: str
    again: bool = False
    """Whether they may come if they are asked for again."""


Order = EpisodeOrder | WarmOrder | StopOrder
Answer = Opened | TurnPicture | Replayed | Finished | Failed
_ORDERS = msgspec.msgpack.Decoder(Order)
_ANSWERS = msgspec.msgpack.Decoder(Answer)


def pack(message: Order | Answer) -> bytes:
    """Return a message as it is sent."""
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(HEAD_BYTES, "big") + data


def read_order(file: BinaryIO) -> Order | None:
    """Read the next order; None if the server is gone."""
    head = file.read(HEAD_BYTES)
    return _ORDERS.decode(file.read(int.from_bytes(head, "big"))) if len(head) == HEAD_BYTES else None


def read_answer(data: bytes) -> Answer:
    """Read an answer of a worker.

    Raises:
        msgspec.DecodeError: It is none.
    """
    answer: Answer = _ANSWERS.decode(data)
    return answer
