"""What a run file says, as values: cells with their trials and finished episodes.

Stands between journal and metrics: metrics, reports and exports read these and nothing else.
"""

from __future__ import annotations

import msgspec

from openfield.core import Belief, PhaseName
from openfield.trial import Trial


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """A finished episode."""

    number: int
    """Counted from 0 within the cell."""
    phase: PhaseName
    novel: bool
    """Whether the world differed from the normal one."""
    turns: int
    performance: float | None
    """From 0 to 1; None where the world gave none."""
    belief: Belief | None
    """The last belief reported in the episode."""
    detected: bool
    """Whether that belief says that the world has changed, by the domain's own rule."""
    ended: str
    """`terminated` or `truncated`."""


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one trial, as far as it got."""

    id: str
    agent: str
    trial: Trial
    repeat: int
    outcome: str | None
    """How it ended; None while it is not over."""
    note: str = ""
    """What went wrong, if anything did."""
    episodes: tuple[Episode, ...] = ()
