"""OND in words and pictures: examples of the known classes, batches of samples, and one label for each."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from openfield.agents.turn_writer import Schema, TurnText, TurnWriter, read_value
from openfield.core import Ask, Reply, Spec, Turn
from openfield.domains.ond.actions import NextBatch, Scores
from openfield.domains.ond.agents.human import draw
from openfield.spaces import Box

MIN_PIXELS = 56
"""Smaller pictures are enlarged to this width at least: models see little in a few pixels."""


class OndWriter(TurnWriter):
    """Shows samples as pictures and as text, and reads labels. No labels are bought."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._columns = spec.actions.shape[1] if isinstance(spec.actions, Box) else 2
        self._size = 0
        self.rules = f"Say which of {self._columns - 1} classes each sample of a batch shows."

    @property
    def action(self) -> str:
        """What the labels of a batch are."""
        known = self._columns - 1
        return f"a list with a whole number for each sample, in their order: 1 to {known} is a class, 0 none of them"

    @property
    def schema(self) -> Schema:
        """The schema of the labels of a batch."""
        return {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": self._columns - 1}}

    def describe(self, turn: Turn) -> TurnText:
        """Return the known classes, or a batch of samples."""
        seen, light = turn.observation or {}, ""
        if turn.red_light is not None:
            light = f"Red light: the world has {'' if turn.red_light else 'not '}changed.\n"
        if turn.ask is Ask.READY and "images" in seen:
            labels = np.asarray(seen["labels"])
            shown = {f"Class {one}": seen["images"][int(np.argmax(labels == one))] for one in np.unique(labels)}
            return _show("An example of each known class:", shown)
        if turn.ask is not Ask.ACT or seen.get("answered") or "ids" not in seen:
            return TurnText("")
        self._size = len(seen["ids"])
        title = f"{light}Batch {seen['round'] + 1}: {self._size} samples."
        images = seen.get("images")
        if images is None:
            return TurnText(f"{title} {', '.join(map(str, seen['ids']))}")
        return _show(title, {f"Sample {number}": image for number, image in enumerate(images, 1)})

    def pass_over(self, turn: Turn) -> Reply | None:
        """Return the go-ahead, the step to the next batch, or None where labels are wanted."""
        if turn.ask is Ask.ACT and (turn.observation or {}).get("answered"):
            return Reply(NextBatch())
        return None if self.asks_belief(turn) or turn.ask is Ask.ACT else Reply()

    def asks_belief(self, turn: Turn) -> bool:
        """Return whether labels are wanted: the belief goes with them, and a batch is an episode."""
        return turn.ask is Ask.ACT and not (turn.observation or {}).get("answered")

    def sample(self, rng: random.Random) -> list[int]:
        """Return labels for the batch."""
        return [rng.randrange(self._columns) for _ in range(self._size)]

    def read(self, value: Any) -> Scores:
        """Return labels as scores."""
        labels = read_value(Box(0, self._columns - 1, (self._size,), "int64"), value)
        if not Box(0, self._columns - 1, (self._size,), "int64").contains(labels):
            raise ValueError(f"{self._size} labels are wanted, whole numbers from 0 to {self._columns - 1} in a list")
        return Scores.of(np.eye(self._columns)[labels])


def _show(title: str, shown: dict[str, Any]) -> TurnText:
    """Return pictures with their names; what is no picture is drawn as text."""
    pictures = {name: _enlarge(image) for name, image in shown.items() if np.asarray(image).ndim in (2, 3)}
    named = [f"{name}: picture {number}" for number, name in enumerate(pictures, 1)]
    named += [f"{name}: {draw(image)}" for name, image in shown.items() if name not in pictures]
    return TurnText("\n".join([title, *named]), tuple(pictures.values()))


def _enlarge(image: Any) -> Any:
    """Return a picture as bytes, each pixel several times if it is small."""
    pixels = np.asarray(image, dtype=float)
    low, high = float(pixels.min()), float(pixels.max())
    grey = pixels if np.asarray(image).dtype == np.uint8 else (pixels - low) / ((high - low) or 1.0) * 255
    times = -(-MIN_PIXELS // max(pixels.shape[1], 1))
    return np.repeat(np.repeat(grey.astype("uint8"), times, axis=0), times, axis=1)
