"""The human player of ond: samples are drawn as text, and one label is typed for each."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from openfield.agents.belief_question import BELIEF_QUESTION
from openfield.agents.human import read_line
from openfield.console import escape_controls
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.domains.ond.actions import Buy, NextBatch, Scores
from openfield.errors import Cancelled
from openfield.spaces import Box

SHADES = " .:-=+*#%@"
"""Signs for pixels, from dark to bright. Each is printed twice, because a sign is about twice as high as wide."""
MAX_PIXELS = 32
"""Pixels of a drawn row; larger pictures are thinned out."""
GAP, MAX_COLUMNS = 4, 80
"""Blanks between pictures side by side, and how wide they are together."""
HELP = """\
Type one label for each sample: the number of its class, 0 if it is of none.
Several labels in one line are taken for several samples.

  classes   shows the known classes again
  ? 0.7     says how sure you are that the world has changed
  ?         shows this
  QUIT      stops; the same command goes on with the batch
"""


class OndHuman:
    """Asks for one label per sample, then for the labels to buy."""

    stateless = may_leave = True

    def __init__(self, spec: Spec, seed: int, source: TextIO | None = None, target: TextIO | None = None) -> None:
        self._source, self._target = source or sys.stdin, target or sys.stdout
        self._columns = spec.actions.shape[1] if isinstance(spec.actions, Box) else 2
        self._belief = 0.0
        self._ids: list[str] = []
        self._classes = ""
        known = self._columns - 1
        self._say(
            f"Say which of {known} classes each sample shows. From some sample on, the world may change.\n{HELP}\n"
        )

    def __call__(self, turn: Turn) -> Reply:
        """Show a turn and wait for the labels, or for what to buy."""
        if turn.red_light:
            self._say("RED LIGHT: the world has changed.")
        seen = turn.observation
        if turn.ask is Ask.NONE:
            self._say("The batch is recorded.\n")
            return Reply()
        if turn.ask is Ask.READY:
            self._show_examples(seen)
            return Reply()
        if seen.get("answered"):
            return self._buy(turn.feedback)
        return self._label(seen)

    def _show_examples(self, seen: dict[str, Any]) -> None:
        """Draw a sample of each known class, side by side."""
        if "images" not in seen:
            return
        labels = np.asarray(seen["labels"])
        found = {f"class {one}": draw(seen["images"][int(np.argmax(labels == one))]) for one in np.unique(labels)}
        self._classes = f"The known classes:\n\n{draw_beside(found)}\n"
        self._say(self._classes)

    def _label(self, seen: dict[str, Any]) -> Reply:
        """Ask for the label of every sample of a batch."""
        self._ids, images, labels = list(seen["ids"]), seen.get("images"), list[int]()
        self._say(f"Batch {seen['round'] + 1}: {len(self._ids)} samples.")
        while len(labels) < len(self._ids):
            at = len(labels)
            shown = f"Sample {at + 1} of {len(self._ids)}"
            self._say(f"{shown}: {self._ids[at]}" if images is None else f"{shown}:\n{draw(images[at])}")
            labels += self._read_labels(len(self._ids) - at)
        self._ask_belief()
        return Reply(Scores.of(np.eye(self._columns)[labels]), Belief(self._belief))

    def _ask_belief(self) -> None:
        """Ask for the belief; an empty line means the same as before."""
        text = None
        while text is None or (text and not self._keep_belief(text)):
            text = self._read(f"{BELIEF_QUESTION} ")

    def _read_labels(self, most: int) -> list[int]:
        """Read a line with at least one label and at most so many."""
        highest = self._columns - 1
        while True:
            words = self._read(f"Class 1 to {highest}, or 0 for unknown: ").replace(",", " ").split()
            if words and len(words) <= most and all(word.isdecimal() and int(word) <= highest for word in words):
                return [int(word) for word in words]
            self._say(f"Type a number from 0 to {highest}; at most {most} labels are left in this batch.")

    def _buy(self, feedback: Any) -> Reply:
        """Show bought labels, and ask which further ones to buy."""
        for line in (feedback or {}).get("lines", []):
            key, _, label = line.rpartition(",")
            self._say(f"Sample {self._ids.index(key) + 1 if key in self._ids else key} has class {label}.")
        if "refused" in (feedback or {}):
            self._say(feedback["message"])
        while True:
            words = self._read("Enter goes on; numbers of samples buy their labels: ").split()
            if not words:
                return Reply(NextBatch())
            if all(word.isdecimal() and 1 <= int(word) <= len(self._ids) for word in words):
                return Reply(Buy("classification", [self._ids[int(word) - 1] for word in words]))
            self._say(f"Samples are numbered from 1 to {len(self._ids)}.")

    def _read(self, prompt: str) -> str:
        """Read a line that is not about the belief, which is kept."""
        while True:
            self._target.write(prompt)
            self._target.flush()
            line = read_line(self._source, self._target)
            text = line.strip()
            if not line or text == "QUIT":
                raise Cancelled("The player left.")
            if text == "?":
                self._say(HELP)
            elif text == "classes":
                self._say(self._classes or "This test shows no pictures of its classes.")
            elif not text.startswith("?"):
                return text
            else:
                self._keep_belief(text.lstrip("? "))

    def _keep_belief(self, text: str) -> bool:
        """Keep what is said about the belief, and return whether it made sense."""
        try:
            belief = float(text)
        except ValueError:
            belief = -1.0
        if 0 <= belief <= 1:
            self._belief = belief
            self._say(f"From now on you are {belief:.0%} sure that the world has changed.")
            return True
        self._say("A belief is a number from 0 to 1, such as '? 0.7'.")
        return False

    def _say(self, text: str) -> None:
        self._target.write(f"{escape_controls(text)}\n")


def draw_beside(pictures: Mapping[str, str]) -> str:
    """Return drawn pictures side by side with their titles, in as many rows as the width asks for."""
    blocks = [[title, *text.split("\n")] for title, text in pictures.items()]
    width = max((len(line) for block in blocks for line in block), default=0) + GAP
    beside = max(MAX_COLUMNS // width, 1)
    rows = []
    for at in range(0, len(blocks), beside):
        lines = zip_longest(*blocks[at : at + beside], fillvalue="")
        rows.append("\n".join("".join(text.ljust(width) for text in line).rstrip() for line in lines))
    return "\n\n".join(rows)


def draw(image: NDArray[Any]) -> str:
    """Draw a picture as text; anything that is no picture is printed as numbers."""
    pixels = np.asarray(image, dtype=float)
    pixels = pixels.mean(axis=2) if pixels.ndim == 3 else pixels
    if pixels.ndim != 2:
        return " ".join(f"{value:.3g}" for value in pixels.ravel()[:MAX_PIXELS])
    step = -(-max(pixels.shape) // MAX_PIXELS)
    low, high = float(pixels.min()), float(pixels.max())
    shades = ((pixels[::step, ::step] - low) / ((high - low) or 1.0) * (len(SHADES) - 1)).round().astype(int)
    return "\n".join("".join(SHADES[shade] * 2 for shade in row).rstrip() for row in shades)
