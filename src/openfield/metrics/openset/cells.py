"""The metric `openset`: the open-set measures of a recorded trial, read from the details of its episodes.

One cell -> numbers of its trial. An episode that answers a batch of samples has a detail with `label`, `named`,
`guess`, `confidence`, `world`, `novel` and `rank` for each sample. In cells without such details nothing is defined.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.journal.reader import CellRecord
from openfield.metrics.metric import built_in, undefined, worst_numbers
from openfield.metrics.openset import measures
from openfield.metrics.openset.clusters import score_clusters
from openfield.metrics.openset.compat import mean_hits
from openfield.metrics.performance import planned_size, split_periods

FIELDS = ("novel", "label", "named", "guess", "confidence", "world", "rank")


class Answers:
    """All samples of a cell and the answers to them, in order."""

    def __init__(self, parts: list[dict[str, Any]], threshold: float) -> None:
        def column(name: str) -> NDArray[Any]:
            return np.array([value for part in parts for value in part[name]], dtype=float)

        (self.novel, self.label, self.named, self.guess, self.confidence, self.world, self.rank) = map(column, FIELDS)
        self.novel = self.novel.astype(bool)
        self.threshold = threshold
        """A belief from this on declares that the world has changed."""

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which samples were answered at all."""
        return np.asarray(~np.isnan(self.rank))

    @property
    def hits(self) -> NDArray[np.float64]:
        """Which samples were named rightly, 1 or 0; NaN where nothing was answered."""
        return np.where(self.answered, self.rank == 0, np.nan)

    @property
    def declared(self) -> NDArray[np.bool_]:
        """At which samples the agent declared that the world has changed."""
        return np.asarray(np.nan_to_num(self.world, nan=-1.0) >= self.threshold)


def read_sample_answers(cell: CellRecord) -> Answers | None:
    """Read the samples of a cell and the answers; return None if the cell is not about samples."""
    details = [episode.detail for episode in cell.episodes if episode.phase == "test"]
    parts = [part for part in details if isinstance(part, dict) and all(name in part for name in FIELDS)]
    return Answers(parts, float(cell.trial.settings.get("threshold", 0.5))) if parts else None


def measure_openset(cell: CellRecord) -> dict[str, float | None]:
    """Compute how well known and unknown samples were separated, and the known ones classified."""
    if cell.counts:
        return worst_numbers(OPENSET, cell) | {"sample_delay": _count_samples_left(cell)}
    answers = read_sample_answers(cell)
    if answers is None:
        return undefined(OPENSET)
    said = ~np.isnan(answers.confidence)
    label, guess, conf, named = (
        part[said] for part in (answers.label, answers.guess, answers.confidence, answers.named)
    )
    found = undefined(OPENSET) | {
        "auroc": measures.auroc(conf, label),
        "fpr95": measures.fpr95(conf, label),
        "fpr95_known": measures.fpr95(conf, label, "known"),
        "aupr_out": measures.aupr(conf, label),
        "aupr_in": measures.aupr(conf, label, "known"),
        "oscr": measures.oscr(guess, conf, label),
        "ccr10": measures.ccr_at_fpr(guess, conf, label, 0.1),
        "closed_accuracy": measures.closed_accuracy(guess, label),
        "novel_accuracy": mean_hits(answers.rank[answers.novel & (answers.rank >= -0.5)] == 0),
        "macro_f1": _macro_f1(named, label),
        "ece": _calibration(conf, guess, label),
    }
    delay, alarm = measures.detection_delay(answers.declared, answers.novel)
    if answers.novel.any():
        found |= {"sample_delay": None if delay is None or alarm else float(delay)}
    if not answers.novel[:1].any() and not cell.trial.is_unchanged_twin:
        found |= {"sample_alarm": float(alarm)}
    return found | _measure_clusters(cell)


def _count_samples_left(cell: CellRecord) -> float | None:
    """Count the samples of a whole test from the onset on; None without an onset, or if the size of batches is unknown.

    It is that of the batches played, or else the one the domain's settings name.
    """
    details = [episode.detail for episode in cell.episodes if isinstance(episode.detail, dict)]
    sizes = [len(detail["novel"]) for detail in details if "novel" in detail]
    return (
        float(len(split_periods(cell).after) * (max(sizes) if sizes else planned_size(cell.trial, "round_size")))
        or None
    )


def _measure_clusters(cell: CellRecord) -> dict[str, float | None]:
    details = [episode.detail for episode in cell.episodes if isinstance(episode.detail, dict)]
    pairs = [
        (true, found)
        for part in details
        if "cluster" in part
        for true, found, novel in zip(part["class"], part["cluster"], part["novel"], strict=True)
        if novel and found >= 0
    ]
    if not pairs:
        return {}
    scores = score_clusters(*zip(*pairs, strict=True))
    return {f"cluster_{name}": value for name, value in scores.items()}


def _calibration(conf: NDArray[Any], guess: NDArray[Any], label: NDArray[Any]) -> float | None:
    """Return the calibration error of known samples; confidence in an unknown one has no right class to refer to."""
    known = label != measures.UNKNOWN
    return measures.calibration_error(conf[known], guess[known] == label[known]) if known.any() else None


def _macro_f1(named: NDArray[Any], label: NDArray[Any]) -> float | None:
    if not len(label):
        return None
    classes = int(max(named.max(), label.max())) + 1
    return measures.macro_f1(measures.confusion(named, label, classes))


OPENSET = built_in("openset", measure_openset, counts_failures=True)
