"""The question about beliefs, for people and for language models: both are asked in the same words at the same moments.

Agents that are programs state a belief when they like. One that talks must be asked, and how it is asked matters.
"""

from __future__ import annotations

import re
from typing import Any

from openfield.core import Ask, AskMoment, Turn

BELIEF_QUESTION = "How likely is it that your world has changed? 0: it has certainly not changed. 1: it certainly has."
ASK_MOMENTS: tuple[AskMoment, ...] = ("episode", "turn")
_PERCENT = re.compile(r"\s*([\d.]+)\s*%\s*")


def asks_belief(turn: Turn, moment: AskMoment) -> bool:
    """Return whether the question comes with this turn. A world that asks for a belief itself is always answered."""
    if turn.ask is Ask.BELIEF:
        return True
    if turn.phase != "test":
        return False
    return turn.last is not None or (moment == "turn" and turn.ask is Ask.ACT)


def read_probability(value: Any) -> float:
    """Return a probability that a model or a person wrote as a number, as text, or in percent.

    Raises:
        ValueError: It is none.
    """
    number = None
    if isinstance(value, str):
        percent = _PERCENT.fullmatch(value)
        value = float(percent[1]) / 100 if percent else value.strip()
    if not isinstance(value, bool):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = None
    if number is None or not 0.0 <= number <= 1.0:
        raise ValueError(f"world_changed is a number from 0 to 1, not {value!r:.40}")
    return number
