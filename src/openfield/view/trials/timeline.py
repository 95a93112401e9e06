"""The episodes of a trial as columns of a drawing: performance, belief, and where the world changed.

Positions across are percentages, so that the drawing fits any width; positions down are pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from statistics import fmean

import msgspec

from openfield.journal.reader import Episode
from openfield.view.trials.trial import PlayedTrial

MAX_COLUMNS = 240
"""Longer trials have several episodes in a column, and their means."""
HEIGHT = 110
LOW_HEIGHT = 56
"""Pixels of the drawing on the page of a trial, and above the turns of an episode."""
MARGIN = 6
"""Pixels above and below the values."""
MIN_STRENGTH = 2
"""Pixels of the slightest change."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One episode, or some that follow each other."""

    first: int
    last: int
    x: float
    """Where it begins, in percent of the width."""
    middle: float
    width: float
    novel: bool
    phase: str
    performance: float | None
    belief: float | None
    detected: bool
    y_performance: float | None
    y_belief: float | None


class Segment(msgspec.Struct, frozen=True):
    """A line between the beliefs of two columns."""

    x1: float
    y1: float
    x2: float
    y2: float


class NovelStretch(msgspec.Struct, frozen=True):
    """Episodes in which the world is changed by the same strength."""

    x: float
    """Where it begins, in percent of the width."""
    width: float
    y: float
    """Where its top is: a full change fills the height."""
    height: float


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The drawing of a trial."""

    columns: list[Column]
    beliefs: list[Segment]
    onset: int | None
    onset_x: float | None
    novel: list[NovelStretch]
    """Where the world is changed, and how much."""
    training: float
    """How much of the width is training, in percent."""
    episodes: int
    height: int
    floor: float
    """Where a value of 0 stands."""


@lru_cache(maxsize=64)
def draw_timeline(trial: PlayedTrial, height: int = HEIGHT) -> Timeline:
    """Return the drawing of a trial as far as it was played, with a height in pixels."""
    episodes = trial.episodes
    count = len(episodes)
    size = max(-(-count // MAX_COLUMNS), 1)
    columns = [_draw_column(episodes[at : at + size], at, count, height) for at in range(0, count, size)]
    known = [each for each in columns if each.y_belief is not None]
    segments = [
        Segment(one.middle, one.y_belief, two.middle, two.y_belief)
        for one, two in pairwise(known)
        if one.y_belief is not None and two.y_belief is not None
    ]
    training = next((each.number for each in episodes if each.phase == "test"), count)
    return Timeline(
        columns=columns,
        beliefs=segments,
        onset=trial.onset,
        onset_x=None if trial.onset is None else _percent(trial.onset, count),
        novel=_find_stretches(episodes, height),
        training=_percent(training, count),
        episodes=count,
        height=height,
        floor=height - MARGIN,
    )


def _draw_column(episodes: Sequence[Episode], at: int, count: int, height: int) -> Column:
    performances = [each.performance for each in episodes if each.performance is not None]
    beliefs = [each.belief.highest for each in episodes if each.belief is not None]
    performance = fmean(performances) if performances else None
    belief = fmean(beliefs) if beliefs else None
    return Column(
        first=at,
        last=at + len(episodes) - 1,
        x=_percent(at, count),
        middle=_percent(at + len(episodes) / 2, count),
        width=_percent(len(episodes), count),
        novel=any(each.novel for each in episodes),
        phase=episodes[0].phase,
        performance=performance,
        belief=belief,
        detected=any(each.detected for each in episodes),
        y_performance=_place(performance, height),
        y_belief=_place(belief, height),
    )


def _find_stretches(episodes: Sequence[Episode], height: int) -> list[NovelStretch]:
    """Return where the world is changed, in stretches of the same strength."""
    found, start = list[NovelStretch](), 0
    for strength, same in groupby(_strength_of(each) for each in episodes):
        length = len(list(same))
        if strength:
            tall = round(max(MIN_STRENGTH, strength * height), 1)
            x, width = (_percent(part, len(episodes)) for part in (start, length))
            found.append(NovelStretch(x, width, round(height - tall, 1), tall))
        start += length
    return found


def _strength_of(episode: Episode) -> float:
    """Return how strong the change is: full where it comes at once and stays."""
    return float(episode.novel) if episode.strength is None else episode.strength


def _place(value: float | None, height: int) -> float | None:
    if value is None or not abs(value) < float("inf"):
        return None
    return round(height - MARGIN - min(max(value, 0.0), 1.0) * (height - 2 * MARGIN), 1)


def _percent(part: float, whole: int) -> float:
    return round(100 * part / whole, 4) if whole else 0.0
