"""Which machine gets which job, and when: the driver's side, with machines that a test lets play."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openfield.errors import InvalidInput
from openfield.journal.writer import Journal
from openfield.record import AttemptEnd
from openfield.runner.plan import make_plan
from openfield.runner.player import Job
from openfield.runner.ray import executor as ray_executor
from openfield.runner.ray import foreman as ray_foreman
from openfield.runner.ray.executor import MAX_AHEAD, ClusterWarning, RayExecutor
from openfield.runner.ray.foreman import RETURNED, ShippedJob
from support.players import Learner, copycat
from support.ray_cluster import FakeRay
from support.worlds import tiny_trials

pytest.importorskip("ray", reason="the extra `ray` is not installed")


class Driver:
    """An executor on machines of a test, with the jobs that it is to play."""

    def __init__(self, connection: Any, path: Path, **changes: Any) -> None:
        self.plan = replace(make_plan({"one": copycat, "other": Learner}, tiny_trials(400)), **changes)
        self.emitted: list[Any] = []
        self.put_back: list[str] = []
        with Journal(path):
            pass
        self.executor = RayExecutor(self._emit, self.put_back.append, self.plan, path, connection)
        self._jobs = {
            name: iter([Job(cell, 1, agent, "tiny", path) for cell in self.plan.cells if cell.agent == name])
            for name, agent in self.plan.agents.items()
        }

    def _emit(self, *entries: Any) -> None:
        self.emitted += entries

    def start(self, agent: str = "one") -> Job:
        job = next(self._jobs[agent])
        self.executor.start(job)
        return job

    def poll(self) -> None:
        """Send what was started, and hear what has ended."""
        for _ in range(2):
            self.executor.poll()

    def fill(self, agent: str = "one") -> int:
        """Start jobs while the executor takes some, and return how many it took."""
        count = 0
        while self.executor.free:
            self.start(agent)
            count += 1
        self.poll()
        return count


Start = Callable[..., Driver]


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, path: Path) -> Start:
    """Start a driver on a cluster of a test."""

    def start(ray: FakeRay, **changes: Any) -> Driver:
        connection = SimpleNamespace(
            ray=ray, open=lambda: None, is_local=False, answers=lambda: ray.is_there, head="there:1"
        )
        driver = Driver(connection, path, **changes)
        driver.poll()
        return driver

    monkeypatch.setattr(ray_executor, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(ray_executor, "POLL_SECONDS", 0.0)
    return start


def test_no_cell_waits_on_a_machine_before_one_has_ended(on: Start) -> None:
    """Nothing is known of how long they last: another machine may be free, or join, before."""
    ray = FakeRay(1, 2)
    driver = on(ray)
    assert driver.fill() == 3
    assert [len(foreman.jobs) for foreman in ray.foremen] == [1, 2]
    ray.add(1)
    driver.poll()
    assert driver.fill() == 1
    assert len(ray.foremen[2].jobs) == 1


def test_long_cells_never_wait_on_a_machine(on: Start) -> None:
    ray = FakeRay(1, 1)
    driver = on(ray)
    driver.fill()
    for _ in range(5):
        for foreman in ray.foremen:
            foreman.end(foreman.jobs[0], seconds=0.3)
            driver.poll()
            assert driver.fill() == 1
            assert [len(each.jobs) for each in ray.foremen] == [1, 1]


def test_short_cells_wait_on_a_machine_so_that_it_is_busy_between_two_batches(on: Start) -> None:
    ray = FakeRay(1, 1)
    driver = on(ray)
    driver.fill()
    for foreman in ray.foremen:
        foreman.end(foreman.jobs[0], seconds=0.125)
    driver.poll()
    driver.fill()
    assert [len(foreman.jobs) for foreman in ray.foremen] == [5, 5]  # one plays, four last half a second
    machine = ray.foremen[0]
    for _ in range(4):
        for job in list(machine.jobs):
            machine.end(job, seconds=0.001)
        while machine.has_news:
            driver.poll()
        driver.fill()
    assert len(machine.jobs) == 1 + MAX_AHEAD


def test_nothing_waits_behind_a_long_cell(on: Start) -> None:
    """The cells of one agent are short; the other's are long, or nothing is known of them."""
    ray = FakeRay(1, 1)
    driver = on(ray)
    driver.start("one")
    driver.start("other")
    driver.poll()
    short, long = ray.foremen
    short.end(short.jobs[0], seconds=0.01)
    driver.poll()
    driver.fill("one")
    assert len(short.jobs) > 10
    assert len(long.jobs) == 1


