"""What a number of trials can show at best: the least difference whose interval excludes 0 if every trial shows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from openfield.console import say_count
from openfield.metrics.confidence_sequences import FRACTIONS, LEVEL
from openfield.metrics.stats import MIN_TRIALS, TAIL

if TYPE_CHECKING:
    from openfield.runner.plan import Plan

GAP = (-1.0, 1.0)
"""What the difference of two performances lies between."""


def find_least_difference(trials: int, stops: bool = False) -> float | None:
    """Return the least difference that a number of trials can show, if each of them shows it; None if they show none.

    The chance that the conservative interval of equal differences d holds 0 is (1 + d) to the power of -n.

    Args:
        trials: How many trials change.
        stops: Whether the run stops by itself, so that its intervals hold at every look.
    """
    if trials < MIN_TRIALS:
        return None
    least = _find_least_bet(trials) if stops else TAIL ** (-1 / trials) - 1
    return least if least < 1 else None


def _find_least_bet(trials: int) -> float:
    """Return the equal differences with which the bettors against 0 win enough."""
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        wins = float(np.exp(trials * np.log1p(FRACTIONS * middle)).mean()) > 2 / LEVEL
        low, high = (low, middle) if wins else (middle, high)
    return high


def say_reach(trials: int, stops: bool = False) -> str:
    """Return in words what a number of trials can show at best."""
    least, counted = find_least_difference(trials, stops), say_count(trials, "trial")
    if least is None:
        enough = next(count for count in range(trials + 1, 50) if find_least_difference(count, stops) is not None)
        return f"{counted}: no difference between agents can be seen, below {enough} trials none can"
    return f"{counted}: only differences above {math.ceil(1000 * least) / 1000:.2g} can be seen"


def count_by_scenario(plan: Plan) -> list[int]:
    """Return how many trials each scenario of a plan has, without unchanged ones and those that serve others."""
    found: dict[object, set[str]] = {}
    starts = {cell.trial.after for cell in plan.cells}
    for trial in (cell.trial for cell in plan.cells):
        if not trial.is_unchanged_twin and trial.reference_for is None and trial.id not in starts:
            found.setdefault((trial.domain, trial.novelty, str(trial.settings), trial.red_light), set()).add(trial.id)
    return [len(trials) for trials in found.values()]
