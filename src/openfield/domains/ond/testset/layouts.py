"""The columns in which the samples of a built test are written: each kind of test has its own.

Between the builder and the data directory. Images have the unknown class first and the known ones from 1 on; the others
have the known ones from 0 on and the unknown one last. A further column names the unknown class of a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.errors import InvalidInput

NEAREST = 5
"""How many similar classes the row of a video names."""
NOVEL_CLASS = "novel_class"
PAIR = 11
"""The column from which on videos and documents have further names and values."""
Row = tuple[str, ...]


class DrawnSamples(msgspec.Struct, frozen=True):
    """The samples of a test in order, with the truth about them."""

    ids: Sequence[str]
    novel: NDArray[np.bool_]
    labels: NDArray[np.int64]
    """1..K, and 0 for all unknown classes."""
    strange: NDArray[np.int64]
    """Which unknown class it is, from 1 on; 0 for known ones."""
    nearest: NDArray[np.int64]
    """The known classes that are most like a sample, from 0 on."""
    texts: Sequence[str]
    known: int

    @property
    def last(self) -> NDArray[np.int64]:
        """The labels where the unknown class comes last."""
        return np.where(self.labels == 0, self.known, self.labels - 1)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Which samples come after the world has changed."""
        return np.maximum.accumulate(self.novel)


def _make_videos_rows(drawn: DrawnSamples) -> list[Row]:
    none = [""] * len(drawn.ids)
    named = [NOVEL_CLASS] * len(drawn.ids)
    near = [drawn.nearest[:, at] for at in range(NEAREST)]
    return _rows(drawn.ids, drawn.novel, drawn.changed, drawn.last, none, none, *near, named, drawn.strange)


def _make_documents_rows(drawn: DrawnSamples) -> list[Row]:
    none = [[""] * len(drawn.ids)] * 5  # nothing is known of how it was written
    named = [NOVEL_CLASS] * len(drawn.ids)
    zero = [0] * len(drawn.ids)
    head = (drawn.ids, drawn.texts, drawn.novel, zero, drawn.changed, drawn.last)
    return _rows(*head, *none, named, drawn.strange)


def _rows(*columns: Sequence[object] | NDArray[np.generic]) -> list[Row]:
    plain = [column.astype(int) if isinstance(column, np.ndarray) else column for column in columns]
    return [tuple(str(value) for value in row) for row in zip(*plain, strict=True)]


Layout = tuple[tuple[str, ...], Callable[[DrawnSamples], list[Row]]]
_VIDEOS = ("id", "novel", "detection", "class", "spatial", "temporal", "near_1", "near_2", "near_3", "near_4", "near_5")
_DOCUMENTS = ("id", "text", "novel", "representation", "detection", "writer", "pen_pressure", "letter_size")
LAYOUTS: dict[str, Layout] = {
    "image_classification": (
        ("id", "novel", "class", NOVEL_CLASS),
        lambda drawn: _rows(drawn.ids, drawn.novel, drawn.labels, drawn.strange),
    ),
    "activity_recognition": ((*_VIDEOS, "annotation", "value"), _make_videos_rows),
    "transcripts": ((*_DOCUMENTS, "word_spacing", "slant", "attribute", "annotation", "value"), _make_documents_rows),
}


def find_layout(area: str) -> Layout:
    """Return the header of a table and the function that makes its rows."""
    if area not in LAYOUTS:
        raise InvalidInput(
            f"Tests of {area} are about who wrote a text, and are not built from arrays; bring a data directory."
        )
    return LAYOUTS[area]


def name_unknown(row: Sequence[str]) -> str | None:
    """Return the unknown class in a row of a video or document; None for known classes, or if the row does not say."""
    told = len(row) > PAIR + 1 and row[PAIR] == NOVEL_CLASS and row[PAIR + 1] != "0"
    return f"{NOVEL_CLASS} {row[PAIR + 1]}" if told else None
