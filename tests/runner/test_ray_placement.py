"""Which slots are requested and what each is sent: the driver's side, with slots that a test lets play."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from openfield.errors import InvalidInput
from openfield.journal.writer import Journal
from openfield.options import fill
from openfield.runner.experiment import RunOptions
from openfield.runner.plan import make_plan
from openfield.runner.player import Job
from openfield.runner.ray import executor as ray_executor
from openfield.runner.ray.executor import MAX_TOGETHER, MAX_WAITING, MIN_REQUESTED, ClusterWarning, RayExecutor
from support.players import Learner, copycat
from support.ray_cluster import FakeRay
from support.worlds import tiny_trials


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
        """Request slots, send what waits, and hear what has ended."""
        for _ in range(3):
            self.executor.poll()

    def fill(self, agent: str = "one") -> None:
        """Start jobs while the executor takes some."""
        while self.executor.free:
            self.start(agent)
        self.poll()


Start = Callable[..., Driver]


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, path: Path) -> Iterator[Start]:
    """Start a driver on a cluster of a test."""
    drivers: list[Driver] = []

    def start(ray: FakeRay, **changes: Any) -> Driver:
        connection = SimpleNamespace(
            ray=ray, open=lambda: None, is_local=False, answers=lambda: ray.is_there, head="there:1"
        )
        driver = Driver(connection, path, **changes)
        drivers.append(driver)
        driver.poll()
        return driver

    monkeypatch.setattr(ray_executor, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(ray_executor, "POLL_SECONDS", 0.0)
    yield start
    for driver in drivers:
        driver.executor.close()


def test_a_slot_is_requested_for_each_job_that_waits(on: Start) -> None:
    """What is free is used, also where other programs hold the rest; what is not is demand that Ray sees."""
    ray = FakeRay()
    for _ in range(2):
        ray.add(4, others=1)
    driver = on(ray)
    for _ in range(10):
        driver.start()
    driver.poll()
    assert [len(slot.jobs) for slot in ray.slots] == [1] * 6
    assert len(ray.requested) == 4
    ray.add(2)
    driver.poll()
    assert [len(slot.jobs) for slot in ray.slots] == [1] * 8
    driver.fill()
    assert len(ray.requested) == MIN_REQUESTED
    assert driver.executor.free == 0


def test_requests_end_with_the_jobs_that_waited(on: Start) -> None:
    ray = FakeRay(1)
    driver = on(ray)
    for _ in range(3):
        driver.start()
    driver.poll()
    assert len(ray.requested) == 2
    (slot,) = ray.slots
    for left in (1, 0, 0):
        slot.end(seconds=1.0)
        driver.poll()
        assert len(ray.requested) == left
    assert ray.slots == [slot]
    assert len(driver.emitted) == 3


def test_an_idle_slot_is_given_back(on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = FakeRay(1)
    driver = on(ray)
    driver.start()
    driver.poll()
    (slot,) = ray.slots
    slot.end()
    driver.poll()
    assert slot.calls == []
    monkeypatch.setattr(ray_executor, "IDLE_SECONDS", -1.0)
    driver.poll()
    assert slot.calls == ["close"]


def test_an_idle_slot_is_given_back_at_once_if_another_agent_waits(on: Start) -> None:
    ray = FakeRay(2)
    driver = on(ray, resources={"other": {"num_cpus": 2}})
    driver.start("one")
    driver.poll()
    driver.start("other")
    driver.poll()
    (slot,) = ray.slots
    assert len(slot.jobs) == 1
    slot.end()
    driver.poll()
    assert slot.calls == ["close"]


def test_each_agent_has_slots_with_what_it_needs(on: Start) -> None:
    driver = on(ray := FakeRay(4), resources={"other": {"num_cpus": 2}})
    for agent in ("other", "one", "one"):
        driver.start(agent)
    driver.poll()
    assert sorted((slot.options["num_cpus"], slot.jobs[0].cell.agent) for slot in ray.slots) == [
        (1.0, "one"),
        (1.0, "one"),
        (2.0, "other"),
    ]


@pytest.mark.parametrize(("seconds", "sent"), [(0.3, 1), (0.125, 4), (0.001, MAX_TOGETHER)])
def test_short_cells_are_sent_together(on: Start, seconds: float, sent: int) -> None:
    """Only when it is known how long they last, and no more than half a second's worth of them."""
    driver = on(ray := FakeRay(1))
    driver.fill()
    (slot,) = ray.slots
    assert len(slot.jobs) == 1
    slot.end(seconds)
    driver.poll()
    assert len(slot.jobs) == sent
    for number in range(sent):
        slot.end(seconds=0.3 if number == sent - 1 else 0.001)  # longer than expected counts at once
        driver.poll()
    assert len(slot.jobs) == 1


