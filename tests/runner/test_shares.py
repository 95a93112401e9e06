from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import openfield as of
from openfield.errors import InvalidInput
from openfield.journal.merge import merge_runs
from openfield.journal.reader import Run
from openfield.runner.experiment import RunOptions, parse_budget
from openfield.runner.plan import make_plan
from openfield.runner.run import run_plan
from openfield.runner.scheduler import RunWarning
from openfield.runner.shares import Share, find_missing, parse_share, share_plan
from support.players import Learner, copycat
from support.worlds import tiny_trials


def chained_trials() -> list[of.Trial]:
    """One trial, and three that come after it."""
    first, *others = tiny_trials(4)
    return [first, *(msgspec.structs.replace(trial, after=first.id) for trial in others)]


def name_missing(parts: Sequence[Path]) -> list[str]:
    """The shares of one plan that are missing."""
    (found,) = find_missing(parts)
    return found.shares


@pytest.mark.parametrize("of_", [1, 3, 7, 20])
@pytest.mark.parametrize("agents", ["a", "ab", "abc"])
def test_shares_are_disjoint_and_complete(agents: str, of_: int) -> None:
    plan = make_plan(dict.fromkeys(agents, copycat), tiny_trials(5))
    of_ = min(of_, len(plan.cells))
    shares = [{cell.id for cell in share_plan(plan, Share(number, of_)).cells} for number in range(of_)]
    assert sum(map(len, shares)) == len(plan.cells)
    assert set.union(*shares) == {cell.id for cell in plan.cells}
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(("agents", "of_", "trials"), [(3, 3, 6), (3, 3, 5), (4, 2, 8), (2, 4, 8), (6, 4, 10)])
def test_every_share_has_its_part_of_every_agent_and_scenario(agents: int, of_: int, trials: int) -> None:
    made = [
        msgspec.structs.replace(trial, scenario=(novelty,))
        for trial, novelty in zip(tiny_trials(2 * trials), itertools.cycle("xy"))
    ]
    plan = make_plan({f"agent-{number}": copycat for number in range(agents)}, made)
    shares = [share_plan(plan, Share(number, of_)).cells for number in range(of_)]
    for agent in plan.agents:
        own = [[cell.trial.novelty for cell in share if cell.agent == agent] for share in shares]
        for counts in ([*map(len, own)], *([each.count((name,)) for each in own] for name in "xy")):
            assert max(counts) - min(counts) <= 1


def test_the_agents_of_a_trial_are_spread() -> None:
    plan = make_plan({"a": copycat, "b": copycat, "c": copycat}, tiny_trials(6))
    for number in range(3):
        cells = share_plan(plan, Share(number, 3)).cells
        assert len({cell.trial.id for cell in cells}) == len(cells) == 6


def test_shares_do_not_depend_on_the_order_of_agents() -> None:
    one, other = (make_plan(dict.fromkeys(names, copycat), tiny_trials(5)) for names in ("abc", "cab"))
    for number in range(4):
        first, second = share_plan(one, Share(number, 4)), share_plan(other, Share(number, 4))
        assert {cell.id for cell in first.cells} == {cell.id for cell in second.cells}
        assert {key for key in first.facts if key.startswith("share")} == {
            key for key in second.facts if key.startswith("share")
        }


def test_what_a_share_comes_after_is_in_it() -> None:
    plan = make_plan([copycat], chained_trials())
    first, *rest = plan.cells
    assert share_plan(plan, Share(0, 1, "first")).cells == (first,)
    for number, cell in enumerate(rest):
        assert share_plan(plan, Share(number, 3, "rest")).cells == (first, cell)


def test_two_stages_give_what_one_run_gives(tmp_path: Path) -> None:
    plan = make_plan([Learner], chained_trials())
    run_plan(plan, whole := tmp_path / "whole.sqlite")
    run_plan(share_plan(plan, Share(0, 1, "first")), tmp_path / "first.sqlite")
    parts = []
    for number in range(2):
        parts.append(tmp_path / f"{number}.sqlite")
        merge_runs([tmp_path / "first.sqlite"], parts[-1])
        run_plan(share_plan(plan, Share(number, 2, "rest")), parts[-1])
    merge_runs(parts, joined := tmp_path / "joined.sqlite")
    found = []
    for path in (whole, joined):
        with Run(path) as run:
            found.append({cell.id: (cell.outcome, cell.episodes) for cell in run.cells()})
    assert found[0] == found[1]
    assert find_missing([joined]) == find_missing([whole, parts[0]]) == []
    assert name_missing(parts[1:]) == ["0/2:rest"]
    with Run(joined) as run:
        assert run.counts().superseded == 0


