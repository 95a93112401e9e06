"""A test: samples in order with their truth, the metadata that a client may know, and the kinds of tests (areas).

Data directories and builders make tests; worlds play them. An area says which column of a table holds what, and which
feedback is offered; areas are read from `data/areas.toml`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.errors import InvalidInput, UnknownName
from openfield.files.data import read_data


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


SHOWN = (
    "protocol",
    "known_classes",
    "max_novel_classes",
    "round_size",
    "feedback_max_ids",
    "pre_novelty_batches",
    "pre_novelty_training",
    "max_detection_feedback_ids",
)
"""The metadata that reaches a client; `red_light` joins it where it is granted, `unknown_index` where that is not what
clients expect of the area, and `classes`, the names of known classes in the order of their columns, where stated."""
NOVEL_CLASS = "novel_class"
PAIR = 11
"""The column from which on videos and documents have further names and values."""
COUNTS = ("nonnovel_classes", "unknown_index", *SHOWN[1:6], "max_detection_feedback_ids")
"""The metadata that must be whole numbers where they are there."""
HINTED = SHOWN[1:]
"""The metadata that a hint of a session may change if the server allows it."""


class Test:
    """Samples in order, with their truth. Never changed once made."""

    __test__ = False

    def __init__(
        self, name: str, area: str, rows: Sequence[Sequence[str]], metadata: Mapping[str, Any], images: Any = None
    ) -> None:
        """Make a test from the rows of its table, ids first; refuse a row without a number where one belongs."""
        self.name, self.area = name, area
        self.kind = find_area(area)
        self.metadata = {key.replace("-", "_"): value for key, value in metadata.items()}
        self.rows = rows
        self.images: NDArray[Any] | None = images
        self.ids = [row[0] for row in rows]
        self.index = {key: number for number, key in enumerate(self.ids)}
        self.has_commas = any("," in key for key in self.ids)
        if not self.ids or len(self.index) < len(self.ids):
            twice = next((key for at, key in enumerate(self.ids) if self.index[key] != at), None)
            raise InvalidInput(
                f"Test {name} has {'no samples' if twice is None else f'two samples called {twice!r:.80}'}."
            )
        self._counts = {key: read_count(self.metadata.get(key), f"Test {name}: {key}") for key in COUNTS}
        self.threshold = _read_share(self.metadata.get("threshold"), f"Test {name}: threshold")
        self.novel = self._numbers(self.kind.novel, name) != 0
        self.labels = self._numbers(self.kind.label, name) if area != "nlt" else self._writers()
        if self.count("unknown_index") not in (None, 0, self.known):
            raise InvalidInput(f"Test {name}: unknown_index must be 0 or the number of known classes, {self.known}.")

    @functools.cached_property
    def round_size(self) -> int | None:
        """Samples in a round; None where the metadata does not say."""
        return self.count("round_size") or None

    @functools.cached_property
    def rounds(self) -> int:
        """How many rounds there are, the last one perhaps short."""
        return -(-len(self.ids) // (self.round_size or max(len(self.ids), 1)))

    @functools.cached_property
    def known(self) -> int:
        """K, the number of known classes."""
        found = self.stated_known
        if found is None:
            found = self.count("unknown_index") or None  # which is K where it is not 0
        return int(self.labels[~self.novel].max(initial=0)) + (not self._unknown_first) if found is None else found

    @property
    def stated_known(self) -> int | None:
        """How many classes are known, if the metadata say so."""
        found = self.count("known_classes")
        return self.count("nonnovel_classes") if found is None else found

    @functools.cached_property
    def unknown_index(self) -> int:
        """The column of the unknown class: as the metadata say, else by the custom of the area."""
        return 0 if self._unknown_first else self.known

    @property
    def _unknown_first(self) -> bool:
        stated = self.count("unknown_index")
        return self.kind.unknown == "first" if stated is None else stated == 0

    @functools.cached_property
    def red_light(self) -> str:
        """The id of the first novel sample; empty without one."""
        stated = self.metadata.get("red_light")
        if isinstance(stated, str) and stated in self.index:
            return stated
        first = np.flatnonzero(self.novel)  # also if the metadata name no sample of the test
        return self.ids[first[0]] if len(first) else ""

    @functools.cached_property
    def constrained(self) -> bool:
        """Whether feedback is about the last posted round only; truth values may be texts, as numbers may."""
        return str(self.metadata.get("feedback_constrained")).strip().lower() not in ("false", "0")

    def count(self, key: str) -> int | None:
        """Return a whole number of the metadata, or None."""
        return self._counts[key]

    def changed(self, metadata: Mapping[str, int]) -> Test:
        """Return the same test with some of its metadata changed. The samples are shared."""
        if not metadata:
            return self
        other = copy.copy(self)
        for name in (
            "round_size",
            "rounds",
            "known",
            "unknown_index",
        ):  # made from the metadata when they are asked for
            other.__dict__.pop(name, None)
        other.metadata = self.metadata | dict(metadata)
        other._counts = self._counts | {key: value for key, value in metadata.items() if key in COUNTS}
        return other

    def shown(self, red_light: bool) -> dict[str, Any]:
        """Return the metadata that a client may see, without nulls, and with one name for K."""
        stated = {"known_classes": self.stated_known} | self.metadata
        if stated["known_classes"] is None:
            stated["known_classes"] = self.stated_known
        seen = {key: stated[key] for key in SHOWN if stated.get(key) is not None}
        if self._unknown_first != (self.kind.unknown == "first"):  # which no client could guess
            seen["unknown_index"] = self.unknown_index
        classes = self.metadata.get("classes")
        if isinstance(classes, list) and len(classes) == self.known:
            seen["classes"] = [str(name) for name in classes]
        return seen | ({"red_light": self.red_light} if red_light else {})

    def span(self, number: int) -> range:
        """Return the positions of a round's samples."""
        size = self.round_size or len(self.ids)
        return range(min(number * size, len(self.ids)), min((number + 1) * size, len(self.ids)))

    def _writers(self) -> NDArray[np.int64]:
        """Return the places of writers' names in the alphabet as labels."""
        names = {name: number for number, name in enumerate(sorted({row[self.kind.label] for row in self.rows}))}
        return np.array([names[row[self.kind.label]] for row in self.rows], dtype=np.int64)

    def _numbers(self, column: int, name: str) -> NDArray[np.int64]:
        try:
            return np.array([int(float(row[column])) for row in self.rows], dtype=np.int64)
        except (ValueError, IndexError, OverflowError):
            raise InvalidInput(f"Test {name}: column {column} must hold a number in every row.") from None


def read_count(found: Any, where: str) -> int | None:
    """Read a whole number from 0 on, also from text."""
    digits = str(found).strip().removesuffix(".0")
    plain = digits.isascii() and digits.isdecimal() and len(digits) < 10
    if found is not None and (isinstance(found, bool) or not plain):
        raise InvalidInput(f"{where} must be a whole number from 0 to 999999999, not {found!r:.40}.")
    return None if found is None else int(digits)


def _read_share(found: Any, where: str) -> float | None:
    """Read a number from 0 to 1, also from text."""
    try:
        share = None if found is None else float(found)
    except (TypeError, ValueError):
        share = -1.0
    if share is not None and not 0 <= share <= 1:
        raise InvalidInput(f"{where} must be a number from 0 to 1, not {found!r:.40}.")
    return share


def name_unknown(row: Sequence[str]) -> str | None:
    """Return the unknown class in a row of a video or document; None for known classes, or if the row does not say."""
    named = len(row) > PAIR + 1 and row[PAIR] == NOVEL_CLASS and row[PAIR + 1] != "0"
    return f"{NOVEL_CLASS} {row[PAIR + 1]}" if named else None
