"""Proves that a domain's worlds keep their promises: repeatable, passive, silent about the truth, changed by novelties.

Part of the conformance kit; every check has a name and gives what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from openfield.agents.random import RandomAgent
from openfield.core import Ask, Reply
from openfield.domain import Domain
from openfield.errors import AgentFault, OpenfieldError, ReplayMismatch
from openfield.journal.reader import SCORED
from openfield.journal.steps import RawStep
from openfield.registry import AgentSource, domain_source, use_domain
from openfield.testing.evidence import Evidence, check_agents, check_trials, name_trial, without_novelty
from openfield.testing.leaks import find_leaks
from openfield.testing.report import Judgement, Report, judge
from openfield.testing.tape import replay
from openfield.testing.worker import Here, Worker, global_random
from openfield.trial import Trial, derive

ODD_ACTIONS: tuple[Any, ...] = (
    ["left"],
    {"left": []},
    "no such action",
    b"\xff",
    -(1 << 40),
    1 << 70,
    math.nan,
    -math.inf,
    [[[]]],
)


def check_world(
    domain: Domain[Any],
    trials: Sequence[Trial] = (),
    agents: Sequence[AgentSource] = (),
    patience: float = 5.0,
) -> Report:
    """Holds a domain's worlds against every promise a world makes.

    Args:
        domain: The domain. It should be one another process can import; otherwise nothing ends a world that hangs.
        trials: What to play; by default a trial for every declared novelty, with the domain's `check_settings` if it
            has any, or else its `demo_settings`.
        agents: Who plays; by default the random agent, then those that come with the domain.
        patience: Seconds a world may need for one answer.
    """
    use_domain(domain)
    worker = Worker(patience) if domain_source(domain.name) else Here()
    with worker:
        evidence = Evidence(domain, trials or check_trials(domain), agents or check_agents(domain), worker)
        return judge("world", CHECKS, evidence, essential=("answers", "recorded", "actions"))


def _answers(evidence: Evidence) -> Iterator[str]:
    """Every trial is played through, every answer comes in time."""
    for trial in (*evidence.trials, *map(without_novelty, evidence.trials)):
        try:
            tape = evidence.play(trial).rehearsal.tape
        except OpenfieldError as error:
            yield f"{name_trial(trial)}: {error}"
            return
        by_chance = evidence.agents[0] is RandomAgent and tape.outcome == "agent_protocol"  # see `actions`
        if tape.outcome not in SCORED and not tape.unwritable and not by_chance:
            yield f"{name_trial(trial)}: {tape.outcome}: {tape.note}"


def _recorded(evidence: Evidence) -> Iterator[str]:
    """Every turn can be written down."""
    return (
        f"{name_trial(p.trial)}, {p.rehearsal.tape.unwritable}" for p in evidence.all() if p.rehearsal.tape.unwritable
    )


def _actions(evidence: Evidence) -> Iterator[str]:
    """Every action of the declared space is an action."""
    if evidence.agents[0] is not RandomAgent:
        raise Judgement("no action space is declared, or the random agent does not play")
    for played in evidence.all():
        if played.rehearsal.tape.outcome == "agent_protocol":
            yield f"an action of the declared space is refused: {played.rehearsal.tape.note}"


def _odd_actions(evidence: Evidence) -> Iterator[str]:
    """What is no action at all is refused as the agent's mistake, not met with a failure of the world."""
    world = evidence.domain.world(evidence.trials[0])
    try:
        turn = world.reset()
        while turn.ask is not Ask.ACT and turn.last is None:
            turn = world.step(Reply())
        for action in ODD_ACTIONS:
            try:
                turn = world.step(Reply(action))
            except AgentFault:
                continue
            except Exception as error:
                yield f"the action {action!r} makes it raise {type(error).__name__}: {error}"
                return
            if turn.ask is not Ask.ACT or turn.last is not None:
                return
    finally:
        world.close()


def _plain_actions(evidence: Evidence) -> Iterator[str]:
    """Actions may come as plain data, as a wire brings them, and mean the same."""
    played = evidence.play(evidence.trials[0])
    try:
        steps = [_through_json(step) for step in played.rehearsal.tape.steps]
    except (TypeError, ValueError) as error:
        yield f"a reply cannot be sent as JSON: {error}"
        return
    with global_random(1):
        _, fault = replay(evidence.domain, played.trial, steps)
    if isinstance(fault, ReplayMismatch) and played.differs:
        raise Judgement("its replays differ anyway")
    if fault is not None:
        yield f"with actions that went through JSON: {fault}"


def _observations(evidence: Evidence) -> Iterator[str]:
    """Observations fit the declared space."""
    if evidence.domain.spec(evidence.trials[0]).observations is None:
        raise Judgement("no observation space is declared")
    return (played.misfit for played in evidence.all() if played.misfit)


def _same_seed(evidence: Evidence) -> Iterator[str]:
    """Two processes show equal turns."""
    if isinstance(evidence.worker, Here):
        yield "no other process can find the domain; make it a global of a module"
    yield from (f"two processes show different turns: {p.differs}" for p in evidence.all() if p.differs)


