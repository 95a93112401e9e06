"""One table of all agents: a column for each domain of a campaign, or for each novelty, and the order of the agents.

Between `metrics.summary` and the terminal, pages, exports and figures, which show the same table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from openfield.errors import InvalidInput
from openfield.metrics.comparison import Comparison
from openfield.metrics.metric import Number
from openfield.metrics.scenario import Scenario
from openfield.metrics.stats import Estimate
from openfield.metrics.summary import AgentResults, Summary
from openfield.parameters import shorten_agents
from openfield.report.addresses import name_scenario
from openfield.report.findings import find_best
from openfield.report.words import Domains, has_played, name_number, split_controls, title_domain

Across = Literal["domains", "novelties"]
"""What the columns are."""
SCALED = ("after", "before", "success", "oscr", "auroc")
"""Numbers from 0 to 1 that say how well an agent did; a column shows the first that it has."""
UNSCALED = ("return_after", "return_before")
"""Those of domains that know no scale of returns."""
DIGITS = 2
"""Decimals that are printed: agents that differ only behind them share a rank."""
NO_SAMPLE = "The mean has no interval, because {columns} are not a sample."
INCOMPLETE = "Agents without a number in every column stand below, without a rank."
MARKED = "{mark}: better than every other agent of the column (corrected p below 0.05)."


class MatrixColumn(msgspec.Struct, frozen=True):
    """What agents did in one domain, or in one scenario."""

    id: str
    """What the scenario is called on a page; empty for a whole domain."""
    title: str
    detail: str
    """What it is in full."""
    number: Number
    """What is shown, in the words of the scenario."""
    scenarios: int
    """How many scenarios it is over."""


class MatrixRow(msgspec.Struct, frozen=True):
    """An agent in all columns."""

    agent: str
    name: str
    """What it is called where there is little room."""
    rank: int | None
    """None if it has no number somewhere."""
    mean: float | None
    """Of its numbers from 0 to 1; None if it lacks one, or there is only one column."""
    cells: list[AgentResults | None]
    """Its results in each column, if it played there."""
    best: list[bool]
    """Where it is better than every other agent."""
    lacks: list[str]
    """For each column, what it did not play there, in words; empty if it played all."""

    def estimate(self, at: int, column: MatrixColumn) -> Estimate | None:
        """Return its number in a column."""
        group = self.cells[at]
        return None if group is None else group.estimates.get(column.number.name)


class Matrix(msgspec.Struct, frozen=True):
    """All agents in all columns, the best first; controls are left out."""

    across: Across
    columns: list[MatrixColumn]
    rows: list[MatrixRow]
    order: str
    """How the agents are ordered, in sentences."""

    def explain(self, mark: str = "*") -> str:
        """Return how the agents are ordered, and what a mark means, if one is there."""
        marked = any(any(row.best) for row in self.rows)
        return f"{self.order} {MARKED.format(mark=mark)}" if marked else self.order

    @property
    def shared(self) -> Number | None:
        """The number that all columns show; None if they show different ones."""
        first = self.columns[0].number
        return first if all(column.number.title == first.title for column in self.columns) else None

    @property
    def has_mean(self) -> bool:
        """Whether a mean over the columns is shown."""
        return any(row.mean is not None for row in self.rows)


def make_campaign_matrix(summary: Summary, domains: Domains) -> Matrix | None:
    """Return the table of a campaign; None of one domain, and where most would be empty as domains share no agents."""
    if len({group.scenario.domain for group in summary.groups}) < 2:
        return None
    found = make_matrix(summary, domains)
    cells = [cell for row in found.rows for cell in row.cells] if found else []
    return found if len(cells) <= 2 * sum(cell is not None for cell in cells) else None


class _Part(msgspec.Struct, frozen=True):
    """What becomes a column: its agents, and the scenarios that each of them played."""

    id: str
    title: str
    detail: str
    groups: dict[str, AgentResults]
    played: dict[str, int]

    @property
    def scenarios(self) -> int:
        return max(self.played.values())


def make_matrix(
    summary: Summary, domains: Domains, across: Across | None = None, number: str | None = None
) -> Matrix | None:
    """Return the table of all agents; None if no agent has a number.

    Args:
        summary: The numbers.
        domains: The domains, for titles.
        across: What the columns are: the domains, if there are several, or else the novelties.
        number: The name of the number that is shown; by default how well agents did, on the scale of each domain.
    """
    known: dict[Scenario, dict[str, AgentResults]] = {}
    for group in split_controls(summary.groups)[0]:
        known.setdefault(group.scenario, {})[group.agent] = group
    known = {scenario: groups for scenario, groups in known.items() if not scenario.loose} or known
    several = len({scenario.domain for scenario in known}) > 1
    across = across or pick_across(summary)
    parts = _list_domains(summary, known, domains) if across == "domains" else _list_scenarios(known, domains, several)
    numbers = {each.name: each for each in summary.numbers}
    shown = [(part, found) for part in parts if (found := _pick_number(part, numbers, number)) is not None]
    if not shown:
        return None
    columns = [MatrixColumn(part.id, part.title, part.detail, found, part.scenarios) for part, found in shown]
    compared = (*summary.comparisons, *summary.total_comparisons)
    rows = _make_rows([part for part, _ in shown], columns, compared)
    return Matrix(across, columns, rows, _explain_order(across, columns, rows))


def pick_across(summary: Summary) -> Across:
    """Return what the columns are if nothing is said: domains if there are several, each with its totals."""
    groups = split_controls(summary.groups)[0]
    lacking = _find_lacking(summary, groups)
    return "domains" if len({group.scenario.domain for group in groups}) > 1 and not lacking else "novelties"


def _find_lacking(summary: Summary, groups: Sequence[AgentResults]) -> str:
    """Return the first domain with several scenarios that the summary has no totals of: only some were chosen."""
    totals = {(group.scenario.domain, group.agent) for group in summary.totals}
    counted = [group for group in groups if not group.scenario.loose]
    changing = {group.scenario.domain for group in counted if group.scenario.novelty}
    counted = [group for group in counted if group.scenario.novelty or group.scenario.domain not in changing]
    played = Counter((group.scenario.domain, group.agent) for group in counted)
    return next((key[0] for key, count in played.items() if count > 1 and key not in totals), "")


def _list_domains(
    summary: Summary, known: Mapping[Scenario, Mapping[str, AgentResults]], domains: Domains
) -> list[_Part]:
    """Return a part for each domain: its scenarios with a novelty, or all of them if none has one."""
    if lacking := _find_lacking(summary, [group for groups in known.values() for group in groups.values()]):
        raise InvalidInput(
            f"Only some novelties of {lacking} were chosen, and no number is over them together. Leave out --novelty, "
            "or show novelties across."
        )
    parts = []
    totals = {(group.scenario.domain, group.agent): group for group in summary.totals}
    for domain in dict.fromkeys(scenario.domain for scenario in known):
        own = [scenario for scenario in known if scenario.domain == domain]
        has_total = any(found == domain for found, _ in totals)
        own = [scenario for scenario in own if scenario.novelty] or (own if has_total else own[:1])
        agents = dict.fromkeys(agent for scenario in own for agent in known[scenario])
        single = {agent: known[scenario][agent] for scenario in own for agent in known[scenario]}
        groups = {agent: totals.get((domain, agent), single[agent]) for agent in agents}
        played = {agent: sum(agent in known[scenario] for scenario in own) for agent in agents}
        parts.append(_Part("", domain, title_domain(own[0], domains), groups, played))
    return parts


def _list_scenarios(
    known: Mapping[Scenario, Mapping[str, AgentResults]], domains: Domains, several: bool
) -> list[_Part]:
    titles = name_scenarios(known, several)
    return [
        _Part(
            name_scenario(scenario),
            titles[scenario],
            title_domain(scenario, domains),
            dict(groups),
            dict.fromkeys(groups, 1),
        )
        for scenario, groups in known.items()
    ]


def name_scenarios(scenarios: Iterable[Scenario], with_domain: bool = False) -> dict[Scenario, str]:
    """Return a short name for each scenario that none of the others has: its novelty, and what else tells it apart."""
    known = list(scenarios)
    forms = {
        scenario: [
            f"{scenario.domain}: {novelty}" if with_domain else novelty,
            *(["red light"] if scenario.red_light else []),
            *([scenario.settings] if scenario.settings else []),
        ]
        for scenario in known
        for novelty in ["+".join(scenario.novelty) or "no novelty"]
    }
    names = {scenario: form[0] for scenario, form in forms.items()}
    for size in (2, 3):
        used = [*names.values()]
        names = {
            scenario: name if used.count(name) == 1 else ", ".join(forms[scenario][:size])
            for scenario, name in names.items()
        }
    return names


def _pick_number(part: _Part, numbers: Mapping[str, Number], wanted: str | None) -> Number | None:
    """Return the number that is shown of a part: the first that some agent has a value of."""
    found = [group.estimates for group in part.groups.values()]
    for name in (wanted,) if wanted else (*SCALED, *UNSCALED):
        if any(each[name].mean is not None for each in found if name in each):
            title, note = name_number(numbers[name], next(iter(part.groups.values())).scenario)
            return msgspec.structs.replace(numbers[name], title=title, note=note)
    return None


def _make_rows(
    parts: Sequence[_Part], columns: Sequence[MatrixColumn], comparisons: Sequence[Comparison]
) -> list[MatrixRow]:
    agents = list(dict.fromkeys(agent for part in parts for agent in part.groups))
    names, best = shorten_agents(agents), [_find_best(*pair, comparisons) for pair in zip(parts, columns, strict=True)]
    counted = [at for at, column in enumerate(columns) if column.number.bounds == (0.0, 1.0)] or [0]
    rows, values = [], []
    for agent in agents:
        cells, lacks = [part.groups.get(agent) for part in parts], [_say_lack(part, agent) for part in parts]
        known = [value for at in counted if (value := _value(cells[at], columns[at].number)) is not None]
        value = math.fsum(known) / len(known) if known else None
        is_whole = not any(lacks) and len(known) == len(counted) and any(map(has_played, filter(None, cells)))
        mean = value if is_whole and len(counted) > 1 else None
        rows.append(MatrixRow(agent, names[agent], None, mean, cells, [agent == each for each in best], lacks))
        values.append((value, is_whole))
    better = columns[counted[0]].number.better
    ranks = rank_values([value if is_whole else None for value, is_whole in values], better)
    others = rank_values([value for value, _ in values], better)
    last = len(rows) + 1

    def order(each: tuple[MatrixRow, int | None, int | None]) -> tuple[int, int, int, str]:
        row, rank, other = each
        return rank or last, row.cells.count(None), other or last, row.agent

    ordered = sorted(zip(rows, ranks, others, strict=True), key=order)
    return [msgspec.structs.replace(row, rank=rank) for row, rank, _ in ordered]


def rank_first(numbers: Sequence[Number]) -> list[Number]:
    """Return numbers with the one first that says how well an agent did, if there is one."""
    names = {number.name for number in numbers}
    first = next((name for name in (*SCALED, *UNSCALED) if name in names), None)
    return sorted(numbers, key=lambda number: number.name != first)


def rank_values(values: Sequence[float | None], better: str = "higher") -> list[int | None]:
    """Return the rank of each value, as it is printed: equal ones share a rank, and None has none.

    Args:
        values: The values, in any order.
        better: Whether `higher` or `lower` ones come first.
    """
    sign = 1 if better == "lower" else -1
    keys = [None if value is None else round(sign * value, DIGITS) for value in values]
    known = sorted(key for key in keys if key is not None)
    return [None if key is None else known.index(key) + 1 for key in keys]


def _say_lack(part: _Part, agent: str) -> str:
    if agent not in part.groups:
        return "not played"
    played = part.played[agent]
    kind = "novelties" if part.groups[agent].scenario.novelty else "scenarios"
    return "" if played == part.scenarios else f"{played} of {part.scenarios} {kind}"


def _value(group: AgentResults | None, number: Number) -> float | None:
    found = None if group is None else group.estimates.get(number.name)
    return None if found is None else found.mean


def _find_best(part: _Part, column: MatrixColumn, comparisons: Sequence[Comparison]) -> str | None:
    """Return the agent that is clearly better than every other one, by their comparisons."""
    whole = [agent for agent, played in part.played.items() if played == part.scenarios]
    if len(whole) < len(part.groups):
        return None
    scenario = part.groups[whole[0]].scenario
    if column.number.name != ("after" if scenario.novelty else "before"):  # agents are compared by nothing else
        return None
    return find_best(whole, [one for one in comparisons if one.scenario == scenario])


def _explain_order(across: Across, columns: Sequence[MatrixColumn], rows: Sequence[MatrixRow]) -> str:
    scaled = [column for column in columns if column.number.bounds == (0.0, 1.0)]
    if len(scaled) > 1:
        left = "" if len(scaled) == len(columns) else f" with a scale from 0 to 1 ({len(scaled)} of {len(columns)})"
        said = [
            f"Order: the mean over the {across}{left}, each counted once; equal means share a rank.",
            NO_SAMPLE.format(columns=across),
        ]
    else:
        said = [f"Order: {(scaled or columns)[0].number.title}; equal values share a rank."]
    said += [INCOMPLETE] if any(row.rank is None for row in rows) else []
    return " ".join(said)
