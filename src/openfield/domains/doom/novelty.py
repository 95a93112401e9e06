"""The novelties of both tasks, the published ones and a few more, and the published hints on them.

Domains declare them, trials name them. Levels are the published ones: for the duel 1 class, 2 attribute, 3
representation; for the arena the last digit of the number.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import msgspec

from openfield.domains.doom.settings import ArenaSettings, DuelSettings
from openfield.novelty import HIERARCHY, Novelty

DIFFICULTIES = ("easy", "medium", "hard")
HINTS = ("entity", "attribute", "change")
"""The words of a hint, in the order in which hint levels add them."""
Change = dict[str, Any]


def _graded(name: str, level: int, kind: str, note: str, *changes: Change) -> Iterator[Novelty[Any]]:
    """Yield a novelty in its difficulties; one change alone has none."""
    grades = DIFFICULTIES if len(changes) > 1 else ("",)
    for grade, change in zip(grades, changes, strict=True):
        values = {key: value for key, value in change.items() if key != "note"}
        text = note.format(**values)
        yield Novelty(name, level, kind, text, _changing(values), grade)


def _changing(values: Change) -> Any:
    return lambda settings: msgspec.structs.replace(settings, **values)


def _each(key: str, *values: Any, **fixed: Any) -> list[Change]:
    return [{key: value, **fixed} for value in values]


DUEL: tuple[Novelty[DuelSettings], ...] = (
    *_graded("slim", 1, "objects", "the enemy's radius is {enemy_radius} instead of 20",
             *_each("enemy_radius", 15, 10, 5)),
    *_graded("tough", 2, "agents", "the enemy has {enemy_health} health instead of 1, and there are packs of bullets",
             *_each("enemy_health", 20, 30, 40, ammo_packs=4)),
    *_graded("buckets", 3, "environments", "positions are seen in {buckets} steps only",
             *_each("buckets", 50, 40, 30)),
    *_graded("moving", 2, "agents", "the enemy goes to and fro, {enemy_stride} units per tick",
             *_each("enemy_stride", 2, 4, 8)),
    *_graded("mirrored", 3, "actions", "left goes right and right goes left", {"mirrored": True}),
    *_graded("bolts", 5, "interactions",
             "the enemy throws projectiles of {bolt_speed} units per tick every {enemy_pause} ticks",
             *_each("bolt_speed", 8, 12, 16, enemy_pause=10)),
    *_graded("fog", 3, "environments", "nothing is seen beyond {fog:g} units: it seems to be at that distance",
             *_each("fog", 300.0, 200.0, 100.0)),
    *_graded("stride", 6, "rules", "the player goes {stride} units per tick instead of 8",
             *_each("stride", 5, 3, 1)),
    *_graded("crowd", 1, "objects", "there are {enemies} enemies", *_each("enemies", 2, 3, 4)),
    *_graded("poison", 6, "rules", "the player loses {toll} health every {toll_period} ticks",
             *_each("toll_period", 20, 10, 5, toll=1)),
    *_graded("lag", 3, "actions", "actions take effect {lag} ticks later", *_each("lag", 2, 5, 10)),
)  # fmt: skip


def _arena(number: int, note: str, *changes: Change) -> Iterator[Novelty[ArenaSettings]]:
    level = number % 50
    return _graded(str(number), level, HIERARCHY[level - 1], note, *changes)


ARENA: tuple[Novelty[ArenaSettings], ...] = (
    *_arena(101, "there are 10 to 20 health packs instead of 1 to 4", {"health_packs": (10, 20)}),
    *_arena(102, "enemies go {enemy_stride} units per tick instead of 16", {"enemy_stride": 32}),
    *_arena(103, "enemies approach the player", {"behaviour": "approach"}),
    *_arena(104, "the closer an enemy, the more its bullets hurt", {"closeness": 2500}),
    *_arena(105, "enemies spread out", {"behaviour": "spread"}),
    *_arena(106, "a wind blows everything {wind} units every second tick", *_each("wind", 13, 19, 26)),
    *_arena(107, "enemies hide {hide_distance} units behind pillars",
            *_each("hide_distance", 256, 128, 64, behaviour="hide")),
    *_arena(108, "after the first kill the player loses {drain} bullets every {drain_period} ticks",
            {"drain": 1, "drain_period": 30}, {"drain": 2, "drain_period": 20}, {"drain": 3, "drain_period": 10}),
    *_arena(201, "there are {traps[0]} to {traps[1]} traps instead of 1 to 4",
            *_each("traps", (10, 15), (20, 25), (30, 35))),
    *_arena(202, "enemies' bullets take {enemy_damage[0]} to {enemy_damage[1]} health instead of 5",
            *_each("enemy_damage", (14, 17), (19, 21), (24, 26))),
    *_arena(203, "an enemy that is hit appears {blink[0]} to {blink[1]} units away",
            *_each("blink", (300, 400), (500, 600), (700, 800))),
    *_arena(204, "the player loses {wall_harm} health per tick near walls and pillars",
            *_each("wall_harm", 1, 2, 5)),
    *_arena(205, "after {sentry_after} ticks enemies only turn to the player and fire",
            *_each("sentry_after", 10, 5, 0)),
    *_arena(206, "the player loses {toll} health every {toll_period} ticks",
            *_each("toll", 1, 2, 5, toll_period=50)),
    *_arena(207, "enemies walk to a place, and win when one is within {goal[2]} units of it",
            *_each("goal", (0, 0, 16), (64, 64, 64), (-128, -128, 128), behaviour="march")),
    *_arena(208, "the dead return after 5 ticks, each time {respawn:g} times later",
            {"respawn": 3.5, "respawn_distance": 64}, {"respawn": 2.5, "respawn_distance": 128},
            {"respawn": 1.2, "respawn_distance": 256}),
)  # fmt: skip


def hints_of(novelty: tuple[str, ...], level: int) -> list[dict[str, Any]]:
    """Return the hints on these novelties: level -1 tells nothing, 0 the novelty level, 1 to 3 one more word each."""
    told = novelty if level >= 0 else ()  # their number would be a hint, too
    known = [hint for name in told for hint in describe_novelty(name)] or [{}]
    granted = ("level", *HINTS)[: level + 1]
    return [{word: hint.get(word) if word in granted else None for word in ("level", *HINTS)} for hint in known]


def describe_novelty(name: str) -> list[dict[str, Any]]:
    """Return level, entity, attribute and change of a novelty by its number, or nothing if it has no number."""
    number = name.partition(":")[0]
    found = _hint_table().get(number, ())
    return [dict(zip(("level", *HINTS), (int(number) % 50, *words), strict=True)) for words in found]


@functools.cache
def _hint_table() -> dict[str, list[list[str]]]:
    content = (files(__package__) / "data" / "hints.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, list[list[str]]])
