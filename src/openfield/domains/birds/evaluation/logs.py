"""The two CSV logs of the original evaluation, made from a run file.

Stands beside report, after the journal: one row per finished level, and one per report of an agent.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from openfield.atomic import replacing
from openfield.core import Ask, Belief
from openfield.domains.birds.trials import configured
from openfield.errors import InvalidInput
from openfield.journal.reader import CellRecord, Run
from openfield.trial import Trial

LEVEL_COLUMNS = (
    *("EvaluationIndex", "LevelIndex", "Score", "LevelStatus", "birdsRemaining", "pigsRemaining", "birdsAtStart"),
    *("pigsAtStart", "trial", "levelName", "playStatus", "informed", "novelty"),
)
REPORT_COLUMNS = (
    *("EvaluationIndex", "LevelIndex", "InteractionIndex", "HasNoveltyLikelihood", "NoNoveltyLikelihood"),
    *("novel object IDs", "novelty level", "novelty description", "true novel IDs", "complete true novel IDs"),
    *("trial", "levelName", "playStatus", "informed", "novelty"),
)


def write_logs(run: Path, output: Path, cell: str | None = None) -> str:
    """Writes both logs into a folder, of all cells or of one; says what was written.

    The original logs know one agent: where a run has several, each has a folder of its own inside.
    """
    if output.is_file():
        raise InvalidInput(f"{output} is a file; the logs go into a folder.")
    with Run(run) as opened:
        known = [found for found in opened.cells() if found.trial.domain == "birds"]
        numbers = _number_trials(found.trial for found in known)
        chosen = [opened.cell(cell)] if cell else known
        counts = Counter[str]()
        for agent in dict.fromkeys(found.agent for found in chosen):
            folder = output / quote(agent, safe=" ") if len({found.agent for found in chosen}) > 1 else output
            cells = [found for found in chosen if found.agent == agent]
            levels = [row for found in cells for row in _levels(numbers[found.trial.id], found)]
            reports = [row for found in cells for row in _reports(numbers[found.trial.id], found, opened)]
            _write(folder / "EvaluationData.csv", LEVEL_COLUMNS, levels)
            _write(folder / "NoveltyLikelihoodData.csv", REPORT_COLUMNS, reports)
            counts += Counter(levels=len(levels), reports=len(reports))
    return f"{counts['levels']:,} levels and {counts['reports']:,} reports in {output}"


def _number_trials(trials: Iterable[Trial]) -> dict[str, int]:
    """Each trial's number in its configuration; without one, its place in the run."""
    known = {trial.id: trial for trial in trials}
    return {
        name: place if (number := configured(trial)) is None else number
        for place, (name, trial) in enumerate(known.items())
    }


def _levels(trial: int, cell: CellRecord) -> Iterator[list[Any]]:
    played = (episode for episode in cell.episodes if episode.detail)
    for number, episode in enumerate(played):
        detail = episode.detail
        (birds, birds_at_start), (pigs, pigs_at_start) = detail["birds"], detail["pigs"]
        counts = [birds, pigs, birds_at_start, pigs_at_start]
        head = [number, detail["index"], detail["score"], detail["status"], *counts]
        yield [*head, *_place(trial, detail["level"], episode.phase, cell, episode.novel)]


def _reports(trial: int, cell: CellRecord, run: Run) -> Iterator[list[Any]]:
    """One row per belief; what the world was like is what the turn before it says."""
    shown, truth, number = None, None, 0
    for step in run.steps(cell.id, cell.attempt):
        belief = step.reply.belief if step.reply is not None else None
        if (
            belief is not None
            and shown is not None
            and truth is not None
            and truth.detail
            and _is_report(shown, belief)
        ):
            detail = truth.detail
            head = [number, detail["index"], detail["interactions"], *_belief(belief)]
            ids = [" ".join(map(str, found)) for found in detail.get("novel", ((), ()))]
            yield [*head, *ids, *_place(trial, detail["level"], shown.phase, cell, truth.novel)]
            number += 1
        if step.turn is not None:
            shown, truth = step.turn, step.truth


def _is_report(shown: Any, belief: Belief) -> bool:
    """Asked for, or sent over the wire; a belief that rides on every shot is none."""
    return shown.ask is Ask.BELIEF or (isinstance(belief.detail, dict) and "objects" in belief.detail)


def _belief(belief: Belief) -> list[Any]:
    detail = belief.detail if isinstance(belief.detail, dict) else {}
    objects = " ".join(str(name) for name in detail.get("objects", ()))
    text = str(detail.get("text", "")).replace(",", "")
    return [belief.highest, detail.get("not_novel", 1 - belief.highest), objects, belief.level or 0, text]


def _place(trial: int, level: str, phase: str, cell: CellRecord, novel: bool) -> list[Any]:
    informed = "informed" if cell.trial.red_light else "uninformed"
    return [trial, level, phase, informed, "novel" if novel else "basic"]


def _write(path: Path, columns: Iterable[str], rows: list[list[Any]]) -> None:
    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(rows)
