"""What a browser may send while a person plays. Everything else is refused."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from openfield.errors import AgentProtocol

MAX_MESSAGE = 32 << 10
"""Bytes of a message; the longest are labels of a batch and answers to questions."""
MAX_ANSWER = 4_000
"""Characters of an answer to a question."""
Probability = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Go(msgspec.Struct, frozen=True, tag="go", tag_field="do", forbid_unknown_fields=True):
    """The person is ready, has read, or agrees."""


class Act(msgspec.Struct, frozen=True, tag="act", tag_field="do", forbid_unknown_fields=True):
    """The person acts. What an act is, the domain knows."""

    act: Any
    seen: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """How many pictures of a preview the person has seen before."""


class Preview(msgspec.Struct, frozen=True, tag="preview", tag_field="do", forbid_unknown_fields=True):
    """The person acts, and may add something while it happens."""

    act: Any


class Hold(msgspec.Struct, frozen=True, tag="hold", tag_field="do", forbid_unknown_fields=True):
    """The person holds a key, or with None no longer does."""

    act: int | None


class Believe(msgspec.Struct, frozen=True, tag="believe", tag_field="do", forbid_unknown_fields=True):
    """The person says how likely it is that the world has changed."""

    novel: Probability


class TurnSeen(msgspec.Struct, frozen=True, tag="seen", tag_field="do", forbid_unknown_fields=True):
    """The page has shown what it was sent last; from now on the person thinks."""


class QuestionAnswers(msgspec.Struct, frozen=True, tag="answers", tag_field="do", forbid_unknown_fields=True):
    """The person answers the questions of a study."""

    answers: dict[Annotated[str, msgspec.Meta(max_length=200)], Annotated[str, msgspec.Meta(max_length=MAX_ANSWER)]]


Message = Go | Act | Preview | Hold | Believe | TurnSeen | QuestionAnswers
_DECODER: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def read_message(text: str | bytes) -> Message:
    """Return the message of a browser.

    Raises:
        AgentProtocol: It is malformed.
    """
    if len(text) > MAX_MESSAGE:
        raise AgentProtocol("The message is too long.")
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        raise AgentProtocol(f"This is not a message: {str(error)[:200]}") from None
