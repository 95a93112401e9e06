"""Play one cell: make world and agent, start or resume, drive to the end and say how it ended.

Stands between the scheduler of `run`, which starts cells, and rollout, which plays them. It is all a worker does.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from openfield.capabilities import PreparesTrials, is_oracle
from openfield.cell import Cell
from openfield.clock import monotonic_ns
from openfield.core import Agent, AgentFactory, Remembers, Saves
from openfield.domain import Domain, make_world, spec_of
from openfield.errors import (
    AgentAway,
    AgentDiffers,
    AgentFault,
    AgentTimeout,
    Cancelled,
    JournalError,
    OpenfieldError,
    ReplayMismatch,
    WorldFault,
    describe_error,
)
from openfield.journal.reader import Run
from openfield.journal.recorder import Emit, Recorder
from openfield.journal.replay import recall, resume_rollout
from openfield.limit_guard import NEVER, Heartbeat
from openfield.parameters import AgentText, is_command, read_agent
from openfield.processes.program import Guard
from openfield.provenance.rules import own_rule
from openfield.record import AttemptPlayer, RawStep
from openfield.registry import WIRE_AGENTS, AgentSource, find_agent, load, use_recorded
from openfield.rollout import Rollout, drive
from openfield.runner.deadline import Deadline, adapt_async, save_at_intervals
from openfield.trial import with_places

if TYPE_CHECKING:
    from openfield.isolation import Isolation
    from openfield.provenance.versions import Code
    from openfield.runner.isolation.sandbox import Sandbox

AWAY = "The agent is away:"
"""How the note of an attempt begins that can be resumed when a service of its agent answers again."""


class Job(msgspec.Struct, frozen=True):
    """A cell to be played, with all a worker needs to know."""

    cell: Cell
    attempt: int
    agent: AgentSource
    domain: str
    """Where the domain is found."""
    run: Path
    """The run file, to read the earlier record."""
    steps: int = 0
    """How many steps of this attempt are recorded."""
    start: tuple[Cell, int] | None = None
    """The cell and attempt whose agent this one goes on with."""
    isolation: Isolation | None = None
    """What the agent may see and use in a process of its own; None lets it play in the worker's."""
    save_seconds: float = 0.0
    """How many seconds pass between two states of the agent, at least: play after the last one is lost."""
    full: bool = False
    """Whether large arrays of turns are kept, and not only their digests."""
    places: dict[str, str] = {}
    """Where files are on this machine that the settings of trials name, by how they name them."""
    fingerprint: str | None = None
    """That of the agent in the plan; None if it is not known."""

    def settle(self) -> Job:
        """Return the job with the places that files have on this machine. Its cells keep their ids."""
        if not self.places:
            return self
        start = None if self.start is None else (self._move(self.start[0]), self.start[1])
        return msgspec.structs.replace(self, cell=self._move(self.cell), start=start)

    def _move(self, cell: Cell) -> Cell:
        return msgspec.structs.replace(cell, trial=with_places(cell.trial, self.places))


