"""The words of a report: scenarios, outcomes and how cells fared.

Shared by the terminal and the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from openfield.domain import Domain
from openfield.errors import OpenfieldError
from openfield.journal.reader import SCORED
from openfield.metrics.metric import Number
from openfield.metrics.stats import MIN_TRIALS
from openfield.metrics.summary import AgentResults, Comparison, Scenario

MAX_PAIRS = 15
MAX_NOTE_LENGTH = 300

Domains = Mapping[str, Domain[Any]]

OUTCOMES = {
    "done": "played to the end",
    "truncated": "ended by a limit, scored as far as it got",
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

READING = (
    f"Numbers are over trials, with 95 % intervals in brackets; below {MIN_TRIALS} trials they are not defined. "
    "Repeats of a trial are averaged first. Only cells that are done or truncated are scored; all others are counted."
)


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


def describe_terms(scenario: Scenario) -> str:
    """Describe the other terms of a scenario: the red light, and settings that are not the defaults."""
    light = "agents are told when the world changes (red light)" if scenario.red_light else "agents are not told"
    terms = [light] if scenario.novelty else []
    return "; ".join(terms + ([f"settings: {scenario.settings}"] if scenario.settings else []))


def name_number(number: Number, scenario: Scenario) -> tuple[str, str]:
    """Return the title and note of a number; they name no onset if nothing changes in the scenario."""
    if scenario.novelty:
        return number.title, number.note
    return number.title.replace(" before the onset", " in the test"), number.note.replace(" before the onset", "")


def describe_basis(comparison: Comparison) -> str:
    """Describe the trials a comparison rests on."""
    n = comparison.improvement.n
    return f"{n} shared trials, one by one" if comparison.paired else f"all against all, at least {n} trials each"


def pick_comparisons(comparisons: Sequence[Comparison], groups: Sequence[AgentResults]) -> tuple[list[Comparison], str]:
    """Pick the comparisons of a scenario that a reader can take in, and say what was left out."""
    scenario = groups[0].scenario
    pairs = [one for one in comparisons if one.scenario == scenario]
    if len(pairs) <= MAX_PAIRS:
        return pairs, ""
    best = max(groups, key=lambda group: -1.0 if group.iqm.mean is None else group.iqm.mean).agent
    note = f"Of {len(pairs)} pairs only those with {best} are shown, whose interquartile mean is highest."
    return [one for one in pairs if best in (one.first, one.second)], note


def count_failed(outcomes: Mapping[str, int]) -> int:
    """Count the cells that are not scored."""
    return sum(count for outcome, count in outcomes.items() if outcome not in SCORED)


def say_outcomes(outcomes: Mapping[str, int]) -> str:
    """Return all outcomes in one line."""
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "no cells"


def shorten_note(note: str) -> str:
    """Return the note of a cell, cut to a length that fits a table."""
    return note if len(note) <= MAX_NOTE_LENGTH else note[: MAX_NOTE_LENGTH - 1] + "…"
