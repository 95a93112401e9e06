"""How each change was met, by hand, and the concordance of worlds that change in any way."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from openfield.core import Belief
from openfield.course import plan_course
from openfield.journal.reader import CellRecord
from openfield.metrics.catalogue import find_metrics
from openfield.metrics.concordance import estimate_concordance
from openfield.metrics.detection import measure_detection
from openfield.metrics.drift.changes import CHANGES, measure_changes, split_changes
from openfield.metrics.summary import summarise
from openfield.trial import Draw, Phase, Trial, place_change
from support.records import make_cell, make_trial

RETURNS = "a then none then a"


def play(
    trial: Trial, beliefs: Sequence[float], performances: Sequence[float] | None = None, **fields: object
) -> CellRecord:
    """A cell of a trial of test episodes, whose world changed as planned."""
    cell = make_cell([], performances or [0.5] * len(beliefs), [], beliefs, trial=trial, id=trial.id, **fields)
    if not trial.has_course:
        novel = [bool(phase.novelty) for phase in trial.phases for _ in range(phase.episodes)]
        played = [replace(one, novel=each) for one, each in zip(cell.episodes, novel, strict=True)]
    else:
        played = [
            replace(one, novel=each.novel, strength=each.strength, change=each.change)
            for one, each in zip(cell.episodes, plan_course(trial), strict=True)
        ]
    return replace(cell, episodes=tuple(played))


def stage(*stages: tuple[int, str], novelty: str = RETURNS, seed: int = 0) -> Trial:
    phases = tuple(Phase("test", count, (name,) if name else ()) for count, name in stages)
    return make_trial(seed, phases=phases, scenario=(novelty,), window=(1, 3))


TWICE = stage((4, ""), (6, "a"), (5, ""), (5, "a"))


def test_the_test_is_split_where_the_change_does() -> None:
    cell = play(TWICE, [0.0] * 20)
    assert [(each.change, each.start, len(each.episodes)) for each in split_changes(cell)] == [
        ("", 0, 4),
        ("a", 4, 6),
        ("", 10, 5),
        ("a", 15, 5),
    ]


def test_each_change_has_its_numbers() -> None:
    beliefs = [0, 0, 0, 0, *(0, 0, 1, 1, 1, 1), *(1, 1, 0, 0, 0), *(0, 1, 1, 1, 1)]
    performances = [0.8] * 4 + [0.1, 0.1, 0.2, 0.8, 0.8, 0.8] + [0.8] * 5 + [0.1, 0.8, 0.8, 0.8, 0.8]
    found = measure_changes(play(TWICE, [float(each) for each in beliefs], performances))
    assert [found[f"noticed_{number}"] for number in (1, 2, 3)] == [1, 1, 1]
    assert [found[f"delay_{number}"] for number in (1, 2, 3)] == [2, 2, 1]
    assert [found[f"strength_{number}"] for number in (1, 2, 3)] == [1, 0, 1]
    assert [found[f"recovery_{number}"] for number in (1, 2, 3)] == [3, 0, 1]
    assert found["noticed_4"] is None
    assert found["savings"] == pytest.approx(2 / 3)
    assert found["strength_noticed"] == 1
    assert (found["alarm_precision"], found["changes_found"], found["detection_time"]) == (1, 1, 1.5)
    assert found["normalised_time"] == pytest.approx(0.15)


def test_max_delay_is_a_setting_of_the_trial() -> None:
    beliefs = [0.0] * 7 + [1.0] * 3 + [0.0] * 10
    assert measure_changes(play(TWICE, beliefs))["changes_found"] == 0.5
    strict = replace(TWICE, settings={"max_delay": 2})
    assert measure_changes(play(strict, beliefs))["changes_found"] == 0
    assert measure_changes(play(strict, beliefs))["alarm_precision"] == 0


def test_a_slow_change_may_be_found_until_long_after_it_is_complete() -> None:
    trial = stage((4, ""), (16, "a over 8"), novelty="a over 8")
    late = [0.0] * 14 + [1.0] * 6
    found = measure_changes(play(trial, late))
    assert found["changes_found"] == 1  # the ramp is complete at episode 11
    assert found["detection_time"] == 10
    assert found["strength_noticed"] == 1
    early = measure_changes(play(trial, [0.0] * 6 + [1.0] * 14))
    assert early["strength_noticed"] == pytest.approx(3 / 8)


def test_below_the_least_strength_a_detection_is_neither_right_nor_wrong() -> None:
    trial = stage((4, ""), (16, "a over 8"), novelty="a over 8")
    trial = replace(trial, settings={"min_strength": 0.5})
    found = measure_detection(play(trial, [0.0] * 5 + [1.0] * 15))
    assert (found["correct"], found["alarms"], found["delay"]) == (1, 0, 0)
    false = measure_detection(play(trial, [0.0] * 3 + [1.0] * 17))
    assert (false["correct"], false["alarms"]) == (0, 1)


def test_a_detection_where_all_is_normal_again_is_none() -> None:
    trial = stage((4, ""), (3, "a"), (13, ""), novelty="a then none")
    assert measure_detection(play(trial, [0.0] * 10 + [1.0] * 10))["detected"] == 0
    assert measure_detection(play(trial, [0.0] * 6 + [1.0] * 14))["detected"] == 1


def test_regret_is_what_the_change_cost_over_the_whole_course() -> None:
    cells = [play(TWICE, [0.0] * 20, [0.5] * 4 + [0.1] * 16)]
    twin = stage((20, ""))
    assert twin.is_unchanged_twin
    cells.append(play(twin, [0.0] * 20, [0.5] * 20))
    found = summarise(cells, [CHANGES]).groups[0].estimates
    assert found["regret"].mean == pytest.approx(16 * 0.4)


def test_trials_that_change_once_have_none_of_these_numbers() -> None:
    assert set(measure_changes(make_cell([], [0.5], [0.5])).values()) == {None}
    assert list(find_metrics(["changes"])) == ["changes"]


PROCESSES = (
    "a",
    "a over 6",
    "a over 9 in steps of 3",
    "a every 4",
    "a every 5 for 1",
    "a for 3",
    "a with probability 0.4",
    "a as bursts(probability=0.2, length=2)",
    "a as sine(period=6)",
    "a as sigmoid(width=8)",
    "a as geometric(ratio=1.5)",
    "a as exponential(rate=0.3)",
    "a as points(0:0, 4:1, 6:0)",
    "a then none then b every 3",
    "a over 3 then b+a over 3 then none",
)
LENGTH = 24


def draw_set(novelty: str, seed: int, belief: Callable[[int], float]) -> list[CellRecord]:
    """Trials of a blind set, all of whose beliefs depend on the number of the episode alone."""
    from openfield.settings import Settings
    from openfield.trial import BlindSet
    from openfield.trial import draw_set as draw_blind

    blind: BlindSet = draw_blind(Settings(), (), LENGTH, (novelty,), [seed * 100 + number for number in range(8)])
    usual = (Phase("test", 1), Phase("test", LENGTH - 1, (novelty,)))
    said = [belief(number) for number in range(LENGTH)]

    def make(draw: Draw) -> Trial:
        phases = place_change(usual, draw)
        return make_trial(draw.seed, phases=phases, scenario=(novelty,), window=blind.window)

    return [play(make(draw), said) for draw in blind.draws]


@pytest.mark.parametrize("novelty", PROCESSES)
@given(st.integers(0, 50), st.lists(st.floats(0, 1), min_size=LENGTH, max_size=LENGTH))
@settings(deadline=None, max_examples=12)
def test_a_belief_that_depends_on_time_alone_reaches_exactly_one_half(
    novelty: str, seed: int, said: list[float]
) -> None:
    cells = draw_set(novelty, seed, lambda number: said[number])
    assert len({cell.trial.phases for cell in cells}) > 3
    found = estimate_concordance(cells)
    assert found is not None
    assert found.mean == 0.5
    assert found.p is not None
    assert found.p > 0.5


@pytest.mark.parametrize("novelty", PROCESSES[1:])
def test_one_that_follows_the_change_reaches_1(novelty: str) -> None:
    cells = draw_set(novelty, 1, lambda number: 0.0)
    knowing = [
        replace(
            cell,
            episodes=tuple(replace(one, belief=Belief(float(one.novel)), detected=one.novel) for one in cell.episodes),
        )
        for cell in cells
    ]
    found = estimate_concordance(knowing)
    assert found is not None
    assert found.mean == 1.0
    assert found.p is not None
    assert found.p < 0.02


def test_what_is_normal_again_is_no_change() -> None:
    """A belief that stays up once the world has changed loses where it is normal again."""
    cells = draw_set("a then none", 2, lambda number: 0.0)
    stuck = []
    for cell in cells:
        novel = [one.novel for one in cell.episodes]
        played = tuple(
            replace(one, belief=Belief(float(any(novel[: number + 1])))) for number, one in enumerate(cell.episodes)
        )
        stuck.append(replace(cell, episodes=played))
    found = estimate_concordance(stuck)
    assert found is not None
    assert 0.5 < found.mean < 1.0


def test_chance_does_not_help() -> None:
    rng = random.Random(3)
    found = estimate_concordance(draw_set("a every 4", 3, lambda number: rng.random()))
    assert found is not None
    assert found.mean == 0.5  # all trials have the same beliefs
