"""What the harness and an isolated agent exchange: messages whose first byte is their kind.

The harness sends Python's own pickles, so that an agent is shown exactly the same as in the harness's process. The
agent answers in MessagePack with the encoder of the record: nothing that comes from an agent is ever unpickled.
"""

from __future__ import annotations

import pickle
from typing import Any

from openfield.core import Ask, Turn

FIND, MAKE, TURN, SAVE, LOAD, REMEMBER, CLOSE = b"f", b"m", b"t", b"s", b"l", b"p", b"c"
"""What the harness asks for."""
READY, REPLY, STATE, RAISED, FAULT = b"k", b"r", b"b", b"e", b"a"
"""What the agent answers: done, a reply, a state, an exception, or a fault of its own."""


def pack_turn(turn: Turn) -> bytes:
    """Return a turn as bytes, field by field: a pickle of the whole object takes five times as long."""
    shown = turn.observation, turn.reward, turn.feedback, turn.phase, turn.first, turn.last, turn.red_light
    return pickle.dumps((turn.ask.value, shown), 5)


def unpack_turn(body: bytes) -> Turn:
    """Return the turn that `pack_turn` wrote."""
    ask, (observation, reward, feedback, phase, first, last, red_light) = unpickle(body)
    return Turn(
        ask=_ASKS[ask],
        observation=observation,
        reward=reward,
        feedback=feedback,
        phase=phase,
        first=first,
        last=last,
        red_light=red_light,
    )


def unpickle(body: bytes) -> Any:
    """Return what the harness sent. Only the isolated process calls this, which is the side that is not trusted."""
    return pickle.loads(body)  # noqa: S301


_ASKS = {each.value: each for each in Ask}
