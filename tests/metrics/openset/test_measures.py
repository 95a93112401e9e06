"""Open-set measures against scikit-learn and definitions, clusters, programme measures, resampling."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn import metrics as oracle

from openfield.errors import InvalidInput
from openfield.metrics.openset import measures
from openfield.metrics.openset.clusters import assignment_total, score_clusters
from openfield.metrics.programme import TestFacts, make_facts, program_measures


def draw(seed: int, n: int = 80):
    rng = np.random.default_rng(seed)
    label = rng.integers(-1, 4, n)
    label[:2] = -1, 0
    conf = rng.integers(0, 12, n) / 11 + 0.2 * (label >= 0)
    pred = np.where(rng.random(n) < 0.7, label, rng.integers(0, 4, n))
    return np.where(pred < 0, 0, pred), conf, label


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_curves_equal_scikit_learn(seed: int) -> None:
    _, conf, label = draw(seed)
    unknown = label == -1
    assert measures.auroc(conf, label) == pytest.approx(oracle.roc_auc_score(unknown, -conf))
    for positive, wanted, score in (("unknown", unknown, -conf), ("known", ~unknown, conf)):
        precision, recall, _ = oracle.precision_recall_curve(wanted, score)
        assert measures.aupr(conf, label, positive) == pytest.approx(oracle.auc(recall, precision))
        fpr, tpr, _ = oracle.roc_curve(wanted, score, drop_intermediate=False)
        assert measures.fpr95(conf, label, positive) == pytest.approx(fpr[np.argmax(tpr >= 0.95 - 1e-12)])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_oscr_is_openauc(seed: int) -> None:
    pred, conf, label = draw(seed)
    known, unknown = np.flatnonzero(label >= 0), np.flatnonzero(label < 0)
    pairs = [
        (pred[i] == label[i]) * (1.0 if conf[i] > conf[j] else 0.5 if conf[i] == conf[j] else 0.0)
        for i in known
        for j in unknown
    ]
    assert measures.oscr(pred, conf, label) == pytest.approx(np.mean(pairs))
    rate = 0.25
    threshold = sorted(conf[unknown])[::-1][int(np.ceil(rate * len(unknown))) - 1]
    wanted = np.mean([pred[i] == label[i] and conf[i] > threshold for i in known])
    assert measures.ccr_at_fpr(pred, conf, label, rate) == pytest.approx(wanted)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_confusion_and_f1_equal_scikit_learn(seed: int) -> None:
    pred, conf, label = draw(seed)
    named = np.where(conf < 0.4, -1, pred)
    table = measures.confusion(named, label, 4)
    assert (table == oracle.confusion_matrix(label, named, labels=[0, 1, 2, 3, -1])).all()
    assert measures.macro_f1(table) == pytest.approx(oracle.f1_score(label, named, average="macro"))


def test_one_sided_samples_have_no_curves() -> None:
    assert measures.auroc([0.1, 0.2], [0, 1]) is None
    assert measures.oscr([0, 1], [0.1, 0.2], [-1, -1]) is None
    assert measures.closed_accuracy([0], [-1]) is None
    with pytest.raises(InvalidInput):
        measures.auroc([0.1], [0, 1])


def test_calibration_and_risk_coverage() -> None:
    assert measures.calibration_error([0.95] * 10, [1] * 5 + [0] * 5) == pytest.approx(0.45)
    assert measures.risk_coverage_area([0.9, 0.8, 0.7], [True, False, True]) == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)


def test_equal_confidences_have_one_risk_whatever_their_order() -> None:
    conf, right = np.array([0.9, 0.9, 0.5, 0.5, 0.5, 0.1]), np.array([1, 0, 1, 0, 0, 1], bool)
    orders = [[*a, *b, 5] for a in itertools.permutations(range(2)) for b in itertools.permutations(range(2, 5))]
    risks = [(np.cumsum(~right[order]) / np.arange(1, 7)).mean() for order in orders]
    for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [3, 1, 4, 0, 5, 2]):
        assert measures.risk_coverage_area(conf[order], right[order]) == pytest.approx(np.mean(risks))
    assert math.isnan(measures.risk_coverage_area([], []))


def test_delays_and_alarms() -> None:
    assert measures.detection_delay([0.1, 0.1, 0.1, 0.9], [0, 0, 1, 0]) == (1, False)
    assert measures.detection_delay([0.9, 0.1, 0.1], [0, 1, 1]) == (None, True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_clusters_equal_scikit_learn(seed: int, classes: int, clusters: int) -> None:
    rng = np.random.default_rng(seed)
    true, found = rng.integers(0, classes, 40), rng.integers(0, clusters, 40)
    scores = score_clusters(true, found)
    assert scores["nmi"] == pytest.approx(oracle.normalized_mutual_info_score(true, found), abs=1e-9)
    assert scores["ari"] == pytest.approx(oracle.adjusted_rand_score(true, found), abs=1e-9)
    table = oracle.cluster.contingency_matrix(true, found)
    assert assignment_total(table) == table[linear_sum_assignment(-table)].sum()
    assert scores["purity"] == pytest.approx(table.max(axis=0).sum() / 40)


def test_programme_measures_over_many_tests() -> None:
    right = TestFacts(50, 60, 0.6, 1.0, 0.8, 0.3, 0.5)
    early, missed = TestFacts(50, 10), TestFacts(50, None)
    found = program_measures([right] * 5 + [early, missed, TestFacts(None, None)])
    assert found["M1"].mean == 10
    assert found["M2"].mean == pytest.approx(5 / 7)
    assert found["M2.1"].mean == pytest.approx(1 / 7)
    assert found["M3"].mean == pytest.approx(0.75)
    assert found["M5"].mean == pytest.approx(2 / 3)
    assert found["M6"].mean == pytest.approx(2)


def test_a_single_test_gets_intervals_and_says_how() -> None:
    _, conf, label = draw(1, 400)
    found = measures.resample(lambda at: {"auroc": measures.auroc(conf[at], label[at])}, label == -1)["auroc"]
    assert found.low < found.mean < found.high
    assert found.note == measures.RESAMPLED


def test_what_was_not_answered_counts_for_nobody() -> None:
    novel = np.arange(10) >= 4
    declared = np.zeros(10, bool)
    nan = np.nan
    ours = np.array([1, 1, 1, 1, nan, nan, 1, 0, 1, 1], float)
    theirs = np.array([1, nan, 0, 1, 1, 0, nan, nan, nan, 0], float)
    facts = make_facts(novel, declared, ours, theirs)
    assert (facts.after, facts.last, facts.baseline_before) == (0.75, 0.75, pytest.approx(2 / 3))
    assert facts.baseline_after == facts.baseline_last == pytest.approx(1 / 3)
    silent = make_facts(novel, declared, np.full(10, nan), theirs)
    assert (silent.after, silent.last) == (None, None)
    assert program_measures([silent])["M5"].mean is None
    long = make_facts(np.ones(150, bool), np.zeros(150, bool), np.r_[np.zeros(50), np.ones(99), nan])
    assert (long.last, long.after) == (1.0, pytest.approx(99 / 149))