class Player:
    """Plays cells, one at a time."""

    def __init__(
        self,
        emit: Emit,
        heartbeat: Heartbeat | None = None,
        domains: Mapping[str, Domain[Any]] | None = None,
        factories: Mapping[tuple[str, str], AgentFactory] | None = None,
    ) -> None:
        """Play nothing yet.

        Args:
            emit: Takes the entries of the record.
            heartbeat: When the agent must have answered, for who watches from outside.
            domains: The domains that are known already, by name.
            factories: The agents that are known already, by their text and the name of the domain.
        """
        self._emit = emit
        self._heartbeat = heartbeat
        self._domains = dict(domains or {})
        self._rollout: Rollout | None = None
        self._stopping = False
        self._interrupted = 0
        self._announced: set[tuple[Path, str]] = set()  # runs and domains that know of each other
        self._factories = dict(factories or {})
        self._codes: dict[tuple[str, str], Code | None] = {}  # of agents, when they were loaded here
        self._data: dict[tuple[str, str], dict[str, str] | None] = {}  # the same with the data that were last read

    def stop(self) -> None:
        """End the cell as cancelled after its current turn. A signal handler may call this."""
        self._stopping = True
        if self._rollout is not None:
            self._rollout.stop()

    def interrupt(self) -> None:
        """Raise a timeout if the agent is late with an answer. A signal handler calls this.

        It raises once a question and leaves the heartbeat as it is: an agent that swallows the error stays late, and
        its worker is ended from outside.
        """
        due = 0 if self._heartbeat is None else self._heartbeat[0]
        if due not in (0, self._interrupted) and monotonic_ns() > due:
            self._interrupted = due
            raise AgentTimeout("No answer in time.")

    def play(self, job: Job) -> None:
        """Play a cell to its end, emit everything, its outcome last, and then close the agent.

        The outcome is known before that: the agent's `close` no longer matters to the record.
        """
        job = job.settle()
        recorder = Recorder(job.cell.id, job.attempt, self._emit, job.steps, job.full)
        with ExitStack() as afterwards:
            try:
                afterwards.enter_context(_returning())
                outcome, note = self._play(job, recorder, afterwards), ""
            except JournalError:
                raise
            except Exception as error:
                outcome, note = explain_failure(error)
            self._end(recorder, outcome, note)

    def _end(self, recorder: Recorder, outcome: str, note: str) -> None:
        if self._heartbeat is not None:
            self._heartbeat[0] = 0  # a turn may have been left without an answer
        rollout, self._rollout = self._rollout, None
        if rollout is None:
            recorder.end(outcome, note, 0.0)
        else:
            rollout.close(outcome, note)

    def _play(self, job: Job, recorder: Recorder, afterwards: ExitStack, rewinds: bool = False) -> str:
        """Play a cell and return its outcome.

        Args:
            job: The cell.
            recorder: Where steps are written.
            afterwards: Actions to take in the end.
            rewinds: Whether the turns after the agent's last state are thrown away instead of played again.
        """
        domain, source, trial = self._find_domain(job), read_agent(job.agent), job.cell.trial
        self._announce(job, domain)
        self._check_version(job, source, domain)
        if isinstance(source, AgentText) and source.text.startswith("wire:"):
            return self._play_program(job, domain, recorder, source.text.removeprefix("wire:"))
        ask = Deadline(self._heartbeat, trial.limits.reply_seconds)
        agent = make_agent(job, self._find_agent(job, source, domain, afterwards), domain, ask)
        afterwards.callback(ask.close, agent)
        rollout = self._open(
            job, domain, recorder, self._prepare(agent, job, domain, recorder, ask, rewinds), self._heartbeat
        )
        if isinstance(agent, Saves):
            rollout.save = save_at_intervals(partial(ask.save, agent), job.save_seconds)
        if hasattr(agent, "on_wait"):
            agent.on_wait = partial(_excuse, rollout)
        if is_oracle(source, domain):
            agent.attend(rollout.world)  # type: ignore[attr-defined]
        try:
            if isinstance(agent, Remembers):
                ask.remind(agent, recall(rollout))
            return drive(rollout, agent)
        except AgentDiffers as error:
            if not rewinds and self._has_state(job, agent):
                rollout.world.close()
                return self._play(job, recorder, afterwards, rewinds=True)
            either = "" if isinstance(agent, Saves) else "save() and load(), or "
            raise AgentDiffers(
                f"{error} The trial starts again: {job.steps - 1} recorded replies are thrown away. "
                f"To keep them next time, give the agent {either}remember(turn, reply)."
            ) from None

    def _play_program(self, job: Job, domain: Domain[Any], recorder: Recorder, command: str) -> str:
        """Let a program that speaks the domain's wire play the cell."""
        heartbeat = None if load(f"{WIRE_AGENTS}:is_watched")(command) else self._heartbeat
        rollout = self._open(job, domain, recorder, known=0, heartbeat=heartbeat)
        guard = Guard() if job.isolation is None else _make_sandbox(job.isolation, job.run)
        try:
            outcome: str = load(f"{WIRE_AGENTS}:drive_program")(rollout, domain, job.cell, command, guard)
        except AgentDiffers as error:
            lost = job.steps - 1
            raise AgentDiffers(f"{error} The trial starts again: {lost} recorded replies are thrown away.") from None
        return outcome

    def _find_domain(self, job: Job) -> Domain[Any]:
        """Return the domain of a job, which is looked for once in each process."""
        name = job.cell.trial.domain
        if name not in self._domains:
            self._domains[name] = use_recorded(job.domain, name)
        return self._domains[name]

    def _find_agent(self, job: Job, source: AgentSource, domain: Domain[Any], afterwards: ExitStack) -> AgentFactory:
        """Return the factory of an agent. One that is not isolated is looked for once in each process."""
        if job.isolation is not None and self._is_isolated(job, source, domain):
            from openfield.runner.isolation.agent import isolate_agent

            factory = isolate_agent(str(source), job.domain, job.isolation, job.run)
            afterwards.callback(getattr(factory, "close", lambda: None))
            return factory
        if not isinstance(source, AgentText):
            return find_agent(source, domain)
        key = source.text, domain.name
        if key not in self._factories:
            self._factories[key] = find_agent(source, domain)
        return self._factories[key]

    def _check_version(self, job: Job, source: AgentSource, domain: Domain[Any]) -> None:
        """Record which version of the agent plays, where its code is loaded, if it is not the one of the plan.

        A program, and an agent that is isolated, is loaded for every cell, any other once in each process, but the
        files of data that it is given are read for every cell.
        """
        if job.fingerprint is None or not isinstance(source, AgentText):
            return
        from openfield.provenance.versions import identify_agent

        key, anew = (source.text, domain.name), is_command(source.text) or self._is_isolated(job, source, domain)
        if anew or key not in self._codes:
            self._codes[key] = identify_agent(source, domain)
        loaded = code = self._codes[key]
        if not anew and loaded is not None and loaded.has_data:
            now = identify_agent(source, domain)
            code = None if now is None else now.loaded_as(loaded)
            data, before = None if code is None else code.parts, self._data.get(key, loaded.parts)
            if data != before:
                self._factories.pop(key, None)  # it may hold a network that was read from them
            self._data[key] = data
        if code is None or loaded is None or code.version.fingerprint == job.fingerprint:
            return
        if not anew and multiprocessing.parent_process() is None and code.parts == loaded.parts:
            return  # this process loaded it when the run was planned
        found = code.version.fingerprint
        if job.steps:
            lost = job.steps - 1
            raise AgentDiffers(f"The agent was edited. The trial starts again: {lost} replies are thrown away.")
        self._emit(AttemptPlayer(job.cell.id, job.attempt, found))

    def _is_isolated(self, job: Job, source: AgentSource, domain: Domain[Any]) -> bool:
        if job.isolation is None:
            return False
        from openfield.runner.isolation.agent import plays_here

        return not plays_here(source, domain)

    def _announce(self, job: Job, domain: Domain[Any]) -> None:
        """Let a domain know, once, which of its trials the run has: a process that plays one may play others."""
        if (job.run, domain.name) not in self._announced:
            self._announced.add((job.run, domain.name))
            if isinstance(domain, PreparesTrials):
                with Run(job.run) as run:
                    domain.expect(trial for trial in run.trials() if trial.domain == domain.name)

    def _prepare(
        self, agent: Agent, job: Job, domain: Domain[Any], recorder: Recorder, ask: Deadline, rewinds: bool
    ) -> int:
        """Bring an agent to where its cell stands, and return how many recorded steps it then knows.

        A saved agent is shown the turns after its last state again, and must answer as it did; one that answers
        otherwise plays on from its state (`rewinds`). One that remembers is only reminded of them.
        """
        stateless = getattr(agent, "stateless", False)
        if not job.steps and (job.start is None or stateless):
            return NEVER if stateless else 0
        with Run(job.run) as run:
            state = run.state(job.cell.id, job.attempt) if job.steps else None
            if state is not None and isinstance(agent, Saves):
                ask.load(agent, state[1])
                if not rewinds or isinstance(agent, Remembers):
                    return state[0]
                recorder.rewind(state[0])
                return NEVER
            if job.start is not None and not stateless:
                self._go_on_from(agent, *job.start, domain, run, ask)
        return NEVER if stateless else 0

    def _has_state(self, job: Job, agent: Agent) -> bool:
        """Return whether a state of the agent was recorded, from which it can play on."""
        with Run(job.run) as run:
            return job.steps > 0 and isinstance(agent, Saves) and run.state(job.cell.id, job.attempt) is not None

    def _go_on_from(self, agent: Agent, cell: Cell, attempt: int, domain: Domain[Any], run: Run, ask: Deadline) -> None:
        """Bring an agent to the end of another trial: load its state, or let it play the recorded turns again."""
        state = run.state(cell.id, attempt)
        if state is not None and isinstance(agent, Saves):
            ask.load(agent, state[1])
            return
        past = list(run.raw_steps(cell.id, attempt))
        rollout = open_rollout(domain, cell, None, past, 0, self._heartbeat)
        rollout.stop()  # where the record ends
        try:
            with suppress(Cancelled):
                if isinstance(agent, Remembers):
                    ask.remind(agent, recall(rollout))
                drive(rollout, agent)
        except AgentDiffers as error:
            raise AgentFault(
                f"The agent has no save() and replied differently when trial {cell.trial.id} was replayed: {error} "
                "Give it save() and load(), or remember(turn, reply)."
            ) from None
        finally:
            rollout.close()

    def _open(
        self, job: Job, domain: Domain[Any], recorder: Recorder, known: int, heartbeat: Heartbeat | None
    ) -> Rollout:
        past: list[RawStep] = []
        if recorder.written:
            with Run(job.run) as run:
                past = list(itertools.islice(run.raw_steps(job.cell.id, job.attempt), recorder.written))
        self._rollout = open_rollout(domain, job.cell, recorder, past, known, heartbeat)
        if self._stopping:
            self._rollout.stop()
        return self._rollout


