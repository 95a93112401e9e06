"""A maze that draws, for tests of pictures by replay. What it does while it draws is said in `OPENFIELD_TEST_FILM`."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import openfield as of

maze: Any = of.registry.find_domain(str(Path(__file__).parents[2] / "examples" / "maze.py"))


class FilmedMaze(type(maze)):  # type: ignore[misc]
    """The maze with a picture of every turn: the place of the agent is white."""

    name = "filmed-maze"

    def film(self, trial: of.Trial) -> of.capabilities.Film:
        """Return a world that draws, or misbehaves."""
        start, playing = self.world(trial)._start, list[Any]()

        def begin(settings: Any, rng: random.Random) -> Any:
            playing[:] = [start(settings, rng)]
            return playing[0]

        def pictures() -> list[Any]:
            misbehave(os.environ.get("OPENFIELD_TEST_FILM", ""))
            picture = np.full((20, 20, 3), 60, np.uint8)
            picture[playing[0].at[1], playing[0].at[0]] = 255
            return [picture]

        return of.capabilities.Film(of.EpisodicWorld(self, trial, begin), pictures, 40)


def misbehave(how: str) -> None:
    """Hang, crash, print or take all memory."""
    match how:
        case "hang":
            time.sleep(3600)
        case "crash":
            sys.stderr.write("the engine is broken\n")
            os._exit(3)
        case "memory":
            np.ones((1 << 40,), np.uint8)
        case "raise":
            raise RuntimeError("no brush")
        case _:
            sys.stdout.write("this is no picture\n")


domain = FilmedMaze()
