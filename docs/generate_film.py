"""Write `docs/images/birds.webp`: a level of Birds before the change, and one after it, when gravity points upwards."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openfield.domains.birds.files.pool import LevelPool
from openfield.domains.birds.game.game import Game, solve
from openfield.domains.birds.novelty import change_level
from openfield.domains.birds.picture.film import FPS, LevelFilm
from openfield.lazy import import_extra
from openfield.report.film import write_webp

PLACE = Path(__file__).parent / "images" / "birds.webp"
FOLDER = "novelty_level_0/type010602/Levels"
LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("00001_0_2_010602_0_2.xml", ()),
    ("00002_0_2_010602_0_2.xml", ("gravity",)),
)
SIZE = (480, 360)
MAX_PICTURES = 150
"""Of each level: five seconds, the beginning of what happens."""


def film_level(name: str, changes: tuple[str, ...]) -> Iterator[Any]:
    """Yield the pictures of a level, shot as it can be passed."""
    level = change_level(LevelPool().level(f"{FOLDER}/{name}"), changes)
    game = Game(level)
    film = LevelFilm(game)
    for dx, dy in solve(level) or [(0.9, 0.4)]:
        game.shoot(dx, dy)
        game.settle()
    return itertools.islice(film.take(), MAX_PICTURES)


def main() -> None:
    """Write the film."""
    image = import_extra("PIL.Image", "birds", "A film")
    arrays = (array for name, changes in LEVELS for array in film_level(name, changes))
    pictures = (image.fromarray(array).resize(SIZE, image.Resampling.LANCZOS) for array in arrays)
    write_webp(pictures, PLACE, 1000 / FPS, 1_500)


if __name__ == "__main__":
    main()
