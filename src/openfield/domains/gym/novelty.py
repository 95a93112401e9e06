"""The novelties of an environment: those of its suite, those that fit its spaces, and those that a text describes.

`gravity=19.6` and `length*=2` change attributes of the unwrapped environment, `make.KEY=VALUE` an argument of its
constructor, `file.py:Wrapper` is a wrapper class of the user's own, and `gym:ID` another environment with the same
spaces.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from openfield.domains.gym.environment import one_line, split_change
from openfield.domains.gym.generic import (
    ENVIRONMENTS,
    RULES,
    Change,
    Fit,
    changing,
    explain_misfit,
    find_generic,
    list_fitting,
)
from openfield.domains.gym.settings import GymSettings
from openfield.errors import InvalidInput
from openfield.novelty import Novelty
from openfield.registry import names_class, split_family

MAKE = "make."


class GymNovelties(tuple[Novelty[GymSettings], ...]):
    """The novelties of an environment; a text that describes a change is one too."""

    fit: Fit

    def read_novelty(self, text: str) -> Novelty[GymSettings] | None:
        """Return the novelty that a text describes; None if it describes none.

        Raises:
            InvalidInput: The text names a change that does not fit this environment.
        """
        if reason := explain_misfit(text, self.fit):
            raise InvalidInput(f"Novelty '{text}' does not fit: {one_line(reason)}.")
        return describe_change(text)


def list_novelties(own: Iterable[Novelty[GymSettings]], fit: Fit) -> GymNovelties:
    """Return the novelties of a suite, and then those that fit any environment of this form."""
    offered = {novelty.id: novelty for novelty in own}
    for novelty in list_fitting(fit):
        offered.setdefault(novelty.id, novelty)
    novelties = GymNovelties(offered.values())
    novelties.fit = fit
    return novelties


def describe_change(text: str) -> Novelty[GymSettings] | None:
    """Return the novelty that a text describes in any environment; None if it describes none."""
    if names_class(text):
        return Novelty(text, *RULES, f"it is wrapped in {text.partition(':')[2]}", _wrapping(text))
    family, other = split_family(text)
    if family:
        return Novelty(text, *ENVIRONMENTS, f"{other} takes its place", _swapping(other)) if other else None
    parsed = split_change(text)
    if parsed is None:
        return None
    path, sign, value = parsed
    if path.startswith(MAKE):
        key = path.removeprefix(MAKE)
        return None if sign != "=" else Novelty(text, *RULES, f"it is made with {key} = {value}", _making(key, value))
    words = {"=": "is", "*=": "is multiplied by", "/=": "is divided by", "-=": "is lowered by"}
    return Novelty(text, *RULES, f"{path} {words[sign]} {value}", _setting(text))


def join_changes(texts: str) -> Change:
    """Return the change that some texts, joined by `+`, describe together.

    Raises:
        InvalidInput: One of them describes none.
    """
    changes = [_find_change(text) for text in texts.split("+")]

    def change(settings: GymSettings) -> GymSettings:
        for each in changes:
            settings = each(settings)
        return settings

    return change


def _find_change(text: str) -> Change:
    found = find_generic(text) or describe_change(text)
    if found is None:
        raise InvalidInput(
            f"'{text}' describes no change: write NAME=VALUE, NAME*=VALUE, make.KEY=VALUE, file.py:Wrapper, gym:ID, or "
            "the name of a novelty that fits any environment."
        )
    return found.change


def _making(key: str, value: Any) -> Change:
    return lambda settings: msgspec.structs.replace(settings, make={**settings.make, key: value})


def _wrapping(source: str) -> Change:
    return lambda settings: msgspec.structs.replace(settings, novel_wrappers=(*settings.novel_wrappers, source))


def _swapping(other: str) -> Change:
    """Return a change to another environment, which has arguments and attributes of its own."""
    return changing(instead=other, make={}, attributes=(), derived={})


def _setting(text: str) -> Change:
    """Return a change that adds one of an attribute. A value that is set takes the place of earlier changes."""
    path, sign, _ = split_change(text) or ("", "", None)

    def change(settings: GymSettings) -> GymSettings:
        earlier = settings.attributes
        if sign == "=":
            earlier = tuple(each for each in earlier if (split_change(each) or ("",))[0] != path)
        return msgspec.structs.replace(settings, attributes=(*earlier, text))

    return change
