"""OND in words and pictures: examples of the known classes, batches of samples, and one label for each."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from openfield.agents.turn_writer import (
    Schema,
    TurnText,
    TurnWriter,
    describe_light,
    draw_as_text,
    draw_beside,
    fit_value,
)
from openfield.core import Ask, Reply, Spec, Turn
from openfield.domains.ond.actions import Buy, NextBatch, Scores
from openfield.spaces import Box

HELP = """\
Type one label for each sample: the number of its class, 0 if it is of none.
Several labels in one line are taken for several samples.

  classes   shows the known classes again
  ? 0.7     says how sure you are that the world has changed
  ?         shows this
  QUIT      stops; the same command goes on with the batch
"""
MIN_PIXELS = 56
"""Smaller pictures are enlarged to this width at least: models see little in a few pixels."""


class OndWriter(TurnWriter):
    """Shows samples as pictures and as text, and reads labels. A model buys no labels, a person may."""

    task = "Samples come in batches. From some sample on, the world may change."
    help = HELP

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._columns = spec.actions.shape[1] if isinstance(spec.actions, Box) else 2
        self._ids: list[str] = []
        self._images: Any = None
        self._labels: list[int] = []  # of the batch, as far as they were typed
        self._classes: dict[str, Any] = {}
        self._answered = False
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
        """Return the known classes, a batch of samples, or the labels that were bought."""
        title, shown = self._look(turn)
        pictures = {name: _enlarge(image) for name, image in shown.items() if np.asarray(image).ndim in (2, 3)}
        named = [f"{name}: picture {number}" for number, name in enumerate(pictures, 1)]
        named += [f"{name}: {draw_as_text(image)}" for name, image in shown.items() if name not in pictures]
        return TurnText("\n".join(part for part in (title, *named) if part), tuple(pictures.values()))

    def show(self, turn: Turn) -> str:
        """Return a turn as a terminal shows it. Samples are drawn one by one, each when its label is asked for."""
        title, _ = self._look(turn)
        return self._draw_classes() if turn.ask is Ask.READY else title

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
        return [rng.randrange(self._columns) for _ in self._ids]

    def read(self, value: Any) -> Scores:
        """Return labels as scores."""
        space = Box(0, self._columns - 1, (len(self._ids),), "int64")
        labels = fit_value(space, value)
        if not space.contains(labels):
            raise ValueError(
                f"{len(self._ids)} labels are wanted, whole numbers from 0 to {self._columns - 1} in a list"
            )
        return Scores.of(np.eye(self._columns)[labels])

    def prompt(self, turn: Turn) -> str:
        """Ask for the label of the next sample, or for the labels to buy."""
        if turn.ask is not Ask.ACT:
            return ""
        if self._answered:
            return "Enter goes on; numbers of samples buy their labels: "
        at = len(self._labels)
        shown = f" {self._ids[at]}" if self._images is None else f"\n{draw_as_text(self._images[at])}"
        return f"Sample {at + 1} of {len(self._ids)}:{shown}\nClass 1 to {self._columns - 1}, or 0 for unknown: "

    def explain(self, line: str) -> str:
        """Return the help, or the known classes."""
        return self._draw_classes() if line == "classes" else super().explain(line)

    def read_line(self, line: str) -> Any:
        """Return the labels of the batch once all are typed, or a purchase."""
        words = line.replace(",", " ").split()
        numbers = [int(word) for word in words if word.isdecimal()]
        if self._answered:
            return self._read_purchase(words, numbers)
        left, highest = len(self._ids) - len(self._labels), self._columns - 1
        if not 0 < len(words) <= left or len(numbers) < len(words) or max(numbers) > highest:
            raise ValueError(f"type a number from 0 to {highest}; {left} samples of this batch have no label yet")
        self._labels += numbers
        return self.read(self._labels) if len(self._labels) == len(self._ids) else None

    def _look(self, turn: Turn) -> tuple[str, dict[str, Any]]:
        """Take note of a turn, and return its title and its pictures."""
        seen = turn.observation or {}
        self._answered = bool(seen.get("answered"))
        if turn.ask is Ask.READY and "images" in seen:
            labels = np.asarray(seen["labels"])
            self._classes = {f"Class {one}": seen["images"][int(np.argmax(labels == one))] for one in np.unique(labels)}
            return "An example of each known class:", self._classes
        if turn.ask is Ask.ACT and self._answered:
            return self._describe_bought(turn.feedback or {}), {}
        if turn.ask is not Ask.ACT or "ids" not in seen:
            return "", {}
        if list(seen["ids"]) != self._ids:  # else the same batch is shown again, after a belief
            self._ids, self._labels = list(seen["ids"]), []
        self._images = seen.get("images")
        light = ""
        if turn.red_light is not None:
            light = f"{describe_light(turn.red_light)}\n"
        title = f"{light}Batch {seen['round'] + 1}: {len(self._ids)} samples."
        if self._images is None:
            return f"{title} {', '.join(map(str, self._ids))}", {}
        return title, {f"Sample {number}": image for number, image in enumerate(self._images, 1)}

    def _describe_bought(self, feedback: dict[str, Any]) -> str:
        """Return the labels that were bought in words, or why none were."""
        pairs = (line.rpartition(",") for line in feedback.get("lines", []))
        lines = [f"Sample {self._ids.index(key) + 1} has class {label}." for key, _, label in pairs if key in self._ids]
        return "\n".join([*lines, feedback["message"]] if "refused" in feedback else lines)

    def _read_purchase(self, words: list[str], numbers: list[int]) -> Buy | NextBatch:
        if not words:
            return NextBatch()
        if len(numbers) < len(words) or not all(1 <= number <= len(self._ids) for number in numbers):
            raise ValueError(f"samples are numbered from 1 to {len(self._ids)}")
        return Buy("classification", [self._ids[number - 1] for number in numbers])

    def _draw_classes(self) -> str:
        drawn = draw_beside({name: draw_as_text(image) for name, image in self._classes.items()})
        return f"The known classes:\n\n{drawn}\n" if drawn else "This test shows no pictures of its classes."


def _enlarge(image: Any) -> Any:
    """Return a picture as bytes, each pixel several times if it is small."""
    pixels = np.asarray(image, dtype=float)
    low, high = float(pixels.min()), float(pixels.max())
    grey = pixels if np.asarray(image).dtype == np.uint8 else (pixels - low) / ((high - low) or 1.0) * 255
    times = -(-MIN_PIXELS // max(pixels.shape[1], 1))
    return np.repeat(np.repeat(grey.astype("uint8"), times, axis=0), times, axis=1)
