"""The programme's metrics against slow implementations that follow their definitions to the letter."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.errors import InvalidInput
from openfield.metrics.openset import compat
from openfield.metrics.openset.compat import rank_labels

H = compat.THRESHOLDS


def top(p, y: int, k: int) -> bool:
    order = sorted(range(len(p)), key=lambda c: (-p[c], c))
    return y in order[:k]


def literal_acc(g, p, y, w: int, s: int) -> dict[str, float]:
    hit = {k: [top(row, label, k) for row, label in zip(p, y, strict=True)] for k in (1, 3)}
    out: dict[str, float] = {}

    def share(h) -> float:
        return round(sum(h) / len(h), 5) if h else -1

    def windows(h):
        return [sum(h[i : i + w]) / w for i in range(len(h) - w + 1)]

    def spread(h) -> tuple[float, float]:
        if not h:
            return -1, -1
        v = windows(h)
        mean = sum(v) / len(v) if v else math.nan
        return mean, (float(np.std(v, ddof=1)) if len(v) > 1 else math.nan)

    onset = next((i for i, new in enumerate(g) if new), None)
    for k in (1, 3):
        out[f"full_top{k}"] = share(hit[k])
        if onset is None:
            out[f"pre_top{k}"] = out[f"full_top{k}"]
            out |= {f"post_top{k}": -1, f"post_mean_top{k}": -1, f"post_std_top{k}": -1}
            continue
        for name, part in (("pre", hit[k][: onset + 1]), ("post", hit[k][onset + 1 :])):
            mean, std = spread(part)
            out |= {f"{name}_top{k}": share(part), f"{name}_mean_top{k}": mean, f"{name}_std_top{k}": std}
    length = s * w
    while length < len(g):
        for k in (1, 3):
            part = hit[k][-length:] if length else hit[k]
            mean, std = spread(part)
            out[f"asymptotic_{length}_top{k}"] = share(part)
            out |= {f"asymptotic_{length}_mean_top{k}": mean, f"asymptotic_{length}_std_top{k}": std}
        length += w
    return out


cases = st.integers(0, 2**32 - 1)


@given(cases, st.integers(1, 60), st.integers(1, 7), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_accuracies_equal_the_literal_ones(seed: int, n: int, w: int, s: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 4, (n, 5)) / 4  # many ties
    y = rng.integers(-1, 5, n)
    y[0] = 2
    g = (np.arange(n) >= rng.integers(0, n + 5)).astype(int) * rng.integers(0, 2, n)
    found, wanted = compat.m_acc(g, p, y, w, s), literal_acc(g, p, y, w, s)
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name] == pytest.approx(value, abs=1e-12, nan_ok=True), name


@given(cases, st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_detection_equals_the_literal_one(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    p, g = rng.integers(0, 21, n) / 20, rng.integers(0, 2, n) * (rng.random() < 0.8)
    onset = next((i for i in range(n) if g[i]), None)
    stats, num = compat.m_num_stats(p, g), compat.m_num(p, g)
    assert stats["GT_indx"] == (n if onset is None else onset) + 1
    for h in H:
        assert stats[f"P_indx_{h}"] == next((i + 1 for i in range(n) if p[i] >= h), n + 1)
        novel = [value for value, new in zip(p, g, strict=True) if new]
        first = next((i + 1 for i, value in enumerate(novel) if value >= h), 1)
        assert num[str(h)] == (first if novel else -1)
    for mode in ("full_test", "pre_novelty", "post_novelty"):
        found = compat.m_ndp(p, g, mode)
        assert len(found) == 72
        if mode == "post_novelty" and onset is None:
            assert set(found.values()) == {-1}
            continue
        whole = mode == "full_test" or (mode == "pre_novelty" and (onset is None or all(g)))
        part = range(n) if whole else range(onset) if mode == "pre_novelty" else range(onset, n)
        for h in H:
            tp = sum(p[i] > h and g[i] for i in part)
            fp = sum(p[i] > h and not g[i] for i in part)
            assert (found[f"TP_{h}"], found[f"FP_{h}"]) == (tp, fp)
            assert found[f"precision_{h}"] == (float(np.round(tp / (tp + fp), 5)) if tp + fp else 0)
            right = sum((p[i] > h) == bool(g[i]) for i in part)
            wanted = float(np.round(right / len(part), 5)) if len(part) else math.nan
            assert found[f"accuracy_{h}"] == pytest.approx(wanted, nan_ok=True)


def test_keys_and_modes_are_those_of_the_original() -> None:
    p, g = [0.1, 0.2, 0.6, 0.95], [0, 1, 1, 1]
    wanted = {"0.175": 1, "0.225": 2, "0.3": 2, "0.4": 2, "0.5": 2, "0.6": 2, "0.7": 3, "0.8": 3, "0.9": 3}
    assert compat.m_num(p, g) == wanted
    assert compat.m_ndp(p, g, "pre_novelty")["TN_0.5"] == 1
    assert compat.m_ndp(p, g, "post_novelty")["TN_0.5"] == 0
    assert compat.m_ndp(p, g, "full_test") == compat.m_ndp(p, g)
    with pytest.raises(InvalidInput, match="full_test, pre_novelty or post_novelty, not 'post'"):
        compat.m_ndp(p, g, "post")  # type: ignore[arg-type]


def test_two_ways_of_rounding_are_kept_apart() -> None:
    p = np.zeros((320, 2))
    p[:, 0] = 1
    y = np.zeros(320, int)
    y[0] = 1
    assert compat.m_acc(np.zeros(320), p, y)["full_top1"] == 0.99687
    novel = np.r_[1, np.zeros(319)]
    assert compat.m_ndp(np.zeros(320), novel)["accuracy_0.5"] == 0.99688


def test_odd_edges_are_the_published_ones() -> None:
    assert compat.m_is_cdt_and_is_early(5, 10, 10) == {"Is CDT": False, "Is Early": False}
    assert compat.m_is_cdt_and_is_early(11, 3, 10) == {"Is CDT": False, "Is Early": True}
    assert math.isnan(compat.m_ndp_pre([0.1, 0.9], [1, 0])["accuracy_0.5"])
    last = compat.m_acc([0, 0, 1], np.eye(3), [0, 1, 2], 1, 0)
    assert (last["pre_top1"], last["post_top1"], last["post_mean_top1"]) == (1, -1, -1)
    assert compat.m_nrp({"post_top1": 0.5, "post_top3": 0.5}, {"pre_top1": 0.8, "pre_top3": 0}) == {
        "M_nrp_post_top1": 62.5,
        "M_nrp_post_top3": None,
    }


def test_a_test_without_novelty_has_no_relative_performance() -> None:
    calm = compat.m_acc(np.zeros(3), np.eye(3), [0, 1, 2])
    assert calm["post_top1"] == -1
    assert compat.m_nrp(calm, calm) == {"M_nrp_post_top1": None, "M_nrp_post_top3": None}


def test_failed_reactions_and_novel_samples() -> None:
    p, y, g = np.eye(4)[[0, 1, 2, 3]], [0, 1, 3, 2], [0, 0, 1, 1]
    found = compat.m_ndp_failed_reaction([0.1, 0.9, 0.9, 0.1], g, p, y)
    assert (found["top1_TP_0.5"], found["top1_FN_0.5"], found["top1_FP_0.5"]) == (1, 1, 0)
    assert compat.m_ndp_failed_reaction([0.1] * 2, [0, 1], np.eye(2), [0, 1])["top3_TP"] == -1
    assert compat.m_accuracy_on_novel(p, y, g) == {"top3_acc_novel_only": 0.0, "top1_acc_novel_only": 0.0}
    assert compat.m_acc_round_wise(p, y, 2) == {
        "top1_accuracy_round_0": 1.0,
        "top3_accuracy_round_0": 1.0,
        "top1_accuracy_round_1": 0.0,
        "top3_accuracy_round_1": 0.0,
    }


def test_ranks_give_ties_to_the_lower_index() -> None:
    assert rank_labels([[0.5, 0.5, 0.2]], [1]).tolist() == [1]
    assert (rank_labels([[0.5, 0.5]] * 2, [-1, 2]) > 10).all()


@pytest.mark.parametrize(
    ("p", "g"), [([0.1], [0, 1]), ([1.1], [0]), ([-0.1], [0]), ([0.1], [2]), ([[0.1]], [0]), ([0.2], [0.5])]
)
def test_wrong_detection_input_is_refused(p, g) -> None:
    with pytest.raises(InvalidInput):
        compat.m_num(p, g)


@pytest.mark.parametrize(("p", "y"), [([[0.5, 0.5]], [2]), ([[0.5, 0.5]], [-1]), ([[0.5]], [0, 0]), ([[2.0]], [0])])
def test_wrong_class_input_is_refused(p, y) -> None:
    with pytest.raises(InvalidInput):
        compat.m_acc(np.zeros(len(y)), p, y)


def test_a_long_test_takes_linear_time() -> None:
    rng = np.random.default_rng(0)
    ranks = rng.integers(0, 5, 100_000)
    found = compat.acc_of_ranks(np.arange(100_000) > 50_000, ranks)
    assert found["asymptotic_99900_top1"] == pytest.approx(0.2, abs=0.01)
