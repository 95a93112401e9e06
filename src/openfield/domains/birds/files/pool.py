"""A folder of levels, sorted by novelty level and type: the shipped one, or one of the user."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from msgspec.structs import replace

from openfield.domains.birds.game.bodies import INTANGIBLE
from openfield.domains.birds.game.early_novelties import NO_NOVELTY, REGISTRY_NAME, find_registry, registry_key
from openfield.domains.birds.game.level import Level, parse_level
from openfield.domains.birds.game.physics import MATERIALS, load_profile
from openfield.domains.birds.novelty import NOVELTIES, PINK_PIGS
from openfield.domains.birds.settings import Scenario
from openfield.errors import InvalidInput, UnknownName

FOLDER = "Levels"
NAMED = ("Block", "Pig")
"""Elements whose types are checked; those of novelties differ from release to release."""
MISSPELT = 0.8
"""Likeness from which the name of a novelty is taken for a misspelt one, not for one of another release."""
PHYQ_SCENARIOS = {
    **{"1_1": "single force", "1_2": "multiple forces"},
    **{"2_1": "rolling", "2_2": "falling", "2_3": "sliding", "2_4": "bouncing"},
    **{"3_1": "relative weight", "3_2": "relative height", "3_3": "relative width", "3_4": "shape difference"},
    **{"3_5": "non-greedy actions", "3_6": "structural analysis", "3_7": "clearing paths"},
    **{"3_8": "adequate timing", "3_9": "manoeuvring"},
}
"""The scenarios of Phy-Q, by the first two numbers in the names of their levels."""


class LevelPool:
    """The levels below a folder with the layout `novelty_level_<L>/type<T>/Levels/*.xml`."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open a folder of levels; None opens the shipped one."""
        folder = folder or Path(str(files("openfield.domains.birds").joinpath("data", "levels")))
        nested = folder / FOLDER
        self.folder = nested if nested.is_dir() and not any(folder.glob("novelty_level_*")) else folder
        if not self.folder.is_dir():
            raise InvalidInput(f"There is no folder of levels at {folder}.")
        self._cache: dict[str, bytes] = {}
        self.registry = find_registry(self.folder)

    def names(self, level: str | int, type_: str) -> list[str]:
        """Return the names of the levels of a novelty level and type, in natural order."""
        folder = self.folder / f"novelty_level_{level}" / f"type{type_}" / FOLDER
        found = sorted(folder.glob("*.xml"), key=lambda path: natural_key(path.name))
        if not found:
            types, levels = self.types(level), _endings(self.folder, "novelty_level_")
            known = f"Types of this level: {', '.join(types)}." if types else f"Novelty levels: {', '.join(levels)}."
            raise InvalidInput(f"There are no levels of novelty level {level}, type {type_} in {self.folder}. {known}")
        return [path.relative_to(self.folder).as_posix() for path in found]

    def types(self, level: str | int) -> list[str]:
        """Return the types of a novelty level."""
        return _endings(self.folder / f"novelty_level_{level}", "type")

    def resolve(self, path: str) -> str:
        """Return the name of the level that a foreign path means: its end counts, whatever its root and slashes are."""
        parts = [part for part in re.split(r"[\\/]+", path) if part not in ("", ".")]
        last = len(parts) - parts[::-1].index("..") if ".." in parts else 0  # ".." may lead anywhere
        for start in range(last, len(parts)):
            name = "/".join(parts[start:])
            if (self.folder / name).is_file():
                return name
        found = "leads out of" if last else "is not in"
        raise InvalidInput(f"Level path '{path}' {found} the folder of levels, {self.folder}.")

    def content(self, name: str) -> bytes:
        """Return the bytes of a level file."""
        if name not in self._cache:
            try:
                self._cache[name] = (self.folder / name).read_bytes()
            except OSError as error:
                raise InvalidInput(f"Level {name} in {self.folder} cannot be read: {error.strerror}.") from None
        return self._cache[name]

    def level(self, name: str) -> Level:
        """Return a level."""
        level = parse_level(self.content(name), name)
        level = replace(level, early=self.registry.get(registry_key(name), NO_NOVELTY))
        _check_names(level)
        return level

    @property
    def rules(self) -> bytes:
        """The content of its own registry of novelties, which is part of its levels; empty if it has none."""
        return self.content(REGISTRY_NAME) if (self.folder / REGISTRY_NAME).is_file() else b""


