"""Which numbers a table shows: six by default, all of them, or those that are named; and of which agents.

Terminal, page, notebook and the tables for papers ask here, so they show the same numbers. Data (JSON, CSV, Parquet)
always has all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from openfield.errors import UnknownName
from openfield.metrics.metric import Metric, Number
from openfield.metrics.scenario import CurriculumResults, Scenario
from openfield.metrics.summary import AgentResults, Summary

ALL = "all"
RETURNS = ("return_before", "return_after")
"""Shown first; an agent has them only where returns have no scale, and so no performance can be made of them."""
WITH_CHANGE = (*RETURNS, "before", "after", "concordance", "correct", "delay", "alarmed")
"""The numbers that are shown where the world changes."""
BORDERS = ("borders_found", "border_steps", "other_crossings")
WITHOUT_CHANGE = (*RETURNS, "before", "tasks_solved", "steps_to_solve", *BORDERS)
"""The numbers that are shown where nothing changes, or only tasks do."""
BESIDE = {"before": ("won_before", "score_before"), "after": ("won_after", "score_after")}
"""Shown after a performance, so that dying does not look like doing well: the share of episodes won if it is another
number, and the published score."""
MAX_UNKNOWN = 6
"""How many numbers are shown of metrics that have none of the usual ones."""


def name_numbers(wanted: str | Sequence[str] | None, metrics: Sequence[Metric], asked: Sequence[Metric]) -> list[str]:
    """Return the names of the numbers that are shown; none stands for the usual ones.

    Args:
        wanted: `all`, or names, also as one text with commas; None for the usual ones.
        metrics: The metrics that are measured.
        asked: Those that the user asked for: their numbers are shown unless others are named.

    Raises:
        UnknownName: No metric that is measured has such a number.
    """
    known = _list_names(metrics)
    if wanted is None:
        usual = WITH_CHANGE if asked and len(asked) < len(metrics) else ()
        return list(dict.fromkeys([*usual, *_list_names(asked)]))
    names = split_names(wanted)
    for name in names:
        if name not in (ALL, *known):
            raise UnknownName("number", name, [ALL, *known], label="Here")
    return known if ALL in names else names


def split_names(wanted: str | Sequence[str] | None) -> list[str]:
    """Return names as a list, which may be given as one text with commas."""
    parts = wanted.split(",") if isinstance(wanted, str) else wanted or ()
    return [part.strip() for part in parts if part.strip()]


def pick_numbers(summary: Summary, groups: Sequence[AgentResults]) -> list[Number]:
    """Return the numbers that a table of these agents shows: those of returns without a scale first.

    In a run that was registered, those that were found on the way come last.
    """
    return sorted(_pick_all(summary, groups), key=lambda number: not number.registered)


def _pick_all(summary: Summary, groups: Sequence[AgentResults]) -> list[Number]:
    known = {number.name: number for number in summary.numbers}
    if summary.shown:
        names = [name for name in (*RETURNS, *summary.shown) if name in summary.shown]
        return [known[name] for name in dict.fromkeys(names) if any(name in group.estimates for group in groups)]
    changes = any(group.scenario.novelty for group in groups)
    period = "after" if changes else "before"
    won, score = BESIDE[period]
    beside = {period: (won, score) if _differ(period, won, groups) else (score,)}
    usual = [each for name in (WITH_CHANGE if changes else WITHOUT_CHANGE) for each in (name, *beside.get(name, ()))]
    found = [known[name] for name in usual if name in known and _has_value(name, groups)]
    return found or [number for number in summary.numbers if _has_value(number.name, groups)][:MAX_UNKNOWN]


def shows_all(summary: Summary) -> bool:
    """Return whether all numbers were asked for."""
    return bool(summary.shown) and {number.name for number in summary.numbers} <= set(summary.shown)


def select_groups(
    summary: Summary, agents: Sequence[str] = (), novelties: Sequence[str] = (), domains: Sequence[str] = ()
) -> Summary:
    """Return some agents, novelties and domains of a summary, without controls; nothing named stands for all.

    Args:
        summary: All numbers.
        agents: The names of agents.
        novelties: As for `--novelty`: `gravity` is each difficulty of it.
        domains: The names of domains.

    Raises:
        UnknownName: The summary has none of a name.
    """
    groups = [group for group in (*summary.groups, *summary.totals) if not group.control]
    known = {
        "agent": (agents, {group.agent for group in groups}),
        "novelty": (novelties, {name for group in summary.groups for name in _name_novelty(group.scenario)}),
        "domain": (domains, {group.scenario.domain for group in groups}),
    }
    for kind, (wanted, names) in known.items():
        for name in wanted:
            if name not in names:
                raise UnknownName(kind, name, sorted(names), label="In this run")

    def has(each: AgentResults | CurriculumResults) -> bool:
        chosen = (not agents or each.agent in agents) and (not domains or each.scenario.domain in domains)
        return chosen and not each.control and (not novelties or bool(_name_novelty(each.scenario) & {*novelties}))

    return msgspec.structs.replace(
        summary,
        groups=tuple(filter(has, summary.groups)),
        totals=() if novelties else tuple(filter(has, summary.totals)),  # others are over all novelties
        curricula=tuple(filter(has, summary.curricula)),
    )


def _name_novelty(scenario: Scenario) -> set[str]:
    """Return what the novelty of a scenario may be called: with its difficulties or without."""
    full = "+".join(scenario.novelty) or "none"
    return {full, "+".join(name.partition(":")[0] for name in scenario.novelty) or "none"}


def _list_names(metrics: Iterable[Metric]) -> list[str]:
    return list(dict.fromkeys(number.name for metric in metrics for number in metric.numbers))


def _differ(one: str, other: str, groups: Sequence[AgentResults]) -> bool:
    """Return whether two numbers of some agent have other values."""
    found = ((group.estimates.get(one), group.estimates.get(other)) for group in groups)
    return any(None not in pair and pair[0].mean != pair[1].mean for pair in found)  # type: ignore[union-attr]


def _has_value(name: str, groups: Sequence[AgentResults]) -> bool:
    """Return whether the number says something about some agent: a value, or more than a reason why there is none."""
    found = (group.estimates.get(name) for group in groups)
    return any(each is not None and (each.mean is not None or each.beyond is not None) for each in found)
