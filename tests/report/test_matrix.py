"""The table of all agents: its columns, its order, and where an agent is marked as better."""

from __future__ import annotations

from typing import Any

import pytest

from openfield.journal.reader import CellRecord
from openfield.metrics import BUILT_IN, summarise
from openfield.metrics.scenario import Scenario
from openfield.report.matrix import Matrix, make_matrix, name_scenarios, rank_first, rank_values
from support.records import make_cell, make_trial

HIGH, LOW = [0.9, 0.8, 0.9, 0.7, 0.8, 0.9, 0.8, 0.9], [0.1, 0.2, 0.0, 0.3, 0.1, 0.2, 0.1, 0.0]


def play(
    agent: str, domain: str, afters: list[float], novelty: str = "swap", first: int = 0, **fields: Any
) -> list[CellRecord]:
    """A cell for each performance after the onset, with seeds from the first one on."""
    return [
        make_cell(
            [],
            [0.5],
            [after],
            agent=agent,
            trial=make_trial(seed, (novelty,), domain=domain),
            id=f"{agent} {domain} {novelty} {seed}",
            **fields,
        )
        for seed, after in enumerate(afters, first)
    ]


def make(cells: list[CellRecord], **options: Any) -> Matrix:
    found = make_matrix(summarise(cells, BUILT_IN), {}, **options)
    assert found is not None
    return found


def test_a_campaign_has_a_column_for_each_domain() -> None:
    cells = [*play("ada", "one", HIGH), *play("bob", "one", LOW), *play("ada", "two", LOW), *play("bob", "two", LOW)]
    found = make([*cells, *play("ada", "two", HIGH, "slip"), *play("bob", "two", LOW, "slip")])
    assert (found.across, found.shared and found.shared.name) == ("domains", "after")
    assert [(column.title, column.scenarios) for column in found.columns] == [("one", 1), ("two", 2)]
    high, low = sum(HIGH) / 8, sum(LOW) / 8
    middle = (high + low) / 2
    assert [(row.agent, row.rank) for row in found.rows] == [("ada", 1), ("bob", 2)]
    for row, numbers in zip(found.rows, ([high, middle], [low, low]), strict=True):
        estimates = [row.estimate(at, column) for at, column in enumerate(found.columns)]
        assert [each and each.mean for each in estimates] == pytest.approx(numbers)
        assert row.mean == pytest.approx(sum(numbers) / 2)  # each domain counts once, whatever its scenarios


def test_one_domain_has_a_column_for_each_novelty() -> None:
    found = make([*play("ada", "one", HIGH), *play("ada", "one", LOW, "slip")])
    assert (found.across, [column.title for column in found.columns]) == ("novelties", ["slip", "swap"])
    assert make([*play("ada", "one", HIGH)], across="domains").columns[0].title == "one"


def test_a_domain_in_which_nothing_changes_has_a_column_over_all_its_scenarios() -> None:
    def steady(agent: str, domain: str, value: float, **settings: Any) -> CellRecord:
        trial = make_trial(1, (), domain=domain, settings=settings)
        return make_cell([], [value], [], agent=agent, trial=trial, id=f"{agent} {domain} {settings}")

    cells = [steady("ada", "one", 0.2, slip=0.1), steady("ada", "one", 0.6, slip=0.2), steady("ada", "two", 0.5)]
    found = make([*cells, steady("bob", "one", 0.2, slip=0.1), steady("bob", "two", 0.5)])
    assert [(column.number.title, column.scenarios) for column in found.columns] == [
        ("Performance in the test", 2),
        ("Performance in the test", 1),
    ]
    ada, bob = found.rows
    mean = ada.estimate(0, found.columns[0])
    assert mean is not None
    assert mean.mean == pytest.approx(0.4)
    assert bob.lacks == ["1 of 2 scenarios", ""]


