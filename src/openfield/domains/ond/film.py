"""Pictures of a test for people: the samples of a batch in rows, and under each the class that the agent named.

Nothing that is only true, such as labels, is drawn: readers may want to guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from openfield.capabilities import Film
from openfield.core import Ask, Reply, Turn, World
from openfield.domains.ond.actions import Scores, read_action
from openfield.domains.ond.world import TestWorld
from openfield.errors import OpenfieldError
from openfield.lazy import import_extra

MILLISECONDS = 700.0
"""How long each picture is shown."""
TILE = 56
"""Pixels of a sample's side."""
GAP, CAPTION = 8, 16
"""Pixels between samples, and below each for a class."""
MAX_SAMPLES = 96
"""Samples in a picture."""
RATIO = 4 / 3
"""The width of a picture, divided by its height."""
EXAMPLES = 10
"""Samples of each class that are shown of the training."""
PAPER, INK, UNKNOWN = (250, 249, 246), (29, 33, 38), (184, 79, 0)
"""Colours: the ground, a class, and samples called unknown."""
Picture = NDArray[np.uint8]


def film_world(world: TestWorld) -> Film:
    """Return a film of a test."""
    sheet = SheetWorld(world)
    return Film(cast("World", sheet), sheet.pictures, MILLISECONDS)


class SheetWorld:
    """A test that also draws the batch that is shown."""

    def __init__(self, world: TestWorld) -> None:
        self._world = world
        self._images: NDArray[Any] = np.zeros((0, 1, 1))
        self._words: list[str] = []
        self._fresh = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def reset(self) -> Turn:
        """Start the test."""
        return self._see(self._world.reset())

    def step(self, reply: Reply) -> Turn:
        """Take a reply."""
        turn = self._world.step(reply)
        named = _name_classes(reply.action, len(self._images))
        if named:
            self._words, self._fresh = named, True
        return self._see(turn)

    def look(self, query: str) -> Any:
        """Return the current picture, or one of the test itself."""
        return self._draw() if query == "picture" else self._world.look(query)

    def pictures(self) -> Iterator[Picture]:
        """Yield a picture if something changed since the last one."""
        if self._fresh and (picture := self._draw()) is not None:
            yield picture
        self._fresh = False

    def _see(self, turn: Turn) -> Turn:
        """Keep the samples of a turn that shows some; what else is shown is about the same ones."""
        seen = turn.observation if isinstance(turn.observation, dict) else {}
        images = np.asarray(seen.get("images", ()))
        if images.ndim == 3:
            labels = np.asarray(seen.get("labels", ()))
            chosen = _pick_examples(labels) if turn.ask is Ask.READY else np.arange(min(len(images), MAX_SAMPLES))
            self._images, self._fresh = images[chosen], True
            self._words = [f"{labels[at]}" for at in chosen] if len(labels) else []
        return turn

    def _draw(self) -> Picture | None:
        return draw_sheet(self._images, self._words) if len(self._images) else None


def draw_sheet(images: NDArray[Any], words: list[str]) -> Picture:
    """Return samples in rows, each with a word below; `unknown` stands out."""
    image = import_extra("PIL.Image", "ond", "A picture")
    draw = import_extra("PIL.ImageDraw", "ond", "A picture")
    columns = math.ceil(math.sqrt(len(images) * RATIO * (TILE + CAPTION + GAP) / (TILE + GAP)))
    rows = -(-len(images) // columns)
    sheet = image.new("RGB", (GAP + columns * (TILE + GAP), GAP + rows * (TILE + CAPTION + GAP)), PAPER)
    pen = draw.Draw(sheet)
    for at, pixels in enumerate(images):
        x, y = GAP + at % columns * (TILE + GAP), GAP + at // columns * (TILE + CAPTION + GAP)
        tile = image.fromarray((np.clip(np.nan_to_num(pixels), 0, 1) * 255).astype(np.uint8))
        sheet.paste(tile.resize((TILE, TILE), image.Resampling.NEAREST), (x, y))
        if at < len(words):
            colour = UNKNOWN if words[at] == "new" else INK
            pen.text((x + TILE // 2, y + TILE + 2), words[at], fill=colour, anchor="ma")
            if colour == UNKNOWN:
                pen.rectangle((x - 2, y - 2, x + TILE + 1, y + TILE + 1), outline=UNKNOWN, width=2)
    return np.asarray(sheet)


def _pick_examples(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return some samples of each class, class by class."""
    found = [np.flatnonzero(labels == one)[:EXAMPLES] for one in np.unique(labels)]
    return np.concatenate(found)[:MAX_SAMPLES] if found else np.zeros(0, np.int64)


def _name_classes(action: Any, samples: int) -> list[str]:
    """Return the class that scores name for each sample, `new` for an unknown one; nothing if it is another action."""
    try:
        read = read_action(action)
    except OpenfieldError:
        return []
    if not isinstance(read, Scores) or not samples or not read.p:
        return []
    best = [max(range(len(row)), key=row.__getitem__) for row in read.p[:samples] if row]
    return ["new" if number == 0 else str(number) for number in best]
