"""Check that an agent keeps its promises: made from a spec and a seed, repeatable, on time, able to resume.

Part of the conformance kit. Every check has a name and yields what is wrong.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from typing import Any

import msgspec

from openfield.core import Agent, Saves
from openfield.domain import Domain, spec_of
from openfield.errors import OpenfieldError
from openfield.journal.reader import SCORED
from openfield.limit_guard import MAX_HESITATIONS
from openfield.processes.child import Hung
from openfield.record import ENCODER
from openfield.registry import AgentSource, domain_source, find_agent, find_domain, use_domain
from openfield.runner.deadline import Deadline
from openfield.runner.plan import name_agents
from openfield.testing.evidence import check_trials
from openfield.testing.report import NotJudged, Report, judge, name_checks
from openfield.testing.transcript import Transcript, compare_agent, record_transcript
from openfield.testing.worker import Worker, global_random
from openfield.trial import Trial

MAX_REPLY_BYTES = 1 << 20
"""Bytes of one reply; no agent needs more."""


def check_agent(
    agent: AgentSource, domain: Domain[Any], trial: Trial | None = None, seed: int = 1, patience: float | None = None
) -> Report:
    """Check an agent against every promise an agent makes.

    Args:
        agent: A name, a class, a factory or a function. It should be one another process can import; otherwise nothing
            ends it when it hangs.
        domain: The domain it plays.
        trial: The trial it plays; by default a small trial of the domain with its first novelty.
        seed: The seed it is made with.
        patience: Seconds it may need for one answer; None is the domain's `check_patience`, or 5.
    """
    use_domain(domain)
    chosen = trial or check_trials(domain)[0]
    with closing(Worker(patience or domain.check_patience, inline=not _can_be_sent(agent, domain))) as worker:
        (name,) = name_agents([agent])
        return judge(f"agent {name}", CHECKS, AgentEvidence(agent, domain, chosen, seed, worker), ESSENTIAL)


class AgentRehearsal(msgspec.Struct, frozen=True):
    """A transcript of an agent, and how further agents made alike answer the same turns."""

    transcript: Transcript
    twin: str
    """Where an agent differs that was made before the first one played."""
    resumed: str | None = None
    """Where an agent differs that was loaded after the first episode; None if there was nothing to load."""


class AgentEvidence:
    """The evidence for the checks of an agent: how it was made and how it played."""

    def __init__(self, agent: AgentSource, domain: Domain[Any], trial: Trial, seed: int, worker: Worker) -> None:
        self.hung = self.unmade = ""
        self._agent, self._domain, self._trial, self._seed = agent, domain, trial, seed
        source = domain_source(domain.name) or domain.name
        try:
            self.rehearsal = worker.call(AgentRehearsal, rehearse_agent, source, agent, trial, seed)
        except Hung as error:
            self.hung = str(error)
        except OpenfieldError as error:
            self.unmade = str(error)

    @property
    def transcript(self) -> Transcript:
        """How it played."""
        return self.rehearsal.transcript

    @cached_property
    def differs(self) -> str:
        """Where an agent that is made in this process answers otherwise."""
        with global_random(2):
            again = find_agent(self._agent, self._domain)(spec_of(self._domain, self._trial), self._seed)
            try:
                return compare_agent(self._domain, self._trial, again, self.transcript)
            finally:
                Deadline().close(again)


def rehearse_agent(source: str, agent: AgentSource, trial: Trial, seed: int) -> AgentRehearsal:
    """Let an agent play, and others made alike answer the same turns. Runs in a worker."""
    domain = find_domain(source)
    factory, spec = find_agent(agent, domain), spec_of(domain, trial)
    made: list[Agent] = [factory(spec, seed) for _ in range(3)]
    try:
        with global_random(1):
            transcript = record_transcript(domain, trial, made[0])
        if transcript.outcome not in SCORED:
            return AgentRehearsal(transcript, "")
        twin = compare_agent(domain, trial, made[1], transcript)
        return AgentRehearsal(transcript, twin, _resume(domain, trial, made[2], transcript))
    finally:
        for each in made:
            Deadline().close(each)


def _resume(domain: Domain[Any], trial: Trial, agent: Agent, transcript: Transcript) -> str | None:
    if transcript.state is None or not isinstance(agent, Saves):
        return None
    try:
        agent.load(transcript.state.data)
    except Exception as error:
        return f"load() raised {type(error).__name__}: {error}"
    return compare_agent(domain, trial, agent, transcript, transcript.state.step)


def _made(evidence: AgentEvidence) -> Iterator[str]:
    """It is made from a spec and a seed."""
    if evidence.unmade:
        yield evidence.unmade


def _in_time(evidence: AgentEvidence) -> Iterator[str]:
    """It answers in time."""
    if evidence.hung:
        yield evidence.hung
    elif evidence.transcript.outcome == "agent_timeout":
        yield evidence.transcript.note


def _stands(evidence: AgentEvidence) -> Iterator[str]:
    """It neither raises nor goes away, also when an episode ends."""
    if evidence.transcript.outcome in ("agent_error", "agent_gone"):
        yield evidence.transcript.note


def _moderate(evidence: AgentEvidence) -> Iterator[str]:
    """It gets to the point: few words, and an action before long."""
    if evidence.transcript.count_hesitations() >= MAX_HESITATIONS:
        yield f"{evidence.transcript.count_hesitations()} replies in a row without an action"
    largest = max((len(ENCODER.encode(step.reply)) for step in evidence.transcript.steps), default=0)
    if largest > MAX_REPLY_BYTES:
        yield f"a reply of {largest / 2**20:.1f} MB"


def _answers(evidence: AgentEvidence) -> Iterator[str]:
    """It answers everything it is asked with a reply that means something here."""
    if evidence.transcript.outcome not in SCORED:
        yield f"{evidence.transcript.outcome}: {evidence.transcript.note}"


def _same_seed(evidence: AgentEvidence) -> Iterator[str]:
    """The same seed gives the same replies in another process."""
    if evidence.differs:
        yield f"two processes get different replies: {evidence.differs}"


def _separate(evidence: AgentEvidence) -> Iterator[str]:
    """Nothing passes from one agent to the next."""
    if evidence.differs:
        raise NotJudged("its replies differ anyway")
    if evidence.rehearsal.twin:
        yield f"it answers otherwise after another one has played: {evidence.rehearsal.twin}"


def _save_load(evidence: AgentEvidence) -> Iterator[str]:
    """A loaded agent goes on as the saved one would have."""
    if evidence.rehearsal.resumed is None:
        raise NotJudged("it has nothing saved")
    if evidence.rehearsal.resumed:
        yield f"loaded after the first episode: {evidence.rehearsal.resumed}"


CHECKS = name_checks(_made, _in_time, _stands, _moderate, _answers, _same_seed, _separate, _save_load)
ESSENTIAL = ("made", "in_time", "stands", "moderate", "answers")


def _can_be_sent(agent: AgentSource, domain: Domain[Any]) -> bool:
    try:
        pickle.dumps(agent)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return bool(domain_source(domain.name))