def test_no_long_cell_waits_behind_another(on: Start) -> None:
    """The cells of one agent are short; nothing is known of the other's."""
    ray = FakeRay(1)
    driver = on(ray)
    driver.start("one")
    driver.poll()
    (slot,) = ray.slots
    slot.end(seconds=0.01)
    driver.poll()
    for agent in ("one", "other", "one"):
        driver.start(agent)
    driver.poll()
    assert [job.cell.agent for job in slot.jobs] == ["one"]
    slot.end(seconds=0.01)
    driver.poll()
    assert [job.cell.agent for job in slot.jobs] == ["other"]


def test_jobs_of_a_lost_slot_are_put_back_and_fail_only_if_many_are_lost(
    on: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_executor, "MAX_LOST", 1)
    monkeypatch.setattr(ray_executor, "listens", lambda place: True)
    ray = FakeRay(1)
    ray.nodes()[0]["NodeManagerPort"] = 1
    driver = on(ray)
    job = driver.start()
    for _ in range(2):
        driver.poll()
        ray.slots[0].stream.failure = LookupError("It is gone.")
        driver.poll()
        driver.executor.start(job)
    assert driver.put_back == [job.cell.id]
    assert [(end.outcome, end.torn) for end in driver.emitted] == [("harness_error", True)]
    assert "2 machines or processes were lost" in driver.emitted[0].note


def test_a_lost_machine_is_said_once(on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor, "listens", lambda place: False)
    ray = FakeRay(2)
    ray.nodes()[0]["NodeManagerPort"] = 1
    driver = on(ray)
    jobs = [driver.start(), driver.start()]
    driver.poll()
    for slot in ray.slots:
        slot.stream.failure = LookupError("It is gone.")
    with pytest.warns(ClusterWarning, match=r"^Machine machine is lost\. Its cells go on elsewhere") as said:
        driver.poll()
    assert len(said) == 1
    assert driver.put_back == [job.cell.id for job in jobs]


def test_no_slot_is_requested_on_a_machine_that_cannot_play(on: Start) -> None:
    ray = FakeRay()
    ray.add(2, problem="it has no module")
    ray.add(1)
    driver = on(ray)
    for _ in range(3):
        driver.start()
    with pytest.warns(ClusterWarning, match="^Machine machine is left out: it cannot play: it has no module$") as said:
        driver.poll()
    assert len(said) == 1
    assert [slot.node for slot in ray.slots] == [ray.nodes()[1]]
    assert len(ray.requested) == 2


def test_slots_that_never_get_ready_end_the_run(on: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor, "LOOK_SECONDS", -1.0)
    ray = FakeRay(1)

    def fail(answer: Any) -> Any:
        raise LookupError("The actor died.")

    monkeypatch.setattr(ray, "get", fail)
    driver = on(ray)
    driver.start()
    monkeypatch.setattr(ray_executor, "MAX_LOST", 1)
    with pytest.raises(InvalidInput, match=r"Nothing can be played on the cluster: .*: The actor died\.$"):
        driver.poll()


def test_jobs_that_wait_for_a_machine_are_left_when_the_budget_is_used_up(on: Start) -> None:
    driver = on(FakeRay(1), resources={"other": {"arm": 1}}, options=fill(RunOptions, {"budget": "0.000001s"}))
    waiting = driver.start("other")
    driver.poll()
    assert driver.put_back == [waiting.cell.id]
    assert driver.executor.free == MAX_WAITING


def test_a_stop_is_sent_once_and_ends_what_waits(on: Start) -> None:
    driver = on(ray := FakeRay(1))
    jobs = [driver.start(), driver.start()]
    driver.poll()
    driver.executor.stop()
    driver.poll()
    assert ray.slots[0].calls == ["stop"]
    assert [(end.cell, end.outcome) for end in driver.emitted] == [(jobs[1].cell.id, "cancelled")]


@pytest.mark.parametrize(
    ("cpus", "why"),
    [((), "No machine has what the agent 'one' needs: num_cpus=1"), ((2,), "other programs may hold the cluster")],
)
def test_a_run_says_once_what_it_waits_for(
    on: Start, monkeypatch: pytest.MonkeyPatch, cpus: tuple[int, ...], why: str
) -> None:
    monkeypatch.setattr(ray_executor, "IDLE_SECONDS", -1.0)
    ray = FakeRay()
    for count in cpus:
        ray.add(count, others=count)
    driver = on(ray)
    driver.start()
    with pytest.warns(ClusterWarning, match=why) as said:
        driver.poll()  # more than once
    assert len(said) == 1


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
    with pytest.raises(InvalidInput, match=r"The head of the cluster at there:1 does not answer any more\."):
        driver.poll()
    driver.executor.close()
    assert driver.put_back == []
