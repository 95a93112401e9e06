"""Objectives in words and as JSON, as `openfield objectives` prints them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openfield import __version__
from openfield.objectives.evaluation import LABELS, NAMES, WITHOUT_UNIT, Evaluation
from openfield.objectives.measures.similarity import Conditionals, Similarity

if TYPE_CHECKING:
    from openfield.objectives.intervals import Interval
    from openfield.objectives.runs.evaluate import GroupObjectives
    from openfield.objectives.study.study import Study

SCHEMA = 1
"""Raised when a field changes its meaning."""
COMPARED = ("jaccard", "jsd_nats", "jsd_similarity", "first_in_second", "second_in_first")


def evaluation_record(
    found: Evaluation, seconds: float, sha256: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the JSON object of one table; `sha256` is that of its file, `options` how it was asked for."""
    return {
        "schema": SCHEMA,
        "table": found.table,
        "sha256": sha256,
        "values": found.values,
        "unit": found.unit,
        "units": {name: None if name in WITHOUT_UNIT else found.unit for name in found.values},
        "bias_corrected": found.corrected,
        "info_gain_forms": found.forms,
        "reasons": found.reasons,
        "n": found.n,
        "distinct": found.distinct,
        "num_obs": found.num_obs,
        "num_actions": found.num_actions,
        "zeros_dropped": found.zeros,
        "notes": list(found.notes),
        "options": dict(options),
        "version": __version__,
        "seconds": round(seconds, 4),
    }


def intervals_record(found: Mapping[str, Interval]) -> dict[str, Any]:
    """Return what the JSON object of a table says of its intervals, and how they were made."""
    known = {name: interval for name, interval in found.items() if interval.low is not None}
    return {
        "intervals": {name: [interval.low, interval.high] for name, interval in known.items()},
        "intervals_by": "; ".join({interval.note: None for interval in known.values()}),
    }


def failure_record(subject: dict[str, Any], error: str, names: Sequence[str], unit: str = "nats") -> dict[str, Any]:
    """Return the JSON object of a file, or of several, that cannot be used; `subject` names them."""
    values, reasons = dict.fromkeys(names), dict.fromkeys(names, error)
    return {"schema": SCHEMA, **subject, "values": values, "unit": unit, "reasons": reasons, "error": error}


