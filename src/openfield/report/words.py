"""The words of a report: scenarios, outcomes, how cells fared, and the results in sentences.

Shared by the terminal, pages, notebooks and JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from openfield.console import escape_controls, say_count
from openfield.domain import Domain
from openfield.errors import OpenfieldError
from openfield.journal.reader import SCORED
from openfield.metrics.comparison import Comparison
from openfield.metrics.metric import Number
from openfield.metrics.scenario import Scenario
from openfield.metrics.stats import MIN_TRIALS, MIN_WHOLE, Estimate, format_p, format_units
from openfield.metrics.summary import AgentResults, Summary
from openfield.parameters import shorten_agents
from openfield.provenance.provenance import Provenance
from openfield.provenance.rules import DomainRules

MAX_PAIRS = 15
MAX_NOTE_LENGTH = 300
MAX_COMMANDS = 20
"""How many commands a page lists, the latest ones."""

Domains = Mapping[str, Domain[Any] | DomainRules]

NONE = str(Estimate(None, None, None, 0))
"""The sign for a missing value."""

OUTCOMES = {
    "done": "played to the end",
    "truncated": "ended by a limit, or left where its protocol allows it",
    "agent_error": "the agent raised an error",
    "agent_timeout": "the agent took too long",
    "agent_protocol": "the agent gave an answer that is not valid",
    "agent_gone": "the agent went away",
    "world_error": "the world failed",
    "harness_error": "openfield failed",
    "cancelled": "stopped on request",
    "superseded": "replaced by a new attempt",
    "unfinished": "not over yet",
}
"""Each outcome as a reader understands it."""

CONTROLS = (
    "Controls are agents that must fail, and are in no comparison. One that does better than chance (concordance 0.5) "
    "shows a fault of the evaluation; peeker and scout may do so without --isolate, and enumerator without --sealed."
)
LOOSE = (
    "Below this line: trials by rules that allow scores that nothing was done for, such as those of the original's "
    "client, where a test's labels may be bought before its rounds are answered. They are ranked with no other."
)
INTERVALS = {
    "conservative": "with conservative 95 % intervals, or usual ones where a number has no range",
    "usual": "with usual 95 % intervals, which hold for scores with a single peak",
}
READING = (
    f"Numbers are over {{}}, {{}}; below {MIN_TRIALS} {{}} there is no interval. "
    "Repeats of a trial{} are averaged first. P-values in a table are corrected over its agents (Holm). {}"
)
POLICIES = {
    "count": "Every trial that an agent started counts: an episode it failed to play has performance 0, is an alarm "
    "before the change and a miss from it on. Faults of openfield or of a world count neither way.",
    "exclude": "Trials that an agent failed are excluded (--failures exclude), which can make an agent look better.",
}


def explain_reading(summary: Summary) -> str:
    """Explain how the numbers of a report are read, and why some are missing; all trials of a person are one unit."""
    people = [bool(group.people) for group in summary.groups]
    if not any(people):
        units, few, averaged = "trials", "trials", ""
    else:
        units, few = ("people", "people") if all(people) else ("trials, those of people over people", "of either")
        averaged = ", and all trials of a person,"
    reading = READING.format(units, INTERVALS[summary.intervals], few, averaged, POLICIES[summary.policy])
    return " ".join((*summary.missing, reading))


def title_domain(scenario: Scenario, domains: Domains) -> str:
    """Return the domain's title, or its name if it is not installed."""
    domain = domains.get(scenario.domain)
    return domain.title if domain else scenario.domain


def describe_novelty(scenario: Scenario, domains: Domains) -> str:
    """Describe what changes in the domain's words, or by name if the domain does not know it."""
    domain = domains.get(scenario.domain)
    with suppress(OpenfieldError):
        if domain is not None:
            return domain.describe(scenario.novelty)
    return " + ".join(scenario.novelty) or "no novelty"


def format_number(value: float | None, digits: int = 2) -> str:
    """Return a number with its decimals and a proper minus sign, or a dash for None."""
    return "–" if value is None else f"{value:z,.{digits}f}".replace("-", "−")


def format_sentence(text: str) -> str:
    """Return a text as a sentence: with a capital and a full stop."""
    return text and text[0].upper() + text[1:].rstrip(".") + "."


