"""Scores of answers: a batch for the journal, a completed test for the protocol.

Between `agent_answers.py` and the metrics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.testset.agent_answers import AgentAnswers
from openfield.domains.ond.testset.test import Test, name_unknown
from openfield.metrics.openset import compat
from openfield.metrics.openset.clusters import score_clusters
from openfield.metrics.openset.compat import NEVER

WRONG_WRITER = 3
"""The rank of a writer that was not named: not among the three best, though there is only one."""


def describe_round(answers: AgentAnswers, number: int) -> tuple[float | None, dict[str, Any]]:
    """Return the top-1 accuracy of a batch, and for each sample what the open-set metrics need.

    Classes are columns of the scores, the unknown one is -1. A rank is None where nothing was answered, and -1 where
    the label has no column.
    """
    span = answers.test.span(number)
    at = slice(span.start, span.stop)
    unknown, ranks = answers.test.unknown_index, answers.ranks[at]
    said = ranks >= 0
    missed = WRONG_WRITER if answers.test.area == "nlt" else -1
    detail = {
        "round": number,
        "novel": answers.test.novel[at].astype(int).tolist(),
        "label": open_labels(answers, at).tolist(),
        "named": np.where(answers.predicted[at] == unknown, -1, answers.predicted[at]).tolist(),
        "guess": answers.best_known[at].tolist(),
        "confidence": _short(answers.confidence[at]),
        "unknown": _short(answers.p_unknown[at]),
        "world": _short(answers.p_world[at]),
        "rank": [None if rank < 0 else missed if rank == NEVER else rank for rank in ranks.tolist()],
    }
    if _is_early(answers, span):
        detail["early"] = True
    if answers.cluster[at].max(initial=-1) >= 0:
        detail |= {"cluster": answers.cluster[at].tolist(), "class": _classes(answers, span)}
    return (float((ranks[said] == 0).mean()) if said.any() else None), detail


def _is_early(answers: AgentAnswers, span: range) -> bool:
    """Return whether the onset lies within a batch, and a change was declared on a sample of it before the onset."""
    novel = np.flatnonzero(answers.test.novel[: span.stop])
    before = range(span.start, int(novel[0])) if len(novel) and novel[0] >= span.start else range(0)
    return bool((answers.p_world[before.start : before.stop] >= answers.threshold).any())


def open_labels(answers: AgentAnswers, at: slice = slice(None)) -> NDArray[np.int64]:
    """Return the true classes of samples as columns of the scores; -1 for unknown ones and those without a column."""
    labels = answers.test.labels[at]
    columns = answers.columns.get("classification", NEVER)
    within = (labels >= 0) & (labels < columns) & (labels != answers.test.unknown_index)
    return np.where(within, labels, -1)


def evaluate_test(answers: AgentAnswers, condda: bool = False) -> dict[str, Any]:
    """Return the eight families of scores that a client gets for a completed test; None means no value.

    A class that has no column among the scores, as novel ones may, is never hit. In CONDDA novel samples are clustered
    instead; where nothing is classified, `m_clusters` says how well. Missing results are refused, here and below.
    """
    _check_said(answers, "detection", ~np.isnan(answers.p_world))
    if condda and "classification" not in answers.posted:
        return _readable(_detected(answers) | {"m_clusters": _clustered(answers)})
    _check_classified(answers)
    reacted: dict[str, Mapping[str, Any]] = {
        "m_acc": compat.acc_of_ranks(answers.test.novel, answers.ranks),
        "m_acc_failed": compat.failed_reaction_of_ranks(answers.p_world, answers.test.novel, answers.ranks),
    }
    return _readable(_detected(answers) | reacted)


def _detected(answers: AgentAnswers) -> dict[str, Mapping[str, Any]]:
    """Return the families that need no classes."""
    test, p = answers.test, answers.p_world
    stats = compat.m_num_stats(p, test.novel)
    threshold = detection_threshold(test)
    return {
        "m_is_cdt_and_is_early": compat.m_is_cdt_and_is_early(
            int(stats["GT_indx"]), int(stats[f"P_indx_{threshold}"]), len(test.ids)
        ),
        "m_ndp": compat.m_ndp(p, test.novel),
        "m_ndp_post": compat.m_ndp_post(p, test.novel),
        "m_ndp_pre": compat.m_ndp_pre(p, test.novel),
        "m_num": compat.m_num(p, test.novel),
        "m_num_stats": stats,
    }


def detection_threshold(test: Test) -> float:
    """Return the belief from which on a change counts as detected: that of the metadata if it is one of the nine."""
    return test.threshold if test.threshold in compat.THRESHOLDS else test.kind.threshold


def _clustered(answers: AgentAnswers) -> dict[str, float]:
    """Return how the clusters of novel samples agree with their classes; nothing where there is no novelty."""
    _check_said(answers, "characterization", answers.cluster >= 0)
    novel = np.flatnonzero(answers.test.novel)
    classes = _classes(answers, range(len(answers.test.ids)))
    return score_clusters([classes[at] for at in novel], answers.cluster[novel]) if len(novel) else {}


def evaluate_more(answers: AgentAnswers, condda: bool = False) -> dict[str, Any]:
    """Return the scores that the protocol's local harness adds: by the unknown class, on novel samples, by round.

    A test that was clustered and not classified has none.
    """
    if condda and "classification" not in answers.posted:
        return {}
    _check_classified(answers)
    test, unknown = answers.test, answers.p_unknown
    found: dict[str, Mapping[str, Any]] = {
        "m_acc_round_wise": compat.round_wise_of_ranks(answers.ranks, test.round_size or len(test.ids)),
        "m_accuracy_on_novel": compat.novel_only_of_ranks(test.novel, answers.ranks),
    }
    if not np.isnan(unknown).any():  # writers have no scores, and tables of old clients perhaps no such column
        found["m_ndp_unknown"] = compat.m_ndp(unknown, test.novel)
        found["m_ndp_unknown_pre"] = compat.m_ndp_pre(unknown, test.novel)
        found["m_ndp_unknown_post"] = compat.m_ndp_post(unknown, test.novel)
    return _readable(found)


def evaluate_reaction(answers: AgentAnswers, baseline: AgentAnswers) -> dict[str, Any]:
    """Return the accuracy after the onset in percent of a reaction baseline's before it."""
    for one in (answers, baseline):
        _check_classified(one)
    ours, theirs = (compat.acc_of_ranks(one.test.novel, one.ranks) for one in (answers, baseline))
    return {"m_nrp": compat.m_nrp(ours, theirs)}