def similarity_record(
    paths: Sequence[Path], found: Similarity, more: Conditionals | None, asked: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the JSON object of a comparison; `asked` is what else goes into it: hashes, options, seconds."""
    values = {name: getattr(found, name) for name in COMPARED}
    reasons = dict(found.reasons)
    if more is not None:
        values |= {"action_jsd_nats": more.action_jsd_nats, "next_jsd_nats": more.next_jsd_nats}
        reasons |= more.reasons
    return {
        "schema": SCHEMA,
        "tables": [str(path) for path in paths],
        "values": values,
        "unit": "nats",
        "reasons": reasons,
        "shared_images": found.shared,
        "all_images": found.union,
        "version": __version__,
        **asked,
    }


def runs_record(
    runs: Sequence[dict[str, Any]], human: Path | None, unit: str, found: Sequence[GroupObjectives]
) -> dict[str, Any]:
    """Return the JSON object of runs."""
    return {
        "schema": SCHEMA,
        "runs": runs,
        "human": None if human is None else str(human),
        "unit": unit,
        "groups": [_group_record(group, unit) for group in found],
        "version": __version__,
    }


def evaluation_lines(record: dict[str, Any], titled: bool) -> Iterator[str]:
    """Yield the lines about one table: values with units and corrections, or why there is no value."""
    if titled:
        yield record["table"]
    corrected = record.get("bias_corrected", {})
    if "n" not in record:
        yield from ["not evaluated"] if titled else []
        return
    for name, value in record["values"].items():
        unit = (record["units"][name] or "") if value is not None else ""
        low, high = record.get("intervals", {}).get(name, (None, None))
        beside = "" if low is None else f" [{low:.6g}, {high:.6g}]"
        beside += f"  (bias-corrected {corrected[name]:.6g})" if name in corrected else ""
        yield f"{name:<24}{_defined(value, record['reasons'].get(name))} {unit}".rstrip() + beside
    sizes = record["distinct"]
    yield f"{record['n']:,} transitions, {sizes['sources']:,} inputs acted on, {sizes['actions']:,} actions"
    if record.get("zeros_dropped"):
        yield f"{record['zeros_dropped']:,} entries with a count of zero left out"
    yield from (f"note: {note}" for note in record.get("notes", ()))
    if record.get("intervals"):
        yield f"[95 % intervals: {record['intervals_by']}]"


def runs_lines(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about runs: a block for each agent under the same conditions, its stages side by side."""
    for number, (title, block) in enumerate(groupby(record["groups"], _title)):
        stages = list(block)
        rows = [["", *(stage["stage"] for stage in stages)]]
        rows += [[size, *(f"{stage[size]:,}" for stage in stages)] for size in ("episodes", "transitions")]
        for name, unit in stages[0]["units"].items():
            rows.append([f"{name} ({unit})" if unit else name, *(_with_interval(stage, name) for stage in stages)])
        yield from ["", title] if number else [title]
        yield from _aligned(rows)


def study_record(study: Study) -> dict[str, Any]:
    """Return the JSON object of a study, with the paper's Table 1 beside the correlations."""
    from openfield.objectives.study.manifest import published

    return {
        "schema": SCHEMA,
        "unit": "nats",
        "rows": study.rows,
        "correlations": study.correlations,
        "paper": published().correlations,
        "version": __version__,
    }


def study_lines(study: Study) -> Iterator[str]:
    """Yield the lines about a study: a row for each agent in each environment, then why values are missing."""
    names = list(dict.fromkeys(name for row in study.rows for name in row.values))
    rows = [["environment", "agent", *names]]
    for row in study.rows:
        values = [row.values.get(name) for name in names]
        rows.append([row.environment, row.agent, *("" if value is None else f"{value:.4g}" for value in values)])
    yield from _aligned(rows)
    missing = ((row.environment, name, reason) for row in study.rows for name, reason in row.reasons.items())
    yield from (f"{environment}: {name} not defined: {reason}" for environment, name, reason in dict.fromkeys(missing))


def similarity_lines(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about a comparison."""
    for name, value in record["values"].items():
        yield f"{name:<24}{_defined(value, record['reasons'].get(name))}"


def compat_lines(record: dict[str, Any], titled: bool = False) -> Iterator[str]:
    """Yield what the original's scripts print, or what is missing where they need an argument."""
    if titled:
        yield record["table"]
    for name, value in record["values"].items():
        yield f"{LABELS[name]}: {_defined(value, record['reasons'].get(name), '')}"


def compat_similarity_lines(record: dict[str, Any]) -> Iterator[str]:
    """Yield what the original's two similarity scripts print."""
    first, second = (Path(path).stem for path in record["tables"])
    values = record["values"]
    yield f"Human similarity: {_defined(values['jaccard'], record['reasons'].get('jaccard'), '')}"
    yield f"Proportion of observations in {first} that are also in {second}: {values['first_in_second']!r}"
    yield f"Proportion of observations in {second} that are also in {first}: {values['second_in_first']!r}"
    yield f"JSD human similarity: {values['jsd_nats']!r}"


def _group_record(found: GroupObjectives, unit: str) -> dict[str, Any]:
    named = found.values.items()
    units = {name: unit for name in found.values if name in NAMES and name not in WITHOUT_UNIT}
    return {
        **msgspec.structs.asdict(found.group),
        "episodes": found.episodes,
        "transitions": found.transitions,
        "num_obs": found.num_obs,
        "values": {name: interval.value for name, interval in named},
        "units": {name: units.get(name) for name in found.values},
        "intervals": {
            name: None if interval.low is None else [interval.low, interval.high] for name, interval in named
        },
        "reasons": {name: interval.note for name, interval in named if interval.low is None},
    }


def _title(group: dict[str, Any]) -> str:
    terms = [group["settings"], "told of the change" if group["red_light"] else ""]
    return ", ".join(filter(None, (group["agent"], group["domain"], group["novelty"] or "no novelty", *terms)))


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    for row in rows:
        yield "".join(f"{field:<{width}}" for field, width in zip(row, widths, strict=True)).rstrip()


def _with_interval(group: dict[str, Any], name: str) -> str:
    value, interval = group["values"][name], group["intervals"][name]
    if value is None:
        return f"not defined: {group['reasons'][name]}"
    return f"{value:.4g}" + (f" [{interval[0]:.4g}, {interval[1]:.4g}]" if interval else "")


def _defined(value: float | None, reason: str | None, form: str = ".10g") -> str:
    """Return a value in a format, in full if that is empty, or why it is not defined."""
    return f"not defined: {reason}" if value is None else format(value, form)
