"""A cluster without Ray, for the driver's side of it: machines keep the jobs that they get until a test ends them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from openfield.record import REPLY_ENCODER, AttemptEnd
from openfield.runner.player import Job
from openfield.runner.ray.foreman import Greeting


class Answer:
    """What Ray calls a reference."""

    def __init__(self, value: Any = None, is_ready: bool = True) -> None:
        self.value, self.is_ready = value, is_ready


class Stream:
    """Batches that a machine has for the driver."""

    def __init__(self) -> None:
        self.batches: deque[bytes] = deque()

    @property
    def is_ready(self) -> bool:
        return bool(self.batches)

    def __next__(self) -> Answer:
        return Answer(self.batches.popleft())


class Method:
    """A method of an actor."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.remote = call

    def options(self, **_: Any) -> Method:
        return self


class FakeForeman:
    """A foreman that plays nothing by itself."""

    def __init__(self, is_there: bool) -> None:
        self.jobs: list[Job] = []
        """What it was sent and has not ended."""
        self._stream = Stream()
        self.greet = Method(lambda outfit: Answer(Greeting("machine"), is_there))
        self.__ray_ready__ = Method(lambda: Answer(None, is_there))
        self.stream = Method(lambda: self._stream)
        self.start = Method(lambda *tasks: self.jobs.extend(task.job for task in tasks))
        self.stop = self.clean_up = Method(Answer)

    @property
    def has_news(self) -> bool:
        """Whether the driver has yet to hear of an end."""
        return self._stream.is_ready

    def end(self, job: Job, seconds: float = 0.0, outcome: str = "done") -> None:
        """Tell the driver that a job has ended."""
        self.jobs.remove(job)
        self._stream.batches.append(
            REPLY_ENCODER.encode([[AttemptEnd(job.cell.id, job.attempt, outcome, "", seconds)]])
        )


class FakeRay:
    """The module `ray`, connected to machines with so many processors each."""

    exceptions = SimpleNamespace(RayError=LookupError, ObjectStoreFullError=MemoryError)

    def __init__(self, *cpus: int, is_free: bool = True) -> None:
        self.foremen: list[FakeForeman] = []
        self._nodes: list[dict[str, Any]] = []
        self._is_free = is_free
        self.is_there = True
        """Whether the head of the cluster answers."""
        for count in cpus:
            self.add(count)

    def add(self, cpus: int) -> None:
        """Let a machine join."""
        name = f"{len(self._nodes) + 1:056x}"  # Ray checks what it looks like
        self._nodes.append({"NodeID": name, "Alive": True, "Resources": {"CPU": float(cpus)}})

    def nodes(self) -> list[dict[str, Any]]:
        return self._nodes

    def remote(self, **_: Any) -> Callable[[type], Method]:
        return lambda actor: Method(self._hire)

    def _hire(self, cpus: float) -> FakeForeman:
        self.foremen.append(FakeForeman(self._is_free))
        return self.foremen[-1]

    def put(self, value: Any) -> Any:
        return value

    def get(self, answer: Answer) -> Any:
        return answer.value

    def wait(self, answers: Iterable[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        found = list(answers)
        return [each for each in found if each.is_ready], [each for each in found if not each.is_ready]

    def kill(self, foreman: FakeForeman) -> None:
        foreman.jobs.clear()
