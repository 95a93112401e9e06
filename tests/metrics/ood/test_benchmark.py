"""Numbers of detectors on sets: against scikit-learn, by hand, and over near and far sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import auc, precision_recall_curve, roc_auc_score, roc_curve

from openfield.errors import InvalidInput
from openfield.metrics.ood.benchmark import MEASURES, OWN, UNKNOWN_SET, Scored, score_detectors, tabulate
from openfield.metrics.ood.catalogue import choose_detectors
from openfield.metrics.ood.resampling import PairedDifference, compare_detectors
from openfield.metrics.ood.samples import Head, SampleSet
from openfield.report.export.score_table import comparison_cells, interval_cells


def draw(seed: int, ties: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    known, unknown = rng.normal(1, 1, 230), rng.normal(0, 1, 170)
    return (known.round(1), unknown.round(1)) if ties else (known, unknown)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_measures_are_those_of_openood_by_scikit_learn(seed: int, ties: bool) -> None:
    known, unknown = draw(seed, ties)
    found = Scored(known, None, {"x": unknown}).measure("x")
    conf, is_unknown = np.concatenate([known, unknown]), np.repeat([0, 1], [len(known), len(unknown)])
    assert found["auroc"] == pytest.approx(roc_auc_score(is_unknown, -conf))
    for name, positive, score in (("fpr95", is_unknown, -conf), ("fpr95_id", 1 - is_unknown, conf)):
        fpr, tpr, _ = roc_curve(positive, score, drop_intermediate=False)
        assert found[name] == pytest.approx(fpr[np.argmax(tpr >= 0.95)])
    for name, positive, score in (("aupr_out", is_unknown, -conf), ("aupr_in", 1 - is_unknown, conf)):
        precision, recall, _ = precision_recall_curve(positive, score)
        assert found[name] == pytest.approx(auc(recall, precision))
    low, high = conf.min(), conf.max()
    thresholds = np.linspace(low, high, 4_001)
    accepted = np.mean([(unknown >= at).mean() for at in thresholds])
    rejected = np.mean([(known < at).mean() for at in thresholds])
    assert found["autc"] == pytest.approx((accepted + rejected) / 2, abs=1e-3)
    assert found["oscr"] is None


def test_measures_of_classes_are_counted_by_hand() -> None:
    known, right = np.array([0.9, 0.8, 0.6, 0.2]), np.array([True, False, True, True])
    found = Scored(known, right, {"x": np.array([0.7, 0.3])}).measure("x")
    pairs = [(k > u) * r for k, r in zip(known, right, strict=True) for u in (0.7, 0.3)]
    assert found["oscr"] == pytest.approx(sum(pairs) / 8)
    assert found["ccr_fpr1e-1"] == found["ccr_fpr1e-4"] == 0.25  # one unknown accepted: above 0.7 one is right
    assert found["auroc"] == pytest.approx(5 / 8)
    assert (found["fpr95"], found["fpr95_id"]) == (2 / 4, 1)


def test_a_perfect_detector_and_one_that_knows_nothing() -> None:
    perfect = Scored(np.array([2.0, 3]), np.array([True, True]), {"x": np.array([0.0, 1])}).measure("x")
    assert {name: perfect[name] for name in ("auroc", "fpr95", "fpr95_id", "aupr_in", "aupr_out", "oscr")} == {
        "auroc": 1,
        "fpr95": 0,
        "fpr95_id": 0,
        "aupr_in": 1,
        "aupr_out": 1,
        "oscr": 1,
    }
    blank = Scored(np.ones(4), np.ones(4, bool), {"x": np.ones(4)}).measure("x")
    assert (blank["auroc"], blank["fpr95"], blank["oscr"], blank["autc"]) == (0.5, 1, 0.5, 0.5)


@pytest.mark.parametrize("count", [20, 40, 60, 140, 220, 1000])
def test_95_percent_of_the_positives_are_enough(count: int) -> None:
    found = Scored(np.array([0.5]), None, {"x": np.linspace(0, 0.4, count)}).measure("x")
    tail = Scored(np.full(1, 0.5), None, {"x": np.concatenate([np.zeros(count * 95 // 100), np.ones(count // 20)])})
    assert found["fpr95"] == 0
    assert tail.measure("x")["fpr95"] == 0


@pytest.fixture(scope="module")
def sets() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    weight, middle = rng.normal(0, 1, (5, 8)), rng.normal(0, 2, (5, 8))

    def make(name: str, shift: float, count: int) -> SampleSet:
        labels = rng.integers(0, 5, count)
        features = middle[labels] * (1 - shift) + rng.normal(0, 1, (count, 8))
        return SampleSet(name, None, features, labels if not shift else None)

    head = Head(weight, np.zeros(5))
    return {
        "known": make("test", 0, 90),
        "near": [make("a", 0.5, 40), make("b", 0.7, 30)],
        "far": [make("c", 1, 50)],
        "train": make("train", 0, 200),
        "head": head,
    }


def test_all_detectors_are_scored_on_the_same_samples(sets) -> None:
    table, scored = score_detectors(chosen=choose_detectors([]), **sets)
    assert table.missing == {}
    assert table.columns == ["a", "b", "near average", "c", "far average"]
    assert table.samples == {"test": 90, "a": 40, "b": 30, "c": 50}
    for name, row in table.rows.items():
        assert set(row) == set(table.columns)
        for measure in MEASURES:
            mean = (row["a"][measure] + row["b"][measure]) / 2
            assert row["near average"][measure] == pytest.approx(mean), (name, measure)
            assert row["far average"][measure] == row["c"][measure]
    logits = sets["known"].features @ sets["head"].weight.T
    assert table.accuracy == pytest.approx((logits.argmax(axis=1) == sets["known"].labels).mean())
    np.testing.assert_allclose(scored["maxlogit"].known, logits.max(axis=1))


def test_unknown_samples_of_the_known_set_and_your_own_confidences(sets) -> None:
    labels = np.where(np.arange(90) < 30, -1, sets["known"].labels)
    conf = np.arange(90.0)
    table, scored = score_detectors(
        SampleSet("test", None, None, labels, conf, labels), [], [], choose_detectors(["msp"])
    )
    assert table.groups == {"": [UNKNOWN_SET]}
    assert table.rows[OWN][UNKNOWN_SET]["auroc"] == 1
    assert table.missing == {"msp": ["logits of test"]}
    assert len(scored[OWN].known) == 60


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"near": [], "far": []}, "at least one set of unknown"),
        ({"near": [SampleSet("a", None, np.zeros((3, 9)))]}, "equally many columns of features"),
        ({"near": [SampleSet("test", None, np.zeros((3, 8)))]}, "Two sets are called 'test'"),
        ({"near": [SampleSet("far average", None, np.zeros((3, 8)))]}, "Rename it"),
        ({"near": [SampleSet("a", None, np.zeros((0, 8)))]}, "a has no samples"),
        ({"near": [SampleSet("a", None, np.full((3, 8), np.nan))]}, "a: row 0 of features"),
        ({"train": SampleSet("train", None, np.zeros((2, 8)), np.array([0, -1]))}, "training samples must be known"),
        ({"known": SampleSet("test", np.eye(5), np.zeros((5, 8)), np.arange(1, 6))}, "5 classes, 0 to 4. Labels that"),
        ({"train": SampleSet("train", np.eye(5), np.zeros((5, 8)), np.arange(1, 6))}, "train: labels go up to 5"),
        ({"near": [SampleSet("a", None, None, np.zeros(3, int))]}, "No detector can be scored: msp needs"),
    ],
)
def test_sets_that_cannot_be_scored_are_refused(sets, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        score_detectors(chosen=choose_detectors(["msp", "knn"]), **(sets | change))


def test_resamplings_are_paired_and_equal_to_drawing_samples() -> None:
    known, unknown = draw(0, ties=True)
    other = draw(1, ties=True)
    scored = {
        "one": Scored(known, None, {"a": unknown, "b": unknown[:50]}),
        "same": Scored(known.copy(), None, {"a": unknown.copy(), "b": unknown[:50].copy()}),
        "other": Scored(other[0], None, {"a": other[1], "b": other[1][:50]}),
    }
    table = tabulate("known", {"near": ["a", "b"], "far": []}, scored)
    found = compare_detectors(table, scored, "one", resamples=40, seed=5)
    assert found.differences["same"]["near average"]["auroc"] == PairedDifference(0, 0, 0, 1, 1)
    rng, drawn = np.random.default_rng(5), []
    for _ in range(40):
        at = rng.integers(0, len(known), len(known))
        values = []
        for conf in (unknown, unknown[:50]):
            part = conf[rng.integers(0, len(conf), len(conf))]
            values.append(Scored(known[at], None, {"x": part}).measure("x"))
        drawn.append({name: (values[0][name] + values[1][name]) / 2 for name in ("auroc", "fpr95")})
    for name in ("auroc", "fpr95"):
        interval = found.intervals["one"]["near average"][name]
        low, high = np.quantile([one[name] for one in drawn], (0.025, 0.975))
        assert (interval.low, interval.high) == pytest.approx((low, high))
        assert interval.value == table.rows["one"]["near average"][name]


def test_differences_that_are_there_are_found_and_others_are_not() -> None:
    rng = np.random.default_rng(0)
    signal = rng.normal(1, 1, 400), rng.normal(-1, 1, 400)
    weak = tuple(part + rng.normal(0, 2, 400) for part in signal)
    noisy = tuple(part + rng.normal(0, 0.01, 400) for part in signal)
    scored = {n: Scored(k, None, {"x": u}) for n, (k, u) in {"a": signal, "weak": weak, "alike": noisy}.items()}
    found = compare_detectors(
        tabulate("id", {"near": [], "far": ["x"]}, scored), scored, "a", resamples=100
    ).differences
    assert found["weak"]["far average"]["auroc"].high < 0
    assert found["weak"]["far average"]["auroc"].p < 0.05 < found["alike"]["far average"]["auroc"].p


def test_p_values_are_corrected_and_say_where_more_draws_could_make_them_smaller() -> None:
    known, unknown = draw(0, ties=False)
    scored = {
        "one": Scored(known, None, {"a": unknown}),
        "worst": Scored(-known, None, {"a": -unknown}),
        "same": Scored(known.copy(), None, {"a": unknown.copy()}),
    }
    table = tabulate("known", {"near": ["a"], "far": []}, scored)
    found = compare_detectors(table, scored, "one", resamples=99)
    worst, same = (found.differences[name]["a"]["auroc"] for name in ("worst", "same"))
    assert (worst.floored, worst.p, worst.p_holm) == (True, 0.02, 0.04)
    assert (same.floored, same.p_holm) == (False, 1.0)
    rows = comparison_cells(found, ["a"], ["auroc"], 4)
    assert [row[-1] for row in rows] == ["p, corrected", "p<=0.040", "p=1.000"]
    (titles, *values) = interval_cells(found, ["a"], "auroc", 2)
    assert titles == ["detector", "a"]
    assert len(values) == 3