def test_best_is_marked_only_where_every_comparison_supports_it() -> None:
    near = [value - 0.01 * (-1) ** at for at, value in enumerate(HIGH)]
    cells = [*play("ada", "one", HIGH), *play("bob", "one", LOW)]
    assert [row.best for row in make(cells).rows] == [[True], [False]]
    assert [row.best for row in make([*cells, *play("cyd", "one", near)]).rows] == [[False]] * 3
    assert [row.best for row in make(cells, number="before").rows] == [[False]] * 2
    assert [row.best for row in make([*play("ada", "one", HIGH[:4]), *play("bob", "one", LOW[:4])]).rows] == [
        [False]
    ] * 2


def test_totals_are_marked_by_their_own_comparisons() -> None:
    def both(first: int) -> list[CellRecord]:
        swap = [*play("ada", "one", HIGH[:4]), *play("bob", "one", LOW[:4])]
        return [*swap, *play("ada", "one", HIGH[4:], "slip", first), *play("bob", "one", LOW[4:], "slip", first)]

    assert [row.best for row in make(both(4)).rows] == [[False, False]] * 2  # four trials each
    assert [row.best for row in make(both(4), across="domains").rows] == [[True], [False]]
    assert [row.best for row in make(both(0), across="domains").rows] == [[False]] * 2  # four seeds in all


def test_agents_that_lack_a_number_have_no_rank() -> None:
    cells = [*play("ada", "one", LOW), *play("ada", "two", LOW), *play("bob", "one", HIGH)]
    found = make([*cells, *play("cyd", "one", LOW), *play("cyd", "two", HIGH), *play("ada", "two", LOW, "slip")])
    assert [(row.agent, row.rank, row.lacks) for row in found.rows] == [
        ("ada", 1, ["", ""]),
        ("cyd", None, ["", "1 of 2 novelties"]),
        ("bob", None, ["", "not played"]),
    ]
    assert [row.best for row in found.rows] == [[False, False], [False, False], [True, False]]
    assert "stand below, without a rank" in found.order


def test_agents_that_failed_everywhere_have_no_rank() -> None:
    broken = play("bob", "one", HIGH, outcome="agent_error", note="oh")
    assert [(row.agent, row.rank) for row in make([*play("ada", "one", LOW), *broken]).rows] == [
        ("ada", 1),
        ("bob", None),
    ]


def test_ranks_follow_what_is_printed_and_are_shared() -> None:
    assert rank_values([0.5, 0.901, None, 0.899, 0.2]) == [3, 1, None, 1, 4]
    assert rank_values([0.5, 2.0, 0.5], "lower") == [1, 3, 1]
    cells = [*play("ada", "one", LOW), *play("bob", "one", HIGH), *play("cyd", "one", HIGH)]
    found = make(cells)
    assert [(row.agent, row.rank) for row in found.rows] == [("bob", 1), ("cyd", 1), ("ada", 3)]
    assert found.explain() == "Order: Performance after the onset; equal values share a rank."
    assert (found.has_mean, found.rows[0].mean) == (False, None)


def test_the_number_that_ranks_agents_stands_first() -> None:
    numbers = {number.name: number for metric in BUILT_IN for number in metric.numbers}
    shown = [numbers[name] for name in ("before", "after", "delay")]
    assert [number.name for number in rank_first(shown)] == ["after", "before", "delay"]
    assert rank_first([numbers["delay"]]) == [numbers["delay"]]


def test_scenarios_have_names_that_tell_them_apart() -> None:
    plain, light = Scenario("one", ("swap",), False, ""), Scenario("one", ("swap",), True, "")
    small, large = Scenario("one", ("slip",), False, "size=3"), Scenario("one", ("slip",), False, "size=9")
    assert name_scenarios([plain, small]) == {plain: "swap", small: "slip"}
    assert name_scenarios([plain, light, small, large]) == {
        plain: "swap",
        light: "swap, red light",
        small: "slip, size=3",
        large: "slip, size=9",
    }
    assert name_scenarios([plain], with_domain=True) == {plain: "one: swap"}


def test_controls_and_numbers_that_nobody_has_are_left_out() -> None:
    cells = [*play("ada", "one", HIGH), *play("peeker", "one", HIGH, control=True)]
    assert [row.agent for row in make(cells).rows] == ["ada"]
    assert make_matrix(summarise(cells, BUILT_IN), {}, number="return_after") is None
