"""The evidence for the checks of a world: trials played in another process and replayed in several ways.

Part of the conformance kit. `world.py` judges it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from openfield.agents.random import RandomAgent
from openfield.core import Ask, Spec, Turn
from openfield.domain import Domain, spec_of
from openfield.errors import InvalidInput, OpenfieldError
from openfield.record import RawStep
from openfield.registry import AgentSource, domain_source, find_agent, find_domain
from openfield.runner.deadline import Deadline
from openfield.testing.clocks import count_clock_reads, drifting_clocks
from openfield.testing.leaks import find_constants, find_detail, find_named, list_spec_words
from openfield.testing.report import NotJudged
from openfield.testing.transcript import (
    MutatedWorld,
    ReplayedWorld,
    Transcript,
    WatchedWorld,
    record_transcript,
    replay_in_world,
)
from openfield.testing.worker import Worker, global_random
from openfield.trial import Trial, derive

MORE_SEEDS = 2
"""How many further seeds a novelty may take to show its effect, and a leak to turn out to be chance."""


def check_trials(domain: Domain[Any], novelties: Sequence[str] = ()) -> list[Trial]:
    """Return a small trial for each of these novelties, or for every declared one; without any, one without novelty."""
    names = list(novelties) or [novelty.id for novelty in domain.novelties] or ["none"]
    return [domain.trials(count=1, novelty=name, unchanged=0, **domain.check_settings)[0] for name in names]


def list_playable_agents(domain: Domain[Any]) -> list[AgentSource]:
    """Return agents that can play a domain: the random agent if it has an action space, and its own."""
    spec = domain.spec(check_trials(domain)[0])
    competitors = list_competitors(domain)
    own = dict.fromkeys([*domain.demo_agents, *competitors])
    return [*([RandomAgent] if spec.actions is not None else []), *(name for name in own if name in competitors)]


def list_competitors(domain: Domain[Any]) -> list[str]:
    """Return the names of the domain's agents that are not shown the world."""
    return [name for name in domain.agents if name not in domain.oracles]


class Rehearsal(msgspec.Struct, frozen=True):
    """A transcript, and how its replays in the same process differ from it."""

    transcript: Transcript
    replay: str
    clock: str
    """With clocks that drift; empty also if no clock was read."""
    random: str
    """With other global random sources."""


class Played:
    """A trial played in a worker and replayed here. It keeps no turns: they may hold many images."""

    def __init__(
        self, domain: Domain[Any], trial: Trial, rehearsal: Rehearsal, watched: ReplayedWorld, differs: str
    ) -> None:
        spec, turns = domain.spec(trial), watched.turns
        self.trial, self.rehearsal, self.truths = trial, rehearsal, watched.truths
        self.shown = watched.shown
        """All turns in the form they are compared in."""
        self.altered = watched.find_altered()
        """The first turn that the world altered after it had shown it."""
        self.red_lights = [turn.red_light for turn in turns]
        self.last_paid = max((number for number, turn in enumerate(turns) if turn.reward), default=-1)
        """The last turn that paid a reward; -1 if none did."""
        self.misfit = next(_misfits(spec, turns), "")
        """The first observation that does not fit the declared space."""
        self.secrets = list(_secrets(domain, trial, spec, watched))
        """The places where the truth is shown."""
        self.usual, self.changed = find_constants(turns, watched.truths)
        """The values that never vary as long as the world is not novel, and once it is."""
        self.differs = differs
        """How the replay here differs."""

    @property
    def onset(self) -> int:
        """The first turn of a changed world; the number of turns if the world stays."""
        return next((number for number, truth in enumerate(self.truths) if truth.novel), len(self.truths))

    @property
    def reaches_onset(self) -> bool:
        """Whether the world has changed at any turn."""
        return self.onset < len(self.truths)


