"""A cluster without Ray, for the driver's side of it: slots keep the jobs that they get until a test ends them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from openfield.record import REPLY_ENCODER, AttemptEnd
from openfield.runner.player import Job
from openfield.runner.ray.slot import SlotReport


class Answer:
    """What Ray calls a reference."""

    def __init__(self, get: Callable[[], Any] = lambda: None, is_ready: Callable[[], bool] = lambda: True) -> None:
        self.get, self._is_ready = get, is_ready

    @property
    def is_ready(self) -> bool:
        return self._is_ready()


class Stream:
    """Batches that a slot has for the driver."""

    def __init__(self) -> None:
        self.batches: deque[bytes] = deque()
        self.failure: Exception | None = None

    @property
    def is_ready(self) -> bool:
        return bool(self.batches) or self.failure is not None

    def __next__(self) -> Answer:
        if self.failure is not None:
            raise self.failure
        return Answer(self.batches.popleft)


class Method:
    """A method of an actor."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.remote = call

    def options(self, **_: Any) -> Method:
        return self


class FakeSlot:
    """A slot that plays nothing by itself."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.node: dict[str, Any] | None = None
        """Where it is; None while it waits for room."""
        self.jobs: list[Job] = []
        """What it was sent and has not ended."""
        self.problem = ""
        self.stream = Stream()
        self.calls: list[str] = []
        arrived = Answer(self._report, lambda: self.node is not None)
        self.prepare = Method(lambda *_: arrived)
        self.__ray_ready__ = Method(lambda: arrived)
        self.play = Method(self._play)
        self.stop = Method(lambda: self.calls.append("stop"))
        self.close = Method(lambda: self.calls.append("close") or Answer())  # type: ignore[func-returns-value]

    def end(self, seconds: float = 0.0, outcome: str = "done") -> None:
        """Tell the driver that the first job has ended."""
        job = self.jobs.pop(0)
        end = AttemptEnd(job.cell.id, job.attempt, outcome, "", seconds)
        self.stream.batches.append(REPLY_ENCODER.encode([[end]]))

    def _report(self) -> SlotReport:
        assert self.node is not None
        return SlotReport(self.node["NodeID"], "machine", self.node["Problem"])

    def _play(self, gather: float, *tasks: Any) -> Stream:
        self.jobs += [task.job for task in tasks]
        self.stream = Stream()
        return self.stream


class FakeRay:
    """The module `ray`, connected to machines with these numbers of processors."""

    exceptions = SimpleNamespace(RayError=LookupError, ObjectStoreFullError=MemoryError)

    def __init__(self, *cpus: int) -> None:
        self._slots: list[FakeSlot] = []
        self._nodes: list[dict[str, Any]] = []
        self.is_there = True
        """Whether the head of the cluster answers."""
        for count in cpus:
            self.add(count)

    @property
    def slots(self) -> list[FakeSlot]:
        """Those that have a place."""
        return [slot for slot in self._slots if slot.node is not None]

    @property
    def requested(self) -> list[FakeSlot]:
        """Those that wait for room."""
        return [slot for slot in self._slots if slot.node is None]

    def add(self, cpus: int, problem: str = "", others: int = 0) -> None:
        """Let a machine join, on which other programs hold some processors."""
        node = {"NodeID": f"{len(self._nodes) + 1:056x}", "Alive": True, "Resources": {"CPU": float(cpus)}}
        self._nodes.append({**node, "Free": float(cpus - others), "Problem": problem, "NodeManagerAddress": "there"})
        self._place()

    def nodes(self) -> list[dict[str, Any]]:
        return self._nodes

    def remote(self, **_: Any) -> Callable[[type], Any]:
        return lambda actor: SimpleNamespace(options=lambda **options: Method(lambda *_: self._request(options)))

    def _request(self, options: dict[str, Any]) -> FakeSlot:
        self._slots.append(FakeSlot(options))
        self._place()
        return self._slots[-1]

    def _place(self) -> None:
        for slot in self.requested:
            avoided = slot.options.get("label_selector", {}).get("ray.io/node-id", "")
            for node in self._nodes:
                fits = all(
                    node["Resources"].get(name, 0) >= amount for name, amount in slot.options["resources"].items()
                )
                if fits and node["Free"] >= slot.options["num_cpus"] and node["NodeID"] not in avoided:
                    node["Free"] -= slot.options["num_cpus"]
                    slot.node = node
                    break

    def put(self, value: Any) -> Any:
        return value

    def get(self, answer: Answer) -> Any:
        return answer.get()

    def wait(self, answers: Iterable[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        found = list(answers)
        return [each for each in found if each.is_ready], [each for each in found if not each.is_ready]

    def kill(self, slot: FakeSlot) -> None:
        self._slots.remove(slot)
        if slot.node is not None:
            slot.node["Free"] += slot.options["num_cpus"]
        self._place()
