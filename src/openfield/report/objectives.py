"""Objectives in words and as JSON, as `openfield objectives` prints them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openfield import __version__
from openfield.errors import OpenfieldError
from openfield.objectives.evaluation import LABELS, NAMES, WITHOUT_UNIT, Evaluation
from openfield.objectives.measures.similarity import Conditionals, Similarity

if TYPE_CHECKING:
    from openfield.objectives.intervals import Estimates, Interval
    from openfield.objectives.runs.evaluate import GroupObjectives
    from openfield.objectives.study.study import Study, StudyRow

SCHEMA = 1
"""Raised when a field changes its meaning."""
SIZES = {"inputs": "distinct inputs", "actions": "distinct actions", "pairs": "distinct pairs"}
SIZES |= {"transitions": "distinct transitions"}
"""Numbers that stand in every table, and their names there. Pairs are of an input and an action."""
NOT_IDENTIFIABLE = "not identifiable"
NULL_TITLES = ("permutation null", "p", "excess over null")
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


def estimates_record(found: Estimates, unit: str, intervals: bool) -> dict[str, Any]:
    """Return what the JSON object of a table says of empowerment and saturation, and of intervals if wanted.

    Args:
        found: The estimates, in nats.
        unit: The unit to show them in.
        intervals: Whether to add intervals.
    """
    record = {"empowerment": empowerment_record(found, unit), "saturation": found.saturation or None}
    if not intervals:
        return record
    entropy, excess = (_in(each, unit) for each in (found.values["input_entropy"], found.excess))
    known = {name: each for name, each in (("input_entropy", entropy), ("excess", excess)) if each.low is not None}
    return record | {
        "intervals": {name: [each.low, each.high] for name, each in known.items()},
        "intervals_by": "; ".join({each.note: None for each in known.values()}),
    }


def empowerment_record(found: Estimates, unit: str) -> dict[str, Any] | None:
    """Return the JSON object of empowerment beside its permutation null; None if nothing was played."""
    known = found.empowerment
    if known is None:
        return None
    excess = _in(found.excess, unit)
    return {
        "plug_in": _scaled(known.value, unit),
        "null_mean": _scaled(known.null, unit),
        "null_band": None if known.band is None else [_scaled(end, unit) for end in known.band],
        "p": known.p,
        "permutations": known.draws,
        "identifiable": known.excess is not None,
        "excess": excess.value,
        "excess_interval": None if excess.low is None else [excess.low, excess.high],
        "reason": known.reason or None,
        "visits_per_pair": known.visits,
    }


def _in(interval: Interval, unit: str) -> Interval:
    from openfield.objectives.intervals import in_unit

    return in_unit(interval, "empowerment", "bits" if unit == "bits" else "nats")


def _scaled(value: float | None, unit: str) -> float | None:
    return value if value is None or unit == "nats" else value / math.log(2)


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


def evaluate_run_files(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the objectives of all agents of run files as a record, by stage. A file that cannot be counted is named.

    If people played in one of the runs, the similarity to them is among the objectives.
    """
    from openfield.objectives.runs.evaluate import evaluate_runs
    from openfield.objectives.runs.recordings import read_recording, read_study

    runs, entries = [], []
    for path in paths:
        try:
            runs.append(read_recording(path))
            entries.append({"run": str(path), "episodes": runs[-1].episodes})
        except OpenfieldError as error:
            entries.append({"run": str(path), "error": str(error)})
    human = read_study(paths)
    return runs_record(entries, None if human is None else human.path, "nats", evaluate_runs(runs, human=human))


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
        if name == "empowerment" and record.get("empowerment", ()) is None:
            yield f"  {NULL_TITLES[-1]:<22}not computed: the table is not held in memory; --null loads it"
        elif name == "empowerment" and "empowerment" in record:
            yield from (f"  {title:<22}{text}" for title, text in null_lines(record["empowerment"]).items())
    sizes = record["distinct"]
    counted = ", ".join(f"{sizes[size]:,} {title}" for size, title in SIZES.items())
    yield f"{record['n']:,} transitions, {sizes['sources']:,} inputs acted on; {counted}"
    yield from [f"saturated: {record['saturation']}"] if record.get("saturation") else []
    if record.get("equal"):
        at = ", ".join(f"{name} {value:.4g}" for name, value in record["equal"]["values"].items())
        yield f"at {record['equal']['transitions']:,} transitions, as many as every table has: {at}"
    if record.get("zeros_dropped"):
        yield f"{record['zeros_dropped']:,} entries with a count of zero left out"
    yield from (f"note: {note}" for note in record.get("notes", ()))
    if record.get("intervals"):
        yield f"[95 % intervals: {record['intervals_by']}]"


