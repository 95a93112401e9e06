"""The words of a report: scenarios, outcomes, and how cells fared. Shared by the terminal, pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from openfield.console import escape_controls
from openfield.domain import Domain
from openfield.errors import OpenfieldError
from openfield.journal.reader import SCORED
from openfield.metrics.comparison import Comparison
from openfield.metrics.metric import Number
from openfield.metrics.scenario import Scenario
from openfield.metrics.stats import MIN_TRIALS, Estimate, format_p, format_units
from openfield.metrics.summary import AgentResults, Summary
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

OF_TASK = {
    "solved": "Share of trials in which a task is solved",
    "success": "Share of instances solved",
    "steps": "Steps to solve",
    "alone": "Steps to solve a task alone",
    "transfer": "Transfer",
    "retention": "Retention",
}
"""The numbers of a task of a curriculum, each with a title."""

CONTROLS = (
    "Controls are agents that must fail, and are in no comparison. One that does better than chance (concordance 0.5) "
    "shows a fault of the evaluation; peeker and scout may do so without --isolate, and enumerator without --sealed."
)
LOOSE = (
    "Below this line: trials by rules that allow scores that nothing was done for, such as those of the original's "
    "client, where a test's labels may be bought before its rounds are answered, "
    "or where another session of the team had bought them. They are ranked with no other."
)
INTERVALS = {
    "conservative": "with conservative 95 % intervals, or usual ones where a number has no range",
    "usual": "with usual 95 % intervals, which hold for scores with a single peak",
    "anytime": "with anytime 95 % intervals, which hold however often one looks",
}
OPEN = "As long as trials are missing, intervals and p-values are anytime: they hold however often one looks."
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
    valid = {group.valid for group in summary.groups} if summary.intervals != "anytime" else set()
    return " ".join((*summary.missing, reading, *([OPEN] if "anytime" in valid else [])))


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
    title, note = number.title, number.note
    if not scenario.novelty:
        title, note = title.replace(" before the onset", " in the test"), note.replace(" before the onset", "")
    return title if number.registered else f"{title} (not registered)", note


def count_trials(estimate: Estimate, number: Number | None, group: AgentResults) -> int | None:
    """Return the number of trials that must stand beside an estimate, or of people.

    It goes without saying if it is the number of all trials or of the changed ones, and not left to the agent.
    """
    explained = estimate.n < MIN_TRIALS and estimate.low is None
    usual = estimate.n in ((group.people,) if group.people else (group.trials, group.trials - group.unchanged))
    return None if estimate.mean is None or explained or (usual and not (number and number.partial)) else estimate.n


def format_estimate(estimate: Estimate | None, number: Number, group: AgentResults) -> str:
    """Return an estimate as text, with its own number of trials if needed, or a dash for None."""
    if estimate is None:
        return NONE
    n = count_trials(estimate, number, group)
    return str(estimate) if n is None else f"{estimate} n={n}"


def format_trials(group: AgentResults) -> str:
    """Return how many trials of a group change, how many do not, and how many people played them."""
    changed = group.trials - group.unchanged
    counts = f"{changed} changed, {group.unchanged} unchanged" if group.unchanged else str(group.trials)
    return f"{counts}, {format_units(group.people, people=True)}" if group.people else counts


def describe_basis(comparison: Comparison) -> str:
    """Describe the trials a comparison rests on, and versions of agents that are not the latest."""
    n, people = comparison.improvement.n, comparison.improvement.people
    units = format_units(n, people)
    shared = f"{units}, each in the trials they played" if people else units.replace(" ", " shared ")
    if n == 0:
        basis = "no trial with a performance of both"
    else:
        basis = shared if comparison.paired else f"all against all, {units} or more"
    if comparison.gain is not None:
        basis = f"{basis}, worth {n * comparison.gain:.0f} apart"
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


def describe_provenance(provenance: Provenance) -> dict[str, str]:
    """Return the record of a command, by title; missing parts are left out."""
    versions = ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    revision = provenance.revision[:12] + (" with changes" if provenance.dirty else "")
    agents = ", ".join(
        f"{name} {version.fingerprint}" for each in provenance.agents.values() for name, version in each.items()
    )
    found = {
        "Command": provenance.command,
        "Started": provenance.started,
        "Note": provenance.note,
        "Tags": ", ".join(provenance.tags),
        "Git revision": revision if provenance.revision else "",
        "Versions": versions,
        "Machine": provenance.machine,
        "Agents": agents,
    }
    return {title: escape_controls(text) for title, text in found.items() if text}


def shorten_note(note: str) -> str:
    """Return the note of a cell as one line, cut to a length that fits a table."""
    line = " ".join(note.split())
    return line if len(line) <= MAX_NOTE_LENGTH else line[: MAX_NOTE_LENGTH - 1] + "…"
