"""Episodes as tables for other programs: one row each, as CSV, JSON lines or Parquet.

Stands at the end of plan -> rollout -> journal -> metrics -> report, beside the page.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from openfield.errors import MissingExtra, UnknownName
from openfield.metrics.stretches import probability
from openfield.report.files import replacing
from openfield.view import CellRecord

Format = Literal["csv", "jsonl", "parquet"]
FORMATS: tuple[str, ...] = get_args(Format)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An episode with everything that places it."""

    cell: str
    agent: str
    trial: str
    repeat: int
    outcome: str | None
    domain: str
    version: int
    seed: int
    novelty: str
    """The novelties of the trial joined by `+`; empty if it has none."""
    red_light: bool
    episode: int
    phase: str
    novel: bool
    turns: int
    performance: float | None
    belief: float | None
    """P(novel) as last reported in the episode; of several samples the highest."""
    belief_level: int | None
    detected: bool
    ended: str


def write_episodes(path: Path, cells: Iterable[CellRecord], form: str) -> int:
    """Writes one row per finished episode, of every cell whatever its outcome, and says how many."""
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS, label="Known")
    rows = list(list_rows(cells))
    with replacing(path) as draft:
        _WRITERS[form](draft, rows)
    return len(rows)


def list_rows(cells: Iterable[CellRecord]) -> Iterator[Row]:
    """The rows of all episodes, in order."""
    for cell in cells:
        for episode in cell.episodes:
            yield Row(
                cell=cell.id,
                agent=cell.agent,
                trial=cell.trial.id,
                repeat=cell.repeat,
                outcome=cell.outcome,
                domain=cell.trial.domain,
                version=cell.trial.version,
                seed=cell.trial.seed,
                novelty="+".join(cell.trial.novelty),
                red_light=cell.trial.red_light,
                episode=episode.number,
                phase=episode.phase,
                novel=episode.novel,
                turns=episode.turns,
                performance=episode.performance,
                belief=probability(episode.belief),
                belief_level=episode.belief.level if episode.belief else None,
                detected=episode.detected,
                ended=episode.ended,
            )


def _write_csv(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(Row.__struct_fields__)
        table.writerows([_plain(value) for value in msgspec.structs.astuple(row)] for row in rows)


def _plain(value: Any) -> Any:
    """Truth values as JSON spells them, so that CSV and JSON lines agree."""
    return str(value).lower() if isinstance(value, bool) else value


def _write_jsonl(path: Path, rows: list[Row]) -> None:
    path.write_bytes(msgspec.json.Encoder().encode_lines(rows))


def _write_parquet(path: Path, rows: list[Row]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("data", "Export as Parquet") from error
    types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    schema = pyarrow.schema(
        [
            (field.name, next(types[t] for t in types if t in _alternatives(field.type)))
            for field in msgspec.structs.fields(Row)
        ]
    )
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([msgspec.structs.asdict(row) for row in rows], schema), path)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """The types in `X | None`, or just `X`."""
    return get_args(annotation) or (annotation,)


_WRITERS: dict[str, Callable[[Path, list[Row]], None]] = {
    "csv": _write_csv,
    "jsonl": _write_jsonl,
    "parquet": _write_parquet,
}
