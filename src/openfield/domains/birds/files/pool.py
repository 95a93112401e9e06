"""A folder of levels, by novelty level and type: the one that ships with the package, or the user's own.

Stands under configurations and trials: names -> level files.
"""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from pathlib import Path

from openfield.domains.birds.game.level import Level, parse_level
from openfield.errors import InvalidInput

FOLDER = "Levels"


class LevelPool:
    """Levels below a folder, laid out as `novelty_level_<L>/type<T>/Levels/*.xml`."""

    def __init__(self, folder: Path | None = None) -> None:
        """Opens a folder of levels; None is the one that ships with the package."""
        if folder is None:
            with as_file(files("openfield.domains.birds").joinpath("data", "levels")) as shipped:
                folder = shipped
        nested = folder / FOLDER
        self.folder = nested if nested.is_dir() and not any(folder.glob("novelty_level_*")) else folder
        if not self.folder.is_dir():
            raise InvalidInput(f"There is no folder of levels at {folder}.")
        self._cache: dict[str, bytes] = {}

    def names(self, level: str | int, type_: str) -> list[str]:
        """The levels of a novelty level and type, in natural order, named from the folder on."""
        folder = self.folder / f"novelty_level_{level}" / f"type{type_}" / FOLDER
        found = sorted(folder.glob("*.xml"), key=lambda path: natural(path.name))
        if not found:
            types = self.types(level)
            known = (
                f"Types of this level: {', '.join(types)}." if types else f"Novelty levels: {', '.join(self.levels)}."
            )
            raise InvalidInput(f"There are no levels of novelty level {level}, type {type_} in {self.folder}. {known}")
        return [path.relative_to(self.folder).as_posix() for path in found]

    @property
    def levels(self) -> list[str]:
        """The novelty levels there are."""
        folders = self.folder.glob("novelty_level_*")
        return sorted((folder.name.removeprefix("novelty_level_") for folder in folders), key=natural)

    def types(self, level: str | int) -> list[str]:
        """The types of a novelty level."""
        folders = (self.folder / f"novelty_level_{level}").glob("type*")
        return sorted((folder.name.removeprefix("type") for folder in folders), key=natural)

    def resolve(self, path: str) -> str:
        """The name of the level a path from elsewhere means: by its end, whatever its slashes and its root are."""
        parts = [part for part in re.split(r"[\\/]+", path) if part not in ("", ".")]
        last = len(parts) - parts[::-1].index("..") if ".." in parts else 0  # what is before that leads anywhere
        for start in range(last, len(parts)):
            name = "/".join(parts[start:])
            if (self.folder / name).is_file():
                return name
        found = "leads out of" if last else "is not in"
        raise InvalidInput(f"Level path '{path}' {found} {self.folder}, the folder of levels.")

    def content(self, name: str) -> bytes:
        """A level's file."""
        if name not in self._cache:
            try:
                self._cache[name] = (self.folder / name).read_bytes()
            except OSError as error:
                raise InvalidInput(f"Level {name} in {self.folder} cannot be read: {error.strerror}.") from None
        return self._cache[name]

    def level(self, name: str) -> Level:
        """A level."""
        return parse_level(self.content(name), name)


def natural(name: str) -> str:
    """A key that orders names as people count: digits are padded to four."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(4), name)


def folder_of(name: str) -> str:
    """Where a level belongs, as `novelty_level_1/type1`: by its folder, or by what its file's name says."""
    folder = re.search(r"novelty_level_\d+/type\w+", name)
    parts = Path(name).stem.split("_")
    return folder[0] if folder else f"novelty_level_{parts[-2] if len(parts) >= 6 else parts[-1]}"


def is_novel(name: str) -> bool:
    """Whether a level is a novel one, by its folder, or by the novelty level in its file's name."""
    folder = re.search(r"novelty_level_(\d+)", name)
    if folder:
        return int(folder[1]) > 0
    parts = Path(name).stem.split("_")
    digit = parts[-2] if len(parts) >= 6 else parts[-1]
    return len(parts) >= 5 and digit.isdigit() and int(digit) > 0
