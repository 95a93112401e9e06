"""Environments that change gradually: the way of attributes and arguments, and what can change within an episode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import force_setattr, replace

from openfield.course import Blend, list_ranges, mix
from openfield.domains.gym.environment import (
    AttributeChange,
    Env,
    Holder,
    derive_attributes,
    read_attribute,
    set_attribute,
    split_change,
)
from openfield.domains.gym.settings import GymSettings
from openfield.errors import InvalidInput
from openfield.novelty import Novelty

if TYPE_CHECKING:
    from openfield.domains.gym.domain import GymDomain

MADE = ("make", "instead", "wrappers", "novel_wrappers", "time_limit")
"""Settings of what an environment is made of, and how long it is played: an episode keeps them."""


class GymBlend(Blend[GymSettings]):
    """The way from some settings to others. Values that the settings do not tell are those of the environment."""

    def __init__(self, domain: GymDomain, usual: GymSettings, changed: GymSettings) -> None:
        known = set(usual.attributes)
        texts = [text for text in changed.attributes if text not in known]
        self._paths: dict[str, tuple[Any, Any]] = {}
        made = usual
        if texts:
            first, last = (domain.attributes_of(each, texts) for each in (usual, changed))
            self._paths = {path: _read_ends(first, last, text) for text, path in _list_paths(texts)}
        if changed.make != usual.make:
            defaults = domain.argument_defaults(usual)
            made = replace(
                usual, make={**{key: defaults[key] for key in changed.make if key in defaults}, **usual.make}
            )
        super().__init__(made, replace(changed, attributes=usual.attributes))
        self._first = usual
        moving = [range_ for ends in self._paths.values() for range_ in list_ranges(*ends)]
        self.ranges = (*self.ranges, *moving)

    def at(self, share: float) -> tuple[GymSettings, bool]:
        """Return the settings at a share of the way, and whether they differ.

        Attributes are set to values, also to the normal ones: within an episode they must find their way back. They
        are not written as texts, which would be read again in every turn.
        """
        settings, differs = super().at(share) if self._ends and share else (self._first, False)
        if not self._paths:
            return settings, differs
        changes: tuple[AttributeChange, ...] = self._first.attributes
        for path, (usual, changed) in self._paths.items():
            value = mix(usual, changed, share) if share else usual
            differs = differs or value != usual
            changes += ((path, value),)
        # what else it has was checked: `replace` would check it again in every turn
        moved: GymSettings = settings.__copy__()  # type: ignore[attr-defined]
        force_setattr(moved, "attributes", changes)
        return moved, differs


def check_turnwise(name: str, usual: GymSettings, changed: GymSettings) -> None:
    """Refuse a change within episodes of what an environment is made of.

    Raises:
        InvalidInput: It changes an argument, a wrapper, the environment or the time limit.
    """
    differing = [setting for setting in MADE if getattr(usual, setting) != getattr(changed, setting)]
    if differing:
        raise InvalidInput(
            f"'{name}' changes {differing[0].replace('_', ' ')}, which an episode keeps. Count episodes: leave out "
            "'turns'."
        )


def check_order(novelties: Iterable[Novelty[GymSettings]], settings: GymSettings) -> None:
    """Refuse a change of attributes after a gradual one of arguments: their normal values would change with these.

    Raises:
        InvalidInput: There is one.
    """
    gradual = ""
    for novelty in novelties:
        changed = novelty.change(settings)
        if gradual and changed.attributes != settings.attributes:
            raise InvalidInput(
                f"'{novelty.id}' changes an attribute of environments whose arguments '{gradual}' changes gradually. "
                f"Write it first: '{novelty.id}+{gradual}'."
            )
        if novelty.process is not None and novelty.process.is_graded and changed.make != settings.make:
            gradual = gradual or novelty.id
        settings = changed


class RunningAttributes:
    """The attributes of a running environment, and what is computed from them."""

    def __init__(self, env: Env, settings: GymSettings) -> None:
        """Begin with the settings that the environment was made with."""
        self._env, self._holder = env, env.unwrapped
        self._now: tuple[AttributeChange, ...] = settings.attributes
        self._derived, self._derives = settings.derived, bool(settings.derived)

    def can_follow(self, settings: GymSettings) -> bool:
        """Return whether others are only other values of the same attributes."""
        before, now = self._now, settings.attributes
        return before == now or (len(before) == len(now) and all(map(_are_about_one, before, now)))

    def follow(self, settings: GymSettings) -> None:
        """Set those that are not what they were."""
        before, now = self._now, settings.attributes
        if before == now:
            return
        self._now = now
        for change in now:
            if change not in before:
                self._set(change)
        if len(before) != len(now):
            self._derives = bool(self._derived)
        if self._derives:
            self._derives = derive_attributes(self._env, now, self._derived, "the environment")

    def _set(self, change: AttributeChange) -> None:
        path, value = change if type(change) is tuple else ("", change)
        if type(value) is float and type(getattr(self._holder, path, None)) is float:
            setattr(self._holder, path, value)
        else:
            set_attribute(self._env, change, "the environment")


def _are_about_one(change: AttributeChange, other: AttributeChange) -> bool:
    return change == other or _left_of(change) == _left_of(other)


def _left_of(change: AttributeChange) -> str:
    """Return what stands before the sign of a change: `length*` for one that cannot be carried out twice."""
    return change.partition("=")[0] if isinstance(change, str) else change[0]


def _list_paths(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return each change with the attribute that it is about."""
    parsed = [(text, split_change(text)) for text in texts]
    return [(text, found[0]) for text, found in parsed if found is not None]


def _read_ends(first: Holder, last: Holder, text: str) -> tuple[Any, Any]:
    usual, changed = (_as_plain(read_attribute(env, text, text)) for env in (first, last))
    return usual, changed


def _as_plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
