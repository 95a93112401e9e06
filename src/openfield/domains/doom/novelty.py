"""The novelties of both tasks, the published ones and a few more, and the published hints on them.

Domains declare them, trials name them. They are listed in `data/novelties.toml`.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from openfield.domains.doom.settings import ArenaSettings, DuelSettings
from openfield.files.data import read_data
from openfield.novelty import Novelty, SettingNovelties
from openfield.trial import bare_names

MAX_LEVEL = 10
"""The highest level that a novelty prediction may name."""
HINTS = ("level", "entity", "attribute", "change")
"""The parts of a hint, in the order in which hint levels add them."""
Value = bool | int | float | str | tuple[int, ...]


class _Entry(msgspec.Struct):
    name: str
    level: int
    kind: str
    note: str
    changes: dict[str, dict[str, Value]]
    """The new values of settings by difficulty; `always` if there is only one."""
    hints: tuple[tuple[str, str, str], ...] = ()

    def novelties(self) -> list[Novelty[Any]]:
        """Make the novelty in its difficulties."""
        return [
            Novelty(
                self.name,
                self.level,
                self.kind,
                self.note.format(**values),
                functools.partial(msgspec.structs.replace, **values),
                "" if difficulty == "always" else difficulty,
            )
            for difficulty, values in self.changes.items()
        ]


_CATALOGUE = read_data("openfield.domains.doom", "novelties.toml", dict[str, list[_Entry]])
_NUMBERED = {entry.name: entry for entry in _CATALOGUE["arena"]}
_DUEL: list[Novelty[DuelSettings]] = [each for entry in _CATALOGUE["duel"] for each in entry.novelties()]
_ARENA: list[Novelty[ArenaSettings]] = [each for entry in _CATALOGUE["arena"] for each in entry.novelties()]
PLAYER = ("stride", "lag", "buckets", "fog", "toll", "toll_period")
ENEMY = ("enemies", "enemy_radius", "enemy_health", "enemy_stride", "enemy_damage")
DUEL = SettingNovelties.of(_DUEL, DuelSettings, (*PLAYER, *ENEMY, "enemy_pause", "bolt_speed", "bolt_damage"))
ARENA = SettingNovelties.of(_ARENA, ArenaSettings, (*PLAYER, *ENEMY, "enemy_aim", "wall_harm", "wind", "drain"))
"""Novelties by name; `enemy_stride=24` is one too."""


def hints_of(novelty: tuple[str, ...], level: int) -> list[dict[str, Any]]:
    """Return the hints on these novelties: level -1 reveals nothing, 0 the novelty level, 1 to 3 one more word each."""
    names = bare_names(novelty) if level >= 0 else ()  # their number would be a hint, too
    known = [hint for name in names for hint in classify_novelty(name)] or [{}]
    return [{word: hint.get(word) if word in HINTS[: level + 1] else None for word in HINTS} for hint in known]


def classify_novelty(name: str) -> list[dict[str, Any]]:
    """Return level, entity, attribute and change of a novelty by its number, or nothing if it has no number."""
    entry = _NUMBERED.get(name.partition(":")[0])
    return [dict(zip(HINTS, (entry.level, *words), strict=True)) for words in entry.hints] if entry else []
