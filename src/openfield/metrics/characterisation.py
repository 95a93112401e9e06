"""How well an agent describes the change: the level it names, and entity, attribute and change in words.

One cell -> numbers of its trial. The detail of a belief may hold `characterization` as in protocol 0.8; otherwise only
its `level` counts. The domain knows the right characterisation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from openfield.capabilities import CharacterisesNovelties
from openfield.core import Belief
from openfield.errors import OpenfieldError
from openfield.journal.reader import CellRecord
from openfield.metrics.metric import built_in, undefined
from openfield.metrics.performance import mean, split_periods
from openfield.novelty import find_novelty
from openfield.registry import known_domain

WORDS = ("entity", "attribute", "change")
MIN_PROBABILITY = 1e-6
"""The least probability of a level in the log loss: a wrong certainty costs 13.8, not infinity."""
WORST_LOSS = -math.log(MIN_PROBABILITY)


class _Level(msgspec.Struct, frozen=True):
    """How protocol 0.8 writes the probability of a level."""

    level_number: int
    probability: float


def measure_characterisation(cell: CellRecord) -> dict[str, float | None]:
    """Compute the log loss and accuracy of the level, and the accuracy of the words."""
    try:
        domain = known_domain(cell.trial.domain)
        level = find_novelty(domain.novelties, cell.trial.novelty[0]).level
    except (OpenfieldError, IndexError):
        return undefined(CHARACTERISATION)
    known = domain.characterise(cell.trial.novelty) if isinstance(domain, CharacterisesNovelties) else []
    if cell.counts:
        return {"level_loss": WORST_LOSS, "level_right": 0.0, "words_right": 0.0 if known else None}
    beliefs = [episode.belief for episode in split_periods(cell).after if episode.novel and episode.belief is not None]
    levels = [found for belief in beliefs if (found := _levels(belief))]
    words = [_words_right(belief, known) for belief in beliefs]
    return {
        "level_loss": mean([-math.log(max(found.get(level, 0.0), MIN_PROBABILITY)) for found in levels]),
        "level_right": mean([float(_names(found, level)) for found in levels]),
        "words_right": mean([right for right in words if right is not None]) if known else None,
    }


def _names(found: dict[int, float], level: int) -> bool:
    """Return whether a level is the most probable one, with a probability above 0."""
    return found.get(level, 0.0) > 0 and max(found, key=found.__getitem__) == level


def _levels(belief: Belief) -> dict[int, float]:
    """Return the probability of each level that a belief names; a level below 0 means no opinion."""
    try:
        levels = msgspec.convert(_characterization(belief).get("level", []), list[_Level], strict=False)
    except msgspec.ValidationError:
        levels = []  # an agent may say anything
    if levels:
        return _distribution(levels)
    return {belief.level: 1.0} if belief.level is not None and belief.level >= 0 else {}


def _distribution(levels: list[_Level]) -> dict[int, float]:
    """Return levels as probabilities from 0 to 1 whose sum is at most 1."""
    shares: dict[int, float] = {}
    for one in levels:
        share = min(max(one.probability, 0.0), 1.0) if math.isfinite(one.probability) else 0.0
        shares[one.level_number] = shares.get(one.level_number, 0.0) + share
    total = max(math.fsum(shares.values()), 1.0)
    return {level: share / total for level, share in shares.items()}


def _words_right(belief: Belief, known: list[dict[str, Any]]) -> float | None:
    """Return the share of words that match the best of the right descriptions; None if there are no words."""
    stated = _characterization(belief)
    if not any(stated.get(word) for word in WORDS):
        return None
    return max(
        (sum(stated.get(word) == right.get(word) for word in WORDS) / len(WORDS) for right in known), default=None
    )


def _characterization(belief: Belief) -> Mapping[str, Any]:
    detail = belief.detail if isinstance(belief.detail, dict) else {}
    found = detail.get("characterization")
    return found if isinstance(found, dict) else {}


CHARACTERISATION = built_in("characterisation", measure_characterisation, counts_failures=True)