def null_lines(found: dict[str, Any]) -> dict[str, str]:
    """Return the permutation null, its p-value and the excess of empowerment as texts, by title."""
    if found["null_mean"] is None:
        return {NULL_TITLES[-1]: f"not computed: {found['reason']}"}
    low, high = found["null_band"]
    null = f"{found['null_mean']:.4g} ({low:.4g} to {high:.4g})"
    return dict(zip(NULL_TITLES, (null, f"{found['p']:.3f}", format_excess(found)), strict=True))


def format_excess(found: dict[str, Any]) -> str:
    """Return the excess with its interval, or that it is not identifiable and why."""
    if not found["identifiable"]:
        return f"{NOT_IDENTIFIABLE}: {found['reason']}"
    interval = found["excess_interval"]
    return f"{found['excess']:.4g}" + (f" [{interval[0]:.4g}, {interval[1]:.4g}]" if interval else "")


def runs_lines(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about runs: a block for each agent under the same conditions, its stages side by side."""
    for number, (title, block) in enumerate(groupby(record["groups"], title_group)):
        stages = list(block)
        yield from ["", title] if number else [title]
        yield from _aligned([["", *(stage["stage"] for stage in stages)], *table_rows(stages)])
        yield from (f"{stage['stage']}: {stage['saturation']}" for stage in stages if stage["saturation"])
        if "empowerment" in stages[0]["values"]:
            yield from explain_missing_excess(stages)
    yield from ["", EQUAL_NOTE] if any(group["equal"] for group in record["groups"]) else []


EQUAL_NOTE = (
    "Entropy and information gain depend on the number of transitions. Compare stages, and agents with random, in the "
    "rows at equal numbers. The null of empowerment shuffles actions within inputs 200 times; in brackets 95 % of it."
)


def explain_missing_excess(stages: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield why there is no excess of empowerment, stage by stage."""
    for stage in stages:
        known = stage["empowerment"]
        if known and known["reason"]:
            yield f"{stage['stage']} {NOT_IDENTIFIABLE}: {known['reason']}"


def table_rows(stages: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield the rows of a table with the stages of an agent side by side."""
    yield from ([size, *(f"{stage[size]:,}" for stage in stages)] for size in ("episodes", "transitions"))
    for size, title in SIZES.items():
        yield [title, *(f"{stage['distinct'].get(size, 0):,}" for stage in stages)]
    for name, unit in stages[0]["units"].items():
        yield [f"{name} ({unit})" if unit else name, *(_with_interval(stage, name) for stage in stages)]
        if name == "empowerment":
            yield from _null_rows(stages)
    yield from _equal_rows(stages)


def _null_rows(stages: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    known = [stage["empowerment"] and null_lines(stage["empowerment"]) for stage in stages]
    for title in NULL_TITLES:
        cells = ((each or {}).get(title, "") for each in known)
        yield [f"  {title}", *(NOT_IDENTIFIABLE if cell.startswith(NOT_IDENTIFIABLE) else cell for cell in cells)]


def _equal_rows(stages: Sequence[dict[str, Any]]) -> Iterator[list[str]]:
    """Yield the values at equal numbers of transitions, and those of `random` below them if it played."""
    equal = [stage["equal"] for stage in stages]
    known = next(filter(None, equal), None)
    if known is None or not known["values"]:
        return
    yield [f"at {known['transitions']:,} transitions", *("" for _ in stages)]
    for name in known["values"]:
        yield [f"  {name}", *(f"{each['values'][name]:.4g}" if each else "" for each in equal)]
        rivals = [each["random"] if each else None for each in equal]
        if any(rivals) and stages[0]["agent"] != "random":
            yield [f"  {name} of random", *(f"{rival[name]:.4g}" if rival else "" for rival in rivals)]


def study_record(study: Study) -> dict[str, Any]:
    """Return the JSON object of a study, with the paper's Table 1 beside the correlations."""
    from openfield.objectives.study.manifest import published_values

    return {
        "schema": SCHEMA,
        "unit": "nats",
        "similarity_rule": "original" if study.compat else "exact",
        "paper_similarity_rule": "original",
        "rows": study.rows,
        "correlations": study.correlations,
        "paper": published_values().correlations,
        "version": __version__,
    }


def study_lines(study: Study) -> Iterator[str]:
    """Yield the lines about a study: a row for each agent in each environment, then why values are missing.

    A second table has the counts, the null of empowerment, and values at equal numbers of transitions.
    """
    names = list(dict.fromkeys(name for row in study.rows for name in row.values))
    rows = [["environment", "agent", *names]]
    for row in study.rows:
        values = [row.values.get(name) for name in names]
        rows.append([row.environment, row.agent, *("" if value is None else f"{value:.4g}" for value in values)])
    yield from _aligned(rows)
    yield from _study_counts(study)
    missing = ((row.environment, name, reason) for row in study.rows for name, reason in row.reasons.items())
    yield from (f"{environment}: {name} not defined: {reason}" for environment, name, reason in dict.fromkeys(missing))


def _study_counts(study: Study) -> Iterator[str]:
    known = [row for row in study.rows if row.transitions is not None]
    equal = [name for name in NAMES if any(name in row.equal for row in known)]
    rows = [["environment", "agent", "transitions", *SIZES.values(), *NULL_TITLES]]
    rows[0] += ["at equal transitions", *equal] if equal else []
    for row in known:
        null = row_null(row)
        sizes = [f"{row.transitions:,}", *(f"{row.distinct.get(size, 0):,}" for size in SIZES)]
        values = [f"{row.equal[name]:.4g}" if name in row.equal else "" for name in equal]
        at = [f"{row.equal_transitions:,}" if row.equal_transitions else "", *values] if equal else []
        rows.append([row.environment, row.agent, *sizes, *(null.get(title, "") for title in NULL_TITLES), *at])
    yield from ["", *_aligned(rows)] if known else []
    yield from (f"{row.environment}/{row.agent}: {row.saturation}" for row in known if row.saturation)


def row_null(row: StudyRow) -> dict[str, str]:
    """Return the null and the excess of a row of a study as texts, by title."""
    known = row.empowerment
    if known is None or known.null is None or known.band is None or known.p is None:
        return {}
    excess = NOT_IDENTIFIABLE if known.excess is None else f"{known.excess:.4g}"
    null = f"{known.null:.4g} ({known.band[0]:.4g} to {known.band[1]:.4g})"
    return dict(zip(NULL_TITLES, (null, f"{known.p:.3f}", excess), strict=True))


def similarity_lines(record: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about a comparison."""
    for name, value in record["values"].items():
        yield f"{name:<24}{_defined(value, record['reasons'].get(name))}"


def compat_lines(record: dict[str, Any], titled: bool = False) -> Iterator[str]:
    """Yield the lines that the original's scripts print, or the missing argument where they need one."""
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
        "distinct": found.estimates.distinct,
        "saturation": found.estimates.saturation or None,
        "empowerment": empowerment_record(found.estimates, unit),
        "equal": None if found.equal is None else msgspec.to_builtins(found.equal),
    }


def title_group(group: dict[str, Any]) -> str:
    """Return the title of a block of stages: the agent, the domain, the novelty and the settings."""
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
