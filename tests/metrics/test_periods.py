"""A cell is split at its onset."""

from __future__ import annotations

import pytest

from openfield.core import Belief
from openfield.metrics.periods import split_periods
from support.records import make_cell


class TestPeriods:
    def test_everything_from_the_first_novel_episode_on_is_after(self) -> None:
        parts = split_periods(make_cell([0.1, 0.2], [0.3], [0.4, 0.5]))
        assert [[e.number for e in period] for period in (parts.training, parts.before, parts.after)] == [
            [0, 1],
            [2],
            [3, 4],
        ]

    def test_without_an_onset_the_whole_test_is_before(self) -> None:
        parts = split_periods(make_cell([0.1], [0.3, 0.4], []))
        assert len(parts.before) == 2
        assert parts.after == ()

    @pytest.mark.parametrize(
        ("belief", "want"), [(Belief(0.3), 0.3), (Belief((0.1, 0.8, 0.2)), 0.8), (Belief(()), 0.0)]
    )
    def test_of_many_samples_the_highest_counts(self, belief: Belief, want: float) -> None:
        assert belief.highest == want
