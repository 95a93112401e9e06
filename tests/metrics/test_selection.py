"""Which numbers a table shows."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from openfield.errors import UnknownName
from openfield.journal.reader import CellRecord
from openfield.metrics import BUILT_IN, summarise
from openfield.metrics.selection import name_numbers, pick_numbers, shows_all
from openfield.trial import Phase
from support.records import make_cell, make_run, make_trial

SIX = ["before", "after", "concordance", "correct", "delay", "alarmed"]


def pick(cells: list[CellRecord], numbers: str | list[str] | None = None) -> list[str]:
    summary = replace(summarise(cells, BUILT_IN), shown=tuple(name_numbers(numbers, BUILT_IN, ())))
    return [number.name for number in pick_numbers(summary, summary.groups)]


def test_six_numbers_are_usual() -> None:
    assert pick([play(seed, onset) for seed, onset in enumerate((1, 2, 1, 2, 2))]) == SIX


def play(seed: int, onset: int) -> CellRecord:
    """A trial of four episodes in which the agent notices the change at once."""
    phases = (Phase("test", onset), Phase("test", 4 - onset, ("swap",)))
    trial = make_trial(seed, phases=phases, window=(1, 2))
    beliefs = [0.0] * onset + [0.9] * (4 - onset)
    return make_cell([], [0.8] * onset, [0.3] * (4 - onset), beliefs, trial=trial, id=str(seed))


def test_numbers_without_a_value_are_left_out_unless_they_are_named() -> None:
    silent = [make_cell([], [0.5], [0.5], trial=make_trial(s), id=str(s)) for s in range(6)]
    assert pick(silent) == ["before", "after"]
    assert pick(silent, "after,concordance") == pick(silent, [" after", "concordance"]) == ["after", "concordance"]


@pytest.mark.parametrize(
    ("performance", "detail", "beside"),
    [
        (0.7, {"won": True}, ["won_after"]),
        (0.0, {"won": False, "score": 0.9}, ["score_after"]),
        (1.0, {"won": True, "score": 90}, ["score_after"]),
        (0.4, {"won": False, "score": 0.4}, ["won_after", "score_after"]),
    ],
)
def test_the_share_won_stands_beside_a_performance_that_says_more(
    performance: float, detail: dict[str, Any], beside: list[str]
) -> None:
    def end(cell: CellRecord) -> CellRecord:
        return replace(
            cell, episodes=tuple(replace(each, performance=performance, detail=detail) for each in cell.episodes)
        )

    shown = pick([end(play(seed, onset)) for seed, onset in enumerate((1, 2, 1, 2, 2))])
    assert shown == [*SIX[:2], *beside, *SIX[2:]]


def give_returns(cell: CellRecord) -> CellRecord:
    return replace(cell, episodes=tuple(replace(each, detail={"return": 3.0}) for each in cell.episodes))


def test_returns_come_first_where_there_is_no_scale() -> None:
    raw = [give_returns(make_cell([], [None], [None], id=str(s), trial=make_trial(s))) for s in range(3)]
    assert pick(raw) == ["return_before", "return_after"]
    failed = make_cell([], [None], [0.0], agent="bob", id="x", trial=make_trial(0))
    assert pick([*raw, failed]) == ["return_before", "return_after", "after"]
    assert pick([*raw, failed], "all")[:2] == ["return_before", "return_after"]


def test_where_nothing_changes_the_test_and_its_tasks_are_shown() -> None:
    assert pick(make_run(novelty=())) == ["before"]


def test_metrics_with_none_of_them_show_what_they_have() -> None:
    summary = summarise(make_run(), [metric for metric in BUILT_IN if metric.name == "passive"])
    shown = [number.name for number in pick_numbers(summary, summary.groups)]
    assert shown[0] == "passive_correct"
    assert len(shown) <= 6


def test_all_numbers_and_those_of_metrics_that_were_asked_for() -> None:
    summary = summarise(make_run(), BUILT_IN)
    every = replace(summary, shown=tuple(name_numbers("all", BUILT_IN, ())))
    assert len(pick_numbers(every, every.groups)) > 15
    assert shows_all(every)
    assert not shows_all(summary)
    baseline = [metric for metric in BUILT_IN if metric.name == "baseline"]
    assert name_numbers(None, BUILT_IN, baseline)[-5:] == ["nrp", "nrp_given", "opti", "apti", "difficulty"]
    assert name_numbers(None, baseline, baseline) == ["nrp", "nrp_given", "opti", "apti", "difficulty"]


def test_an_unknown_number_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"Unknown number 'befor'\. Did you mean 'before'"):
        name_numbers("befor", BUILT_IN, ())
