"""Progress bars count every cell once, however often it is played."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.progress import Progress

import openfield as of
from openfield.errors import Cancelled
from openfield.record import AttemptEnd, Chunk, Entry, EpisodeEnd
from openfield.report.progress import Forecast, _Bars, showing_progress
from openfield.runner.experiment import RunOptions
from openfield.runner.plan import Plan, make_plan
from openfield.runner.run import run_plan
from openfield.runner.scheduler import RunWarning
from support.players import Crasher, Fickle, copycat
from support.stories import press_ctrl_c_after
from support.worlds import tiny_trials


@pytest.fixture
def bars(path: Path) -> Any:
    """Makes bars for a plan, and gives them with a function that reads the only one of them."""
    progress = Progress(disable=True)

    def make(plan: Plan, keep: bool = False) -> Any:
        for task in progress.task_ids:
            progress.remove_task(task)
        made = _Bars(progress, replace(plan, options=RunOptions(workers=0, keep=keep)), path)
        return made, lambda: (int(progress.tasks[0].completed), progress.tasks[0].total)

    return make


def end(cell: str, attempt: int, number: int) -> EpisodeEnd:
    return EpisodeEnd(
        cell=cell,
        attempt=attempt,
        number=number,
        phase="test",
        novel=False,
        turns=1,
        performance=1.0,
        belief=None,
        ended="",
    )


def test_a_cell_that_is_played_again_does_not_count_twice(bars: Any) -> None:
    plan = make_plan([copycat], tiny_trials(2))
    one, other = (cell.id for cell in plan.cells)
    feed, count = bars(plan)
    for attempt in (1, 2):
        feed(Chunk(one, attempt, 0, 9, 0, b""))
        for number in (0, 1, 2, 1, 2):  # a saved agent plays an episode again
            feed(end(one, attempt, number))
        assert count() == (3, 16)
        feed(AttemptEnd(one, attempt, "superseded" if attempt == 1 else "done", "", 1.0))
        assert count() == (0 if attempt == 1 else 8, 16)
    for outcome in ("harness_error", "cancelled"):
        feed(end(other, 1, 4))
        feed(AttemptEnd(other, 1, outcome, "", 1.0))
        assert count() == (13, 16)
    feed(AttemptEnd(other, 1, "agent_error", "", 1.0))
    assert count() == (16, 16)


def test_trials_of_unknown_length_count_once_too(bars: Any) -> None:
    plan = make_plan([copycat], of.trials("commai", 2, tasks=["micro1"], max_steps=100, onset_instances=1))
    one = plan.cells[0].id
    feed, count = bars(plan)
    total = count()[1]
    for outcome in ("done", "superseded", "done", "done"):
        feed(end(one, 1, 3))
        feed(AttemptEnd(one, 1, outcome, "", 1.0))
    assert count() == (1, total)


@pytest.mark.parametrize("agent", [Crasher, Fickle])
def test_a_run_that_goes_on_never_shows_more_than_all(path: Path, bars: Any, agent: Any) -> None:
    trials = tiny_trials(2, padding=9_000)
    with pytest.raises(Cancelled):
        of.run([agent], trials, path, watch=press_ctrl_c_after(5))
    feed, count = bars(make_plan([agent], trials))
    shown = []

    def watch(entry: Any) -> None:
        feed(entry)
        shown.append(count())

    if agent is Fickle:
        with pytest.warns(RunWarning, match="thrown away"):
            of.run([agent], trials, path, watch=watch)
    else:
        of.run([agent], trials, path, watch=watch, retry=True)
    assert max(shown) == shown[-1] == (16, 16)


def test_cells_of_an_earlier_version_count_only_if_they_are_kept(
    path: Path, bars: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    agent = path.with_name("mine.py")
    agent.write_text("import openfield as of\ndef play(turn):\n    return of.Reply(0)\n")
    of.run({"mine": "mine.py:play"}, tiny_trials(1), path)
    assert bars(make_plan({"mine": "mine.py:play"}, tiny_trials(1)))[1]() == (8, 8)
    agent.write_text(agent.read_text() + "# better")
    sys.modules.pop("openfield_file_mine", None)
    plan = make_plan({"mine": "mine.py:play"}, tiny_trials(1))
    assert [bars(plan, keep)[1]() for keep in (False, True)] == [(0, 8), (8, 8)]


def test_a_forecast_leaves_out_what_the_plan_itself_takes(path: Path) -> None:
    forecast, said, ended = Forecast(path, 300), [], 0

    def watch(entry: Entry) -> None:
        nonlocal ended
        if isinstance(entry, AttemptEnd):
            said.append(forecast.tell(1000.0 + 10.0 * ended))
            ended += 1
            if ended == 8:
                raise Cancelled("enough")

    with pytest.raises(Cancelled):
        run_plan(make_plan([copycat], tiny_trials(300)), path, watch=watch)
    assert [bool(line) for line in said] == [False] * 5 + [True] + [False] * 2
    found = re.fullmatch(r"About 49 minutes and (\d+) MB for the 294 cells that are left\.", said[5])
    assert found is not None
    assert int(found[1]) < 5  # with the plan it would be a multiple


class Terminal(io.StringIO):
    """Standard error of a person."""

    def isatty(self) -> bool:
        return True


def test_bars_are_shown_to_a_person_and_to_nobody_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[Entry] = []
    for stream, progress, shown in (
        (io.StringIO(), None, ""),
        (Terminal(), None, "8/8 episodes"),
        (Terminal(), False, ""),
        (io.StringIO(), True, "openfield: 100 %, 8 of 8 episodes"),
    ):
        path.unlink(missing_ok=True)
        monkeypatch.setattr(sys, "stderr", stream)
        of.run([copycat], tiny_trials(1), path, watch=watched.append, progress=progress)
        said = re.sub(r"\x1b\[[\d;?]*\w", "", stream.getvalue())
        assert shown in said if shown else not said
    assert [type(entry) for entry in watched][-1] is AttemptEnd


def test_a_log_has_a_line_for_each_tenth(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan([copycat], tiny_trials(5))
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    with showing_progress(plan, path) as watch:
        run_plan(plan, path, RunOptions(workers=0).players, watch)
    done = [
        int(found)
        for found in re.findall(r"^openfield: +(\d+) %, \d+ of \d+ episodes, \d+ s$", stream.getvalue(), re.M)
    ]
    assert len(done) == len(stream.getvalue().splitlines()) == 10
    assert done == sorted(set(done))
    assert done[-1] == 100
