"""Environments that change gradually: the way of attributes and arguments, and what can change within an episode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from openfield.course import Blend, list_ranges, mix
from openfield.domains.gym.environment import (
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
from openfield.parameters import write_value

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
        self._last: tuple[float, tuple[GymSettings, bool]] | None = None
        moving = [range_ for ends in self._paths.values() for range_ in list_ranges(*ends)]
        self.ranges = (*self.ranges, *moving)

    def at(self, share: float) -> tuple[GymSettings, bool]:
        """Return the settings at a share of the way, and whether they differ.

        Attributes are set to values, also to the normal ones: within an episode they must find their way back. The last
        answer is kept: a ramp that is complete asks for the same in every turn.
        """
        if self._last is None or self._last[0] != share:
            self._last = share, self._mix(share)
        return self._last[1]

    def _mix(self, share: float) -> tuple[GymSettings, bool]:
        settings, differs = super().at(share)
        settings = settings if share else self._first
        values = {path: mix(*ends, share) if share else ends[0] for path, ends in self._paths.items()}
        differs = differs or any(value != self._paths[path][0] for path, value in values.items())
        texts = [f"{path}={write_value(value)}" for path, value in values.items()]
        return (replace(settings, attributes=(*self._first.attributes, *texts)) if texts else settings), differs


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


def follow_attributes(env: Env, before: GymSettings, now: GymSettings) -> None:
    """Change the attributes of a running environment that are not what they were, and what is computed from them."""
    known = set(before.attributes)
    texts = [text for text in now.attributes if text not in known]
    for text in texts:
        set_attribute(env, text, "the environment")
    if texts and now.derived:
        derive_attributes(env, now.attributes, now.derived, "the environment")


def _list_paths(texts: Iterable[str]) -> list[tuple[str, str]]:
    """Return each change with the attribute that it is about."""
    parsed = [(text, split_change(text)) for text in texts]
    return [(text, found[0]) for text, found in parsed if found is not None]


def _read_ends(first: Holder, last: Holder, text: str) -> tuple[Any, Any]:
    usual, changed = (_as_plain(read_attribute(env, text, text)) for env in (first, last))
    return usual, changed


def _as_plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