def test_a_long_cell_that_waits_is_played_before_later_short_ones(on: Start) -> None:
    ray = FakeRay(1)
    driver = on(ray)
    driver.start("one")
    driver.poll()
    (machine,) = ray.foremen
    machine.end(machine.jobs[0], seconds=0.01)
    driver.poll()
    driver.start("one")
    held = driver.start("other")  # it may not wait on the machine
    driver.poll()
    assert driver.executor.free == 0
    machine.end(machine.jobs[0], seconds=0.01)
    driver.poll()
    assert [job.cell for job in machine.jobs] == [held.cell]


def test_a_job_that_a_machine_returns_is_put_back(on: Start) -> None:
    ray = FakeRay(1)
    driver = on(ray)
    driver.fill()
    (job,) = ray.foremen[0].jobs
    ray.foremen[0].end(job, outcome=RETURNED)
    driver.poll()
    assert driver.put_back == [job.cell.id]
    assert driver.emitted == []
    assert driver.fill() == 1


def test_jobs_that_wait_for_a_machine_are_left_when_the_budget_is_used_up(on: Start) -> None:
    driver = on(FakeRay(1), resources={"other": {"arm": 1}}, budget=0.0)
    waiting = driver.start("other")
    driver.poll()
    assert driver.put_back == [waiting.cell.id]


def test_a_machine_returns_jobs_that_wait_too_long(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """The driver expected the cell before them to be short."""

    class Busy:
        free = 0

        def __init__(self, *_: Any) -> None:
            self.jobs: list[Job] = []

        def start(self, job: Job) -> None:
            self.jobs.append(job)

        def poll(self) -> None:
            raise InterruptedError  # after one round

    monkeypatch.setattr(ray_foreman, "Processes", Busy)
    monkeypatch.setattr(ray_foreman, "RETURN_SECONDS", -1.0)
    cells = make_plan({"one": copycat}, tiny_trials(3)).cells
    inbox: queue.SimpleQueue[ShippedJob | None] = queue.SimpleQueue()
    for cell in cells:
        inbox.put(ShippedJob(Job(cell, 1, "", "tiny", path), {}))
    sent: list[Any] = []
    outbox = SimpleNamespace(put=sent.extend)
    with pytest.raises(InterruptedError):
        ray_foreman._Crews(1.0, inbox, outbox, None, lambda job: job).play()  # type: ignore[arg-type]
    assert sent == [AttemptEnd(cell.id, 1, RETURNED, "", 0.0) for cell in cells[1:]]


@pytest.mark.parametrize(
    ("ray", "why"),
    [(FakeRay(), "has no machine with a processor"), (FakeRay(2, is_free=False), "other programs may hold")],
)
def test_a_run_says_once_what_it_waits_for(on: Start, monkeypatch: pytest.MonkeyPatch, ray: FakeRay, why: str) -> None:
    monkeypatch.setattr(ray_executor, "IDLE_SECONDS", 0.0)
    with pytest.warns(ClusterWarning, match=why) as told:
        driver = on(ray)  # polls more than once
    assert len(told) == 1
    assert driver.executor.free == 0


def test_a_cluster_whose_head_is_gone_ends_the_run_in_one_line(on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of Ray any more: it would wait for a minute, and end this process with a text of its own."""
    ray = FakeRay(1)
    driver = on(ray)
    driver.start()
    driver.poll()
    ray.is_there = False
    for name in ("nodes", "kill", "wait"):
        monkeypatch.setattr(ray, name, lambda *_, **__: pytest.fail("Ray is asked"))
    driver.poll()  # it may come back
    monkeypatch.setattr(ray_executor, "LOST_SECONDS", 0.0)
    with pytest.raises(InvalidInput, match=r"The head of the cluster at there:1 does not answer any more\. What was"):
        driver.poll()
    driver.executor.close()
    assert driver.put_back == []
