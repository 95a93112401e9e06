"""What the server and its workers send each other, in MessagePack: orders one way, frames the other."""

from __future__ import annotations

import msgspec

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
ORDERS: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Order)
ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