def test_missing_shares_are_named_unless_a_file_is_whole(tmp_path: Path) -> None:
    plan = make_plan([copycat], tiny_trials(3))
    whole, first, second, one_of_nine, both, more = (tmp_path / f"{name}.sqlite" for name in "wabncm")
    run_plan(plan, whole)
    for path, share in ((first, Share(0, 3)), (second, Share(1, 3)), (one_of_nine, Share(1, 9))):
        run_plan(share_plan(plan, share), path)
    merge_runs([whole, first], both)
    assert name_missing([first, second]) == ["2/3"]
    assert name_missing([second, second]) == ["0/3", "2/3"]
    assert find_missing([whole, first, second]) == find_missing([first, whole]) == find_missing([both, second]) == []
    assert name_missing([one_of_nine]) == ["0/9", "2/9"]  # the others are empty
    run_plan(make_plan({"other": copycat}, tiny_trials(4)), other := tmp_path / "other.sqlite")
    assert name_missing([other, first, second]) == ["2/3"]  # a whole run of something else
    merge_runs([other, first, second], more)
    assert name_missing([more]) == ["2/3"]
    merge_runs([other, whole], tmp_path / "all.sqlite")
    assert find_missing([more, tmp_path / "all.sqlite"]) == []
    run_plan(share_plan(plan, Share(2, 3)), third := tmp_path / "third.sqlite")
    assert find_missing([first, second, third, one_of_nine]) == []  # three shares are the whole, whatever the fourth is
    with closing(sqlite3.connect(second)) as db, db:
        db.execute("UPDATE facts SET value = '1 of 3 in 3' WHERE key LIKE 'share %'")
    with pytest.raises(InvalidInput, match=r"holds the share 1/3 .* of another version of openfield"):
        find_missing([first, second])


def test_shares_of_different_plans_do_not_complete_each_other(tmp_path: Path) -> None:
    one, another, more = (
        make_plan([copycat], trials) for trials in (tiny_trials(4), tiny_trials(4, 9), tiny_trials(6))
    )
    a, b = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    run_plan(share_plan(one, Share(0, 2)), a)
    run_plan(share_plan(another, Share(1, 2)), b)
    assert [(each.part, each.cells, each.shares) for each in find_missing([a, b])] == [
        (str(a), 4, ["1/2"]),
        (str(b), 4, ["0/2"]),
    ]
    run_plan(share_plan(one, Share(1, 2)), second := tmp_path / "second.sqlite")
    run_plan(share_plan(more, Share(0, 2)), a)  # the same share again, of more trials
    (missing,) = find_missing([a, second])
    assert str(missing) == f"1/2 of the plan of {a} (6 cells)"


@pytest.mark.parametrize("text", ["", "3", "3/3", "-1/3", "a/b", "1/2:last", "1/0", "1/99999999"])
def test_a_share_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="A share is NUMBER/OF, counted from 0"):
        parse_share(text)


def test_a_share_without_cells_is_refused() -> None:
    with pytest.raises(InvalidInput, match="The share 4/9 is empty: the plan has 2 cells"):
        share_plan(make_plan([copycat], tiny_trials(2)), Share(4, 9))


def test_a_budget_ends_a_run_between_two_cells(tmp_path: Path) -> None:
    plan = make_plan([copycat], tiny_trials(3))
    with pytest.warns(RunWarning, match="The budget is used up; some cells are left. To go on: openfield resume"):
        run_plan(replace(plan, options=RunOptions(workers=0, budget="0.000000001s")), path := tmp_path / "run.sqlite")
    with Run(path) as run:
        assert run.counts() == (3, 0, 0, 0, 0)
    run_plan(replace(plan, options=RunOptions(workers=0, budget="1h")), path)
    with Run(path) as run:
        assert run.counts().played == 3


@pytest.mark.parametrize(
    ("text", "seconds"), [("2h", 7200), ("90m", 5400), ("1h30m", 5400), ("45s", 45), ("1.5h", 5400)]
)
def test_a_budget_is_read(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "-1h", "2 h", "0s", "99999999h"])
def test_a_budget_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--budget takes a time such as 2h"):
        parse_budget(text)
