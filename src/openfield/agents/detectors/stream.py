"""Detectors on a stream of numbers from disk, without agents: when each gives an alarm, and how good that is.

A stream is cut into batches of rows, which a detector takes for episodes. The first rows are its training. After an
alarm river's detectors begin anew by themselves; ours are fitted to as many further rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from openfield.agents.detectors.catalogue import ChangeDetector, make_detector
from openfield.agents.detectors.river_rules import RiverRule
from openfield.agents.detectors.rules import MIN_TRAINING
from openfield.agents.detectors.signals import Seen
from openfield.errors import InvalidInput, UnknownName
from openfield.files.number_table import Columns, read_number_table
from openfield.metrics.drift.alarms import DriftScores, score_alarms

STREAM_DETECTORS = ("cusum", "threshold(watch=return)", "bocpd(hazard=0.001)", "mmd(window=50)", "deedee")
"""What a stream is scored with if nothing is said."""
FALSE_ALARMS = 0.001
"""Share of unchanged batches with a false alarm, where the text of a detector does not say it."""


class Stream(NamedTuple):
    """Numbers that follow each other."""

    rows: NDArray[np.float64]
    """A row for each moment; its first number is what detectors of one number watch."""
    training: int
    """Rows at the beginning in which nothing changes."""
    batch: int = 1
    """Rows that count as an episode."""


def read_stream(path: Path, columns: Sequence[str], training: int, batch: int) -> Stream:
    """Return the stream in a file.

    Args:
        path: A CSV or Parquet file.
        columns: The columns that are watched, in this order; all columns of numbers if none is named.
        training: Rows at the beginning in which nothing changes.
        batch: Rows that count as an episode.

    Raises:
        UnknownName: There is no such column of numbers.
        InvalidInput: The file cannot be read, or is not longer than the training.
    """
    found = read_number_table(path)
    for name in columns:
        if name not in found:
            raise UnknownName("column", name, found, label=f"Columns of {path}")
    rows = np.column_stack([found[name] for name in columns or found])
    if len(rows) < training + batch:
        raise InvalidInput(f"{path} has {len(rows):,} rows: no batch is left after {training:,} rows of training.")
    return Stream(rows, training, batch)


def read_changes(path: Path, stream: Stream) -> list[tuple[float, float]]:
    """Return when a stream changes: rows, from 0 on, in a column `onset` and, of gradual changes, a column `end`.

    Raises:
        InvalidInput: The file has no such column, or a change is beyond the stream, in its training or out of order.
    """
    table = read_number_table(path)
    starts = _find_column(table, path)
    ends = table.get("end", starts)
    spans = [(float(start), float(end)) for start, end in zip(starts, ends, strict=True)]
    for start, end in spans:
        if start < stream.training:
            raise InvalidInput(
                f"{path}: the change at row {start:g} is within the {stream.training:,} rows of training. Make them "
                "fewer: --training"
            )
        if not start <= end < len(stream.rows):
            raise InvalidInput(f"{path}: the change from {start:g} to {end:g} is not within {len(stream.rows):,} rows.")
    if any(after[0] <= before[0] for before, after in itertools.pairwise(spans)):
        raise InvalidInput(f"{path}: changes are not in order.")
    return spans


def _find_column(table: Columns, path: Path) -> NDArray[np.float64]:
    if "onset" in table:
        return table["onset"]
    if len(table) == 1:
        return next(iter(table.values()))
    raise InvalidInput(f"{path}: no column onset. Its columns of numbers are {', '.join(table)}.")


def find_alarms(stream: Stream, source: str) -> list[int]:
    """Return the rows after which a detector gives an alarm.

    Args:
        stream: The stream.
        source: The detector as text.
    """
    detector = make_detector(source, FALSE_ALARMS, hold=1)
    needs = detector.signal.needs
    if "actions" in needs and "observations" not in needs:
        raise InvalidInput(f"'{source}' watches actions, and a stream has none.")
    _check_training(stream, source, detector)
    waiting, wanted, fitted, alarms = list[Seen](), stream.training, False, list[int]()
    for end, episode in _cut(_choose(stream, detector), stream.batch):
        if "actions" in needs and not len(episode.actions):
            continue  # the first row alone is no transition
        if not fitted:
            waiting.append(episode)
            if len(waiting) * stream.batch >= wanted:
                detector.fit(waiting)
                waiting, fitted = [], True
        elif detector.judge(episode) >= 0.5:
            alarms.append(end)
            if not isinstance(detector.rule, RiverRule):
                detector, fitted = make_detector(source, FALSE_ALARMS), False
        detector.judged.clear()  # a stream is not resumed
    return alarms


def _check_training(stream: Stream, source: str, detector: ChangeDetector) -> None:
    """Refuse a detector that needs more batches than the training has."""
    wanted = max(detector.rule.min_training, MIN_TRAINING if detector.signal.learns else 0)
    count = -(-stream.training // stream.batch)
    if count < wanted:
        raise InvalidInput(
            f"'{source}' needs {wanted} batches of training, and has {count}: --training {wanted * stream.batch}, or "
            "name other detectors with --detector."
        )


def _choose(stream: Stream, detector: ChangeDetector) -> NDArray[np.float64]:
    """Return the rows with the features that a detector watches, after the number that stands for a reward."""
    width = stream.rows.shape[1]
    wrong = [each for each in detector.features if not isinstance(each, int) or not 0 <= each < width]
    if wrong:
        raise InvalidInput(f"Rows have no feature {wrong[0]!r}. They have places 0 to {width - 1}.")
    chosen = [int(each) for each in detector.features] or list(range(width))
    return np.column_stack([stream.rows[:, 0], stream.rows[:, chosen]])


def _cut(rows: NDArray[np.float64], batch: int) -> Iterator[tuple[int, Seen]]:
    """Yield batches as episodes, each with its last row. A batch begins with the last row of the one before."""
    for start in range(0, len(rows) - batch + 1, batch):
        part, before = rows[start : start + batch], rows[max(0, start - 1) : start + batch, 1:]
        actions = np.zeros((len(before) - 1, 0))
        yield start + batch - 1, Seen(before, actions, float(part[:, 0].mean()), part[:, 0])


def score_detectors_on(
    stream: Stream, changes: Sequence[tuple[float, float]], sources: Sequence[str], max_delay: float
) -> Mapping[str, tuple[list[int], DriftScores]]:
    """Return the alarms of detectors on a stream, and how they fit its changes.

    Args:
        stream: The stream.
        changes: When it changes.
        sources: The detectors as text.
        max_delay: How many rows after a change an alarm still counts for it.
    """
    found = {}
    for source in sources:
        alarms = find_alarms(stream, source)
        found[source] = alarms, score_alarms(alarms, changes, len(stream.rows), max_delay)
    return found
