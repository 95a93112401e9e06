"""Evaluate all objectives of one table: values, units, bias corrections, and reasons where a value is not defined.

Start at `evaluate`. The command line, studies and reports show its results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from openfield.errors import InvalidInput, UnknownName
from openfield.objectives.formats.large_tables import summarise_file
from openfield.objectives.formats.load import load_table
from openfield.objectives.formats.shards import SHARD_ROWS, Apply, summarise_shards
from openfield.objectives.measures.entropy import (
    Inputs,
    correct_empowerment,
    correct_entropy,
    empowerment_of,
    entropy_of,
    input_histogram,
)
from openfield.objectives.measures.information import (
    PAPER_STEPS,
    check_sizes,
    gain_counts,
    gain_seen,
    log_counts,
    sqrt_counts,
)
from openfield.objectives.tables.counts import Counts
from openfield.objectives.tables.histograms import Histogram
from openfield.objectives.tables.table import TableLike, TableSummary, as_table, summarise_table

Unit = Literal["nats", "bits"]

LABELS = {
    "input_entropy": "Curiosity",
    "info_gain_dirichlet": "Information gain",
    "info_gain_sqrt_counts": "Sqrt counts information gain",
    "info_gain_log_counts": "Log counts information gain",
    "empowerment": "Empowerment",
}
"""The label that the original prints before each value."""
NAMES = tuple(LABELS)
WITHOUT_UNIT = frozenset({"info_gain_sqrt_counts"})


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The objectives of one table."""

    table: str
    values: dict[str, float | None]
    unit: Unit = "nats"
    corrected: dict[str, float] = {}
    """Input entropy and empowerment without their first-order bias (Miller-Madow)."""
    forms: dict[str, float] = {}
    """The Dirichlet gain in forms that the paper leaves out."""
    n: int | float = 0
    """Transitions."""
    distinct: dict[str, int] = {}
    """Numbers of different inputs, actions, pairs, moves and transitions."""
    num_obs: int | None = None
    num_actions: int | None = None
    zeros: int = 0
    """Entries with a count of zero, left out."""
    notes: tuple[str, ...] = ()
    reasons: dict[str, str] = {}
    """Why a value is None."""
    faults: tuple[str, ...] = ()
    """The fault of `num_obs` and `num_actions`: an environment has at least the inputs and actions seen."""


def evaluate(
    table: TableLike | TableSummary,
    *,
    num_obs: int | None = None,
    num_actions: int | None = None,
    only: Sequence[str] = (),
    unit: Unit = "nats",
    inputs: Inputs = "sources",
) -> Evaluation:
    """Compute all objectives of a table, or the named ones.

    Args:
        table: The table, or its summary.
        num_obs: Distinct inputs of the environment. Without it the Dirichlet gain is not defined.
        num_actions: Actions of the environment. It is only checked.
        only: Names of objectives; the default is all.
        unit: `nats` or `bits`.
        inputs: Which inputs the entropy counts; `all` needs the table itself, not a summary.

    Raises:
        InvalidInput: There is no positive count.
        UnknownName: There is no objective of that name.
    """
    check_names(only)
    summary = table if isinstance(table, TableSummary) else summarise_table(as_table(table))
    visits = _visits(table, inputs) if inputs == "all" else summary.counts.inputs
    num_obs = summary.meta.num_obs if num_obs is None else num_obs
    num_actions = summary.meta.num_actions if num_actions is None else num_actions
    fault = _fault(summary, num_obs, num_actions)
    values, reasons = _values(summary, visits, num_obs, fault, only or NAMES)
    evaluation = Evaluation(
        table=summary.name,
        values=values,
        corrected=_corrected(summary, visits, values),
        forms=_forms(summary.counts, num_obs, values),
        n=summary.counts.total,
        distinct=distinct_of(summary),
        num_obs=num_obs,
        num_actions=num_actions,
        zeros=summary.zeros,
        notes=summary.notes,
        reasons=reasons,
        faults=() if fault is None else (fault,),
    )
    return _in_bits(evaluation) if unit == "bits" else evaluation


def evaluate_file(path: str | Path, *, inputs: Inputs = "sources", **options: Any) -> Evaluation:
    """Compute the objectives of a table file.

    The file is streamed if its format and the options allow it. Options and errors are those of `evaluate`.
    """
    source = summarise_file(path) if inputs == "sources" else load_table(path)
    return evaluate(source, inputs=inputs, **options)


