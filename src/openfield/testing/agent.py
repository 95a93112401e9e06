"""Proves that an agent keeps its promises: made from a spec and a seed, repeatable, on time, able to come back.

Part of the conformance kit; every check has a name and gives what is wrong.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec

from openfield.core import Agent, Saves
from openfield.domain import Domain, spec_of
from openfield.errors import OpenfieldError
from openfield.journal.reader import SCORED
from openfield.journal.steps import ENCODER
from openfield.registry import AgentSource, domain_source, find_agent, find_domain, use_domain
from openfield.rollout import MOST_HESITATIONS
from openfield.runner.deadline import Deadline
from openfield.runner.plan import name_agents
from openfield.testing.evidence import check_trials
from openfield.testing.report import Judgement, Report, judge
from openfield.testing.tape import Tape, record, rehearse_agent
from openfield.testing.worker import Here, Hung, Worker, global_random
from openfield.trial import Trial

LARGEST_REPLY = 1 << 20
"""Bytes of one reply; nobody has that much to say."""


def check_agent(
    agent: AgentSource, domain: Domain[Any], trial: Trial | None = None, seed: int = 1, patience: float = 5.0
) -> Report:
    """Holds an agent against every promise an agent makes.

    Args:
        agent: A name, a class, a factory or a function. It should be one another process can import; otherwise nothing
            ends it when it hangs.
        domain: Where it is to play.
        trial: What it is to play; by default a small trial of the domain with its first novelty.
        seed: What it is made with.
        patience: Seconds it may need for one answer.
    """
    use_domain(domain)
    chosen = trial or check_trials(domain)[0]
    with Worker(patience) if _can_be_sent(agent, domain) else Here() as worker:
        (name,) = name_agents([agent])
        return judge(f"agent {name}", CHECKS, Hearing(agent, domain, chosen, seed, worker), ESSENTIAL)


class Audition(msgspec.Struct, frozen=True):
    """A tape of an agent, and how other agents like it would have answered in its place."""

    tape: Tape
    twin: str
    """Where one answers otherwise that was made before the first one played."""
    resumed: str | None = None
    """Where one answers otherwise that was loaded after the first episode; None if there was nothing to load."""


class Hearing:
    """An agent, and what it did."""

    def __init__(self, agent: AgentSource, domain: Domain[Any], trial: Trial, seed: int, worker: Worker | Here) -> None:
        self.hung = self.unmade = ""
        self._agent, self._domain, self._trial, self._seed = agent, domain, trial, seed
        source = domain_source(domain.name) or domain.name
        try:
            self._audition = worker.call(Audition, audition, source, agent, trial, seed)
        except Hung as error:
            self.hung = str(error)
        except OpenfieldError as error:
            self.unmade = str(error)

    @property
    def audition(self) -> Audition:
        """How it went."""
        return self._audition

    @property
    def tape(self) -> Tape:
        """The agent at play."""
        return self._audition.tape

    @cached_property
    def differs(self) -> str:
        """Where the agent answers otherwise when it is made in this process."""
        with global_random(2):
            again = find_agent(self._agent, self._domain)(spec_of(self._domain, self._trial), self._seed)
            try:
                return rehearse_agent(self._domain, self._trial, again, self.tape)
            finally:
                Deadline().close(again)


def audition(source: str, agent: AgentSource, trial: Trial, seed: int) -> Audition:
    """Has an agent play, and others like it answer the same turns; runs in a worker."""
    domain = find_domain(source)
    factory, spec = find_agent(agent, domain), spec_of(domain, trial)
    made: list[Agent] = [factory(spec, seed) for _ in range(3)]
    try:
        with global_random(1):
            tape = record(domain, trial, made[0])
        if tape.outcome not in SCORED:
            return Audition(tape, "")
        twin = rehearse_agent(domain, trial, made[1], tape)
        return Audition(tape, twin, _resume(domain, trial, made[2], tape))
    finally:
        for each in made:
            Deadline().close(each)


def _resume(domain: Domain[Any], trial: Trial, agent: Agent, tape: Tape) -> str | None:
    if tape.state is None or not isinstance(agent, Saves):
        return None
    try:
        agent.load(tape.state.data)
    except Exception as error:
        return f"load() raised {type(error).__name__}: {error}"
    return rehearse_agent(domain, trial, agent, tape, tape.state.step)


def _made(hearing: Hearing) -> Iterator[str]:
    """It is made from a spec and a seed."""
    if hearing.unmade:
        yield hearing.unmade


def _in_time(hearing: Hearing) -> Iterator[str]:
    """It answers in time."""
    if hearing.hung:
        yield hearing.hung
    elif hearing.tape.outcome == "agent_timeout":
        yield hearing.tape.note


def _stands(hearing: Hearing) -> Iterator[str]:
    """It neither raises nor goes away, also when an episode ends."""
    if hearing.tape.outcome in ("agent_error", "agent_gone"):
        yield hearing.tape.note


def _moderate(hearing: Hearing) -> Iterator[str]:
    """It gets to the point: few words, and an action before long."""
    if hearing.tape.hesitations() >= MOST_HESITATIONS:
        yield f"{hearing.tape.hesitations()} replies in a row without an action"
    largest = max((len(ENCODER.encode(step.reply)) for step in hearing.tape.steps), default=0)
    if largest > LARGEST_REPLY:
        yield f"a reply of {largest / 2**20:.1f} MB"


def _answers(hearing: Hearing) -> Iterator[str]:
    """It answers everything it is asked with a reply that means something here."""
    if hearing.tape.outcome not in SCORED:
        yield f"{hearing.tape.outcome}: {hearing.tape.note}"


def _same_seed(hearing: Hearing) -> Iterator[str]:
    """The same seed gives the same replies in another process."""
    if hearing.differs:
        yield f"two processes get different replies: {hearing.differs}"


def _separate(hearing: Hearing) -> Iterator[str]:
    """Nothing passes from one agent to the next."""
    if hearing.differs:
        raise Judgement("its replies differ anyway")
    if hearing.audition.twin:
        yield f"it answers otherwise after another one has played: {hearing.audition.twin}"


def _save_load(hearing: Hearing) -> Iterator[str]:
    """A loaded agent goes on as the saved one would have."""
    if hearing.audition.resumed is None:
        raise Judgement("it has nothing saved")
    if hearing.audition.resumed:
        yield f"loaded after the first episode: {hearing.audition.resumed}"


CHECKS = {
    "made": _made,
    "in_time": _in_time,
    "stands": _stands,
    "moderate": _moderate,
    "answers": _answers,
    "same_seed": _same_seed,
    "separate": _separate,
    "save_load": _save_load,
}
ESSENTIAL = ("made", "in_time", "stands", "moderate", "answers")


def _can_be_sent(agent: AgentSource, domain: Domain[Any]) -> bool:
    try:
        pickle.dumps(agent)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return bool(domain_source(domain.name))
