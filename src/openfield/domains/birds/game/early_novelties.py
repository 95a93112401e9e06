"""The registry of the earliest novelties: what the names of novel objects in level files mean, and what else changes.

The original keeps novel objects in asset bundles beside the levels, which only its engine can read. Level files give
nothing but names such as `novel_object_1`. A registry, `novelties.toml`, says what they are, by novelty level and type.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from openfield.errors import InvalidInput, UnknownName
from openfield.files.data import read_data, read_toml

REGISTRY_NAME = "novelties.toml"
Factor = Annotated[float, msgspec.Meta(ge=0, le=1000)]


class Properties(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The differences from the usual object; `life` and `points` are factors."""

    bounce: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    linear_drag: Factor | None = None
    life: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0
    points: Factor = 1.0
    look: str = ""
    """Its class in the palette; empty means that of the usual object."""


class NovelObject(Properties, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A name of a level file: a usual bird, pig, block or material with some properties."""

    base: str
    material: str = ""
    """The material of a block, if the file names none that is known."""


class EarlyNovelty(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The novelties in the levels of one novelty level and type."""

    note: str
    objects: dict[str, NovelObject] = {}
    """Novel objects and materials by their names in level files."""
    changed: dict[str, Properties] = {}
    """Birds, blocks and materials that look as usual and have other properties."""
    picture: Literal["", "grey", "turned"] = ""
    """How pictures and ground truth are shown: without colours, or turned by 180 degrees."""

    @property
    def acts(self) -> bool:
        """True if bodies move or break in another way than usual."""
        all_properties = (*self.objects.values(), *self.changed.values())
        return any(
            found.life != 1.0 or found.bounce is not None or found.linear_drag is not None for found in all_properties
        )

    def properties(self, *names: str) -> list[Properties]:
        """Return the differences of an object with these names: its type and its material."""
        known: dict[str, Properties] = {**self.objects, **self.changed}
        return [known[name] for name in names if name in known]


NO_NOVELTY = EarlyNovelty(note="")
Registry = dict[str, EarlyNovelty]
"""Early novelties by novelty level and type, such as `1.6`."""


@cache
def load_registry() -> Registry:
    """Return the shipped registry."""
    return read_data("openfield.domains.birds", REGISTRY_NAME, Registry)


def find_registry(folder: Path) -> Registry:
    """Return the registry of a folder of levels: its own file if it has one, else the shipped one."""
    path = folder / REGISTRY_NAME
    if not path.is_file():
        return load_registry()
    try:
        registry = msgspec.convert(read_toml(path), Registry)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{path} is not a registry of novelties: {error}.") from None
    palette = read_data("openfield.domains.birds", "palette.toml", dict[str, Any])
    for early in registry.values():
        for found in (*early.objects.values(), *early.changed.values()):
            if found.look and found.look not in palette:
                raise UnknownName(f"look in {path}", found.look, palette, label="Known")
    return registry


def registry_key(name: str) -> str:
    """Return the novelty level and type in the path of a level, as `1.6`; empty if it has none."""
    found = re.search(r"(?:^|/)novelty_level_(\d+)/type(\w+)/", name)
    return f"{found[1]}.{found[2]}" if found else ""