def evaluate_shards(path: str | Path, apply: Apply = map, *, rows: int = SHARD_ROWS, **options: Any) -> Evaluation:
    """Compute the objectives of a sorted Parquet table of any size, shard by shard.

    Args:
        path: The file. Machines of a cluster must see it under the same path.
        apply: What runs a function over the shards.
        rows: Rows of a shard, about.
        **options: Those of `evaluate`.

    Raises:
        InvalidInput: The file is not sorted Parquet of ours, or it is damaged.
    """
    return evaluate(summarise_shards(Path(path), apply, rows), **options)


def check_names(only: Sequence[str]) -> None:
    """Check that every name is the name of an objective.

    Raises:
        UnknownName: One is not.
    """
    for name in only:
        if name not in NAMES:
            raise UnknownName("objective", name, NAMES, label="Known")


def _visits(table: TableLike | TableSummary, inputs: Inputs) -> Histogram:
    """Count the inputs at both ends of transitions, for which a summary is not enough."""
    if isinstance(table, TableSummary):
        raise InvalidInput(f"{table.name}: counting both ends of transitions needs the table in memory.")
    return input_histogram(as_table(table), inputs)


def _values(
    summary: TableSummary, visits: Histogram, num_obs: int | None, fault: str | None, names: Sequence[str]
) -> tuple[dict[str, float | None], dict[str, str]]:
    values: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for name in (name for name in NAMES if name in names):
        if name == "input_entropy":
            values[name] = entropy_of(visits)
        elif name in _PLAIN:
            values[name] = _PLAIN[name](summary.counts)
        elif num_obs is None:
            reasons[name] = "needs the number of distinct inputs of the environment (--num-obs; in a study num_obs)"
        elif fault is not None:
            reasons[name] = fault
        else:
            values[name] = gain_seen(summary.counts, num_obs) / PAPER_STEPS
        values.setdefault(name, None)
    return values, reasons


def _fault(summary: TableSummary, num_obs: int | None, num_actions: int | None) -> str | None:
    """Return the fault of the given sizes of the environment, if any."""
    try:
        check_sizes(summary, summary.num_inputs if num_obs is None else num_obs, num_actions)
    except InvalidInput as error:
        return str(error)
    return None


_PLAIN: dict[str, Callable[[Counts], float]] = {
    "info_gain_sqrt_counts": sqrt_counts,
    "info_gain_log_counts": log_counts,
    "empowerment": empowerment_of,
}


def _corrected(summary: TableSummary, visits: Histogram, values: dict[str, float | None]) -> dict[str, float]:
    corrected = {}
    if "input_entropy" in values:
        corrected["input_entropy"] = correct_entropy(visits)
    if "empowerment" in values:
        corrected["empowerment"] = min(correct_empowerment(summary.counts), math.log(summary.num_actions))
    return corrected


def _forms(counts: Counts, num_obs: int | None, values: dict[str, float | None]) -> dict[str, float]:
    if num_obs is None or values.get("info_gain_dirichlet") is None:
        return {}
    seen, true = gain_seen(counts, num_obs), gain_counts(counts, num_obs)
    return {
        "total": seen,
        "per_transition": seen / counts.total,
        "true_counts_total": true,
        "true_counts_per_transition": true / counts.total,
    }


def distinct_of(summary: TableSummary) -> dict[str, int]:
    """Count the different inputs, actions, pairs, moves and transitions of a table."""
    counts = summary.counts
    return {
        "inputs": summary.num_inputs,
        "sources": counts.inputs.size,
        "actions": summary.num_actions,
        "pairs": counts.pairs.size,
        "moves": counts.moves.size,
        "transitions": counts.triples.size,
    }


def _in_bits(evaluation: Evaluation) -> Evaluation:
    def bits(values: dict[str, float]) -> dict[str, float]:
        return {name: value / math.log(2) for name, value in values.items()}

    values = {
        name: value if value is None or name in WITHOUT_UNIT else value / math.log(2)
        for name, value in evaluation.values.items()
    }
    return msgspec.structs.replace(
        evaluation, values=values, unit="bits", corrected=bits(evaluation.corrected), forms=bits(evaluation.forms)
    )