def describe_terms(scenario: Scenario) -> str:
    """Describe the other terms of a scenario: the red light, and settings that are not the defaults."""
    light = (
        "agents are told when the world changes (red light)"
        if scenario.red_light
        else "agents are not told when the world changes"
    )
    terms = [light] if scenario.novelty else []
    return "; ".join(terms + ([f"settings: {scenario.settings}"] if scenario.settings else []))


def describe_onset(groups: Sequence[AgentResults]) -> str:
    """Return cautions about the trials of a scenario, with their agents if they do not hold for all."""
    noted: dict[str, list[str]] = {}
    for group in groups:
        if group.note:
            noted.setdefault(group.note, []).append(group.agent)
    return "; ".join(
        note if len(agents) == len(groups) else f"{note} ({', '.join(agents)})" for note, agents in noted.items()
    )


def name_number(number: Number, scenario: Scenario) -> tuple[str, str]:
    """Return the title and note of a number; they name no onset if nothing changes in the scenario."""
    if scenario.novelty:
        return number.title, number.note
    return number.title.replace(" before the onset", " in the test"), number.note.replace(" before the onset", "")


def count_trials(estimate: Estimate, number: Number | None, group: AgentResults) -> int | None:
    """Return the number of trials that must stand beside an estimate, or of people.

    It goes without saying if it is the number of all trials or of the changed ones, and not left to the agent.
    """
    told = estimate.n < MIN_TRIALS and estimate.low is None
    usual = estimate.n in ((group.people,) if group.people else (group.trials, group.trials - group.unchanged))
    return None if estimate.mean is None or told or (usual and not (number and number.partial)) else estimate.n


def format_estimate(estimate: Estimate | None, number: Number, group: AgentResults) -> str:
    """Return an estimate as text, with its own number of trials if needed, or a dash for None."""
    if estimate is None:
        return NONE
    n = count_trials(estimate, number, group)
    return str(estimate) if n is None else f"{estimate} n={n}"


def format_trials(group: AgentResults) -> str:
    """Return how many trials of a group change, how many do not, and how many people played them."""
    changed = group.trials - group.unchanged
    told = f"{changed} changed, {group.unchanged} unchanged" if group.unchanged else str(group.trials)
    return f"{told}, {format_units(group.people, people=True)}" if group.people else told


def describe_basis(comparison: Comparison) -> str:
    """Describe the trials a comparison rests on, and versions of agents that are not the latest."""
    n, people = comparison.improvement.n, comparison.improvement.people
    units = format_units(n, people)
    shared = f"{units}, each in the trials they played" if people else units.replace(" ", " shared ")
    basis = "no trial of both" if n == 0 else shared if comparison.paired else f"all against all, {units} or more"
    return "; ".join(filter(None, (basis, comparison.versions)))


def pick_comparisons(comparisons: Sequence[Comparison], groups: Sequence[AgentResults]) -> tuple[list[Comparison], str]:
    """Pick the comparisons of a scenario that a reader can take in, and count the others."""
    scenario = groups[0].scenario
    pairs = [one for one in comparisons if one.scenario == scenario]
    note = _explain_comparisons(pairs)
    if len(pairs) <= MAX_PAIRS:
        return pairs, note
    best = rank_agents(split_controls(groups)[0], comparisons)[0].agent
    left_out = f"Of {len(pairs)} pairs only those with {best} are shown, the agent that wins most often."
    return [one for one in pairs if best in (one.first, one.second)], f"{left_out} {note}"


def rank_agents(groups: Sequence[AgentResults], comparisons: Sequence[Comparison]) -> list[AgentResults]:
    """Return the agents of a scenario, the one that wins most often first; those that failed everywhere are last."""
    pairs = [one for one in comparisons if groups and one.scenario == groups[0].scenario]

    def rank(group: AgentResults) -> tuple[bool, float, float, str]:
        found = group.estimates.get("after") or group.estimates.get("before")
        value = -1.0 if found is None or found.mean is None else found.mean
        return not has_played(group), -_sum_wins(group.agent, pairs), -value, group.agent

    return sorted(groups, key=rank)


def has_played(group: AgentResults) -> bool:
    """Return whether an agent played some trial to an end that is scored, or none has ended yet."""
    return any(outcome in SCORED for outcome in group.outcomes) or group.outcomes.keys() <= {"unfinished"}


def group_scenarios(summary: Summary) -> list[tuple[Scenario, list[AgentResults]]]:
    """Return the scenarios of a summary with the results of their agents, in order."""
    found: dict[Scenario, list[AgentResults]] = {}
    for group in summary.groups:
        found.setdefault(group.scenario, []).append(group)
    return list(found.items())


