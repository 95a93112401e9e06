"""Two exports of a result: the original's `results.out`, and a table of every task as JSON.

`--summary FILE` and `--table FILE` write them when a run is done, `openfield export` later. The numbers of the table
are those of `openfield.metrics.curricula`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from openfield.domains.commai.environment.environment import Tally
from openfield.domains.commai.original.configuration import class_of
from openfield.domains.commai.tasks.catalogue import CATALOGUE
from openfield.journal.reader import CellRecord, Run
from openfield.metrics.curricula import gradual
from openfield.metrics.curricula.tasks import summarise_tasks
from openfield.metrics.failures import apply_policy
from openfield.metrics.scenario import CurriculumResults, Key, group_cells, scenario_of
from openfield.provenance.provenance import mark_versions, read_provenance, split_versions


def export_results(path: Path, target: Path, cell: str | None) -> str:
    """Write the original's summary of all cells of a run file, one agent after the other."""
    with Run(path) as run:
        played = _played(run)
        texts = [text for cell in played for text in (f"* {cell.agent}, trial {cell.trial.id}", *_lines(run, cell))]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(texts) + "\n")
    return f"The original's summary in {target}"


def total_tasks(run: Run, cell: CellRecord) -> dict[str, Tally]:
    """Return steps, reward and instances by task. A reward counts for the task that earned it."""
    totals: dict[str, Tally] = {}
    steps = reward = 0
    for step in run.steps(cell.id, cell.attempt):
        if (turn := step.turn) is None:
            continue
        reward += int(turn.reward)
        if step.truth is None or not step.truth.episode_over:
            steps += 1
            continue
        task = totals.setdefault(step.truth.detail["task"], Tally())
        steps += turn.last == "terminated"  # a truncated turn comes after the last step; others show the next task
        task.steps, task.reward, task.instances = task.steps + steps, task.reward + reward, task.instances + 1
        steps, reward = 1, 0
    return totals


def _lines(run: Run, cell: CellRecord) -> Iterator[str]:
    totals = total_tasks(run, cell)
    if cell.trial.settings.get("compat"):
        totals = _by_class(totals, cell.trial.settings)
    steps, reward = sum(task.steps for task in totals.values()), sum(task.reward for task in totals.values())
    sections: dict[str, dict[str, float]] = {
        "General results": {"Average reward": _ratio(reward, steps), "Total time": steps, "Total reward": reward},
        "Average reward per task": {name: _ratio(task.reward, task.steps) for name, task in totals.items()},
        "Total reward per task": {name: task.reward for name, task in totals.items()},
        "Total time per task": {name: task.steps for name, task in totals.items()},
        "Number of trials per task": {name: task.instances for name, task in totals.items()},
    }
    for title, rows in sections.items():
        yield from (f"* {title}", *(f"{name}: {value}" for name, value in rows.items()), "")


def _by_class(totals: Mapping[str, Tally], settings: Mapping[str, Any]) -> dict[str, Tally]:
    """Return the same by the names of the original's classes; tasks of the same class count together there."""
    configured = settings.get("configuration") or {}
    entries = configured.get("tasks") if isinstance(configured, Mapping) else None
    found: dict[str, Tally] = {}
    for name, tally in totals.items():
        entry = entries.get(name) if isinstance(entries, Mapping) else None
        path = str(entry["type"]) if isinstance(entry, Mapping) and "type" in entry else name
        kind = class_of(path).__name__ if path in CATALOGUE else path.rpartition(".")[2]
        total = found.setdefault(kind, Tally())
        total.steps, total.reward = total.steps + tally.steps, total.reward + tally.reward
        total.instances += tally.instances
    return found


def _ratio(reward: int, steps: int) -> float:
    return round(reward / steps, 6) if steps else 0.0


def export_table(path: Path, target: Path, cell: str | None) -> str:
    """Write the table of a run file."""
    with Run(path) as run:
        provenance = read_provenance(run.facts, path)
        cells = apply_policy(split_versions(mark_versions(_played(run), provenance, run.agents), provenance), "count")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(msgspec.json.format(msgspec.json.encode(list(describe_cells(cells)))))
    return f"What each task took, in {target}"


def _played(run: Run) -> list[CellRecord]:
    return [cell for cell in run.cells() if cell.trial.domain == "commai" and cell.attempt]


def describe_cells(cells: Sequence[CellRecord]) -> Iterator[dict[str, Any]]:
    """Yield all numbers of each agent in each trial. Transfer is over all trials of an agent, and the same in each."""
    known = {key: summarise_tasks(key, played, cells, "usual") for key, played in group_cells(cells).items()}
    for cell in cells:
        yield _describe_cell(cell, known)


def _describe_cell(cell: CellRecord, known: Mapping[Key, CurriculumResults | None]) -> dict[str, Any]:
    results = known.get((scenario_of(cell), cell.agent))
    shares = {str(budget): gradual.solved_within(cell, budget) for budget in gradual.BUDGETS}
    return {
        "agent": cell.agent,
        "trial": cell.trial.id,
        "alone": cell.trial.reference_for is not None,
        "outcome": cell.outcome,
        "agent_version": cell.version,
        "steps": cell.steps,
        "seconds": cell.seconds,
        "tasks": gradual.task_efforts(cell),
        "learning_curve": gradual.learning_curve(cell),
        "accuracy_by_index": gradual.accuracy_by_index(cell),
        "transfer": {each.task: each.transfer.mean for each in results.tasks if each.transfer} if results else {},
        "transfer_mean": results.transfer.mean if results and results.transfer else None,
        "retention": gradual.retention(cell),
        "solved_within": {budget: share for budget, share in shares.items() if share is not None},
    }
