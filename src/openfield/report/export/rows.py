"""Write episodes, the numbers of every cell, or their estimates, as tables: CSV, JSON lines or Parquet.

Stands at the end of plan -> rollout -> journal -> metrics -> report, beside the page.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from openfield.errors import OpenfieldError, UnknownName
from openfield.files.atomic import replacing
from openfield.files.csv_files import write_csv
from openfield.files.database import Database
from openfield.installation import name_program
from openfield.journal.reader import CellRecord
from openfield.metrics.performance import read_return
from openfield.metrics.scenario import CurriculumResults
from openfield.metrics.stats import Estimate
from openfield.metrics.summary import AgentResults, Summary
from openfield.report import words
from openfield.trial import Trial

if TYPE_CHECKING:
    import pandas
    import polars

SQL_TYPES = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}
OF_CELL, OF_TRIAL = ("agent", "repeat", "person", "outcome"), ("domain", "version", "seed")
OF_EPISODE = ("phase", "novel", "turns", "performance", "detected", "ended", "strength", "change")
"""Columns that show a field of a cell, its trial or an episode as it is."""
BLOCK_ROWS = 10_000
"""Rows that are in memory at a time."""
Responses = Mapping[str, Sequence[float | None]]
NO_RESPONSES: Responses = {}
Numbers = Iterable[tuple[CellRecord, Mapping[str, float | None]]]
RowKind = Literal["estimates", "cells", "episodes"]
"""The kind of a row: a number of an agent in a scenario, a cell with its numbers, or an episode."""
POLARS = {str: "String", int: "Int64", float: "Float64", bool: "Boolean"}
PANDAS = {str: None, int: "int64", float: "float64", bool: "bool"}


class CellColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns that say which cell a row is from."""

    cell: str
    agent: str
    trial: str
    repeat: int
    person: str
    """The person of a study; empty if an agent played."""
    outcome: str | None
    domain: str
    version: int
    seed: int
    novelty: str
    """The novelties of the trial joined by `+`; empty if it has none."""
    red_light: bool
    red_light_strength: bool
    """Whether the red light showed how strong the change is."""
    changed: bool
    """Whether the world changes in the trial; in an unchanged twin it does not."""
    onset: int | None
    """The episode in which it changed, counted from 0, training included; none if the trial did not get there."""
    agent_version: str
    """`earlier` if an earlier version of the agent played it, `unknown` if none was recorded; else empty."""


class Row(CellColumns, frozen=True, kw_only=True, rename={"return_": "return"}):
    """A row of the table of episodes."""

    episode: int
    phase: str
    novel: bool
    turns: int
    performance: float | None
    return_: float | None
    """The raw return, in domains whose episodes have one."""
    belief: float | None
    """P(novel) as last reported in the episode; of several samples the highest."""
    belief_level: int | None
    detected: bool
    ended: str
    response_seconds: float | None
    """The mean time of a person's actions; none of agents."""
    strength: float | None
    """How strong the change was at most in the episode, from 0 to 1; none where it comes at once and stays."""
    change: str
    """The novelties in force then, beside a strength, joined by `+`."""


class EstimateRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table of estimates: one number of an agent in a scenario."""

    agent: str
    control: bool
    domain: str
    novelty: str
    red_light: bool
    settings: str
    loose: bool
    """Whether the rules of the scenario allow scores that nothing was done for, so that it is ranked with no other."""
    number: str
    task: str = ""
    """The task of a curriculum that it is about; empty if it is about all."""
    mean: float | None
    low: float | None
    high: float | None
    n: int
    p: float | None
    p_holm: float | None
    """The same, corrected for all agents of the scenario."""
    beyond: float | None
    """What the number exceeds, where only that is known."""
    people: bool
    """Whether `n` counts people; else it counts trials."""
    missing: int
    """Trials that have no value and so are not in `n`, where a reader must know of that."""
    note: str
    agent_version: str
    """Which cells the latest known version of the agent did not play, in words; empty if it played all."""
    intervals: str
    valid: str
    """`fixed` if the interval holds once, because all planned trials are over, or `anytime` at every look."""
    failures: str


def make_episode_rows(
    cells: Sequence[CellRecord], responses: Responses = NO_RESPONSES
) -> tuple[type[msgspec.Struct], Iterator[msgspec.Struct]]:
    """Return the kind of the rows of all episodes, which has a column for each setting, and the rows."""
    settings = _SettingColumns(cells)
    kind = settings.extend("EpisodeRow", Row)
    return kind, _list_episodes(kind, cells, settings, responses)


def make_cell_rows(numbers: Numbers, failures: str) -> tuple[type[msgspec.Struct], Iterator[msgspec.Struct]]:
    """Return the kind of the rows of all cells, which has a column for each number and each setting, and the rows."""
    found = list(numbers)
    settings = _SettingColumns([cell for cell, _ in found])
    columns: list[tuple[str, Any]] = [("failures", str)]
    columns += [(name, float | None) for name in (found[0][1] if found else ())]
    kind = settings.extend("CellRow", CellColumns, columns)
    return kind, (
        kind(**_describe(cell), failures=failures, **values, **settings.read(cell.trial)) for cell, values in found
    )


class _SettingColumns:
    """A column for each setting that is not its default in some trial, where it is empty if it is the default."""

    def __init__(self, cells: Iterable[CellRecord]) -> None:
        """Find the settings of the trials of cells, and what their values are."""
        trials = {cell.trial.id: cell.trial for cell in cells}.values()
        values: dict[str, set[type]] = {}
        for trial in trials:
            for name, value in trial.settings.items():
                values.setdefault(name, set()).add(type(value))
        self._types = {name: _pick_type(values[name]) for name in sorted(values)}
        self._columns = {name: f"setting_{number}" for number, name in enumerate(self._types)}

    def extend(self, name: str, base: type[msgspec.Struct], columns: Sequence[Any] = ()) -> type[msgspec.Struct]:
        """Return a kind of rows with these columns at its end, each called by its setting.

        Args:
            name: The name of the kind.
            base: The kind that is extended.
            columns: The columns before those of settings.
        """
        own = [(column, self._types[setting] | None) for setting, column in self._columns.items()]
        titles = {column: f"setting_{setting}" for setting, column in self._columns.items()}
        return msgspec.defstruct(name, [*columns, *own], bases=(base,), rename=titles, frozen=True, kw_only=True)

    def read(self, trial: Trial) -> dict[str, Any]:
        """Return the values of a trial by column."""
        return {column: self._read(name, trial.settings.get(name)) for name, column in self._columns.items()}

    def _read(self, name: str, value: Any) -> Any:
        """Return a value as its column has it: as JSON if its type is not the column's."""
        kind = self._types[name]
        if value is None or isinstance(value, kind):
            return value
        return float(value) if kind is float else msgspec.json.encode(value).decode()


def _pick_type(kinds: set[type]) -> type:
    """Return the type of a column that holds values of these types."""
    if len(kinds) == 1 and kinds <= SQL_TYPES.keys():
        return next(iter(kinds))
    return float if kinds <= {int, float} else str


def list_estimates(summary: Summary) -> Iterator[EstimateRow]:
    """Yield the rows of all numbers, in the order of the summary."""
    for group in summary.groups:
        found = group.estimates if group.iqm is None else {**group.estimates, "iqm": group.iqm}
        for name, estimate in found.items():
            yield _describe_estimate(summary, group, name, estimate)
    for tasks in summary.curricula:
        if tasks.transfer is not None:
            yield _describe_estimate(summary, tasks, "task_transfer", tasks.transfer)
        for each in tasks.tasks:
            for name in words.OF_TASK:
                if (estimate := getattr(each, name)) is not None:
                    yield _describe_estimate(summary, tasks, f"task_{name}", estimate, each.task)


def _describe_estimate(
    summary: Summary, whose: AgentResults | CurriculumResults, number: str, estimate: Estimate, task: str = ""
) -> EstimateRow:
    scenario = msgspec.structs.asdict(whose.scenario) | {"novelty": "+".join(whose.scenario.novelty)}
    return EstimateRow(
        agent=whose.agent,
        control=whose.control,
        **scenario,
        number=number,
        task=task,
        **msgspec.structs.asdict(estimate),
        agent_version=whose.versions,
        intervals="anytime" if whose.valid == "anytime" else summary.intervals,
        valid=whose.valid,
        failures=summary.policy,
    )


def _list_episodes(
    kind: type[msgspec.Struct], cells: Iterable[CellRecord], settings: _SettingColumns, responses: Responses
) -> Iterator[msgspec.Struct]:
    """Yield the rows of all episodes, in order."""
    for cell in cells:
        times = responses.get(cell.id) or [None] * len(cell.episodes)
        same = _describe(cell) | settings.read(cell.trial)
        for episode, seconds in zip(cell.episodes, times, strict=True):
            belief = episode.belief
            yield kind(
                **same,
                **{name: getattr(episode, name) for name in OF_EPISODE},
                episode=episode.number,
                return_=read_return(episode),
                belief=belief.highest if belief else None,
                belief_level=belief.level if belief else None,
                response_seconds=seconds,
            )


