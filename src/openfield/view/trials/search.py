"""Look for turns: by what the agent answered or noted, and by what it believed.

A search reads replies only, for a short time; a page asks for the next part until it is through.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from openfield.core import Reply
from openfield.journal.reader import Run
from openfield.view.trials.trial import PlayedTrial
from openfield.view.trials.values import MAX_TEXT, say_answer, say_value

MAX_FOUND = 100
"""Turns that one request returns."""
SEARCH_SECONDS = 0.25
"""How long one request may search."""


class TurnQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for; a turn must fit all that is given."""

    action: str = ""
    """A part of the action as text; case does not matter."""
    note: str = ""
    text: str = ""
    """A part of the action or of the note."""
    belief: float | None = None
    """The least probability."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is looked for."""
        return self == TurnQuery()


class FoundTurn(msgspec.Struct, frozen=True):
    """A turn that fits."""

    number: int
    episode: int
    action: str
    """Empty if there was none."""
    belief: float | None
    note: str
    """Empty if there was none."""


class FoundTurns(msgspec.Struct, frozen=True):
    """Turns that fit, as far as was searched."""

    found: list[FoundTurn]
    next: int | None
    """The turn to go on with; None if all were searched."""
    turns: int


def find_turns(run: Run, trial: PlayedTrial, query: TurnQuery, first: int = 0) -> FoundTurns:
    """Return the turns that fit a query, from a number on.

    Args:
        run: The run file, open.
        trial: The cell.
        query: What is looked for.
        first: The turn to begin with.
    """
    found: list[FoundTurn] = []
    until, number = time.monotonic() + SEARCH_SECONDS, max(first, 0)
    wanted = msgspec.structs.replace(
        query, action=query.action.lower(), note=query.note.lower(), text=query.text.lower()
    )
    for step in run.raw_steps(trial.cell.id, trial.cell.attempt, number + 1):
        if step.reply is not None and _fits(step.reply, wanted, trial.letters):
            belief = None if step.reply.belief is None else step.reply.belief.highest
            action, note = say_answer(step.reply.action, trial.letters), step.reply.note
            said = action, belief, "" if note is None else say_value(note)
            found.append(FoundTurn(number, trial.episode_of(number), *said))
        number += 1
        if len(found) >= MAX_FOUND or time.monotonic() > until:
            return FoundTurns(found, number if number < trial.turns else None, trial.turns)
    return FoundTurns(found, None, trial.turns)


def _fits(reply: Reply, query: TurnQuery, letters: bool) -> bool:
    if query.belief is not None and (reply.belief is None or reply.belief.highest < query.belief):
        return False
    action = say_answer(reply.action, letters, MAX_TEXT).lower()
    if query.action not in action:
        return False
    if query.note and not _holds(reply.note, query.note):
        return False
    return not query.text or query.text in action or _holds(reply.note, query.text)


def _holds(value: Any, text: str) -> bool:
    """Return whether a value, written as text, has a part."""
    if value is None:
        return False
    return text in (value if isinstance(value, str) else say_value(value, MAX_TEXT)).lower()