def _other_seed(evidence: Evidence) -> Iterator[str]:
    """Another seed shows other turns."""
    trial = evidence.trials[0]
    other = msgspec.structs.replace(trial, seed=derive(trial.seed, "another"))
    if evidence.play_whole(trial).shown == evidence.play_whole(other).shown:
        yield f"seeds {trial.seed} and {other.seed} show the same turns"


def _replay(evidence: Evidence) -> Iterator[str]:
    """A replay shows what was recorded."""
    return (p.rehearsal.replay for p in evidence.all() if p.rehearsal.replay)


def _clock(evidence: Evidence) -> Iterator[str]:
    """No turn depends on a clock."""
    return (f"with other clocks: {p.rehearsal.clock}" for p in evidence.all() if p.rehearsal.clock)


def _global_random(evidence: Evidence) -> Iterator[str]:
    """No turn depends on the global random sources."""
    for played in evidence.all():
        if played.rehearsal.replay:
            raise Judgement("its replays differ anyway")
        if played.rehearsal.random:
            yield f"with `random` and `numpy.random` seeded otherwise: {played.rehearsal.random}"


def _secrets(evidence: Evidence) -> Iterator[str]:
    """Nothing of the truth is shown."""
    domain = evidence.domain
    for trial in evidence.trials:
        if domain.spec(trial) != domain.spec(without_novelty(trial)):
            yield f"the spec of {name_trial(trial)} differs from that of the same trial without it"
    for played in evidence.all():
        yield from played.secrets
    yield from find_leaks(evidence)


def _red_light(evidence: Evidence) -> Iterator[str]:
    """The red light is there only if granted, and never lies."""
    for played in evidence.all():
        if not played.trial.red_light and any(light is not None for light in played.red_lights):
            yield f"{name_trial(played.trial)}: a red light is shown that the trial does not grant"
    granted = evidence.play(msgspec.structs.replace(evidence.trials[0], red_light=True))
    for number, (light, truth) in enumerate(zip(granted.red_lights, granted.truths, strict=True)):
        if light and not truth.novel:
            yield f"turn {number}: the red light is on and nothing has changed"


def _onset(evidence: Evidence) -> Iterator[str]:
    """Until the onset a trial with a novelty shows what the same trial without it shows."""
    for trial in evidence.trials:
        changed, normal = evidence.play_whole(trial), evidence.play_whole(without_novelty(trial))
        if normal.onset < len(normal.truths):
            yield f"{name_trial(normal.trial)}: turn {normal.onset} is called novel"
        pairs = zip(changed.shown[: changed.onset], normal.shown, strict=False)
        differing = [number for number, (one, other) in enumerate(pairs) if one != other]
        if differing:
            yield f"{name_trial(trial)}: turn {differing[0]} differs before the onset at turn {changed.onset}"


def _novelties(evidence: Evidence) -> Iterator[str]:
    """Every novelty changes what is shown after its onset."""
    for trial in evidence.trials:
        if trial.novelty and not any(_has_effect(evidence, *attempt) for attempt in evidence.attempts(trial)):
            reached = evidence.play_whole(trial).onset < len(evidence.play_whole(trial).truths)
            yield f"{name_trial(trial)}: {'nothing shown changes' if reached else 'the onset is never reached'}"


def _performance(evidence: Evidence) -> Iterator[str]:
    """The performance is a number from 0 to 1."""
    for played in evidence.all():
        wrong = [t.performance for t in played.truths if t.performance is not None and not 0 <= t.performance <= 1]
        yield from (f"{name_trial(played.trial)}: a performance of {value}" for value in wrong[:1])


def _own_turns(evidence: Evidence) -> Iterator[str]:
    """What is shown belongs to the agent: the world neither alters it later nor minds what the agent does to it."""
    yield from (f"{name_trial(p.trial)}: {p.altered}" for p in evidence.all() if p.altered)
    for trial in evidence.trials:
        noticed = evidence.scribble(trial)
        if noticed:
            yield f"{name_trial(trial)}, with an agent that alters what it is shown: {noticed}"


CHECKS = {
    "answers": _answers,
    "recorded": _recorded,
    "actions": _actions,
    "odd_actions": _odd_actions,
    "plain_actions": _plain_actions,
    "observations": _observations,
    "same_seed": _same_seed,
    "other_seed": _other_seed,
    "replay": _replay,
    "clock": _clock,
    "global_random": _global_random,
    "secrets": _secrets,
    "red_light": _red_light,
    "onset": _onset,
    "novelties": _novelties,
    "performance": _performance,
    "own_turns": _own_turns,  # the last: a world that minds may be spoilt by it
}


def _has_effect(evidence: Evidence, trial: Trial, agent: int) -> bool:
    changed, normal = evidence.play_whole(trial, agent), evidence.play_whole(without_novelty(trial), agent)
    return changed.onset < len(changed.shown) and changed.shown[changed.onset :] != normal.shown[changed.onset :]


def _through_json(step: RawStep) -> RawStep:
    if step.reply is None:
        return step
    action = msgspec.json.decode(msgspec.json.encode(step.reply.action))
    return msgspec.structs.replace(step, reply=msgspec.structs.replace(step.reply, action=action))