def evaluate_round(answers: AgentAnswers, number: int) -> dict[str, Any]:
    """Return the top-1 and top-3 accuracy of a round that has been classified."""
    span = answers.test.span(number)
    ranks = answers.ranks[span.start : span.stop]
    if not len(ranks) or (ranks < 0).any():
        raise Refusal("ResultsIncomplete", f"Round {number} has not been classified.")
    numbers = compat.round_wise_of_ranks(ranks, len(ranks))
    return {"m_acc_round_wise": {name.replace("round_0", f"round_{number}"): share for name, share in numbers.items()}}


def _check_classified(answers: AgentAnswers) -> None:
    _check_said(answers, "labels" if answers.test.area == "nlt" else "classification", answers.ranks >= 0)


def _check_said(answers: AgentAnswers, kind: str, said: NDArray[np.bool_]) -> None:
    count, there = len(answers.test.ids), int(said.sum())
    if there != count:
        raise Refusal("ResultsIncomplete", f"{kind} results cover {there} of the {count} samples of this test.")


def _readable(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the families in alphabetical order, without numbers that JSON does not know."""
    return {family: {name: _finite(value) for name, value in found[family].items()} for family in sorted(found)}


def _classes(answers: AgentAnswers, span: range) -> list[str]:
    """Return the true classes behind clusters; a further column of built tests distinguishes unknown ones."""
    rows, last = (answers.test.rows[at] for at in span), answers.test.kind.label
    if answers.test.area != "image_classification":  # where 0 is a class like any other
        return [name_unknown(row) or row[last] for row in rows]
    return [row[last + 1] if row[last] == "0" and len(row) > last + 1 else row[last] for row in rows]


def _short(values: NDArray[np.float64]) -> list[float | None]:
    """Round values to nine digits, enough for charts and thresholds; None means no answer."""
    rounded: list[float] = np.round(values, 9).tolist()
    return [None if math.isnan(value) else value for value in rounded] if np.isnan(values).any() else [*rounded]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