def format_corrected(comparison: Comparison) -> str:
    """Return the corrected p-value of a comparison as text."""
    return NONE if comparison.p_holm is None else format_p(comparison.p_holm)


def _explain_comparisons(pairs: Sequence[Comparison]) -> str:
    family = max((one.family for one in pairs), default=0)
    if not pairs:
        return ""
    tests = f"; p-values are corrected (Holm over {family} comparison{'s' if family > 1 else ''})" if family else ""
    return f"Each interval is for its pair alone{tests}."


def _sum_wins(agent: str, pairs: Sequence[Comparison]) -> float:
    """Return how often an agent does better, over all agents it is compared with."""
    chances = [(one.first, one.improvement.mean or 0.0) for one in pairs if agent in (one.first, one.second)]
    return sum(chance if first == agent else 1 - chance for first, chance in chances)


def split_controls(groups: Iterable[AgentResults]) -> tuple[list[AgentResults], list[AgentResults]]:
    """Return the user's agents, and the controls."""
    known = list(groups)
    return [group for group in known if not group.control], [group for group in known if group.control]


def count_failed(outcomes: Mapping[str, int]) -> int:
    """Count the cells that are not scored."""
    return sum(count for outcome, count in outcomes.items() if outcome not in SCORED)


def format_outcomes(outcomes: Mapping[str, int]) -> str:
    """Return all outcomes in one line."""
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "no cells"


def describe_provenance(told: Provenance) -> dict[str, str]:
    """Return the record of a command, by title; missing parts are left out."""
    versions = ", ".join(f"{name} {version}" for name, version in told.versions.items())
    revision = told.revision[:12] + (" with changes" if told.dirty else "")
    agents = ", ".join(
        f"{name} {version.fingerprint}" for each in told.agents.values() for name, version in each.items()
    )
    found = {
        "Command": told.command,
        "Started": told.started,
        "Note": told.note,
        "Tags": ", ".join(told.tags),
        "Git revision": revision if told.revision else "",
        "Versions": versions,
        "Machine": told.machine,
        "Agents": agents,
    }
    return {title: escape_controls(text) for title, text in found.items() if text}


def shorten_note(note: str) -> str:
    """Return the note of a cell, cut to a length that fits a table."""
    return note if len(note) <= MAX_NOTE_LENGTH else note[: MAX_NOTE_LENGTH - 1] + "…"


MAX_CHANCE = 0.05
"""The p-value, corrected, below which one agent is called better than another."""
MAX_NAMED = 3
"""Agents that a sentence names one by one."""
CHANGED = "once the world has changed"


class ScenarioFinding(msgspec.Struct, frozen=True):
    """A result of a scenario, in a sentence, and the number of an agent that it is about."""

    text: str
    agent: str
    number: str
    """The name of the number."""


def write_findings(
    groups: Sequence[AgentResults], comparisons: Sequence[Comparison], names: Mapping[str, str], brief: bool = False
) -> list[ScenarioFinding]:
    """Return who did best, who noticed the change and who failed, in sentences.

    One agent is called better than another only if the corrected p-value of their comparison is below 0.05.

    Args:
        groups: The agents of a scenario without its controls, the best first.
        comparisons: Those of the scenario.
        names: What each agent is called.
        brief: Leave out intervals, and all but the most telling agents.
    """
    played = [group for group in groups if has_played(group)]
    found = (
        _tell_best(played, comparisons, names, brief),
        _tell_noticed(played, names, brief),
        *(_tell_failed(group, names) for group in groups),
    )
    return [finding for finding in found if finding is not None]


def list_findings(summary: Summary, brief: bool = False) -> list[tuple[Scenario, list[ScenarioFinding]]]:
    """Return the findings of each scenario; controls are left out."""
    told = []
    for scenario, members in group_scenarios(summary):
        agents = rank_agents(split_controls(members)[0], summary.comparisons)
        pairs = [one for one in summary.comparisons if one.scenario == scenario]
        told.append((scenario, write_findings(agents, pairs, shorten_agents(each.agent for each in agents), brief)))
    return told


