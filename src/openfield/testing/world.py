"""Check that a domain's worlds keep their promises: repeatable, passive, silent about the truth, changed by novelties.

Part of the conformance kit. Every check has a name and yields what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec

from openfield.agents.random import RandomAgent
from openfield.core import Ask, Reply
from openfield.domain import Domain
from openfield.errors import AgentFault, OpenfieldError, ReplayMismatch
from openfield.journal.reader import SCORED
from openfield.novelty import find_novelty
from openfield.record import RawStep
from openfield.registry import AgentSource, domain_source, use_domain
from openfield.testing import leaks
from openfield.testing.evidence import Evidence, check_trials, list_playable_agents, name_trial, without_novelty
from openfield.testing.leaks import Differences, KeyPath
from openfield.testing.report import NotJudged, Report, judge, name_checks
from openfield.testing.transcript import replay_in_world
from openfield.testing.worker import Worker, global_random
from openfield.trial import Trial, bare_names, derive

ODD_ACTIONS: Any = (["left"], {"left": []}, "no such action", b"\xff", -(1 << 40), 1 << 70, math.nan, -math.inf, [[[]]])


def check_world(
    domain: Domain[Any], trials: Sequence[Trial] = (), agents: Sequence[AgentSource] = (), patience: float | None = None
) -> Report:
    """Check a domain's worlds against every promise a world makes.

    Args:
        domain: The domain. It should be one another process can import; otherwise nothing ends a world that hangs.
        trials: The trials to play; by default one for every declared novelty, with the domain's `check_settings` or,
            if it has none, its `demo_settings`.
        agents: The agents that play; by default the random agent, then those that come with the domain.
        patience: Seconds a world may need for one answer; None is the domain's `check_patience`, or 5.
    """
    use_domain(domain)
    with closing(Worker(patience or domain.check_patience, inline=not domain_source(domain.name))) as worker:
        evidence = Evidence(domain, trials or check_trials(domain), agents or list_playable_agents(domain), worker)
        return judge("world", CHECKS, evidence, essential=("answers", "recorded", "actions"))


def _answers(evidence: Evidence) -> Iterator[str]:
    """Every trial is played through, every answer comes in time."""
    for trial in (*evidence.trials, *map(without_novelty, evidence.trials)):
        try:
            transcript = evidence.play(trial).rehearsal.transcript
        except OpenfieldError as error:
            yield f"{name_trial(trial)}: {error}"
            return
        by_chance = evidence.agents[0] is RandomAgent and transcript.outcome == "agent_protocol"  # see `actions`
        if transcript.outcome not in SCORED and not transcript.unwritable and not by_chance:
            yield f"{name_trial(trial)}: {transcript.outcome}: {transcript.note}"


def _recorded(evidence: Evidence) -> Iterator[str]:
    """Every turn can be written down."""
    return (
        f"{name_trial(p.trial)}, {p.rehearsal.transcript.unwritable}"
        for p in evidence.play_all()
        if p.rehearsal.transcript.unwritable
    )


def _actions(evidence: Evidence) -> Iterator[str]:
    """Every action of the declared space is an action."""
    if evidence.agents[0] is not RandomAgent:
        raise NotJudged("no action space is declared, or the random agent does not play")
    for played in evidence.play_all():
        if played.rehearsal.transcript.outcome == "agent_protocol":
            yield f"an action of the declared space is refused: {played.rehearsal.transcript.note}"


def _odd_actions(evidence: Evidence) -> Iterator[str]:
    """A reply without a valid action is refused as the agent's mistake, and is not a failure of the world."""
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
        steps = [_through_json(step) for step in played.rehearsal.transcript.steps]
    except (TypeError, ValueError) as error:
        yield f"a reply cannot be sent as JSON: {error}"
        return
    with global_random(1):
        _, fault = replay_in_world(evidence.domain, played.trial, steps)
    if isinstance(fault, ReplayMismatch) and played.differs:
        raise NotJudged("its replays differ anyway")
    if fault is not None:
        yield f"with actions that went through JSON: {fault}"


