"""What can change in any environment: changes that fit its spaces, and those that a text describes.

`gravity=19.6` and `length*=2` change attributes of the unwrapped environment, `make.KEY=VALUE` an argument of its
constructor, and `file.py:Wrapper` is a wrapper class of the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from openfield.domains.gym.adapter import GymSpace
from openfield.domains.gym.effects import can_permute, has_numbers
from openfield.domains.gym.environment import split_change
from openfield.domains.gym.settings import GymSettings
from openfield.novelty import Novelty
from openfield.registry import names_class

ACTIONS, RULES, GOALS, ENVIRONMENTS = (3, "actions"), (6, "rules"), (7, "goals"), (9, "environments")
"""Levels and kinds, numbered as in the hierarchy that domains share."""
MAKE = "make."
Change = Callable[[GymSettings], GymSettings]


class GymNovelties(tuple[Novelty[GymSettings], ...]):
    """The novelties that fit an environment; a text that describes a change is one too."""

    __slots__ = ()

    def read_novelty(self, text: str) -> Novelty[GymSettings] | None:
        """Return the novelty that a text describes; None if it describes none."""
        if names_class(text):
            return Novelty(text, *RULES, f"the wrapper {text.partition(':')[2]} lies around it", _wrapping(text))
        parsed = split_change(text)
        if parsed is None:
            return None
        path, sign, value = parsed
        if path.startswith(MAKE):
            key = path.removeprefix(MAKE)
            return (
                None if sign != "=" else Novelty(text, *RULES, f"it is made with {key} = {value}", _making(key, value))
            )
        words = {"=": "is", "*=": "is multiplied by", "/=": "is divided by", "-=": "is lowered by"}
        return Novelty(text, *RULES, f"{path} {words[sign]} {value}", _setting(text))


def list_novelties(actions: GymSpace, observations: GymSpace) -> GymNovelties:
    """Return the novelties that fit two spaces."""
    return GymNovelties((*_of_actions(actions), *_of_observations(observations), *_of_rewards()))


def _of_actions(space: GymSpace) -> Iterator[Novelty[GymSettings]]:
    if can_permute(space):
        yield Novelty("actions-permuted", *ACTIONS, "each action means the next one", _replace(permute_actions=True))
    yield from _graded("actions-delayed", ACTIONS, "actions come {} steps late", "delay_actions", (1, 3))
    yield from _graded(
        "actions-sticky",
        ACTIONS,
        "the action before is carried out again with a chance of {}",
        "sticky_actions",
        (0.25, 0.5),
    )
    yield from _graded(
        "actions-dropped",
        ACTIONS,
        "an action is replaced by the first one with a chance of {}",
        "drop_actions",
        (0.25, 0.5),
    )


def _of_observations(space: GymSpace) -> Iterator[Novelty[GymSettings]]:
    if has_numbers(space):
        yield from _graded(
            "observations-noisy", ENVIRONMENTS, "observed numbers have noise of {} of their range", "noise", (0.05, 0.2)
        )
        yield from _graded(
            "observations-masked", ENVIRONMENTS, "a share of {} of numbers is blank", "mask", (0.25, 0.5)
        )
    if can_permute(space):
        note = "observed numbers change places"
        yield Novelty("observations-permuted", *ENVIRONMENTS, note, _replace(permute_observations=True))
    yield from _graded(
        "observations-frozen",
        ENVIRONMENTS,
        "the observation before is shown again with a chance of {}",
        "freeze",
        (0.25, 0.5),
    )
    yield from _graded(
        "observations-delayed", ENVIRONMENTS, "observations come {} steps late", "delay_observations", (1, 3)
    )


def _of_rewards() -> Iterator[Novelty[GymSettings]]:
    yield Novelty("rewards-negated", *GOALS, "the agent is charged what it was paid", _scaling(-1.0))
    yield Novelty("rewards-scaled", *GOALS, "the agent is paid ten times as much", _scaling(10.0))
    yield from _graded("rewards-delayed", GOALS, "rewards come {} steps late", "delay_rewards", (2, 10))


def _graded(
    name: str, kind: tuple[int, str], note: str, field: str, values: tuple[float, float]
) -> Iterator[Novelty[GymSettings]]:
    """Yield the easy and the hard form of a novelty.

    Args:
        name: Its name.
        kind: Its level and its kind.
        note: What it changes, with `{}` in the place of the value.
        field: The setting it changes.
        values: The easy and the hard value.
    """
    for difficulty, value in zip(("easy", "hard"), values, strict=True):
        yield Novelty(name, *kind, note.format(value), _replace(**{field: value}), difficulty)


def _replace(**changes: Any) -> Change:
    return lambda settings: msgspec.structs.replace(settings, **changes)


def _scaling(factor: float) -> Change:
    return lambda settings: msgspec.structs.replace(settings, reward_factor=settings.reward_factor * factor)


def _making(key: str, value: Any) -> Change:
    return lambda settings: msgspec.structs.replace(settings, make={**settings.make, key: value})


def _wrapping(source: str) -> Change:
    return lambda settings: msgspec.structs.replace(settings, novel_wrappers=(*settings.novel_wrappers, source))


def _setting(text: str) -> Change:
    """Return a change that adds one of an attribute. A value that is set takes the place of earlier changes."""
    path, sign, _ = split_change(text) or ("", "", None)

    def change(settings: GymSettings) -> GymSettings:
        earlier = settings.attributes
        if sign == "=":
            earlier = tuple(each for each in earlier if (split_change(each) or ("",))[0] != path)
        return msgspec.structs.replace(settings, attributes=(*earlier, text))

    return change