def _tell_best(
    groups: Sequence[AgentResults], comparisons: Sequence[Comparison], names: Mapping[str, str], brief: bool
) -> ScenarioFinding | None:
    for earlier, later in (("before", "after"), ("return_before", "return_after")):
        for number, when in ((later, CHANGED), (earlier, "in the test")):
            valued = [group for group in groups if _find(group, number) is not None]
            if valued and (number == later or not any(group.scenario.novelty for group in valued)):
                text = _tell_reached(valued, number, when, comparisons, names, brief)
                before = _find(valued[0], earlier) if number == later and len(groups) == 1 else None
                was = "" if before is None else f"; before that it had {_tell_estimate(before, brief)}"
                return ScenarioFinding(f"{text}{was}.", valued[0].agent, number)
    return None


def _tell_reached(
    groups: Sequence[AgentResults],
    number: str,
    when: str,
    comparisons: Sequence[Comparison],
    names: Mapping[str, str],
    brief: bool,
) -> str:
    first = groups[0]
    known = {group.agent: estimate for group in groups if (estimate := _find(group, number)) is not None}
    told = {agent: _tell_estimate(estimate, brief) for agent, estimate in known.items()}
    if number.startswith("return"):
        return f"The return {when} is " + _join([f"{told[a]} for {names[a]}" for a in list(told)[:MAX_NAMED]])
    if len(groups) == 1:
        return f"{names[first.agent]} reaches {told[first.agent]} {when}"
    tested = {other: p for other in list(known)[1:] if (p := _find_p(first.agent, other, comparisons)) is not None}
    beaten = {other: p for other, p in tested.items() if is_clearly_better(first.agent, other, comparisons)}
    if not beaten:
        return _tell_undecided(told, known, when, tested, names)
    highest = all((each.mean or 0.0) <= (known[first.agent].mean or 0.0) for each in known.values())
    best = "does best" if highest else "wins most often"
    return f"{names[first.agent]} {best} {when}: {told[first.agent]}, {_tell_beaten(beaten, tested, names)}"


def _tell_undecided(
    told: Mapping[str, str],
    known: Mapping[str, Estimate],
    when: str,
    tested: Mapping[str, float],
    names: Mapping[str, str],
) -> str:
    """Return what agents reach of which none is clearly better than the others."""
    agents = list(told)[:MAX_NAMED]
    if len({each.mean for each in known.values()}) == 1:
        many = f"All {len(told)} agents" if len(told) > MAX_NAMED else _join([names[agent] for agent in agents])
        return f"{many} do equally well {when}: {told[agents[0]]}"
    best = [f"{names[agent]} {'reaches ' if agent == agents[0] else ''}{told[agent]}" for agent in agents]
    left = len(told) - len(agents)
    reached = _join(best) + (f", ahead of {say_count(left, 'other')}" if left else "")
    if not tested:
        units = min(each.n for each in known.values())
        few = f", in too few trials to compare them ({units})" if units < MIN_TRIALS else ""
        return f"{reached} {when}{few}"
    return f"No agent is clearly better {when}: {reached}; {_tell_p(min(tested.values()))}"


def _tell_beaten(beaten: Mapping[str, float], tested: Mapping[str, float], names: Mapping[str, str]) -> str:
    close = [other for other in tested if other not in beaten]
    if len(beaten) > MAX_NAMED:
        better = f"better than {len(beaten)} others ({_tell_p(max(beaten.values()), most=True)})"
    else:
        better = "better than " + _join([f"{names[other]} ({_tell_p(p)})" for other, p in beaten.items()])
    if not close:
        return better
    rest = names[close[0]] if len(close) == 1 else f"{len(close)} others"
    return f"{better}, but not clearly better than {rest}"


def _tell_noticed(groups: Sequence[AgentResults], names: Mapping[str, str], brief: bool) -> ScenarioFinding | None:
    """Return who noticed the change, how often and how late, and with which false alarms."""
    asked = [group for group in groups if "correct" in group.estimates and not group.scenario.red_light]
    telling = [group for group in asked if _find(group, "correct") is not None]
    if not telling:
        text = f"{names[asked[0].agent]} states no belief" if len(asked) == 1 else "No agent states a belief"
        return ScenarioFinding(f"{text} that the world has changed.", asked[0].agent, "correct") if asked else None
    first = max(telling, key=lambda group: (_value(group, "correct"), _value(group, "detected")))
    others = [group for group in telling if group is not first]
    never = not any(_value(group, "detected") + _value(group, "alarmed") for group in telling)
    if never and others:
        return ScenarioFinding("No agent notices the change.", first.agent, "correct")
    rest = "" if brief else "".join(f"; {_tell_detections(group, names)}" for group in others[: MAX_NAMED - 1])
    return ScenarioFinding(f"{_tell_detections(first, names)}{rest}.", first.agent, "correct")


