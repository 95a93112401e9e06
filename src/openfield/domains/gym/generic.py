"""The novelties that are not about one environment: what fits which spaces, each with level, kind and difficulty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from openfield.domains.gym.adapter import GymSpace
from openfield.domains.gym.settings import GymSettings
from openfield.domains.gym.transforms import (
    can_break,
    can_break_more,
    can_mirror,
    can_permute,
    has_part,
    is_array,
    is_picture_space,
)
from openfield.novelty import Novelty

ACTIONS, RULES, GOALS, ENVIRONMENTS = (3, "actions"), (6, "rules"), (7, "goals"), (9, "environments")
"""Levels and kinds, numbered as in the hierarchy that domains share."""
Change = Callable[[GymSettings], GymSettings]


class Fit(NamedTuple):
    """What decides which changes fit an environment."""

    actions: GymSpace
    observations: GymSpace
    has_limit: bool
    """Whether it is known after how many steps its episodes are cut off."""
    pays_late: bool
    """Whether rewards come only with the end of an episode."""


class Generic(NamedTuple):
    """A change in all its difficulties, and the environments it fits."""

    novelties: tuple[Novelty[GymSettings], ...]
    fits: Callable[[Fit], bool] = lambda fit: True
    reason: str = ""
    """Why it does not fit others."""


def list_fitting(fit: Fit) -> Iterator[Novelty[GymSettings]]:
    """Yield the novelties that fit an environment."""
    return (novelty for each in GENERIC if each.fits(fit) for novelty in each.novelties)


def explain_misfit(name: str, fit: Fit) -> str:
    """Return why a novelty does not fit, by its name with or without difficulty; empty if the name is unknown."""
    named = ((each.reason, novelty) for each in GENERIC for novelty in each.novelties)
    return next((reason.format(fit) for reason, novelty in named if name in (novelty.id, novelty.name)), "")


def find_generic(name: str) -> Novelty[GymSettings] | None:
    """Return the novelty called `NAME` or `NAME:difficulty`, or None if it is unknown."""
    every = (novelty for each in GENERIC for novelty in each.novelties)
    return next((novelty for novelty in every if name in (novelty.id, novelty.name)), None)


def changing(**changes: Any) -> Change:
    """Return a change of settings."""
    return lambda settings: msgspec.structs.replace(settings, **changes)


def _single(name: str, kind: tuple[int, str], note: str, change: Change) -> tuple[Novelty[GymSettings], ...]:
    return (Novelty(name, *kind, note, change),)


def _graded(
    name: str,
    kind: tuple[int, str],
    note: str,
    field: str,
    values: tuple[float, float],
    words: tuple[str, str] | None = None,
) -> tuple[Novelty[GymSettings], ...]:
    """Return the easy and the hard form of a novelty.

    Args:
        name: Its name.
        kind: Its level and its kind.
        note: Its effect, with `{}` in the place of the value.
        field: The setting it changes.
        values: The easy and the hard value.
        words: The values in words, if they are not these numbers.
    """
    graded = zip(("easy", "hard"), values, words or map(str, values), strict=True)
    return tuple(
        Novelty(name, *kind, note.format(word), changing(**{field: value}), grade) for grade, value, word in graded
    )


def _scaling(factor: float) -> Change:
    return lambda settings: msgspec.structs.replace(settings, reward_factor=settings.reward_factor * factor)


STEPS = ("one step", "three steps")
_NO_PLACES, _NO_NUMBERS = "has nothing that can change places", "has no arrays of numbers"
_BROKEN = _graded(
    "actuators-broken", ACTIONS, "a share of {} of the actuators does nothing", "broken_actuators", (0.25, 0.5)
)
_DEAD = _graded(
    "sensors-dead", ENVIRONMENTS, "a share of {} of numbers is blank all the time", "dead_sensors", (0.25, 0.5)
)
_LATE = "rewards come only with the end of an episode"

GENERIC = (
    Generic(
        _single("actions-permuted", ACTIONS, "each action means the next one", changing(permute_actions=True)),
        lambda fit: has_part(fit.actions, can_permute),
        f"{{0.actions}} {_NO_PLACES}",
    ),
    Generic(
        _single("actions-mirrored", ACTIONS, "each action means its opposite", changing(mirror_actions=True)),
        lambda fit: has_part(fit.actions, can_mirror),
        "actions of {0.actions} have no opposites, or only each other",
    ),
    Generic(_graded("actions-delayed", ACTIONS, "actions come {} late", "delay_actions", (1, 3), STEPS)),
    Generic(
        _graded(
            "actions-sticky",
            ACTIONS,
            "the action before is carried out again with a chance of {}",
            "sticky_actions",
            (0.25, 0.5),
        )
    ),
    Generic(
        _graded(
            "actions-dropped",
            ACTIONS,
            "an action is replaced by the first one with a chance of {}",
            "drop_actions",
            (0.25, 0.5),
        )
    ),
    Generic(
        _BROKEN[:1],
        lambda fit: has_part(fit.actions, can_break),
        "{0.actions} has no more than one actuator",
    ),
    Generic(
        _BROKEN[1:],
        lambda fit: has_part(fit.actions, can_break_more),
        "{0.actions} has too few actuators for more than the easy form",
    ),
    Generic(
        _graded(
            "observations-noisy", ENVIRONMENTS, "observed numbers have noise of {} of their range", "noise", (0.05, 0.2)
        ),
        lambda fit: has_part(fit.observations, is_array),
        f"{{0.observations}} {_NO_NUMBERS}",
    ),
    Generic(
        _graded(
            "observations-masked",
            ENVIRONMENTS,
            "a share of {} of numbers is blank, others at every step",
            "mask",
            (0.25, 0.5),
        ),
        lambda fit: has_part(fit.observations, is_array),
        f"{{0.observations}} {_NO_NUMBERS}",
    ),
    Generic(
        _DEAD[:1],
        lambda fit: has_part(fit.observations, is_array),
        f"{{0.observations}} {_NO_NUMBERS}",
    ),
    Generic(
        _DEAD[1:],
        lambda fit: has_part(fit.observations, lambda part: is_array(part) and can_break_more(part)),
        "{0.observations} has too few sensors for more than the easy form",
    ),
    Generic(
        _single(
            "observations-permuted", ENVIRONMENTS, "observed numbers change places", changing(permute_observations=True)
        ),
        lambda fit: has_part(fit.observations, can_permute),
        f"{{0.observations}} {_NO_PLACES}",
    ),
    Generic(
        _single(
            "observations-mirrored",
            ENVIRONMENTS,
            "left and right of pictures are exchanged",
            changing(mirror_observations=True),
        ),
        lambda fit: has_part(fit.observations, is_picture_space),
        "it is for pictures, not {0.observations}",
    ),
    Generic(
        _single(
            "observations-inverted", ENVIRONMENTS, "pictures have opposite colours", changing(invert_observations=True)
        ),
        lambda fit: has_part(fit.observations, is_picture_space),
        "it is for pictures, not {0.observations}",
    ),
    Generic(
        _graded(
            "observations-frozen",
            ENVIRONMENTS,
            "the observation before is shown again with a chance of {}",
            "freeze",
            (0.25, 0.5),
        )
    ),
    Generic(
        _graded("observations-delayed", ENVIRONMENTS, "observations come {} late", "delay_observations", (1, 3), STEPS)
    ),
    Generic(_single("rewards-negated", GOALS, "the agent is charged what it was paid", _scaling(-1.0))),
    Generic(_single("rewards-scaled", GOALS, "the agent is paid ten times as much", _scaling(10.0))),
    Generic(
        _graded("rewards-delayed", GOALS, "rewards come {} steps late", "delay_rewards", (2, 10)),
        lambda fit: not fit.pays_late,
        _LATE,
    ),
    Generic(
        _single("rewards-sparse", GOALS, "rewards are paid at the end of an episode", changing(sparse_rewards=True)),
        lambda fit: not fit.pays_late,
        _LATE,
    ),
    Generic(
        _graded("time-limit", RULES, "episodes are cut off after {} of their steps", "time_limit", (0.5, 0.25)),
        lambda fit: fit.has_limit,
        "nothing says after how many steps its episodes are cut off",
    ),
)
"""All of them, in the order in which they are offered."""