def _observations(evidence: Evidence) -> Iterator[str]:
    """Observations fit the declared space."""
    if evidence.domain.spec(evidence.trials[0]).observations is None:
        raise NotJudged("no observation space is declared")
    return (played.misfit for played in evidence.play_all() if played.misfit)


def _same_seed(evidence: Evidence) -> Iterator[str]:
    """Two processes show equal turns."""
    if evidence.worker.inline:
        yield "no other process can find the domain; make it a global of a module"
    yield from (f"two processes show different turns: {p.differs}" for p in evidence.play_all() if p.differs)


def _other_seed(evidence: Evidence) -> Iterator[str]:
    """Another seed shows other turns."""
    if getattr(evidence.domain, "without_chance", False):
        raise NotJudged("the domain declares that seeds change nothing")
    trial = evidence.trials[0]
    other = msgspec.structs.replace(trial, seed=derive(trial.seed, "another"))
    if evidence.play_whole(trial).shown == evidence.play_whole(other).shown:
        yield f"seeds {trial.seed} and {other.seed} show the same turns"


def _replay(evidence: Evidence) -> Iterator[str]:
    """A replay shows what was recorded."""
    return (p.rehearsal.replay for p in evidence.play_all() if p.rehearsal.replay)


def _clock(evidence: Evidence) -> Iterator[str]:
    """No turn depends on a clock."""
    return (f"with other clocks: {p.rehearsal.clock}" for p in evidence.play_all() if p.rehearsal.clock)


def _global_random(evidence: Evidence) -> Iterator[str]:
    """No turn depends on the global random sources."""
    for played in evidence.play_all():
        if played.rehearsal.replay:
            raise NotJudged("its replays differ anyway")
        if played.rehearsal.random:
            yield f"with `random` and `numpy.random` seeded otherwise: {played.rehearsal.random}"


def _secrets(evidence: Evidence) -> Iterator[str]:
    """Nothing of the truth is shown."""
    domain = evidence.domain
    for trial in evidence.trials:
        if domain.spec(trial) != domain.spec(without_novelty(trial)):
            yield f"the spec of {name_trial(trial)} differs from that of the same trial without it"
    for played in evidence.play_all():
        yield from played.secrets
    yield from _find_leaks(evidence)


def _red_light(evidence: Evidence) -> Iterator[str]:
    """The red light is there only if granted, and never lies."""
    for played in evidence.play_all():
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
        if normal.reaches_onset:
            yield f"{name_trial(normal.trial)}: turn {normal.onset} is called novel"
        pairs = zip(changed.shown[: changed.onset], normal.shown, strict=False)
        differing = [number for number, (one, other) in enumerate(pairs) if one != other]
        if differing:
            yield f"{name_trial(trial)}: turn {differing[0]} differs before the onset at turn {changed.onset}"


def _novelties(evidence: Evidence) -> Iterator[str]:
    """Every novelty changes what is shown after its onset."""
    rare, unseen = frozenset(getattr(evidence.domain, "rare_novelties", ())), []
    for trial in evidence.trials:
        if not trial.novelty or _has_effect(evidence, trial, 0):
            continue
        if rare.issuperset(bare_names(trial.novelty)) or _needs_reward(evidence, trial):
            unseen.append(name_trial(trial))
            continue
        if any(_has_effect(evidence, *attempt) for attempt in evidence.attempts(trial)):
            continue
        reached = evidence.play_whole(trial).reaches_onset
        yield f"{name_trial(trial)}: {'nothing shown changes' if reached else 'the onset is never reached'}"
    if unseen:
        raise NotJudged(f"the agents neither earn rewards nor see what is rare, which {', '.join(unseen)} would change")


def _performance(evidence: Evidence) -> Iterator[str]:
    """The performance is a number from 0 to 1."""
    for played in evidence.play_all():
        wrong = [t.performance for t in played.truths if t.performance is not None and not 0 <= t.performance <= 1]
        yield from (f"{name_trial(played.trial)}: a performance of {value}" for value in wrong[:1])


