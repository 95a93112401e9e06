"""The question about beliefs, for people and for language models: both are asked in the same words at the same moments.

Agents that are programs state a belief when they like. One that talks must be asked, and how it is asked matters.
"""

from __future__ import annotations

from openfield.core import Ask, AskMoment, Turn

BELIEF_QUESTION = "How likely is it that your world has changed? 0: it has certainly not changed. 1: it certainly has."
ASK_MOMENTS: tuple[AskMoment, ...] = ("episode", "turn")


def asks_belief(turn: Turn, moment: AskMoment) -> bool:
    """Return whether the question comes with this turn. A world that asks for a belief itself is always answered."""
    if turn.ask is Ask.BELIEF:
        return True
    if turn.phase != "test":
        return False
    return turn.last is not None or (moment == "turn" and turn.ask is Ask.ACT)
