"""Look at a run between two batches: whether its stopping rule is met, and which agents are settled.

Stands between result and run. All intervals are anytime ones, so that looking after every batch costs nothing of what
they promise; those of several comparisons are corrected for their number.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from openfield.console import say_count
from openfield.errors import InvalidInput, UnknownName
from openfield.journal.reader import CellRecord
from openfield.metrics.catalogue import find_metrics
from openfield.metrics.comparison import AgentScores, pair_scores
from openfield.metrics.confidence_sequences import LEVEL, bet_against, follow_mean, is_within
from openfield.metrics.failures import apply_policy
from openfield.metrics.stats import MIN_TRIALS, Estimate
from openfield.metrics.summary import score_agent
from openfield.parameters import is_control
from openfield.planning.reach import GAP, count_by_scenario
from openfield.result import Result
from openfield.runner.plan import Plan
from openfield.runner.stopping.batches import Look, Verdict
from openfield.runner.stopping.rule import DECIDED, Aim, StoppingRule

Pair = tuple[str, str]


class Settled(NamedTuple):
    """How a comparison of two agents came out."""

    difference: float
    trials: int
    apart: bool
    """Whether one of them is better; else they are as good as equal."""


def make_look(plan: Plan, rule: StoppingRule, run: Path) -> Look:
    """Return what looks at a run between two batches.

    Args:
        plan: The plan.
        rule: When the run stops by itself.
        run: The run file.

    Raises:
        UnknownName: The rule names an agent or a number that there is not.
        InvalidInput: It can never be met.
    """
    controls = {name for name, source in plan.sources.items() if is_control(source)}
    agents = [name for name in dict.fromkeys(cell.agent for cell in plan.cells) if name not in controls]
    _check_agents(rule, agents)
    _check_reach(rule, plan, agents)
    return partial(_look, rule, run, {name: each.baseline for name, each in plan.domains.items()})


def _check_agents(rule: StoppingRule, agents: Sequence[str]) -> None:
    for name in (rule.aim.first, rule.aim.second) if rule.aim else ():
        if name and name not in agents:
            raise UnknownName("agent", name, agents, label=f"--until '{rule.until}' is about agents that play")
    if rule.aim and rule.aim.first == rule.aim.second:
        raise InvalidInput(f"--until '{rule.until}' can never be met: an agent does not differ from itself.")
    if (rule.race or rule.until == DECIDED) and len(agents) < 2:
        raise InvalidInput(f"{rule.words} compares agents: add a second one, such as --agent random.")


def _check_reach(rule: StoppingRule, plan: Plan, agents: Sequence[str]) -> None:
    """Refuse a rule that no result of all planned trials could meet."""
    most = max(count_by_scenario(plan), default=0)
    if most < MIN_TRIALS:
        available = f"{say_count(most, 'trial')} that may change, and an interval takes {MIN_TRIALS}"
        raise InvalidInput(f"{rule.words} can never be met: there {'is' if most == 1 else 'are'} {available}.")
    aim = rule.aim
    bounds = _find_bounds(plan, aim) if aim is not None and aim.number else GAP
    if aim is not None and bounds is not None:
        least = _width(follow_mean([bounds[1]] * most, bounds)) or 0.0
        if aim.width < least:
            said = f"after {say_count(most, 'trial')}, the most that are played, an interval is wider than {least:.2g}"
            raise InvalidInput(f"--until '{rule.until}' can never be met: {said}. More: --max-trials")
    if aim is None and _settle([1.0] * most, LEVEL / _count_pairs(rule, plan, agents), 0.0) is None:
        raise InvalidInput(f"{rule.words} can never be met in {say_count(most, 'trial')}. More: --max-trials")


def _count_pairs(rule: StoppingRule, plan: Plan, agents: Sequence[str]) -> int:
    return min(len(_list_pairs(rule, agents, domain.baseline)) for domain in plan.domains.values())


def _find_bounds(plan: Plan, aim: Aim) -> tuple[float, float] | None:
    """Return the range of a number that a rule names; None if it is not known beforehand."""
    named = {name for domain in plan.domains.values() for name in domain.metrics}
    known = {each.name: each for metric in find_metrics(named).values() for each in metric.numbers}
    if aim.number not in known:
        raise UnknownName(
            "number", aim.number, known, label=f"--until '{plan.stopping and plan.stopping.until}': numbers of this run"
        )
    bounds = known[aim.number].bounds
    if known[aim.number].kind == "count" or known[aim.number].pooled or bounds is None:
        return None
    return None if bounds[0] is None or bounds[1] is None else (bounds[0], bounds[1])


def _look(
    rule: StoppingRule, run: Path, baselines: Mapping[str, str], trials: Collection[str], playing: Collection[str]
) -> Verdict:
    """Look at the trials of a scenario that are over.

    Args:
        rule: The rule of the run.
        run: The run file.
        baselines: The baseline of each domain.
        trials: The ids of the trials.
        playing: The agents that play on in the scenario.
    """
    result, wanted = Result([run]), set(trials)
    result.cells = [cell for cell in result.cells if cell.trial.id in wanted]
    over = _judge_number(result, rule.aim) if rule.aim is not None and rule.aim.number else ""
    if over:
        return Verdict(over)
    return judge_scores(rule, _score(result.cells), playing, baselines[result.cells[0].trial.domain])


def judge_scores(
    rule: StoppingRule, scores: Mapping[str, AgentScores], playing: Collection[str], baseline: str
) -> Verdict:
    """Return what the performances of agents in a scenario say: whether it is over, and who is settled.

    Args:
        rule: The rule of the run.
        scores: The performance of each agent in the trials that are over.
        playing: The agents that play on.
        baseline: The agent that others are compared with.
    """
    over = "" if rule.aim is None or rule.aim.number else _judge_difference(scores, rule.aim)
    over = over or _judge_decided(rule, scores, baseline)
    return Verdict(over) if over or not rule.race else _race(rule, scores, playing)


def _score(cells: Sequence[CellRecord]) -> dict[str, AgentScores]:
    """Return the performance of each agent, controls apart, in the trials of a scenario."""
    own: dict[str, list[CellRecord]] = {}
    trials = {cell.trial.id for cell in cells}
    for cell in apply_policy(cells, "count"):
        if not cell.control and cell.trial.reference_for not in trials:
            own.setdefault(cell.agent, []).append(cell)
    return {agent: score_agent(played) for agent, played in own.items()}


def _width(found: Estimate) -> float | None:
    return None if found.low is None or found.high is None else found.high - found.low


def _judge_number(result: Result, aim: Aim) -> str:
    for group in result.summary(intervals="anytime", numbers=aim.number).groups:
        found = group.estimates.get(aim.number)
        width = None if found is None or group.agent != aim.first else _width(found)
        if found is not None and width is not None and width < aim.width:
            return f"{aim.first}'s {aim.number} is known to {width:.2g} after {say_count(found.n, 'trial')}."
    return ""


def _judge_difference(scores: Mapping[str, AgentScores], aim: Aim) -> str:
    if not {aim.first, aim.second} <= scores.keys():
        return ""
    found = follow_mean([a - b for a, b in pair_scores(scores[aim.first], scores[aim.second])], GAP)
    width = _width(found)
    if width is None or width >= aim.width:
        return ""
    return f"{aim.first} - {aim.second} is known to {width:.2g} after {say_count(found.n, 'trial')}."


def _judge_decided(rule: StoppingRule, scores: Mapping[str, AgentScores], baseline: str) -> str:
    """Return how the comparisons came out, if all are settled; of a race without a rule, nothing."""
    if rule.until != DECIDED:
        return ""
    pairs = _list_pairs(rule, sorted(scores), baseline)
    found = _settle_pairs(rule, scores, pairs)
    return _describe_all(found) if pairs and len(found) == len(pairs) else ""


def _list_pairs(rule: StoppingRule, agents: Sequence[str], baseline: str) -> list[Pair]:
    """Return the comparisons that a rule is about: with the baseline if it plays, and else all."""
    if rule.until == DECIDED and baseline in agents and not rule.race:
        return [(agent, baseline) for agent in agents if agent != baseline]
    return list(combinations(agents, 2))


def _settle_pairs(rule: StoppingRule, scores: Mapping[str, AgentScores], pairs: Sequence[Pair]) -> dict[Pair, Settled]:
    """Return the comparisons that are settled, corrected for the number of all."""
    found = {}
    for one, two in pairs:
        gaps = [a - b for a, b in pair_scores(scores[one], scores[two])] if {one, two} <= scores.keys() else []
        settled = _settle(gaps, LEVEL / len(pairs), rule.negligible)
        if settled is not None:
            found[one, two] = settled
    return found


def _settle(gaps: Sequence[float], level: float, negligible: float) -> Settled | None:
    """Return how a comparison came out; None while its interval holds 0, and differences that are not negligible."""
    p = bet_against(gaps, 0.0, GAP)
    apart = p is not None and p < level
    if not apart and not (negligible and is_within(gaps, (-negligible, negligible), GAP, level)):
        return None
    return Settled(math.fsum(gaps) / len(gaps), len(gaps), apart)


def _describe_pair(pair: Pair, found: Settled) -> str:
    """Return a settled comparison in words."""
    first, second = pair if found.difference >= 0 else pair[::-1]
    how = "does better than" if found.apart else "does as well as"
    return f"{first} {how} {second} after {say_count(found.trials, 'trial')}"


def _describe_all(found: Mapping[Pair, Settled]) -> str:
    return "; ".join(_describe_pair(pair, each) for pair, each in found.items()) + "."


def _race(rule: StoppingRule, scores: Mapping[str, AgentScores], playing: Collection[str]) -> Verdict:
    """Return which of the agents that play on are settled against all others."""
    pairs, aim = list(combinations(sorted(scores), 2)), rule.aim
    found = _settle_pairs(rule, scores, pairs)
    done = {
        agent: "; ".join(_describe_agent(agent, found)) + "."
        for agent in playing
        if agent in scores and all(pair in found for pair in pairs if agent in pair)
    }
    if len({*playing} & scores.keys() - done.keys()) < 2 and aim is None:
        return Verdict(_describe_all(found))
    named = {aim.first, aim.second} if aim else set()
    return Verdict("", {agent: why for agent, why in done.items() if agent not in named})


def _describe_agent(agent: str, found: Mapping[Pair, Settled]) -> Iterator[str]:
    """Yield how an agent compares with each other one; it is not played further."""
    yield from (_describe_pair(pair, each) for pair, each in found.items() if agent in pair)
