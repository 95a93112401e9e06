"""The published measures of a run, as the papers of this test bed print them.

Stands beside report: the numbers are those of the metrics, in percent, with delays counted from 1.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from openfield.metrics.adaptation import measure_adaptation
from openfield.metrics.detection import measure_detection
from openfield.metrics.passive import measure_passive
from openfield.metrics.stretches import mean
from openfield.report.files import replacing
from openfield.view import SCORED, CellRecord, Run

COLUMNS = ("agent", "novelty", "trials", "CDT%", "WDT%", "delay", "passive CDT%", "passive WDT%", "passive delay")
COLUMNS_AFTER = ("normal", "novel", "asymptotic", "area")


def write_measures(run: Path, output: Path, cell: str | None = None) -> str:
    """Writes one row per agent and novelty; says what was written."""
    groups: dict[tuple[str, str], list[CellRecord]] = {}
    with Run(run) as opened:
        for found in opened.cells():
            if found.outcome in SCORED and (cell is None or found.id.startswith(cell)):
                groups.setdefault((found.agent, "+".join(found.trial.novelty)), []).append(found)
    with replacing(output) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow((*COLUMNS, *COLUMNS_AFTER))
        table.writerows([*key, *published(cells)] for key, cells in groups.items())
    return f"{len(groups)} rows in {output}"


def published(cells: list[CellRecord]) -> list[Any]:
    """How many trials, then the measures over them; a measure that is nowhere defined is empty."""
    detection = [measure_detection(cell) for cell in cells]
    passive = [measure_passive(cell) for cell in cells]
    adaptation = [measure_adaptation(cell) for cell in cells]
    correct = [found for found in detection if found["correct"]]
    shares = [_percent(detection, "correct"), _percent(detection, "alarmed"), _delay(correct, "delay")]
    shares += [_percent(passive, "passive_correct"), _percent(passive, "passive_alarmed")]
    shares.append(_delay(passive, "passive_delay"))
    return [len(cells), *shares, *(_mean(adaptation, name) for name in ("before", "after", "asymptotic", "area"))]


def _percent(found: list[dict[str, float | None]], name: str) -> float | None:
    average = _mean(found, name)
    return None if average is None else 100 * average


def _delay(found: list[dict[str, float | None]], name: str) -> float | None:
    average = _mean(found, name)
    return None if average is None else average + 1


def _mean(found: list[dict[str, float | None]], name: str) -> float | None:
    return mean([value for values in found if (value := values.get(name)) is not None])
