"""OND in a browser: a person looks at the samples of a batch and gives each a label."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from openfield.core import Ask, Reply, Spec, Turn, World
from openfield.domains.ond.actions import Buy, NextBatch, Scores
from openfield.domains.ond.agents.ond_writer import OndWriter
from openfield.errors import AgentProtocol
from openfield.spaces import Box

EXAMPLES = 4
"""Samples of each known class that are shown for comparison."""


class LabelPage:
    """Plays a test: known classes are shown with examples, then batches to be labelled."""

    kind = "labels"

    def __init__(self, spec: Spec) -> None:
        self._writer = OndWriter(spec)
        self._columns = spec.actions.shape[1] if isinstance(spec.actions, Box) else 2
        self._examples: list[dict[str, Any]] = []
        self._ids: list[str] = []
        self._batch: dict[str, Any] = {}

    def describe(self) -> dict[str, Any]:
        """Return how many classes are known, and examples of them if they were shown before."""
        task = f"{self._writer.rules} {self._writer.task}"
        return {"task": task, "known": self._columns - 1, "examples": self._examples}

    def show(self, turn: Turn, world: World) -> dict[str, Any]:
        """Return the examples, the pictures of a batch, or the labels that were bought."""
        seen = turn.observation
        if turn.ask is Ask.READY:
            self._keep_examples(seen)
            title = "These are the classes you know" if self._examples else "Ready?"
            return {"title": title, "stage": "learn", "examples": self._examples}
        if turn.ask is Ask.NONE:
            return {"title": "The batch is recorded", "stage": "end"}
        if not seen.get("answered"):
            self._keep_batch(seen)
            return {"stage": "label", **self._batch}
        return {"stage": "buy", **self._batch, **self._tell_bought(turn.feedback or {})}

    def asks(self, turn: Turn) -> bool:
        """Return whether the belief is asked for now: it is part of the answer to a batch."""
        return turn.ask is Ask.ACT and not turn.observation.get("answered")

    def act(self, act: Any, turn: Turn) -> Generator[Reply, Turn, None]:
        """Yield the labels of a batch, a purchase, or the wish to go on."""
        if not turn.observation.get("answered"):
            yield Reply(Scores.of(np.eye(self._columns)[self._read_numbers(act, "labels", 0, self._columns)]))
        elif isinstance(act, dict) and "buy" in act:
            wanted = self._read_numbers(act, "buy", 0, len(self._ids))
            yield Reply(Buy("classification", [self._ids[number] for number in dict.fromkeys(wanted)]))
        else:
            yield Reply(NextBatch())

    def remember(self, turn: Turn, reply: Reply) -> None:
        """Take note of examples and batches that were shown before."""
        if turn.ask is Ask.READY:
            self._keep_examples(turn.observation)
        elif turn.ask is Ask.ACT and not turn.observation.get("answered"):
            self._keep_batch(turn.observation)

    def _keep_examples(self, seen: dict[str, Any]) -> None:
        if "images" in seen:
            labels = np.asarray(seen["labels"])
            self._examples = [
                {"label": int(one), "pictures": [seen["images"][at] for at in np.flatnonzero(labels == one)[:EXAMPLES]]}
                for one in np.unique(labels)
            ]

    def _keep_batch(self, seen: dict[str, Any]) -> None:
        self._ids = list(seen["ids"])
        pictures = list(seen["images"]) if "images" in seen else []
        self._batch = {"round": seen["round"], "pictures": pictures, "ids": self._ids if not pictures else []}

    def _tell_bought(self, feedback: dict[str, Any]) -> dict[str, Any]:
        pairs = (line.rpartition(",") for line in feedback.get("lines", []))
        bought = [(self._ids.index(key), label) for key, _, label in pairs if key in self._ids]
        return {"bought": bought, "message": feedback.get("message", "")}

    def _read_numbers(self, act: Any, name: str, low: int, end: int) -> list[int]:
        """Return a list of whole numbers within bounds; labels are as many as samples."""
        given = act.get(name) if isinstance(act, dict) else None
        count = len(self._ids)
        fits = isinstance(given, list) and (len(given) == count if name == "labels" else 0 < len(given) <= count)
        if not fits or not all(type(each) is int and low <= each < end for each in given or ()):
            raise AgentProtocol(f"Give each of the {count} samples a label from 0 to {self._columns - 1}.")
        return list(given or ())
