"""What agents used up, by the notes of their replies: calls, tokens, seconds and cost of language models."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.journal.recorder import read_raw_chunk
from openfield.record import Chunk, RawStep, Step

if TYPE_CHECKING:
    from openfield.journal.reader import Run


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A sum over calls."""

    calls: int = 0
    tokens_in: int = 0
    """Tokens that were sent."""
    tokens_out: int = 0
    """Tokens that the model wrote."""
    seconds: float = 0.0
    """That the calls took, one after the other."""
    cost: float | None = None
    """By the prices that the agent was given; None if it was given none."""

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None and other.cost is None else (self.cost or 0.0) + (other.cost or 0.0)
        return Usage(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.seconds + other.seconds,
            cost,
        )


NOTHING = Usage()
MAX_LOOKED_AT, MAX_STEPS_LOOKED_AT = 8, 256
"""Attempts of an agent, and steps of each, that are looked at to see whether it notes anything."""


def read_usage(note: Any) -> Usage:
    """Return the usage in a note. Agents may note anything else, which does not count."""
    if not isinstance(note, dict):
        return NOTHING
    cost = note.get("cost")
    return Usage(
        _whole(note.get("calls")),
        _whole(note.get("tokens_in")),
        _whole(note.get("tokens_out")),
        _amount(note.get("seconds")),
        None if cost is None else _amount(cost),
    )


def sum_usage(steps: Iterable[Step | RawStep]) -> Usage:
    """Return what the replies of some steps used up."""
    total = NOTHING
    for step in steps:
        if step.reply is not None and step.reply.note is not None:
            total += read_usage(step.reply.note)
    return total


def read_run_usage(run: Run, without: Container[str] = ()) -> dict[str, Usage]:
    """Return what the agents of a run used up in all attempts, by their notes; those that note nothing are left out.

    Whether an agent notes anything shows at the beginning of its first attempts: reading all would take long.

    Args:
        run: The run file.
        without: Cells that are not counted here.
    """
    first: dict[str, list[tuple[str, int]]] = {}
    for agent, cell, attempt in run.places():
        if cell not in without and len(known := first.setdefault(agent, [])) < MAX_LOOKED_AT:
            known.append((cell, attempt))
    found = {agent: NOTHING for agent, places in first.items() if any(_is_noted(run, *place) for place in places)}
    for agent, cell, attempt in list(run.places()) if found else ():
        if agent in found and cell not in without:
            found[agent] += sum_usage(run.raw_steps(cell, attempt))
    return found


def _is_noted(run: Run, cell: str, attempt: int) -> bool:
    steps = itertools.islice(run.raw_steps(cell, attempt), MAX_STEPS_LOOKED_AT)
    return any(step.reply is not None and step.reply.note is not None for step in steps)


class TokenBudget:
    """Counts the tokens of a run as its steps come in."""

    def __init__(self, limit: int, run: Run) -> None:
        """Begin with what the run file holds.

        Args:
            limit: How many tokens the run may use.
            run: The run file.
        """
        self.limit = limit
        self.used = sum(usage.tokens for usage in read_run_usage(run).values())
        self._counted: dict[tuple[str, int], int] = {}  # steps of an attempt that were counted

    @property
    def is_spent(self) -> bool:
        """Whether the run has used all its tokens."""
        return self.used >= self.limit

    def count(self, chunk: Chunk) -> None:
        """Count the steps of a chunk. Some come twice: early, and with the chunk they belong to."""
        place, end = (chunk.cell, chunk.attempt), chunk.first + chunk.count
        counted = max(self._counted.get(place, 0), chunk.first)
        if end > counted:
            self._counted[place] = end
            self.used += sum_usage(read_raw_chunk(chunk)[counted - chunk.first :]).tokens


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _amount(value: Any) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and math.isfinite(value) and value >= 0 else 0.0
