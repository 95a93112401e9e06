"""What came of a scenario in one or two sentences, for readers who have not seen such numbers before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from openfield.console import say_count
from openfield.metrics.comparison import Comparison
from openfield.metrics.stats import Estimate
from openfield.metrics.summary import AgentResults
from openfield.report.words import say_number

MAX_CHANCE = 0.05
"""The p-value, corrected, below which a difference is called clear."""


class ScenarioFinding(msgspec.Struct, frozen=True):
    """What came of a scenario, in a sentence, and the number of an agent that it tells."""

    text: str
    agent: str
    number: str
    """The name of the number."""


def say_findings(
    groups: Sequence[AgentResults], comparisons: Sequence[Comparison], names: Mapping[str, str]
) -> list[ScenarioFinding]:
    """Return who did best and who noticed the change, in sentences.

    Args:
        groups: The agents that are no controls, the best first.
        comparisons: Those of the scenario.
        names: What each agent is called.
    """
    found = _say_best(groups, comparisons, names), _say_noticed(groups, names)
    return [finding for finding in found if finding is not None]


def _say_best(
    groups: Sequence[AgentResults], comparisons: Sequence[Comparison], names: Mapping[str, str]
) -> ScenarioFinding | None:
    if not groups:
        return None
    best = groups[0].agent
    before, after = (groups[0].estimates.get(name) for name in ("before", "after"))
    if before is not None and before.mean is None:
        before = None
    if after is None or after.mean is None:
        if before is None:
            return None
        return ScenarioFinding(f"{_say_reached(groups, before, '', comparisons, names)}.", best, "before")
    text = _say_reached(groups, after, " once the world has changed", comparisons, names)
    earlier = "" if before is None else f"; before the change it had {_say(before)}"
    return ScenarioFinding(f"{text}{earlier}.", best, "after")


def _say_reached(
    groups: Sequence[AgentResults],
    found: Estimate,
    when: str,
    comparisons: Sequence[Comparison],
    names: Mapping[str, str],
) -> str:
    best = names[groups[0].agent]
    if len(groups) == 1:
        return f"{best} reaches {_say(found)}{when}"
    first = "wins most often" if comparisons else "does best"  # agents rank by wins; another may have the higher mean
    return f"{best} {first}{when}: {_say(found)}{_say_lead(groups, comparisons, names)}"


def _say_lead(groups: Sequence[AgentResults], comparisons: Sequence[Comparison], names: Mapping[str, str]) -> str:
    """Return whether the best agent is clearly better than the next one."""
    pair = {groups[0].agent, groups[1].agent}
    found = next((one for one in comparisons if {one.first, one.second} == pair and one.p_holm is not None), None)
    if found is None or found.p_holm is None:
        return ""
    return f", {'' if found.p_holm < MAX_CHANCE else 'but not '}clearly better than {names[groups[1].agent]}"


def _say_noticed(groups: Sequence[AgentResults], names: Mapping[str, str]) -> ScenarioFinding | None:
    """Return who noticed the change most often."""
    found = ((group.estimates.get("correct"), group) for group in groups)
    known = [(each.mean, each.n, group) for each, group in found if each is not None and each.mean is not None]
    if not known:
        return None
    share, trials, first = max(known, key=lambda each: each[0])
    name = names[first.agent]
    if share == 0:
        who = "No agent" if len(groups) > 1 else f"{name} never"
        return ScenarioFinding(f"{who} noticed the change without a false alarm.", first.agent, "correct")
    delay = first.estimates.get("delay")
    after = f", {say_number(delay.mean, 1)} episodes after the onset" if delay is not None and delay.mean else ""
    often = f"in {share * trials:.0f} of {say_count(trials, 'trial')}"
    return ScenarioFinding(f"{name} noticed the change {often} without a false alarm{after}.", first.agent, "correct")


def _say(found: Estimate) -> str:
    interval = f" ({say_number(found.low)} – {say_number(found.high)})" if found.low is not None else ""
    return f"{say_number(found.mean)}{interval}"
