"""The results of a scenario, in sentences: who did best, who noticed the change, and who failed.

Shared by the terminal, the demo, pages, notebooks and JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from openfield.console import say_count
from openfield.journal.reader import SCORED
from openfield.metrics.comparison import Comparison
from openfield.metrics.scenario import Scenario
from openfield.metrics.stats import MIN_TRIALS, MIN_WHOLE, Estimate, format_units
from openfield.metrics.summary import AgentResults, Summary
from openfield.parameters import shorten_agents
from openfield.report.words import (
    format_number,
    format_outcomes,
    group_scenarios,
    has_played,
    rank_agents,
    split_controls,
)

MAX_CHANCE = 0.05
"""The p-value, corrected, below which one agent is called better than another."""
MAX_NAMED = 3
"""Agents that a sentence names one by one."""


class ScenarioFinding(msgspec.Struct, frozen=True):
    """A result of a scenario, in a sentence, and the number of an agent that it is about."""

    text: str
    agent: str
    number: str
    """The name of the number."""


def write_findings(
    groups: Sequence[AgentResults], comparisons: Sequence[Comparison], names: Mapping[str, str]
) -> list[ScenarioFinding]:
    """Return who did best, who noticed the change and who failed, in sentences.

    One agent is called better than another only if the corrected p-value of their comparison is below 0.05.

    Args:
        groups: The agents of a scenario without its controls, the best first.
        comparisons: Those of the scenario.
        names: What each agent is called.
    """
    return _Writer(comparisons, names, brief=False).write(groups)


def list_findings(summary: Summary) -> list[tuple[Scenario, list[ScenarioFinding]]]:
    """Return the findings of each scenario; controls are left out."""
    written = []
    for scenario, members in group_scenarios(summary):
        agents = rank_agents(split_controls(members)[0], summary.comparisons)
        written.append((scenario, _make_writer(summary, scenario, agents, brief=False).write(agents)))
    return written


def sum_up(summary: Summary, scenario: Scenario, agents: Sequence[AgentResults]) -> str:
    """Return the results of a scenario in one sentence without intervals, to stand behind what changes in it.

    Args:
        summary: All numbers.
        scenario: The scenario.
        agents: Its agents, the best first.
    """
    names, text, subject = shorten_agents(each.agent for each in agents), "", ""
    for finding in _make_writer(summary, scenario, agents, brief=True).write(agents):
        part, start = finding.text.removesuffix("."), f"{names[finding.agent]} "
        if not text:
            text = part
            subject = start if part.startswith(start) and " and " not in part else ""  # else it is about several
        elif start == subject and part.startswith(start):
            text += f"{',' if ', ' in text else ''} and {part.removeprefix(start)}"
        else:
            text += f"; {part[0].lower() if part.startswith('No agent') else part[0]}{part[1:]}"
    return text and f"{text}."


def _make_writer(summary: Summary, scenario: Scenario, agents: Sequence[AgentResults], brief: bool) -> _Writer:
    pairs = [one for one in summary.comparisons if one.scenario == scenario]
    return _Writer(pairs, shorten_agents(each.agent for each in agents), brief)


def is_clearly_better(first: str, second: str, comparisons: Sequence[Comparison]) -> bool:
    """Return whether the first of two agents of a scenario does better, with a corrected p-value below 0.05."""
    p = _find_p(first, second, comparisons)
    return p is not None and p < MAX_CHANCE and _leads(first, second, comparisons)


class _Writer:
    """Writes the sentences about one scenario."""

    def __init__(self, comparisons: Sequence[Comparison], names: Mapping[str, str], brief: bool) -> None:
        self._comparisons = comparisons
        self._names = names
        self._brief = brief

    def write(self, groups: Sequence[AgentResults]) -> list[ScenarioFinding]:
        """Return its results, from its agents, the best first."""
        played = [group for group in groups if has_played(group)]
        found = (self._tell_best(played), self._tell_noticed(played), *map(self._tell_failed, groups))
        return [finding for finding in found if finding is not None]

    def _tell_best(self, groups: Sequence[AgentResults]) -> ScenarioFinding | None:
        changes = any(group.scenario.novelty for group in groups)
        for earlier, later in (("before", "after"), ("return_before", "return_after")):
            number, when = (later, " after the change") if changes else (earlier, " in the test")
            when = "" if self._brief else when
            known = [group for group in groups if _find(group, number) is not None]
            if not known:
                continue
            first, before = known[0], _find(known[0], earlier) if changes and len(groups) == 1 else None
            if number.startswith("return"):
                text = self._tell_returns(known, number, when, before)
            elif len(known) == 1:
                text = self._tell_only(first, number, when, before)
            else:
                text = self._tell_several(known, number, when)
            return ScenarioFinding(f"{text}.", first.agent, number)
        return None

    def _tell_returns(self, groups: Sequence[AgentResults], number: str, when: str, before: Estimate | None) -> str:
        """Tell returns, which rank no agent."""
        returns = [f"{self._show(_get(group, number))} for {self._names[group.agent]}" for group in groups[:MAX_NAMED]]
        was = "" if before is None else f", and was {self._show(before)} before{'' if self._brief else ' it'}"
        return f"{f'{when.strip().capitalize()} the' if when else 'The'} mean return is {_join(returns)}{was}"

    def _tell_only(self, group: AgentResults, number: str, when: str, before: Estimate | None) -> str:
        after = _get(group, number)
        text = f"{self._names[group.agent]} scores {self._show(after)}{when}"
        if before is None:
            return text
        gap = round(after.mean or 0.0, 2) - round(before.mean or 0.0, 2)
        return f"{text}, as before" if not gap else f"{text}, {'up' if gap > 0 else 'down'} from {self._show(before)}"

    def _tell_several(self, groups: Sequence[AgentResults], number: str, when: str) -> str:
        first, others = groups[0], groups[1:]
        found = {each.agent: _find_p(first.agent, each.agent, self._comparisons) for each in others}
        tested = {agent: p for agent, p in found.items() if p is not None}
        beaten = {other: p for other, p in tested.items() if is_clearly_better(first.agent, other, self._comparisons)}
        if not beaten:
            return self._tell_undecided(groups, number, when, tested)
        highest = all(_value(each, number) <= _value(first, number) for each in others)
        best = "does best" if highest else "most often does best"
        value = self._show(_get(first, number), ", ")
        if self._brief and len(beaten) == len(others):
            return f"{self._names[first.agent]} {best}{when} ({value})"
        return f"{self._names[first.agent]} {best}{when} ({value}), {self._tell_beaten(beaten, tested)}"

    def _tell_beaten(self, beaten: Mapping[str, float], tested: Mapping[str, float]) -> str:
        named = [f"{self._names[other]} ({_tell_p([p])})" for other, p in beaten.items()]
        many = f"{len(beaten)} others ({_tell_p(beaten.values())})" if len(beaten) > MAX_NAMED else _join(named)
        close = [self._names[other] for other in tested if other not in beaten]
        rest = close[0] if len(close) == 1 else f"{len(close)} others"
        return f"better than {many}{f', but not clearly better than {rest}' if close else ''}"

    def _tell_undecided(
        self, groups: Sequence[AgentResults], number: str, when: str, tested: Mapping[str, float]
    ) -> str:
        """Tell what agents reach of which none is clearly better than the others, the highest value first."""
        groups = sorted(groups, key=lambda group: -_value(group, number))
        names, found = [self._names[group.agent] for group in groups], [_get(group, number) for group in groups]
        if len({each.mean for each in found}) == 1:
            many = f"All {len(names)} agents" if len(names) > MAX_NAMED else _join(names)
            return f"{many} do equally well{when} ({self._show(found[0], ', ')})"
        scores = [f"{name} {self._show(each)}" for name, each in zip(names, found, strict=True)][:MAX_NAMED]
        left = len(names) - len(scores)
        rest = f", ahead of {say_count(left, 'other')}" if left else ""
        if tested and self._brief:
            return f"No agent is clearly best{when} ({_join(scores)}{rest})"
        scores[0] = f"{names[0]} scores {self._show(found[0])}"
        if tested:
            p = f"; {_tell_p(tested.values(), least=True)}" if min(tested.values()) >= MAX_CHANCE else ""
            return f"No agent is clearly best{when}: {_join(scores)}{rest}{p}"
        few = min(found, key=lambda each: each.n)
        verb = "is" if few.n == 1 else "are"
        units = f"; {format_units(few.n, few.people)} {verb} too few to compare them" if few.n < MIN_TRIALS else ""
        return f"{_join(scores)}{rest}{when}{units}"

    def _tell_noticed(self, groups: Sequence[AgentResults]) -> ScenarioFinding | None:
        """Tell who noticed the change, how often and how late, and with which false alarms."""
        asked = [group for group in groups if "correct" in group.estimates and not group.scenario.red_light]
        telling = [group for group in asked if _find(group, "correct") is not None]
        if not telling:
            who = f"{self._names[asked[0].agent]} does not say" if len(asked) == 1 else "No agent says"
            text = f"{who} whether its world has changed."
            return ScenarioFinding(text, asked[0].agent, "correct") if asked else None
        first = max(telling, key=lambda group: (_value(group, "correct"), _value(group, "detected")))
        others = [group for group in telling if group is not first]
        if others and not any(_value(group, "detected") + _value(group, "alarmed") for group in telling):
            return ScenarioFinding(f"No agent notices{'' if self._brief else ' the change'}.", first.agent, "correct")
        more = [] if self._brief else others[: MAX_NAMED - 1]
        texts = [self._tell_detections(first, " the change"), *(self._tell_detections(each, " it") for each in more)]
        return ScenarioFinding("; ".join(texts) + ".", first.agent, "correct")

    def _tell_detections(self, group: AgentResults, change: str) -> str:
        name, seen = self._names[group.agent], _find(group, "detected") or _find(group, "correct")
        change = "" if self._brief else change
        alarms = _tell_alarms(group, self._brief)
        if seen is None or not seen.mean:
            return f"{name} never notices{change}{alarms}"
        delay = _find(group, "delay")  # over trials without a false alarm: said only if these are all
        late = "" if delay is None or alarms else f", {_tell_delay(delay.mean or 0.0, self._brief)}"
        clean = "" if alarms or self._brief else ", without a false alarm"
        return f"{name} notices{change} in {_tell_share(seen)}{late}{alarms}{clean}"

    def _tell_failed(self, group: AgentResults) -> ScenarioFinding | None:
        failed = {name: count for name, count in group.outcomes.items() if name not in SCORED and name != "unfinished"}
        if not failed:
            return None
        count, cells = sum(failed.values()), sum(group.outcomes.values())
        often = "every time" if count == cells else f"{count} of {cells} times"
        how = next(iter(failed)) if len(failed) == 1 else format_outcomes(failed)
        return ScenarioFinding(f"{self._names[group.agent]} failed {often} ({how}).", group.agent, "after")

    def _show(self, estimate: Estimate, link: str = "") -> str:
        """Return an estimate with its interval, in parentheses or after a link; a brief one has none."""
        digits = 0 if abs(estimate.mean or 0.0) >= MIN_WHOLE else 2
        value = format_number(estimate.mean, digits)
        if self._brief or estimate.low is None:
            return value
        interval = f"95 % interval {format_number(estimate.low, digits)} to {format_number(estimate.high, digits)}"
        return f"{value}{link}{interval}" if link else f"{value} ({interval})"


def _tell_alarms(group: AgentResults, brief: bool) -> str:
    """Return how often an agent raised a false alarm, in trials before they change and in those that do not change."""
    early, twins = _find(group, "alarmed"), _find(group, "alarmed_unchanged")
    alarms = [f"before it in {_tell_share(early)}"] if early is not None and early.mean else []
    alarms += [f"in {_tell_share(twins)} in which nothing changes"] if twins is not None and twins.mean else []
    if not alarms:
        return ""
    return ", but also raises false alarms" if brief else f", but raises a false alarm {' and '.join(alarms)}"


def _tell_delay(delay: float, brief: bool) -> str:
    if delay < 0.05:
        return "at once"
    rounded = format_number(delay, 1).removesuffix(".0")
    late = f"{'one' if rounded == '1' else rounded} episode{'' if rounded == '1' else 's'} late"
    return late if brief else f"{late} on average"


def _tell_share(estimate: Estimate) -> str:
    """Return a share as a count of trials, or in percent where repeats make it no whole number of them."""
    count, units = (estimate.mean or 0.0) * estimate.n, format_units(estimate.n, estimate.people)
    if abs(count - round(count)) > 1e-6:
        return f"{(estimate.mean or 0.0):.0%} of {units}".replace("%", " %")
    return f"{round(count)} of {units}"


def _tell_p(values: Iterable[float], least: bool = False) -> str:
    """Return p-values as text: the only one, else the highest, or the least of those that are not low enough."""
    found = list(values)
    p = min(found) if least else max(found)
    sign = "=" if len(found) == 1 else "≥" if least else "≤"
    if p >= 1.0:
        return "p = 1"
    return "p < 0.001" if p < 0.0005 else f"p {sign} {p:.3f}"


def _find(group: AgentResults, number: str) -> Estimate | None:
    """Return an estimate that has a value."""
    found = group.estimates.get(number)
    return None if found is None or found.mean is None else found


def _get(group: AgentResults, number: str) -> Estimate:
    return group.estimates[number]


def _value(group: AgentResults, number: str) -> float:
    found = _find(group, number)
    return 0.0 if found is None else found.mean or 0.0


def _find_pair(first: str, second: str, comparisons: Iterable[Comparison]) -> Comparison | None:
    return next((one for one in comparisons if {one.first, one.second} == {first, second}), None)


def _find_p(first: str, second: str, comparisons: Iterable[Comparison]) -> float | None:
    found = _find_pair(first, second, comparisons)
    return None if found is None else found.p_holm


def find_best(agents: Sequence[str], comparisons: Sequence[Comparison]) -> str | None:
    """Return the agent that is clearly better than every other one of a scenario, if there are others."""
    rivals = {agent: [other for other in agents if other != agent] for agent in agents}
    better = (a for a, others in rivals.items() if others and all(is_clearly_better(a, b, comparisons) for b in others))
    return next(better, None)


def _leads(first: str, second: str, comparisons: Iterable[Comparison]) -> bool:
    """Return whether the first of two agents does better in their comparison."""
    found = _find_pair(first, second, comparisons)
    gap = None if found is None else found.difference.mean
    if found is None or gap is None:  # without shared trials there is no difference, and no claim
        return False
    return gap > 0 if found.first == first else gap < 0


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
