"""`openfield detect`: score detectors of change on a stream of numbers, with the measures of the drift community."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from openfield.options import Whole

if TYPE_CHECKING:
    from openfield.metrics.drift.alarms import DriftScores

Rows = Annotated[Whole, Parameter(validator=Number(gte=1, lte=10_000_000), metavar="ROWS")]
TITLES = {
    "detector": "",
    "alarms": "",
    "precision": "precision",
    "recall": "recall",
    "found": "episode_recall",
    "F1": "f1",
    "delay": "detection_time",
    "norm.": "normalised_time",
    "false/1k": "false_alarm_rate",
}
"""Titles of the table, each with its number."""


def detect(
    stream: Annotated[Path, Parameter(metavar="FILE")],
    /,
    *,
    truth: Annotated[Path, Parameter(metavar="FILE")],
    detector: Annotated[tuple[str, ...], Parameter(metavar="NAME", consume_multiple=False)] = (),
    column: Annotated[tuple[str, ...], Parameter(metavar="NAME", consume_multiple=False)] = (),
    training: Rows = 200,
    batch: Rows = 1,
    max_delay: Rows = 200,
    format: Annotated[Literal["text", "json"], Parameter(metavar="FORMAT")] = "text",
    allow_large: bool = False,
) -> None:
    """Score detectors of change on a stream of numbers from disk.

    Args:
        stream: A .csv or .parquet file with a row for each moment.
        truth: A .csv or .parquet file with a column onset, rows from 0 on, and end for gradual changes.
        detector: A detector, such as 'river:ADWIN(delta=0.01)'. Repeat it [cusum, threshold, bocpd, mmd, deedee, and
            river's if it is installed].
        column: A column that is watched; detectors of one number watch the first. Repeat it [all columns of numbers].
        training: Rows at the beginning in which nothing changes [200].
        batch: Rows that count as an episode [1].
        max_delay: Rows after a change within which an alarm counts for it [200].
        format: How the numbers are printed: text or json, which has the alarms too [text].
        allow_large: Read files whose content is far larger than they are.

    Example:
        openfield detect stream.csv --truth onsets.csv
    """
    from importlib.util import find_spec

    from openfield.agents.detectors.stream import (
        STREAM_DETECTORS,
        read_changes,
        read_stream,
        score_detectors_on,
    )
    from openfield.console import print_json, print_table, say_count
    from openfield.files.large import allowing_large
    from openfield.parameters import RIVER_DETECTORS

    with allowing_large(allow_large):
        found = read_stream(stream, column, training, batch)
        changes = read_changes(truth, found)
    chosen = detector or (*STREAM_DETECTORS, *(RIVER_DETECTORS if find_spec("river") else ()))
    scored = score_detectors_on(found, changes, chosen, max_delay)
    if format == "json":
        print_json({name: {"alarms": alarms, **scores._asdict()} for name, (alarms, scores) in scored.items()})
        return
    print_table(list(TITLES), [_write_row(name, *each) for name, each in scored.items()])
    print(f"{say_count(len(found.rows), 'row')}, {say_count(len(changes), 'change')}, max_delay {max_delay:,} rows.")


def _write_row(name: str, alarms: list[int], scores: DriftScores) -> list[str]:
    values = [getattr(scores, field) for field in TITLES.values() if field]
    return [name, str(len(alarms)), *("-" if value is None else f"{value:.3g}" for value in values)]