def _own_turns(evidence: Evidence) -> Iterator[str]:
    """What is shown belongs to the agent: the world neither alters it later nor minds what the agent does to it."""
    yield from (f"{name_trial(p.trial)}: {p.altered}" for p in evidence.play_all() if p.altered)
    for trial in evidence.trials:
        if noticed := evidence.replay_mutated(trial):
            yield f"{name_trial(trial)}, with an agent that alters what it is shown: {noticed}"


def _find_leaks(evidence: Evidence) -> Iterator[str]:
    """Yield what gives the truth away without naming it.

    A novelty may change what is shown: that is what novelties do. So a difference alone is not a leak. A leak is a key
    with one value on every turn of the usual world and another one on every turn of a changed world, for every agent
    and seed, that either says only yes or no, or says the same for every novelty.
    """
    trials = [trial for trial in evidence.trials if trial.novelty]
    found = {name_trial(trial): _compare_worlds(evidence, trial, 0) for trial in trials}
    names = {name.partition(":")[0] for trial in trials for name in bare_names(trial.novelty)}
    common = leaks.find_common(found.values()) if len(names) > 1 else set()
    sure = {name_trial(trial): _confirm(evidence, trial, found[name_trial(trial)], common) for trial in trials}
    found_by = {place: [name for name in sure if place in sure[name]] for left in sure.values() for place in left}
    shown = {place: sure[names[0]][place] for place, names in found_by.items()}
    binary = {place for place in found_by if leaks.is_binary(place, shown[place])}
    telling = (place for place, names in found_by.items() if len(names) == len(sure) or place in binary)
    for place in leaks.pick_innermost(telling):
        yield leaks.describe_difference(place, shown[place], found_by[place])


def _confirm(evidence: Evidence, trial: Trial, found: Differences, common: set[KeyPath]) -> Differences:
    """Return the differences of a changed world that are there for every agent and seed, and no declared effect."""
    shown = frozenset(evidence.domain.shown_effects)
    left: Differences = {
        place: difference
        for place, difference in found.items()
        if not shown.intersection(place) and (place in common or leaks.is_binary(place, difference))
    }
    for like, agent in evidence.attempts(trial):
        if left and (like, agent) != (trial, 0) and evidence.play(like, agent).reaches_onset:
            left = leaks.intersect(left, _compare_worlds(evidence, like, agent))
    return {place: difference for place, difference in left.items() if min(difference.turns) >= leaks.MIN_TURNS}


def _compare_worlds(evidence: Evidence, trial: Trial, agent: int) -> Differences:
    """Return what is constant without the novelty, and another constant from its onset on."""
    changed, normal = evidence.play(trial, agent), evidence.play(without_novelty(trial), agent)
    return changed.usual.join(normal.usual).compare(changed.changed)


PLAYABLE = (_answers, _recorded, _actions, _odd_actions, _plain_actions, _observations)
REPEATABLE = (_same_seed, _other_seed, _replay, _clock, _global_random)
SILENT = (_secrets, _red_light, _onset)
CHECKS = name_checks(*PLAYABLE, *REPEATABLE, *SILENT, _novelties, _performance, _own_turns)
"""All checks in order. `own_turns` is the last, because it may spoil a world that minds."""


def _needs_reward(evidence: Evidence, trial: Trial) -> bool:
    """Return whether novelties are about rewards, and none would be paid after their onset."""
    kinds = {find_novelty(evidence.domain.novelties, name).kind for name in bare_names(trial.novelty)}
    return kinds == {"goals"} and evidence.play(without_novelty(trial)).last_paid < evidence.play(trial).onset


def _has_effect(evidence: Evidence, trial: Trial, agent: int) -> bool:
    changed, normal = evidence.play_whole(trial, agent), evidence.play_whole(without_novelty(trial), agent)
    return changed.reaches_onset and changed.shown[changed.onset :] != normal.shown[changed.onset :]


def _through_json(step: RawStep) -> RawStep:
    if step.reply is None:
        return step
    action = msgspec.json.decode(msgspec.json.encode(step.reply.action))
    return msgspec.structs.replace(step, reply=msgspec.structs.replace(step.reply, action=action))