def _tell_detections(group: AgentResults, names: Mapping[str, str]) -> str:
    name, seen = names[group.agent], _find(group, "detected") or _find(group, "correct")
    alarms = _tell_alarms(group)
    if seen is None or not seen.mean:
        return f"{name} never notices the change" + (f" and {alarms}" if alarms else "")
    delay = _find(group, "delay")  # over trials without a false alarm: said only if these are all
    late = "" if delay is None or alarms else f", {_tell_delay(delay.mean or 0.0)}"
    return f"{name} notices in {_tell_share(seen)}{late}" + (f", but {alarms}" if alarms else ", without a false alarm")


def _tell_alarms(group: AgentResults) -> str:
    """Return how often an agent raised a false alarm, in trials before they change and in those that do not change."""
    early, twins = _find(group, "alarmed"), _find(group, "alarmed_unchanged")
    told = [f"in {_tell_share(early)} before it"] if early is not None and early.mean else []
    told += [f"in {_tell_share(twins)} without a change"] if twins is not None and twins.mean else []
    return f"raises a false alarm {' and '.join(told)}" if told else ""


def _tell_delay(delay: float) -> str:
    if delay < 0.05:
        return "at once"
    rounded = format_number(delay, 1).removesuffix(".0")
    return f"{'one' if rounded == '1' else rounded} episode{'' if rounded == '1' else 's'} late on average"


def _tell_share(estimate: Estimate) -> str:
    """Return a share as a count of trials, or in percent where repeats make it no whole number of them."""
    count, units = (estimate.mean or 0.0) * estimate.n, format_units(estimate.n, estimate.people)
    if abs(count - round(count)) > 1e-6:
        return f"{(estimate.mean or 0.0):.0%} of {units}".replace("%", " %")
    return f"{round(count)} of {units}"


def _tell_failed(group: AgentResults, names: Mapping[str, str]) -> ScenarioFinding | None:
    failed = {name: count for name, count in group.outcomes.items() if name not in SCORED and name != "unfinished"}
    if not failed:
        return None
    count, cells = sum(failed.values()), sum(group.outcomes.values())
    often = "every cell" if count == cells else f"{count} of {say_count(cells, 'cell')}"
    return ScenarioFinding(f"{names[group.agent]} failed in {often} ({format_outcomes(failed)}).", group.agent, "after")


def _tell_estimate(estimate: Estimate, brief: bool) -> str:
    digits = 0 if abs(estimate.mean or 0.0) >= MIN_WHOLE else 2
    value = format_number(estimate.mean, digits)
    if brief or estimate.low is None:
        return value
    return f"{value} (95 % interval {format_number(estimate.low, digits)} to {format_number(estimate.high, digits)})"


def _tell_p(p: float, most: bool = False) -> str:
    return "p < 0.001" if p < 0.0005 else f"p {'≤' if most else '='} {p:.3f}"


def _find(group: AgentResults, number: str) -> Estimate | None:
    """Return an estimate that has a value."""
    found = group.estimates.get(number)
    return None if found is None or found.mean is None else found


def _value(group: AgentResults, number: str) -> float:
    found = _find(group, number)
    return 0.0 if found is None else found.mean or 0.0


def _find_pair(first: str, second: str, comparisons: Iterable[Comparison]) -> Comparison | None:
    return next((one for one in comparisons if {one.first, one.second} == {first, second}), None)


def _find_p(first: str, second: str, comparisons: Iterable[Comparison]) -> float | None:
    found = _find_pair(first, second, comparisons)
    return None if found is None else found.p_holm


def is_clearly_better(first: str, second: str, comparisons: Iterable[Comparison]) -> bool:
    """Return whether the first of two agents of a scenario does better, with a corrected p-value below 0.05."""
    known = list(comparisons)
    p = _find_p(first, second, known)
    return p is not None and p < MAX_CHANCE and _leads(first, second, known)


def _leads(first: str, second: str, comparisons: Iterable[Comparison]) -> bool:
    """Return whether the first of two agents does better in their comparison."""
    found = _find_pair(first, second, comparisons)
    gap = None if found is None else found.difference.mean
    if found is None or gap is None:  # without shared trials there is no difference, and no claim
        return False
    return gap > 0 if found.first == first else gap < 0


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
