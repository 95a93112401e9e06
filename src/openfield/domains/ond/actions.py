"""The actions of an agent in a test, as values that the journal and the wire can carry.

Local agents answer batches with `Scores`; the wire posts whatever its clients send with `Post`. Both buy with `Buy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from numpy.typing import ArrayLike

from openfield.errors import AgentProtocol


class Scores(msgspec.Struct, frozen=True, tag="scores", tag_field="do"):
    """Class scores for the batch shown: a row per sample, K+1 columns (CONDDA: K+D+1)."""

    p: list[list[float]]

    @classmethod
    def of(cls, p: ArrayLike) -> Scores:
        """Make scores from an array."""
        import numpy as np

        return cls(np.asarray(p, dtype=float).tolist())


class Buy(msgspec.Struct, frozen=True, tag="buy", tag_field="do"):
    """A request for feedback on answered samples; without ids, on the last batch."""

    type: str = "classification"
    ids: list[str] | None = None


class NextBatch(msgspec.Struct, frozen=True, tag="next", tag_field="do"):
    """The agent is done with the batch."""


class Clusters(msgspec.Struct, frozen=True, tag="clusters", tag_field="do"):
    """The characterisation at the end of an OND test: D+1 scores for each sample of the whole test, in order."""

    p: list[list[float]]


class PackedRows(msgspec.Struct, frozen=True, array_like=True):
    """Posted rows whose numbers all have equally many decimals, in a third of the space of their text."""

    ids: str
    """The ids of the samples, one to a line."""
    decimals: int
    values: bytes
    """The numbers without their point, row by row: unsigned whole numbers of 32 bits, or of 64 from 10 decimals on."""


class Post(msgspec.Struct, frozen=True, tag="post", tag_field="do"):
    """Results as a client of the protocol posts them: type -> CSV text, which is packed if it is large."""

    round: int
    results: Mapping[str, str | PackedRows]
    at: str
    """The time, for the status of the session."""
    old: bool = False
    """Whether it was imported from another server and is not checked again."""


class Told(msgspec.Struct, frozen=True, array_like=True):
    """The answer to a sample before the truth about it was revealed."""

    at: int
    values: tuple[Annotated[int, msgspec.Meta(ge=-1, le=2**63 - 1)] | float | None, ...]
    words: list[str] | None = None


class Carry(msgspec.Struct, frozen=True, tag="carry", tag_field="do"):
    """The legacy of an earlier attempt to a restarted test: used budgets and locked answers."""

    used: dict[str, int]
    score: float = 0.0
    scored: list[int] = []
    told: str = ""
    """A sign for each sample: 1 or 0 if a score covered a right or wrong answer, - otherwise."""
    answers: dict[str, list[Told]] = {}
    """Type of results -> locked answers."""
    bound: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """The belief that counts, because feedback had revealed the change."""
    floor: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """The least belief that counts, because feedback had revealed that nothing had changed."""


class Complete(msgspec.Struct, frozen=True, tag="complete", tag_field="do"):
    """The client declares the test complete."""

    at: str


Action = Scores | Buy | NextBatch | Clusters | Post | Carry | Complete


def read_action(action: Any) -> Action:
    """Read an action, also from plain data; a bare table is scores."""
    if isinstance(action, Action):
        return action
    if isinstance(action, list | tuple):
        action = {"do": "scores", "p": action}
    try:
        made: Action = msgspec.convert(action, Action)
    except msgspec.ValidationError as error:
        forms = 'a table of scores, {"do": "buy", "ids": [...]}, {"do": "next"} or {"do": "clusters", "p": [...]}'
        raise AgentProtocol(f"this is not an action of ond: {error}. Actions are {forms}.") from None
    return made
