"""P-values by rearrangement, against counts by hand and SciPy's permutation test."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from openfield.metrics.significance import MAX_ARRANGEMENTS, arrange, correct_by_holm, flip_signs, permute_labels


def test_signs_by_hand() -> None:
    assert flip_signs([0.3] * 6) == 2 / 64
    assert flip_signs([-0.3] * 6) == 2 / 64
    assert flip_signs([0.3, -0.3, 0.2, -0.2, 0.1]) == 1.0
    assert flip_signs([0.0] * 5) == 1.0
    assert flip_signs([0.3] * 6 + [0.0]) == 2 / 64, "what does not differ says nothing"


@given(st.lists(st.integers(-20, 20).map(lambda value: value / 10), min_size=5, max_size=9))
def test_signs_equal_the_slow_count(differences: list[float]) -> None:
    flipped = [abs(math.fsum(map(math.prod, zip(differences, signs, strict=True)))) for signs in _signs(differences)]
    observed = abs(math.fsum(differences))
    assert flip_signs(differences) == pytest.approx(np.mean([value >= observed - 1e-9 for value in flipped]))


def _signs(differences: list[float]) -> list[tuple[int, ...]]:
    return list(itertools.product((-1, 1), repeat=len(differences)))


def test_many_signs_are_drawn_from_a_fixed_seed_with_the_observed_one() -> None:
    differences = np.random.default_rng(3).normal(0.2, 0.5, 40).tolist()
    found = flip_signs(differences)
    assert found == flip_signs(differences)
    assert found == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.02)
    assert flip_signs([1.0] * 40) == 1 / MAX_ARRANGEMENTS


def test_labels_equal_scipys_permutation_test() -> None:
    first, second = [0.5, 0.6, 0.9, 0.8, 0.7, 0.3], [0.1, 0.2, 0.35, 0.55, 0.4]
    want = stats.permutation_test(
        (first, second), lambda a, b, axis: abs(a.mean(axis) - b.mean(axis)), alternative="greater", vectorized=True
    )
    assert permute_labels(first, second) == pytest.approx(want.pvalue)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7))
def test_arrangements_are_all_distinct_ones_and_the_observed_first(labels: list[int]) -> None:
    rows = [tuple(row) for block in arrange(np.array(labels)) for row in block.tolist()]
    assert rows[0] == tuple(labels)
    assert set(rows) == set(itertools.permutations(labels))
    assert len(rows) == len(set(rows))


def test_too_many_arrangements_are_drawn() -> None:
    rows = np.concatenate([*arrange(np.arange(30))])
    assert rows.shape == (MAX_ARRANGEMENTS, 30)
    assert (rows[0] == np.arange(30)).all()
    assert (np.sort(rows, axis=1) == np.arange(30)).all()
    assert (rows == np.concatenate([*arrange(np.arange(30))])).all()


def test_one_label_among_thousands_has_one_arrangement_for_each_place() -> None:
    assert [len(block) for block in arrange(np.arange(2000) == 5)] == [2000]


def test_a_million_labels_are_arranged_block_by_block() -> None:
    blocks = arrange(np.arange(1_000_000) % 3)
    assert [len(block) for block in itertools.islice(blocks, 3)] == [1, 2, 2]


def test_the_size_of_a_block_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).normal(0.1, 1, 40).tolist()
    whole = np.concatenate([*arrange(np.arange(25))]), flip_signs(values), permute_labels(values[:25], values[25:])
    monkeypatch.setattr("openfield.metrics.significance.MAX_BLOCK", 1_000)
    assert (np.concatenate([*arrange(np.arange(25))]) == whole[0]).all()
    assert (flip_signs(values), permute_labels(values[:25], values[25:])) == whole[1:]


def test_holm_by_hand() -> None:
    assert correct_by_holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert correct_by_holm([0.6, 0.6]) == [1.0, 1.0]
    assert correct_by_holm([]) == []
