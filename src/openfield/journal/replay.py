"""Whether what is said now is what was said then: for replay, which compares, and for beliefs, which must be readable.

Stands under rollout; everything here works on the bytes of the record.
"""

from __future__ import annotations

from typing import Any

import msgspec

from openfield.core import Belief, Reply, Turn
from openfield.journal.steps import ENCODER, REPLY_ENCODER

UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError)
"""What encoding raises at values that have no form in the record."""
_TURNS, _REPLIES = msgspec.msgpack.Decoder(Turn), msgspec.msgpack.Decoder(Reply)
_BELIEFS = msgspec.msgpack.Decoder(Belief)
NO_TURN = ENCODER.encode(None)
"""Recorded where a reply had nothing new shown: the trial was over, or more was said of an episode that had ended."""


def is_same_turn(turn: Turn, recorded: msgspec.Raw) -> bool:
    """Whether a replayed turn is the recorded one."""
    return _is_equal(ENCODER.encode(turn), bytes(recorded), _TURNS)


def is_same_reply(reply: object, recorded: Reply | None) -> bool:
    """Whether an agent that is shown an old turn again answers as it did."""
    try:
        return type(reply) is Reply and _is_equal(REPLY_ENCODER.encode(reply), REPLY_ENCODER.encode(recorded), _REPLIES)
    except (*UNWRITABLE, msgspec.DecodeError):
        return False


def check_belief(belief: object) -> None:
    """Sees that a belief can be read back from the record, and is a probability.

    Raises:
        ValueError, TypeError, OverflowError, RecursionError, msgspec.DecodeError: It is none.
    """
    novel = _BELIEFS.decode(REPLY_ENCODER.encode(belief)).novel
    chances = novel if isinstance(novel, tuple) else (novel,)
    if not chances or not all(0.0 <= chance <= 1.0 for chance in chances):
        raise ValueError("the probability that the world has changed is a number from 0 to 1")


def _is_equal(one: bytes, other: bytes, decoder: msgspec.msgpack.Decoder[Any]) -> bool:
    """Whether two records say the same: a default may be written out or not, a whole number stand for a float."""
    if one == other:
        return True
    first, second = (ENCODER.encode(msgspec.structs.astuple(decoder.decode(each))) for each in (one, other))
    return first == second
