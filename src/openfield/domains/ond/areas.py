"""The kinds of tests: which column of a table holds what, and which feedback is offered.

Read from `data/areas.toml`; tests and feedback go by it.
"""

from __future__ import annotations

import functools
from typing import Literal

import msgspec

from openfield.data import read_data
from openfield.errors import UnknownName


class FeedbackOffer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of feedback that an area offers."""

    reads: str
    content: Literal["label", "columns", "accuracy", "distance", "writers"]
    columns: tuple[int, ...] = ()
    budget: Literal["", "ids", "detection"] = ""
    wrong: bool = False
    early: bool = False


class Area(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of test: its columns, its encoding, its feedback."""

    novel: int
    label: int
    unknown: Literal["first", "last"]
    feedback: dict[str, FeedbackOffer]
    encoding: str = "utf-8"
    threshold: float = 0.5


@functools.cache
def areas() -> dict[str, Area]:
    """Return all areas by name."""
    return read_data("openfield.domains.ond", "areas.toml", dict[str, Area])


def find_area(name: str) -> Area:
    """Return the area of a name."""
    if name not in areas():
        raise UnknownName("area", name, areas(), label="Known")
    return areas()[name]