def _check_names(level: Level) -> None:
    """Refuse birds, pigs, blocks and materials with unknown names, and novelties whose names seem misspelt.

    Names of novelties differ from release to release, and those of novel objects begin with "novel": what is unknown
    gets a warning when the level is built, and a stand-in.
    """
    known, objects = _known_names(), level.objects
    for placed in objects:
        unknown = placed.kind == "Novelty" and placed.type not in (*known["novelty"], *level.early.objects)
        if unknown and get_close_matches(placed.type, known["novelty"], n=1, cutoff=MISSPELT):
            raise InvalidInput(
                f"Level {level.name}: {UnknownName('novelty', placed.type, known['novelty'], label='Known')}"
            )
    found = [("bird", bird) for bird in level.birds]
    found += [("pig" if placed.kind == "Pig" else "block", placed.type) for placed in objects if placed.kind in NAMED]
    found += [("material", placed.material) for placed in objects if placed.kind == "Block" and placed.material]
    for kind, name in found:
        if name not in known[kind] and name not in level.early.objects and not name.startswith("novel"):
            raise InvalidInput(f"Level {level.name}: {UnknownName(kind, name, known[kind], label='Known')}")


@cache
def _known_names() -> dict[str, tuple[str, ...]]:
    """Return the names of birds, pigs, blocks and materials in level files."""
    profile = load_profile("sailon")
    blocks = (*profile.blocks, *(f"Pink{name}" for name in profile.blocks))
    pigs = (*PINK_PIGS, *PINK_PIGS.values())
    novelties = (*blocks, "Fan", "Magnet", *INTANGIBLE)
    return {"bird": tuple(profile.birds), "pig": pigs, "block": blocks, "material": MATERIALS, "novelty": novelties}


def _endings(folder: Path, prefix: str) -> list[str]:
    """Return the ends of the names in a folder that begin with a prefix, in natural order."""
    return sorted((found.name.removeprefix(prefix) for found in folder.glob(f"{prefix}*")), key=natural_key)


def natural_key(name: str) -> str:
    """Return a sort key that orders numbers in names by their value: digits are padded to four."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(4), name)


def folder_of(name: str) -> str:
    """Return the folder of a level, as `novelty_level_1/type1`, from its path or its file name."""
    folder = re.search(r"novelty_level_\d+/type\w+", name)
    parts = Path(name).stem.split("_")
    return folder[0] if folder else f"novelty_level_{parts[-2] if len(parts) >= 6 else parts[-1]}"


def is_phyq(name: str) -> bool:
    """Return whether a level has the name of a Phy-Q level, in which nothing is novel: four numbers."""
    return bool(re.search(r"(^|[\\/])\d+_\d+_\d+_\d+(\.xml)?$", name))


def scenario_of_title(title: str) -> str:
    """Return our name of a scenario that a title or two numbers of Phy-Q mean, else the title in small letters."""
    numbers = re.match(r"0*(\d)_0*(\d)(?!\d)", title)
    known = PHYQ_SCENARIOS.get(f"{numbers[1]}_{numbers[2]}") if numbers else None
    title = known or title.lower()
    return next((each for each in get_args(Scenario)[1:] if title.startswith(each)), title)


def novelty_of(name: str) -> str:
    """Return the novelty of a novel level: one of ours if it is a published level, else its folder, if it has one."""
    folder = folder_of(name) if name else ""
    level = re.search(r"novelty_level_(\d+)", folder)
    if level and level_type(name) and 1 <= int(level[1]) <= len(NOVELTIES):
        return NOVELTIES[int(level[1]) - 1].name
    return folder if level else ""


def level_type(name: str) -> re.Match[str] | None:
    """Return the type of a published level, `01NNSS`, as a match of its family NN and its scenario SS; None without."""
    folder = re.search(r"type(\w+)", name)
    parts = Path(name.replace("\\", "/")).stem.split("_")
    return re.fullmatch(r"01(\d\d)(\d\d)", folder[1] if folder else parts[-3] if len(parts) >= 6 else "")


def describe_levels(names: Iterable[str]) -> dict[str, Any]:
    """Return the settings of a trial that draws such levels: the family of templates, and the scenario."""
    given, known = list(names), get_args(Scenario)
    types = [found for name in given if (found := level_type(name))]
    families, numbers = {int(found[1]) for found in types}, {int(found[2]) for found in types}
    settings: dict[str, Any] = {"family": families.pop()} if len(families) == 1 else {}
    scenarios = {known[number] for number in numbers if 0 < number < len(known)}
    scenarios |= {scenario_of_title(Path(name.replace("\\", "/")).name) for name in given if is_phyq(name)}
    if len(scenarios) == 1 and scenarios <= set(known):
        settings["scenario"] = scenarios.pop()
    return settings


def is_novel(name: str) -> bool:
    """Return whether a level is novel, by its folder or by the novelty level in its file name."""
    folder = re.search(r"novelty_level_(\d+)", name)
    if folder:
        return int(folder[1]) > 0
    parts = Path(name).stem.split("_")
    digit = parts[-2] if len(parts) >= 6 else parts[-1]
    return len(parts) >= 5 and digit.isdigit() and int(digit) > 0
