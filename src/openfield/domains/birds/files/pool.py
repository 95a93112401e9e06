"""A folder of levels, sorted by novelty level and type: the shipped one, or one of the user."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from msgspec.structs import replace

from openfield.domains.birds.game.early_novelties import NO_NOVELTY, REGISTRY_NAME, find_registry, registry_key
from openfield.domains.birds.game.level import Level, parse_level
from openfield.errors import InvalidInput

FOLDER = "Levels"


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
        found = sorted(folder.glob("*.xml"), key=lambda path: natural(path.name))
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
        return replace(parse_level(self.content(name), name), early=self.registry.get(registry_key(name), NO_NOVELTY))

    @property
    def rules(self) -> bytes:
        """The content of its own registry of novelties, which is part of its levels; empty if it has none."""
        return self.content(REGISTRY_NAME) if (self.folder / REGISTRY_NAME).is_file() else b""


def _endings(folder: Path, prefix: str) -> list[str]:
    """Return the ends of the names in a folder that begin with a prefix, in natural order."""
    return sorted((found.name.removeprefix(prefix) for found in folder.glob(f"{prefix}*")), key=natural)


def natural(name: str) -> str:
    """Return a sort key that orders numbers in names by their value: digits are padded to four."""
    return re.sub(r"\d+", lambda digits: digits[0].zfill(4), name)


def folder_of(name: str) -> str:
    """Return the folder of a level, as `novelty_level_1/type1`, from its path or its file name."""
    folder = re.search(r"novelty_level_\d+/type\w+", name)
    parts = Path(name).stem.split("_")
    return folder[0] if folder else f"novelty_level_{parts[-2] if len(parts) >= 6 else parts[-1]}"


def is_novel(name: str) -> bool:
    """Return whether a level is novel, by its folder or by the novelty level in its file name."""
    folder = re.search(r"novelty_level_(\d+)", name)
    if folder:
        return int(folder[1]) > 0
    parts = Path(name).stem.split("_")
    digit = parts[-2] if len(parts) >= 6 else parts[-1]
    return len(parts) >= 5 and digit.isdigit() and int(digit) > 0
