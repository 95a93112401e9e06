"""What the server and the process of a person send each other: orders one way, answers the other.

Orders are pickled: they come from the server. A process runs code of domains, so its answers are MessagePack of known
kinds and sizes.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from openfield.cell import Cell
from openfield.errors import JournalError, OpenfieldError, ReplayMismatch, WorldFault

MAX_ANSWER = 64 << 20
"""Bytes of an answer; the largest are chunks of the record."""


class OpenOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Asks to open a trial, new or as far as it is recorded."""

    cell: Cell
    domain: str
    """Where the domain is found."""
    run: Path
    attempt: int | None
    """The attempt that is recorded; None records nothing."""


class PlayOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Says that the person's page is there, and asks to go on with the trial."""

    place: int
    count: int
    practice: bool


class MessageOrder(msgspec.Struct, frozen=True):
    """Passes on a message of the page."""

    text: bytes


class LeaveOrder(msgspec.Struct, frozen=True):
    """Says that the page is gone. The trial stays open."""


class FinishOrder(msgspec.Struct, frozen=True):
    """Asks to end the trial."""

    outcome: str


class WrittenOrder(msgspec.Struct, frozen=True):
    """Says that entries are on disk, or why they are not."""

    number: int
    failure: str


Order = OpenOrder | PlayOrder | MessageOrder | LeaveOrder | FinishOrder | WrittenOrder


class TrialOpened(msgspec.Struct, frozen=True, tag="opened"):
    """Says that the trial is open."""


class ShowText(msgspec.Struct, frozen=True, tag="text"):
    """Asks to send something to the page."""

    text: str


class ShowPicture(msgspec.Struct, frozen=True, tag="picture"):
    """Asks to send a picture to the page."""

    data: bytes


class MessageRefused(msgspec.Struct, frozen=True, tag="refused"):
    """Says what was wrong with a message of the page."""

    reason: str


class MessageTaken(msgspec.Struct, frozen=True, tag="taken"):
    """Says that a message of the page was taken, so that there is room for another."""


class RecordEntries(msgspec.Struct, frozen=True, tag="entries"):
    """Asks to record entries, and to confirm when they are on disk."""

    number: int
    entries: bytes


class Left(msgspec.Struct, frozen=True, tag="left"):
    """Says that nothing more is shown, as the page is gone."""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """Says that the trial is over and closed, or could not be opened."""

    failure: str = ""
    """What went wrong, if something did."""
    kind: str = ""
    """What kind of failure it is, by the name of its error."""


class Alive(msgspec.Struct, frozen=True, tag="alive"):
    """Says from time to time that the process goes on."""

    busy: float
    """For how many seconds the world has been at what it does."""


Answer = TrialOpened | ShowText | ShowPicture | MessageRefused | MessageTaken | RecordEntries | Left | Ended | Alive
ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)
_FAILURES = {each.__name__: each for each in (JournalError, ReplayMismatch, WorldFault)}


def describe_failure(error: Exception) -> Ended:
    """Return the message that reports an error to the server."""
    known = next((name for name, kind in _FAILURES.items() if isinstance(error, kind)), "")
    said = str(error) if isinstance(error, OpenfieldError) else f"{type(error).__name__}: {error}"
    return Ended(said or type(error).__name__, known)


def restore_failure(ended: Ended) -> OpenfieldError:
    """Return the error that an answer reports."""
    return _FAILURES.get(ended.kind, OpenfieldError)(ended.failure)
