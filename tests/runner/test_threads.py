"""Cells side by side in one process, for agents that wait."""

from __future__ import annotations

import asyncio
import threading
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import openfield as of
from openfield.core import Ask, Belief, Reply, Spec, Turn
from openfield.errors import Cancelled, InvalidInput
from openfield.journal.reader import Run
from openfield.runner import deadline
from openfield.runner.deadline import AsyncAgent, adapt_async
from support.places import MAZE
from support.players import walk
from support.stories import press_ctrl_c_after, story

SMALL = {"training": 1, "before": 1, "after": 1, "patience": 3, "unchanged": 0}
CELLS = 12


def trials(count: int = CELLS, **limits: Any) -> list[of.Trial]:
    made = of.trials(MAZE, count, **SMALL)
    return of.trial.with_limits(made, lambda _: of.Limits(**limits)) if limits else made


class Meeting:
    """Answers only when all cells of the run ask at the same time."""

    barrier = threading.Barrier(CELLS)

    def __init__(self, spec: Spec, seed: int) -> None:
        self._met = False

    def __call__(self, turn: Turn) -> Reply:
        if not self._met:
            self._met = True
            self.barrier.wait()
        return Reply("up") if turn.ask is Ask.ACT else Reply(None, Belief(0.5))


class Awaiting:
    """The same, as a coroutine that gives way to the others. All its methods are coroutines."""

    waiting = 0
    closed = 0

    def __init__(self, spec: Spec, seed: int) -> None:
        self._turns = 0

    async def __call__(self, turn: Turn) -> Reply:
        type(self).waiting += not self._turns
        self._turns += 1
        while self.waiting < CELLS:
            await asyncio.sleep(0)
        return Reply("up") if turn.ask is Ask.ACT else Reply(None, Belief(0.5))

    async def save(self) -> bytes:
        return bytes([self._turns])

    async def load(self, state: bytes) -> None:
        self._turns = state[0]

    async def close(self) -> None:
        type(self).closed += 1


class Hanging:
    """Never answers its third turn, but in one cell it does."""

    released = threading.Event()
    cells = 0

    def __init__(self, spec: Spec, seed: int) -> None:
        type(self).cells += 1
        self._hangs, self._turns = self.cells > 1, 0

    def __call__(self, turn: Turn) -> Reply:
        self._turns += 1
        if self._hangs and self._turns == 3:
            self.released.wait()
        return Reply("up") if turn.ask is Ask.ACT else Reply(None, Belief(0.5))


class AsyncHanging:
    async def __call__(self, turn: Turn) -> Reply:
        await asyncio.Event().wait()
        raise AssertionError("it never comes to this")


def test_all_cells_are_played_at_the_same_time_and_as_one_after_the_other(tmp_path: Path) -> None:
    of.run({"a": Meeting}, trials(), tmp_path / "x.sqlite", concurrency=CELLS)
    of.run({"a": walk}, trials(), tmp_path / "y.sqlite")
    assert story(tmp_path / "x.sqlite") == story(tmp_path / "y.sqlite")
    assert {told[0] for told in story(tmp_path / "x.sqlite").values()} == {"done"}


def test_coroutines_are_agents(tmp_path: Path) -> None:
    of.run({"a": Awaiting}, trials(), tmp_path / "x.sqlite", concurrency=CELLS)
    assert (Awaiting.waiting, Awaiting.closed) == (CELLS, CELLS)
    for workers in (0, 1):
        of.run({"a": walk}, trials(2), tmp_path / f"{workers}.sqlite", workers=workers)
        assert {told[0] for told in story(tmp_path / f"{workers}.sqlite").values()} == {"done"}


def test_coroutines_side_by_side_share_one_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    loops, make_loop = list[asyncio.AbstractEventLoop](), asyncio.new_event_loop

    def make_loop_alone() -> asyncio.AbstractEventLoop:
        assert deadline._LOOP_LOCK.locked(), "another thread may make one, too: clients of HTTP take only their own"
        loops.append(make_loop())
        return loops[-1]

    monkeypatch.setattr(deadline, "_find_loop", cache(deadline._find_loop.__wrapped__))
    monkeypatch.setattr(asyncio, "new_event_loop", make_loop_alone)

    async def answer(turn: Turn) -> Reply:
        assert asyncio.get_running_loop() is loops[0]
        return Reply("up")

    agent = adapt_async(answer, None)
    assert agent(Turn(ask=Ask.ACT)) == agent(Turn(ask=Ask.ACT)) == Reply("up")
    assert len(loops) == 1


@pytest.mark.sandbox
def test_isolated_coroutines_are_agents(tmp_path: Path) -> None:
    of.run(of.isolate({"a": walk}), trials(1), tmp_path / "isolated.sqlite")
    assert {told[0] for told in story(tmp_path / "isolated.sqlite").values()} == {"done"}


def test_an_agent_that_hangs_is_left_behind_and_the_others_go_on(tmp_path: Path) -> None:
    of.run({"a": Hanging}, trials(3, reply_seconds=0.3), tmp_path / "x.sqlite", concurrency=3)
    with Run(tmp_path / "x.sqlite") as run:
        cells = run.cells()
        assert run.verify() == []
    assert sorted(str(cell.outcome) for cell in cells) == ["agent_timeout", "agent_timeout", "done"]
    assert {cell.note for cell in cells} == {"", "No answer in time; its thread was left behind."}
    Hanging.released.set()


def test_a_coroutine_that_hangs_is_cancelled(tmp_path: Path) -> None:
    of.run({"a": lambda spec, seed: AsyncHanging()}, trials(1, reply_seconds=0.2), tmp_path / "x.sqlite")
    with Run(tmp_path / "x.sqlite") as run:
        assert [(cell.outcome, cell.note) for cell in run.cells()] == [("agent_timeout", "No answer within 0.2 s.")]


def test_ctrl_c_stops_all_cells_and_the_same_call_goes_on(tmp_path: Path) -> None:
    with pytest.raises(Cancelled):
        of.run({"a": walk}, trials(), tmp_path / "x.sqlite", concurrency=4, watch=press_ctrl_c_after(5))
    of.run({"a": walk}, trials(), tmp_path / "x.sqlite", concurrency=4)
    of.run({"a": walk}, trials(), tmp_path / "y.sqlite")
    assert story(tmp_path / "x.sqlite") == story(tmp_path / "y.sqlite")


def test_faults_stay_in_their_cell(tmp_path: Path) -> None:
    def broken(turn: Turn) -> Reply:
        raise RuntimeError("no")

    of.run({"a": walk, "b": broken}, trials(3), tmp_path / "x.sqlite", concurrency=6)
    with Run(tmp_path / "x.sqlite") as run:
        outcomes = {(cell.agent, cell.outcome) for cell in run.cells()}
    assert outcomes == {("a", "done"), ("b", "agent_error")}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"concurrency": 0}, "From 1 to 1000 cells can be played at once here, not 0."),
        ({"concurrency": 2_000}, "From 1 to 1000 cells"),
        ({"concurrency": 2, "executor": "ray"}, "either in this process"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, options: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        of.run({"a": walk}, trials(1), tmp_path / "x.sqlite", **options)


def test_other_agents_are_left_as_they_are() -> None:
    def plain(turn: Turn) -> Reply:
        return Reply("up")

    assert adapt_async(plain, None) is plain
    assert isinstance(adapt_async(walk, None), AsyncAgent)  # type: ignore[arg-type]
