"""Play tests of a server with openfield agents: a round becomes a turn, the reply becomes results to post.

`TurnPlayer` is the `OndPlayer` of such an agent; `StepPlayer` is that of an agent of the original client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from openfield.core import Agent, Ask, Reply, Turn
from openfield.domains.ond.actions import Buy, Clusters, NextBatch, Scores
from openfield.domains.ond.client.workflow import StartedTest, write_version
from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.testset.data_directory import load_arrays
from openfield.domains.ond.testset.results import (
    number_from_one,
    put_unknown_last,
    quote_id,
    read_beliefs,
    read_ids,
    read_table,
)
from openfield.domains.ond.testset.test import read_count
from openfield.errors import AgentCrashed, AgentProtocol, InvalidInput, OpenfieldError, describe_error

ARRAYS = ("ids", "images", "train_images", "train_labels")
"""What the file of arrays of a data directory holds for agents that learn."""


class TurnPlayer:
    """Shows the rounds of tests to an agent as turns, with the images of a data directory."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Agent],
        root: str,
        threshold: float = 0.5,
        detects: bool = True,
        unknown_last: bool = False,
    ) -> None:
        """Load the images of the data directory `root`; `make` makes a new agent for each test.

        A belief above the threshold declares that the world has changed; beliefs of a reaction baseline are not posted.
        `unknown_last` is about tests whose metadata do not say where the unknown class is. For agents it is the first.
        """
        self.version = write_version(name, {})
        self.name, self.threshold, self._make, self._detects = name, threshold, make, detects
        self._unknown_last = unknown_last
        arrays = load_arrays(Path(root)) if root else None
        if arrays is None:
            where = f"; {root} has none" if root else ""
            raise InvalidInput(f"This agent needs images: --set data=DIR, a data directory with an arrays.npz{where}.")
        if missing := [name for name in ARRAYS if name not in arrays]:
            raise InvalidInput(f"{root}/arrays.npz lacks {', '.join(missing)}; it holds {', '.join(arrays)}.")
        self._arrays = arrays
        self._place = {key: at for at, key in enumerate(arrays["ids"].tolist())}

    def start(self, started: StartedTest) -> None:
        """Make a new agent and show it the training samples of the directory."""
        metadata, self._where = started.metadata, f"Test {started.test}, before its first round"
        self._feedback, self._light = started.feedback, metadata.get("red_light")
        self._lit, self._shown = self._light in started.answered, list[str]()
        self._clusters: list[list[float]] | None = None
        self._condda, self._test = metadata.get("protocol") == "CONDDA", started.test
        place = read_count(metadata.get("unknown_index"), f"Test {started.test}: unknown_index")
        self._last = self._unknown_last if place is None else place > 0
        stated = read_count(metadata.get("known_classes"), f"Test {started.test}: known_classes")
        labels = self._arrays["train_labels"]
        self._known = int(labels.max(initial=0)) if stated is None else stated  # the classes of the training samples
        shown = {key: value for key, value in metadata.items() if key != "unknown_index"}  # it is always 0 here
        seen: dict[str, Any] = {"metadata": shown | {"known_classes": self._known}}
        seen |= {"images": self._arrays["train_images"], "labels": labels}
        with self._blaming_agent():
            self._agent = self._make()
        self._ask(Turn(ask=Ask.READY, observation=seen, phase="training", first=True))

    def play(self, number: int, content: bytes) -> Iterator[Mapping[str, str]]:
        """Show a round as a turn and yield what the agent answers."""
        ids = read_ids(content)
        self._where = f"Test {self._test}, round {number}"
        self._shown += ids
        self._lit = self._lit or self._light in ids
        light = self._lit if self._light is not None else None
        if missing := [key for key in ids if key not in self._place]:
            raise InvalidInput(f"{self._where}: the data directory has no image of {missing[0]!r:.80}.")
        images = self._arrays["images"][[self._place[key] for key in ids]]
        seen = {"round": number, "ids": ids, "images": images}
        reply = self._ask(Turn(observation=seen, first=True, red_light=light))
        if not isinstance(reply.action, Scores):
            raise AgentProtocol(f"{self._where}: waits for Scores.")
        with self._blaming_agent():
            scores, beliefs = read_table(reply.action.p, len(ids)), read_beliefs(reply.belief, len(ids))
        kind = "characterization" if self._condda else "classification"
        detection = {"detection": _rows(ids, beliefs[:, None])} if self._detects else {}
        if self._last and not self._condda:
            scores = put_unknown_last(scores)
        yield detection | {kind: _rows(ids, scores)}
        self._trade(number, light)

    def finish(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the clusters of all samples the agent was shown, if it gave any."""
        self._ask(Turn(ask=Ask.NONE, last="terminated"))
        if self._clusters is None:
            return {}
        with self._blaming_agent():
            return {"characterization": _rows(self._shown, read_table(self._clusters, len(self._shown)))}

    def _ask(self, turn: Turn) -> Reply:
        """Return the reply of the agent to a turn."""
        with self._blaming_agent():
            reply = self._agent(turn)
        if not isinstance(reply, Reply):
            raise AgentProtocol(f"{self._where}: the agent returned a {type(reply).__name__}, not a Reply.")
        return reply

    @contextmanager
    def _blaming_agent(self) -> Iterator[None]:
        """Add the test and round to errors of the agent."""
        try:
            yield
        except AgentProtocol as error:
            raise AgentProtocol(f"{self._where}: {error}.") from None
        except OpenfieldError:
            raise
        except Exception as error:
            raise AgentCrashed(f"{self._where}: the agent raised {describe_error(error)}") from error

    def _trade(self, number: int, light: bool | None) -> None:
        """Buy the feedback the agent asks for, until it asks for the next batch."""
        answer: Any = None
        while True:
            seen = {"round": number, "answered": True}
            action = self._ask(Turn(observation=seen, feedback=answer, red_light=light)).action
            answer = None
            match action:
                case Buy():
                    answer = self._buy(action)
                case Clusters():
                    self._clusters = action.p
                case NextBatch():
                    self._ask(Turn(ask=Ask.NONE, last="terminated", red_light=light))
                    return
                case _:
                    raise AgentProtocol(f"{self._where}: waits for Buy, Clusters or NextBatch.")

    def _buy(self, action: Buy) -> dict[str, Any]:
        try:
            lines = self._feedback(action.type, action.ids)
            lines = number_from_one(action.type, lines, self._known) if self._last else lines
            return {"type": action.type, "lines": lines}
        except Refusal as error:
            return {"type": action.type, "refused": error.reason, "message": str(error)}


def _rows(ids: Sequence[str], table: Any) -> str:
    """Write CSV rows whose numbers are read back exactly."""
    rows = np.asarray(table, dtype=float).tolist()
    return "".join(f"{quote_id(key)},{','.join(map(repr, row))}\n" for key, row in zip(ids, rows, strict=True))
