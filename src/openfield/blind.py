"""Keep agents blind to the change: draw its place anew in every trial, and add trials in which nothing changes.

`Domain.trials` draws here, and so do domains that make trials themselves. All trials of a set have the same length, so
that counting episodes tells nothing about the world.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from openfield.core import PhaseName
from openfield.errors import InvalidInput
from openfield.settings import Settings
from openfield.trial import Phase, Window, derive, measure_test

FIXING = frozenset({"before", "after", "onset_instances", "onset_steps"})
"""Settings of domains that fix where the change comes, unless `onset` says otherwise."""
UNCHANGED_SHARE = 0.4


class Draw(NamedTuple):
    """What is drawn for one trial of a set."""

    seed: int
    novelty: tuple[str, ...]
    """Empty in a trial in which nothing changes."""
    onset: int | None = None
    """How much of the test precedes the change; None if nothing changes, or if other settings fix it."""


class BlindSet(NamedTuple):
    """The trials of a set, before they are written down."""

    draws: list[Draw]
    window: Window | None
    """Where the onsets were drawn; None if the place of the change is fixed."""
    scenario: tuple[str, ...] | None
    """What its trials say of their novelties. A set with a fixed change and no twins says nothing, as it always did."""


def draw_set(
    settings: Settings, given: Collection[str], length: int, novelty: tuple[str, ...], roots: Sequence[int]
) -> BlindSet:
    """Draw the onset of each trial, add unchanged twins, and shuffle: the order must tell nothing either.

    Args:
        settings: The settings of the set; its `onset` and `unchanged` are used.
        given: The names of the settings the user gave: `before` and `after` fix the onset.
        length: The length of the test, in episodes or steps.
        novelty: The novelties of the scenario.
        roots: The seeds of the changed trials.

    Raises:
        InvalidInput: The window is not within the test, or there cannot be as many unchanged trials.
    """
    if not novelty:
        refuse_blinding(settings, "A set without novelty")
        return BlindSet([Draw(seed, ()) for seed in roots], None, None)
    window = _read_window(str(settings.onset), length, bool(FIXING & set(given)))
    twins = _count_unchanged(str(settings.unchanged), len(roots))
    draws = [Draw(seed, novelty, _draw_onset(seed, window)) for seed in roots]
    draws += [Draw(seed, ()) for seed in roots[:twins]]
    if twins:
        random.Random(derive(roots[0], "order")).shuffle(draws)
    drawn = window if window is not None and window[0] < window[1] else None
    return BlindSet(draws, drawn, novelty if drawn or twins else None)


def refuse_blinding(settings: Settings, source: str) -> None:
    """Refuse an onset or unchanged trials beside a source of trials that does not take them."""
    if settings.onset != "" or settings.unchanged not in ("", "0", 0):
        raise InvalidInput(f"{source} takes neither the setting 'onset' nor 'unchanged': leave them out.")


def place_change(phases: Sequence[Phase], draw: Draw) -> tuple[Phase, ...]:
    """Return the phases of a trial of the same length with the change where it was drawn, or without it."""
    if not draw.novelty:
        return tuple(replace(phase, novelty=()) for phase in phases)
    if draw.onset is None:
        return tuple(phases)
    training = tuple(phase for phase in phases if phase.name == "training")
    if any(phase.steps for phase in phases):
        normal, changed = Phase("test", steps=draw.onset), Phase("test", 0, draw.novelty)
        return (*training, *([normal] if draw.onset else []), replace(changed, steps=measure_test(phases) - draw.onset))
    test = [phase.novelty for phase in phases if phase.name == "test" for _ in range(phase.episodes)]
    first = next(number for number, novelty in enumerate(test) if novelty)
    novel = (test[first:] + test[-1:] * len(test))[: len(test) - draw.onset]
    return (*training, *gather_episodes([()] * draw.onset + novel))


def gather_episodes(episodes: Iterable[tuple[str, ...]], name: PhaseName = "test") -> tuple[Phase, ...]:
    """Gather neighbouring episodes with the same novelties into phases."""
    groups = itertools.groupby(episodes)
    return tuple(Phase(name, len(list(group)), novelty) for novelty, group in groups)


def _read_window(text: str, length: int, fixed: bool) -> Window | None:
    """Return the window of the onset: as the setting says, or the middle half of the test; None if fixed elsewhere."""
    if not text:
        return None if fixed or not length else middle_half(length)
    found = re.fullmatch(r"(\d{1,12})(?:-(\d{1,12}))?", text)
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if not low <= high < length:
        raise InvalidInput(
            f"Setting 'onset' cannot be '{text}': the test has a length of {length}, and 0 to {length - 1} of it may "
            f"precede the change. Write a number, or a window such as {'-'.join(map(str, middle_half(length)))}."
        )
    return low, high


def middle_half(length: int) -> Window:
    """Return the window that is used if the user asks for none."""
    return min(math.ceil(length / 4), length // 2), 3 * length // 4


def _draw_onset(seed: int, window: Window | None) -> int | None:
    return None if window is None else random.Random(derive(seed, "onset")).randint(*window)


def _count_unchanged(text: str, changed: int) -> int:
    """Return how many unchanged twins come on top: as the setting says, or two fifths, rounded up."""
    if not text:
        return math.ceil(UNCHANGED_SHARE * changed)
    count = changed if text == "all" else int(text) if re.fullmatch(r"\d{1,9}", text) else -1
    if not 0 <= count <= changed:
        raise InvalidInput(
            f"Setting 'unchanged' cannot be '{text}': {changed} trials have 0 to {changed} unchanged twins, or `all`."
        )
    return count
