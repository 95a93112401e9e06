"""The published measures of a run, as the papers of this test bed print them.

Stands beside report: the numbers are those of the metrics, in percent, with delays counted from 1.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from openfield.atomic import replacing
from openfield.journal.reader import SCORED, CellRecord, Run
from openfield.metrics.adaptation import measure_adaptation
from openfield.metrics.detection import measure_detection
from openfield.metrics.passive import PUBLISHED, Rule, measure_passive, measure_rule
from openfield.metrics.stretches import mean

GROUP = ("agent", "novelty", "scenario", "trials")
MEASURES = ("CDT%", "WDT%", "delay")
COLUMNS = (
    *GROUP,
    *MEASURES,
    *(f"passive {name}" for name in MEASURES),
    *("normal", "novel", "asymptotic", "area"),
)
DETECTOR_COLUMNS = (*GROUP, "detector", "window", "parameter", *MEASURES)
Groups = dict[tuple[str, str, str], list[CellRecord]]


def write_measures(run: Path, output: Path, cell: str | None = None) -> str:
    """Writes one row per agent, novelty and scenario; says what was written."""
    groups = _groups(run, cell)
    rows = [[*key, len(cells), *published(cells)] for key, cells in groups.items()]
    return _write(output, COLUMNS, rows)


def write_detectors(run: Path, output: Path, cell: str | None = None) -> str:
    """Writes what every published detector makes of the results alone, one row each; says what was written."""
    rows = [
        [*key, len(cells), *_described(rule), *_rates([measure_rule(found, rule, "rule") for found in cells], "rule_")]
        for key, cells in _groups(run, cell).items()
        for rule in PUBLISHED
    ]
    return _write(output, DETECTOR_COLUMNS, rows)


def published(cells: list[CellRecord]) -> list[Any]:
    """The measures over some trials; one that is nowhere defined is empty."""
    detection = [measure_detection(cell) for cell in cells]
    correct = [found if found["correct"] else {**found, "delay": None} for found in detection]
    passive = [measure_passive(cell) for cell in cells]
    adaptation = [measure_adaptation(cell) for cell in cells]
    rates = (_mean(adaptation, name) for name in ("before", "after", "asymptotic", "area"))
    return [*_rates(correct), *_rates(passive, "passive_"), *rates]


def as_test(cell: CellRecord) -> CellRecord:
    """A trial as the papers measure it: where nothing but training was to change, that is the test.

    The published ones are a single training set, normal levels and then novel ones.
    """
    tested = any(phase.name == "test" and phase.novelty for phase in cell.trial.phases)
    if tested or any(episode.phase == "test" for episode in cell.episodes):
        return cell
    episodes = tuple(msgspec.structs.replace(episode, phase="test") for episode in cell.episodes)
    return msgspec.structs.replace(cell, episodes=episodes)


def _groups(run: Path, cell: str | None) -> Groups:
    groups: Groups = {}
    with Run(run) as opened:
        cells = [opened.cell(cell)] if cell else opened.cells()
    for found in map(as_test, cells):
        if found.outcome in SCORED and found.trial.domain == "birds":
            scenario = str(found.trial.settings.get("scenario", "all"))
            groups.setdefault((found.agent, "+".join(found.trial.novelty), scenario), []).append(found)
    return groups


def _rates(found: list[dict[str, float | None]], name: str = "") -> list[float | None]:
    """%CDT, %WDT, and the mean delay over correct trials, counted from 1."""
    correct, alarmed = (_mean(found, name + kind) for kind in ("correct", "alarmed"))
    delay = _mean(found, name + "delay")
    percent = [None if share is None else 100 * share for share in (correct, alarmed)]
    return [*percent, None if delay is None else delay + 1]


def _described(rule: Rule) -> list[Any]:
    if rule.threshold is not None:
        return ["moving average", rule.window, rule.threshold]
    return ["pre-assumed moving average", rule.window, rule.deviations]


def _mean(found: list[dict[str, float | None]], name: str) -> float | None:
    return mean([value for values in found if (value := values.get(name)) is not None])


def _write(output: Path, columns: Iterable[str], rows: list[list[Any]]) -> str:
    with replacing(output) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(rows)
    return f"{len(rows)} rows in {output}"
