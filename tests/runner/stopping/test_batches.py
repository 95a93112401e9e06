from __future__ import annotations

from collections.abc import Collection

import msgspec
import pytest

import openfield as of
from openfield.cell import Cell
from openfield.runner.plan import make_cells
from openfield.runner.stopping.batches import Batches, Dropped, Verdict, deal, in_batches
from openfield.runner.stopping.rule import StoppingRule
from support.worlds import TINY

RULE = StoppingRule(until="decided", batches={"tiny": 5})


def blind_trials(count: int = 20) -> list[of.Trial]:
    return in_batches(of.trials(TINY, count), 5)


def make_batches(cells: list[Cell], left: Collection[str] | None = None) -> Batches:
    return Batches(cells, RULE, {cell.id for cell in cells} if left is None else left)


class TestDealing:
    def test_every_batch_has_its_share_of_unchanged_twins_in_an_order_that_tells_nothing(self) -> None:
        trials = blind_trials()
        batches = [trials[first : first + 7] for first in range(0, 28, 7)]
        assert [sum(trial.is_unchanged_twin for trial in batch) for batch in batches] == [2, 2, 2, 2]
        orders = {tuple(trial.is_unchanged_twin for trial in batch) for batch in batches}
        assert len(orders) > 1
        assert sorted(trial.id for trial in trials) == sorted(trial.id for trial in of.trials(TINY, 20))

    def test_a_trial_that_others_need_is_in_the_batch_of_the_first_of_them(self) -> None:
        first, *others = of.trials(TINY, 12, unchanged=0)
        needy = [msgspec.structs.replace(trial, after=first.id) for trial in others]
        places = deal([first, *reversed(needy)], {"tiny": 5})
        assert places[first.id][1] == 0
        assert {number for _, number in places.values()} == {0, 1, 2}

    def test_a_trial_that_is_compared_with_another_is_in_its_batch(self) -> None:
        trials = of.trials(TINY, 12, unchanged=0)
        beside = msgspec.structs.replace(trials[-1], seed=1, reference_for=trials[-1].id)
        places = deal([beside, *trials], {"tiny": 5})
        assert places[beside.id] == places[trials[-1].id]
        assert places[beside.id][1] == 2

    def test_trials_with_other_settings_are_dealt_apart(self) -> None:
        trials = of.trials(TINY, 5, unchanged=0) + of.trials(TINY, 5, unchanged=0, length=3)
        assert {number for _, number in deal(trials, {"tiny": 5}).values()} == {0}


class TestBatches:
    def test_only_the_first_batch_may_be_played_until_it_is_over_and_looked_at(self) -> None:
        cells, looked = make_cells(["a", "b"], blind_trials()), []
        batches = make_batches(cells)

        def look(trials: Collection[str], playing: Collection[str]) -> Verdict:
            looked.append((len(trials), list(playing)))
            return Verdict()

        (first,) = batches.begin(look)
        assert first == [cell.id for cell in cells[:14]]
        for cell in first[:-1]:
            batches.end(cell)
        assert not batches.is_due
        batches.end(first[-1])
        assert batches.is_due
        (second,) = batches.go_on(look)
        assert second == [cell.id for cell in cells[14:28]]
        assert looked == [(7, ["a", "b"])]
        assert not batches.is_due

    def test_nothing_more_is_played_once_the_rule_is_met(self) -> None:
        cells = make_cells(["a", "b"], blind_trials())
        batches = make_batches(cells)
        for cell in next(iter(batches.begin(lambda *_: Verdict()))):
            batches.end(cell)
        (found,) = batches.go_on(lambda *_: Verdict("a does better."))
        assert isinstance(found, Dropped)
        assert found.cells == [cell.id for cell in cells[14:]]
        assert found.why == "tiny, flipped: a does better."

    def test_a_settled_agent_is_played_no_further(self) -> None:
        cells = make_cells(["a", "b", "c"], blind_trials())
        batches = make_batches(cells)
        for cell in next(iter(batches.begin(lambda *_: Verdict()))):
            batches.end(cell)
        dropped, later = batches.go_on(lambda *_: Verdict("", {"b": "b does worse."}))
        assert isinstance(dropped, Dropped)
        assert dropped.cells == [cell.id for cell in cells[21:] if cell.agent == "b"]
        assert later == [cell.id for cell in cells[21:42] if cell.agent != "b"]

    def test_the_last_batch_ends_with_a_word_on_a_rule_that_was_not_met(self) -> None:
        cells = make_cells(["a"], in_batches(of.trials(TINY, 5), 5))
        batches = make_batches(cells)
        for cell in next(iter(batches.begin(lambda *_: Verdict()))):
            batches.end(cell)
        (found,) = batches.go_on(lambda *_: Verdict())
        assert isinstance(found, Dropped)
        assert found.cells == []
        assert found.why.endswith("--until 'decided' was not met in 7 trials.")

    @pytest.mark.parametrize("over", ["", "a does better."])
    def test_a_run_that_was_stopped_between_two_batches_is_looked_at_first(self, over: str) -> None:
        cells = make_cells(["a"], blind_trials())
        batches = make_batches(cells, {cell.id for cell in cells[7:]})
        (found,) = batches.begin(lambda trials, _: Verdict(over if len(trials) == 7 else ""))
        assert isinstance(found, Dropped) is bool(over)
        assert (found.cells if isinstance(found, Dropped) else found)[:7] == [cell.id for cell in cells[7:14]]