def _describe(cell: CellRecord) -> dict[str, Any]:
    trial = cell.trial
    same = {name: getattr(cell, name) for name in OF_CELL} | {name: getattr(trial, name) for name in OF_TRIAL}
    onset = next((episode.number for episode in cell.episodes if episode.novel), None)
    named = {"cell": cell.id, "trial": trial.id, "novelty": "+".join(trial.novelty)}
    red_light = {"red_light": bool(trial.red_light), "red_light_strength": trial.red_light == "how much"}
    return same | named | red_light | {"changed": trial.is_changed, "onset": onset, "agent_version": cell.version}


def write_rows(path: Path, kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct], form: str) -> int:
    """Write rows as they come, and return how many there were: a table of a million episodes is never in memory.

    Args:
        path: Where to write them.
        kind: The kind of the rows, with a field for each column.
        rows: The rows, as `Result.rows` returns them with their kind.
        form: `csv`, `jsonl` or `parquet`.
    """
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS, label="Known")
    count = 0

    def counted() -> Iterator[msgspec.Struct]:
        nonlocal count
        for row in rows:
            count += 1
            yield row

    with replacing(path) as draft:
        _WRITERS[form](draft, kind, counted())
    return count


def _write_csv(path: Path, kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> None:
    write_csv(path, kind.__struct_encode_fields__, (list(map(_plain, msgspec.structs.astuple(row))) for row in rows))


def _plain(value: Any) -> Any:
    """Return truth values as JSON spells them, so that CSV and JSON lines agree."""
    return str(value).lower() if isinstance(value, bool) else value


def _write_jsonl(path: Path, kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> None:
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        for block in _split(rows):
            file.write(encoder.encode_lines(block))


def _write_parquet(path: Path, kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> None:
    fields = msgspec.structs.fields(kind)
    columns = ", ".join(f'"{field.encode_name}" {_sql_type(field.type)}' for field in fields)
    values = ", ".join(f"unnest(?::{_sql_type(field.type)}[])" for field in fields)
    with Database(path) as base:
        base.run(f"CREATE TABLE rows ({columns})")
        for block in _split(rows):
            base.run(
                f"INSERT INTO rows SELECT {values}", *([getattr(row, field.name) for row in block] for field in fields)
            )
        base.write_parquet("SELECT * FROM rows", path)


def _split(rows: Iterable[msgspec.Struct]) -> Iterator[list[msgspec.Struct]]:
    """Yield rows in blocks."""
    rest = iter(rows)
    while block := list(itertools.islice(rest, BLOCK_ROWS)):
        yield block


def _sql_type(annotation: Any) -> str:
    """Return the column type of `X` or `X | None`."""
    return next(SQL_TYPES[each] for each in get_args(annotation) or (annotation,) if each in SQL_TYPES)


_WRITERS = {"csv": _write_csv, "jsonl": _write_jsonl, "parquet": _write_parquet}
FORMATS = tuple(_WRITERS)


def to_pandas(kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> pandas.DataFrame:
    """Return rows as a table of pandas, with a column for each field."""
    library, columns = _import("pandas"), _list_columns(kind, rows)
    series = {name: library.Series(values, dtype=_name_dtype(known)) for name, (known, values) in columns.items()}
    table: pandas.DataFrame = library.DataFrame(series)
    return table


def to_polars(kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> polars.DataFrame:
    """Return rows as a table of polars, with a column for each field."""
    library, columns = _import("polars"), _list_columns(kind, rows)
    types = {name: getattr(library, POLARS[known[0]]) for name, (known, _) in columns.items()}
    table: polars.DataFrame = library.DataFrame({name: found for name, (_, found) in columns.items()}, schema=types)
    return table


def _list_columns(
    kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct]
) -> dict[str, tuple[tuple[type, ...], list[Any]]]:
    """Return the values of each field, with its types: one, and that of None if values may be missing."""
    fields, found = msgspec.structs.fields(kind), list(rows)
    return {f.encode_name: (get_args(f.type) or (f.type,), [getattr(row, f.name) for row in found]) for f in fields}


def _name_dtype(types: tuple[type, ...]) -> str | None:
    """Return the type of a column in pandas; text has the one that pandas chooses."""
    return "Int64" if types[0] is int and len(types) > 1 else PANDAS[types[0]]


def _import(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        install = f"{name_program('pip')} install {package}"
        raise OpenfieldError(f"to_{package} needs {package}, which is not installed. Install it: {install}") from None
