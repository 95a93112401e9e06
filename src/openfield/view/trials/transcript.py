"""Turns one below the other, to be read: what was seen, answered, believed and noted, each as text.

Language models note what they were told and what they said. Messages that the turn before told as well are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from openfield.view.trials.turn import ShownTurn
from openfield.view.trials.values import say_answer, say_value

MAX_SEEN = 1_500
"""Characters of what is shown of a value."""
TALKS = ("transcript", "messages")
"""The parts of a note that hold a conversation."""


class Message(msgspec.Struct, frozen=True):
    """Something that a language model was told, or said."""

    role: str
    text: str
    thinking: str = ""

    @property
    def is_own(self) -> bool:
        """Whether the agent said it."""
        return self.role == "assistant"


class TranscriptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as text."""

    turn: ShownTurn
    starts: bool
    """Whether it is the first of its episode here."""
    saw: str
    feedback: str
    answered: str
    messages: list[Message]
    """What is new in the conversation."""
    tokens: str
    """What it took."""
    note: str
    """The rest of the note."""


def write_transcript(turns: Sequence[ShownTurn], letters: bool = False) -> Iterator[TranscriptEntry]:
    """Yield turns as text; where the domain says so, whole numbers are letters."""
    episode, told = -1, list[Message]()
    for turn in turns:
        reply = turn.reply
        talk, rest = read_messages(None if reply is None else reply.note)
        tokens, rest = _read_tokens(rest)
        yield TranscriptEntry(
            turn=turn,
            starts=turn.episode != episode,
            saw=say_answer(turn.observation, letters, MAX_SEEN),
            feedback="" if turn.feedback is None else say_value(turn.feedback, MAX_SEEN),
            answered="" if reply is None else say_answer(reply.action, letters, MAX_SEEN),
            messages=_leave_out(talk, told),
            tokens=tokens,
            note="" if rest is None else say_value(rest, MAX_SEEN),
        )
        episode, told = turn.episode, talk or told


def read_messages(note: Any) -> tuple[list[Message], Any]:
    """Return the conversation in a note, and the rest of it."""
    name = next((name for name in TALKS if isinstance(note, Mapping) and _is_talk(note.get(name))), None)
    if name is not None:
        rest = {key: value for key, value in note.items() if key != name}
        return [_read_message(each) for each in note[name]], rest or None
    return ([_read_message(each) for each in note], None) if _is_talk(note) else ([], note)


def _read_tokens(note: Any) -> tuple[str, Any]:
    """Return how many tokens a note tells of, in words, and the rest of it."""
    if not isinstance(note, Mapping) or not all(
        isinstance(note.get(name), int) for name in ("tokens_in", "tokens_out")
    ):
        return "", note
    rest = {name: value for name, value in note.items() if name not in ("tokens_in", "tokens_out", "calls", "seconds")}
    return f"{note['tokens_in']:,} tokens in, {note['tokens_out']:,} out", rest or None


def _is_talk(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, Mapping) and "content" in each for each in value)
    )


def _read_message(message: Mapping[str, Any]) -> Message:
    thinking = message.get("thinking")
    text = say_value(message["content"], MAX_SEEN * 4)
    return Message(str(message.get("role", "")), text, thinking if isinstance(thinking, str) else "")


def _leave_out(talk: Sequence[Message], told: Sequence[Message]) -> list[Message]:
    """Return the messages after the last answer that was told before; a conversation may have lost its oldest ones."""
    known = set(told)
    before = [at for at, each in enumerate(talk[:-1]) if each.is_own and each in known]
    return list(talk[before[-1] + 1 if before else 0 :])
