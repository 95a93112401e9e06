"""Performance in each period, and adaptation after the onset, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from openfield.core import Belief
from openfield.journal.reader import CellRecord
from openfield.metrics.performance import (
    count_episodes,
    measure_adaptation,
    measure_effects,
    measure_performance,
    measure_winning,
    normalised_area,
    pick_after,
    split_periods,
)
from openfield.trial import Phase
from support.records import make_cell, make_trial


class TestPerformance:
    def test_by_hand(self) -> None:
        found = measure_performance(make_cell([0.2, 0.4], [0.8, 1.0], [0.1, 0.2, 0.6]))
        assert found == pytest.approx({"training": 0.3, "before": 0.9, "after": 0.3})

    def test_leaves_out_what_the_world_did_not_give(self) -> None:
        found = measure_performance(make_cell([], [0.8, None, float("nan")], [None]))
        assert found == {"training": None, "before": 0.8, "after": None}


class TestWinning:
    def test_by_hand(self) -> None:
        cell = make_cell([0.2], [0.8, 0.5, 0.0], [0.1, 0.2, 0.6, 0.0])
        won = [True, True, False, False, True, False, False, False]
        episodes = [replace(one, detail={"won": each}) for one, each in zip(cell.episodes, won, strict=True)]
        found = measure_winning(replace(cell, episodes=tuple(episodes)))
        assert (found["won_before"], found["won_after"]) == pytest.approx((1 / 3, 1 / 4))

    def test_the_published_score_stands_beside_it_and_a_lost_episode_may_have_one(self) -> None:
        cell = make_cell([], [1.0, 0.0], [0.0])
        details = ({"won": True, "score": 5000}, {"won": False, "score": 5040}, {"won": False, "score": 500})
        episodes = [replace(one, detail=each) for one, each in zip(cell.episodes, details, strict=True)]
        found = measure_winning(replace(cell, episodes=tuple(episodes)))
        assert found == {"won_before": 0.5, "won_after": 0.0, "score_before": 5020.0, "score_after": 500.0}

    def test_is_not_defined_where_nothing_is_won(self) -> None:
        assert set(measure_winning(make_cell([], [0.5], [0.5])).values()) == {None}


class TestAdaptation:
    def test_by_hand(self) -> None:
        found = measure_adaptation(make_cell([0.9], [0.8, 0.6], [0.0, 0.2, 0.4, 0.6]))
        want = {"before": 0.7, "after": 0.3, "change": -0.4, "asymptotic": 0.5, "area": (0.1 + 0.3 + 0.5) / 3}
        assert found == pytest.approx(want)

    def test_is_not_defined_without_an_onset(self) -> None:
        found = measure_adaptation(make_cell([], [0.5], []))
        assert found == {"before": 0.5, "after": None, "change": None, "asymptotic": None, "area": None}

    @pytest.mark.parametrize(("curve", "area"), [([], None), ([0.4], 0.4), ([0.0, 1.0], 0.5), ([1.0, 0.0, 1.0], 0.5)])
    def test_area(self, curve: list[float], area: float | None) -> None:
        assert normalised_area(curve) == area


def play(onset: int | None, curve: list[float], **fields: Any) -> CellRecord:
    """A trial of six episodes whose change was drawn after 1 to 4 of them, or never comes."""
    early = 6 if onset is None else onset
    phases = (Phase("test", early), *([Phase("test", 6 - early, ("swap",))] if early < 6 else []))
    trial = make_trial(fields.pop("seed", 0), phases=phases, scenario=("swap",), window=(1, 4))
    return make_cell([], curve[:early], curve[early:], trial=trial, **fields)


class TestWindow:
    def test_every_trial_counts_the_same_number_of_episodes_after_the_onset(self) -> None:
        for onset, curve in ((1, [0.9, 0.2, 0.4, 1, 1, 1]), (4, [0.9, 0.9, 0.9, 0.9, 0.2, 0.4])):
            found = measure_adaptation(play(onset, curve))
            want = {"before": 0.9, "after": 0.3, "change": -0.6, "asymptotic": 0.4, "area": 0.3}
            assert found == pytest.approx(want)
            assert measure_performance(play(onset, curve))["after"] == pytest.approx(0.3)

    def test_instances_count_that_start_within_as_many_steps(self) -> None:
        steps = (Phase("test", steps=100), Phase("test", 0, ("swap",), 200))
        trial = make_trial(phases=steps, scenario=("swap",), window=(100, 275))
        cell = make_cell([], [0.5] * 10, [0.1, 0.2, 0.3, 0.4], trial=trial)  # of 10 turns each
        assert pick_after(cell) == cell.episodes[10:13]

    def test_an_unchanged_twin_has_no_performance_before_its_onset(self) -> None:
        assert measure_performance(play(None, [0.5] * 6)) == {"training": None, "before": None, "after": None}

    def test_a_count_has_the_range_of_the_window(self) -> None:
        trial = play(2, [0.5] * 6).trial
        assert (count_episodes(trial, "before"), count_episodes(trial, "after")) == (4, 5)


class TestEffect:
    def test_is_the_difference_to_the_twin_in_the_same_episodes(self) -> None:
        cells = [
            play(1, [0.9, 0.2, 0.4, 1, 1, 1], seed=3),
            play(None, [0.9, 0.7, 0.7, 0, 0, 0], seed=3),
            play(4, [0.9] * 4 + [0.5, 0.7], seed=4),
            play(None, [0.1] * 4 + [0.4, 0.6], seed=4),
            play(2, [0.0] * 6, seed=5),  # has no twin
        ]
        assert measure_effects(cells) == pytest.approx([0.3 - 0.7, 0.6 - 0.5])

    def test_repeats_have_their_own_twins_and_count_once(self) -> None:
        cells = [play(1, [0.9, after, after, 0, 0, 0], repeat=n) for n, after in enumerate((0.2, 0.4))]
        cells += [play(None, [normal] * 6, repeat=n) for n, normal in enumerate((0.5, 0.9))]
        assert measure_effects(cells) == pytest.approx([(-0.3 - 0.5) / 2])

    def test_failing_a_twin_does_not_pay(self) -> None:
        cells = [play(1, [0.9, 0.2, 0.4, 1, 1, 1]), play(None, [0.0] * 6, counts=True)]
        assert measure_effects(cells) == [-1.0]

    def test_a_twin_is_read_at_the_same_steps(self) -> None:
        steps = (Phase("test", steps=20), Phase("test", 0, ("swap",), 40))
        changed = make_trial(phases=steps, scenario=("swap",), window=(10, 40))
        twin = make_trial(phases=(Phase("test", steps=60),), scenario=("swap",), window=(10, 40))
        cells = [make_cell([], [0.9] * 2, [0.1, 0.3, 0.9, 0.9], trial=changed)]
        cells.append(make_cell([], [0.0, 0.0, 0.6, 0.8, 0.0, 0.0], [], trial=twin))
        assert measure_effects(cells) == pytest.approx([0.2 - 0.7])


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
