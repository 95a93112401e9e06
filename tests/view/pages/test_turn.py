"""Transcripts: what each turn adds to a conversation."""

from __future__ import annotations

from typing import Any

import msgspec

from openfield.view.pages.turn import write_transcript
from openfield.view.trials.turn import ShownReply, ShownTurn
from openfield.view.trials.values import format_answer


def test_a_transcript_tells_what_is_new() -> None:
    told = [{"role": "user", "content": "where?"}, {"role": "assistant", "content": "left"}]
    first = make_turn(0, {"transcript": told, "tokens_in": 1200, "tokens_out": 3, "rest": "kept"})
    later = make_turn(1, {"transcript": [*told, {"role": "user", "content": "where?"}, told[1]]})
    entries = list(write_transcript([first, later, make_turn(2, "no conversation")]))
    assert [[(each.role, each.text) for each in entry.messages] for entry in entries] == [
        [("user", "where?"), ("assistant", "left")],
        [("user", "where?"), ("assistant", "left")],
        [],
    ]
    assert [entry.note for entry in entries] == ['{"rest":"kept"}', "", "no conversation"]
    assert [entry.tokens for entry in entries] == ["1,200 tokens in, 3 out", "", ""]
    assert [entry.starts for entry in entries] == [True, False, False]


def test_letters_are_shown_with_their_codes_where_the_domain_has_letters() -> None:
    turn = msgspec.structs.replace(make_turn(0, None), observation=84)
    turn = msgspec.structs.replace(turn, reply=ShownReply(action=32, belief=None, milliseconds=1.0))
    (entry,) = write_transcript([turn], letters=True)
    assert (entry.saw, entry.answered) == ("T (84)", "␣ (32)")
    (entry,) = write_transcript([turn])
    assert (entry.saw, entry.answered) == ("84", "32")
    assert [format_answer(value, True) for value in (None, 7, "T", [84])] == ["", "7", "T", "[84]"]


def make_turn(number: int, note: Any) -> ShownTurn:
    """Return a turn whose reply has a note."""
    reply = ShownReply(action="left", belief=None, note=note, milliseconds=1.0)
    flags: dict[str, Any] = {"first": False, "last": None, "red_light": None, "feedback": None, "truth": None}
    return ShownTurn(
        number=number, episode=0, ask="act", phase="test", observation=1, reward=0.0, reply=reply, earned=0.0, **flags
    )