def _make_sandbox(isolation: Isolation, run: Path) -> Sandbox:
    from openfield.runner.isolation.sandbox import Sandbox

    return Sandbox(isolation, run)


@contextmanager
def _returning() -> Iterator[None]:
    """Come back to this folder in the end: an agent may leave it, and the next one starts here again."""
    here = ""
    with suppress(FileNotFoundError):
        here = os.getcwd()
    try:
        yield
    finally:
        with suppress(OSError):
            os.chdir(here)


def _excuse(rollout: Rollout, nanoseconds: int) -> None:
    """Subtract an agent's waiting for an endpoint from a reply's time; stop waiting if the rollout is to stop."""
    rollout.guard.excuse(nanoseconds)
    if rollout.guard.stopping:
        raise Cancelled("Stopped while it waited.")


def open_rollout(
    domain: Domain[Any],
    cell: Cell,
    recorder: Recorder | None,
    past: Iterable[RawStep],
    known: int = NEVER,
    heartbeat: Heartbeat | None = None,
) -> Rollout:
    """Open a rollout of a cell's trial in a fresh world. The world is closed again if that fails."""
    try:
        world = make_world(domain, cell.trial)
    except OpenfieldError:
        raise
    except Exception as error:
        raise WorldFault(f"The world could not be made: {describe_error(error)}") from error
    if recorder is not None:
        recorder.rule = own_rule(domain, cell.trial)
    try:
        return resume_rollout(world, past, cell.trial.limits, recorder, heartbeat, known)
    except BaseException:
        world.close()
        raise


def make_agent(job: Job, factory: AgentFactory, domain: Domain[Any], ask: Deadline) -> Agent:
    """Make a fresh agent for a cell, with its earlier seed if it must repeat its earlier replies."""
    spec, seed = spec_of(domain, job.cell.trial), job.cell.seed
    if job.start is not None and not getattr(factory, "stateless", False):
        cell, attempt = job.start
        with Run(job.run) as run:
            seed = cell.seed if run.state(cell.id, attempt) is None else seed  # without a state it plays that again
    agent = ask(lambda: factory(spec, seed), "The agent could not be made:")
    return adapt_async(agent, spec.reply_seconds)


def explain_failure(error: Exception) -> tuple[str, str]:
    """Return the outcome that an error leads to, and a line for people."""
    match error:
        case AgentFault():
            return error.outcome, str(error)
        case AgentDiffers():
            return "superseded", str(error)
        case ReplayMismatch():
            return "cancelled", str(error)
        case AgentAway():
            return "cancelled", f"{AWAY} {error}"
        case Cancelled():
            return "cancelled", ""
        case WorldFault():
            return "world_error", str(error)
        case OpenfieldError():
            return "harness_error", str(error)
    return "harness_error", describe_error(error)