class Evidence:
    """Trials of a domain, played when a check first asks for them."""

    def __init__(
        self, domain: Domain[Any], trials: Sequence[Trial], agents: Sequence[AgentSource], worker: Worker
    ) -> None:
        if not agents:
            raise InvalidInput(f"{domain.name} has neither an action space nor an agent; name an agent to check with.")
        self.domain, self.trials, self.agents, self.worker = domain, trials, agents, worker
        self._source = domain_source(domain.name) or domain.name
        self._played: dict[tuple[str, int], Played] = {}
        self._planned = deque([*trials, *map(without_novelty, trials)])  # what is played next, by the first agent
        self._ahead: tuple[str, int] | None = None  # what the worker plays while this process does something else
        self._rehearsed: dict[tuple[str, int], Rehearsal | OpenfieldError] = {}

    def play(self, trial: Trial, agent: int = 0) -> Played:
        """Return a trial as one of the agents played it. Each is played once."""
        key = trial.id, agent
        if key not in self._played:
            rehearsal = self._rehearse(trial, agent)
            with global_random(1):
                watched, error = replay_in_world(self.domain, trial, rehearsal.transcript.steps)
            self._played[key] = Played(self.domain, trial, rehearsal, watched, str(error or ""))
        return self._played[key]

    def play_whole(self, trial: Trial, agent: int = 0) -> Played:
        """Return a played trial to be compared with another one.

        Raises:
            NotJudged: Replays of the trial differ, so a comparison would mean nothing.
        """
        played = self.play(trial, agent)
        if played.differs:
            raise NotJudged("its replays differ anyway")
        return played

    def attempts(self, trial: Trial) -> Iterator[tuple[Trial, int]]:
        """Yield trials and agents that may show what a novelty does: this trial with all agents, then other seeds."""
        for number in range(MORE_SEEDS + 1):
            like = trial if not number else msgspec.structs.replace(trial, seed=derive(trial.seed, "again", number))
            yield from ((like, agent) for agent in range(len(self.agents)))

    def replay_mutated(self, trial: Trial) -> str:
        """Return where a world differs when its agent overwrites what it was shown.

        The world may be unusable in that process afterwards.
        """
        steps = msgspec.msgpack.encode(self.play_whole(trial).rehearsal.transcript.steps)
        self._settle()
        return self.worker.call(str, rehearse_mutated, self._source, trial, steps)

    def play_all(self) -> Iterator[Played]:
        """Yield all trials as they were played, with their novelty and without."""
        for trial in self.trials:
            yield self.play(trial)
            yield self.play(without_novelty(trial))

    def _rehearse(self, trial: Trial, agent: int) -> Rehearsal:
        """Return how a trial was played in the worker, which then begins with the next one."""
        self._settle()
        rehearsal = self._rehearsed.pop((trial.id, agent), None)
        if isinstance(rehearsal, OpenfieldError):
            raise rehearsal
        if rehearsal is None:
            rehearsal = self.worker.call(Rehearsal, rehearse, self._source, trial, self.agents[agent])
        known = {*self._played, (trial.id, agent)}
        while self._planned and (self._planned[0].id, 0) in known:
            self._planned.popleft()
        if self._planned and not self.worker.inline:
            self._ahead = self._planned[0].id, 0
            self.worker.ask(rehearse, self._source, self._planned[0], self.agents[0])
        return rehearsal

    def _settle(self) -> None:
        """Take what the worker has played ahead, or how that failed, until a check asks for it."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            try:
                self._rehearsed[ahead] = self.worker.answer(Rehearsal)
            except OpenfieldError as error:
                self._rehearsed[ahead] = error


def rehearse(source: str, trial: Trial, agent: AgentSource) -> Rehearsal:
    """Play a trial and replay it in several ways. Runs in a worker."""
    domain = find_domain(source)
    player = find_agent(agent, domain)(spec_of(domain, trial), 0)
    with global_random(1):
        transcript = record_transcript(domain, trial, player)
    Deadline().close(player)
    with global_random(2), drifting_clocks():
        _, fault = replay_in_world(domain, trial, transcript.steps)
    if fault is None:
        return Rehearsal(transcript, "", "", "")
    with global_random(1):  # something matters that must not: what?
        _, plain = replay_in_world(domain, trial, transcript.steps)
    reads = count_clock_reads()
    with global_random(1), drifting_clocks():
        _, clock = replay_in_world(domain, trial, transcript.steps)
    clock = clock if count_clock_reads() > reads else None
    with global_random(2):
        _, random = replay_in_world(domain, trial, transcript.steps)
    return Rehearsal(transcript, str(plain or ""), str(clock or ""), str(random or ""))


def rehearse_mutated(source: str, trial: Trial, steps: bytes) -> str:
    """Replay a trial for an agent that overwrites what it is shown. Runs in a worker."""
    with global_random(1):
        recorded = msgspec.msgpack.decode(steps, type=list[RawStep])
        return str(replay_in_world(find_domain(source), trial, recorded, MutatedWorld)[1] or "")


def without_novelty(trial: Trial) -> Trial:
    """Return the same trial without its novelties."""
    phases = tuple(msgspec.structs.replace(phase, novelty=()) for phase in trial.phases)
    return msgspec.structs.replace(trial, phases=phases, scenario=None if trial.scenario is None else ())


def name_trial(trial: Trial) -> str:
    """Return the novelties of a trial as text."""
    return "+".join(trial.novelty) or "without novelty"


def _misfits(spec: Spec, turns: list[Turn]) -> Iterator[str]:
    for number, turn in enumerate(turns):
        wanted = turn.ask is Ask.ACT or (turn.last is not None and turn.observation is not None)
        if wanted and spec.observations is not None and not spec.observations.contains(turn.observation):
            yield f"turn {number} shows {turn.observation!r:.80}, which is not in the declared space"


def _secrets(domain: Domain[Any], trial: Trial, spec: Spec, watched: WatchedWorld) -> Iterator[str]:
    yield from find_named(watched.turns, spec, trial, domain.novelties)
    known = frozenset(list_spec_words(spec))
    for turn, truth in zip(watched.turns, watched.truths, strict=True):
        yield from find_detail(turn, truth, known, domain.shown_detail)
