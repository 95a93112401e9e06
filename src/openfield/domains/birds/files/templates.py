"""The shipped levels: templates filled in, tried out, and written down in the layout every tool of this game knows.

Stands before the pool. A level is kept only if nothing in it moves before the first shot, and if some shots pass it,
both as it is and with its family's novelty.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from openfield.atomic import replacing
from openfield.domains.birds.files.pool import FOLDER
from openfield.domains.birds.files.scenarios import SCENARIOS, LevelTemplate, build
from openfield.domains.birds.game.bodies import INTANGIBLE
from openfield.domains.birds.game.game import Game
from openfield.domains.birds.game.level import Level, write_level
from openfield.domains.birds.game.physics import read_table
from openfield.domains.birds.game.solver import solve
from openfield.domains.birds.novelty import CHANGES, change_level
from openfield.errors import OpenfieldError
from openfield.trial import derive

MAX_TRIES = 60
MAX_MOVE = 0.3
"""Units; more, while a level comes to rest, and it does not stand."""
MIXED_TYPE = "1"
"""The type with levels of all scenarios, which the sample configurations ask for; its novelty is the first."""


@cache
def load_templates() -> dict[str, LevelTemplate]:
    """All templates by their type."""
    return read_table("templates.toml", dict[str, LevelTemplate])


def make_pair(type_: str, number: int, seed: int = 0) -> tuple[Level, Level]:
    """A normal level of a template and its novel twin, both standing and solvable."""
    change = list(CHANGES)[int(type_[2:4]) - 1]
    for attempt in range(MAX_TRIES):
        rng = random.Random(derive(seed, "level", type_, number, attempt))
        normal = build(load_templates()[type_], rng)
        novel = change_level(normal, [change])
        stands = all(moved(level) < MAX_MOVE for level in (normal, novel))
        if stands and solve(normal, "sailon") and solve(novel, "sailon"):
            return normal, novel
    raise OpenfieldError(f"Template {type_} gave no level that stands and can be solved in {MAX_TRIES} tries.")


def moved(level: Level) -> float:
    """How far the farthest thing moves while the level comes to rest; infinite if something is lost."""
    game = Game(level, "sailon")
    placed = [thing for thing in level.objects if thing.type not in INTANGIBLE]
    if len(game.bodies) != len(placed):
        return math.inf
    pairs = zip(game.bodies, placed, strict=True)
    return max((math.dist(body.place, (thing.x, thing.y)) for body, thing in pairs), default=0.0)


def write_pool(folder: Path, variations: int, seed: int = 0, types: tuple[str, ...] = ()) -> Iterator[Path]:
    """Writes levels of all templates, or of some, normal and novel; yields each file."""
    for type_ in types or load_templates():
        family, scenario = int(type_[2:4]), int(type_[4:])
        for number in range(1, variations + 1):
            pair = make_pair(type_, number, seed)
            for level, kept in zip((0, family), pair, strict=True):
                name = f"{number:05d}_0_{scenario}_{type_}_{level}_{scenario}.xml"
                yield _write(folder, level, type_, name, kept)
    if not types:
        yield from _write_mixed(folder, 3, seed)


def _write_mixed(folder: Path, rounds: int, seed: int) -> Iterator[Path]:
    for number in range(rounds * len(SCENARIOS)):
        pair = make_pair(f"0101{number % len(SCENARIOS) + 1:02d}", 100 + number, seed)
        for level, kept in zip((0, 1), pair, strict=True):
            yield _write(folder, level, MIXED_TYPE, f"{number + 1:05d}.xml", kept)


def _write(folder: Path, level: int, type_: str, name: str, kept: Level) -> Path:
    path = folder / f"novelty_level_{level}" / f"type{type_}" / FOLDER / name
    with replacing(path) as draft:
        draft.write_text(write_level(kept), encoding="utf-8")
    return path
