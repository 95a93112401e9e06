"""Print the results of each domain in a few lines: a sentence, and small curves around the change.

For the demo, whose output is a newcomer's first screen; everything else about a run is on its tables and pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from openfield.metrics.scenario import Scenario, group_cells
from openfield.metrics.summary import AgentResults, Summary
from openfield.parameters import shorten_agents
from openfield.report.figures.curves import AgentCurves, Point, trace_agent
from openfield.report.findings import sum_up
from openfield.report.words import Domains, describe_novelty, group_scenarios, rank_agents, split_controls
from openfield.result import Result

POINTS = 6
"""How many points of a curve are shown on each side of the change."""
MAX_AGENTS = 2
"""How many agents have curves."""
MAX_NAME = 12
"""Letters of an agent's name."""
LEVELS, PLAIN_LEVELS = "▁▂▃▄▅▆▇█", "0123456789"
"""The heights of a small curve, and what stands for them where a terminal has no such signs."""
CHANGE, PLAIN_CHANGE = "│", "|"


def show_scenarios(result: Result) -> list[ScenarioLines]:
    """Return a few lines for each scenario of a result."""
    summary, members = result.summary(), group_cells(result.counted())
    found = []
    for scenario, groups in group_scenarios(summary):
        agents = rank_agents(split_controls(groups)[0], summary.comparisons)
        names = shorten_agents(group.agent for group in agents)
        traced = (trace_agent(each.agent, names[each.agent], members[scenario, each.agent], "") for each in agents)
        curves = [each for each in traced if each is not None and each.onset][:MAX_AGENTS]
        found.append(ScenarioLines(_tell(scenario, summary, agents, result.domains), curves))
    return found


def _tell(scenario: Scenario, summary: Summary, agents: Sequence[AgentResults], domains: Domains) -> Text:
    change = describe_novelty(scenario, domains)
    return Text(scenario.domain, style="bold").append(
        f": {change}. {sum_up(summary, scenario, agents)}", style="not bold"
    )


class ScenarioLines:
    """A sentence about a scenario, and below it small curves of its agents."""

    def __init__(self, sentence: Text, curves: Sequence[AgentCurves]) -> None:
        self._sentence = sentence
        self._curves = curves

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the sentence, and the curves side by side, or below each other where they do not fit."""
        yield self._sentence
        plain = not options.encoding.startswith("utf")
        drawn = [_draw(each, plain) for each in self._curves]
        line = Text("  ").append_text(Text("   ").join(drawn))
        if not drawn:
            return
        if line.cell_len <= options.max_width:
            yield line
            return
        yield from (Text("  ").append_text(each) for each in drawn)


def _draw(curves: AgentCurves, plain: bool) -> Text:
    """Return the name of an agent with its performance around the change, and its belief if it states one."""
    before = [point for point in curves.mean if point.at < 0 and not point.training][-POINTS:]
    after = [point for point in curves.mean if point.at >= 0][:POINTS]
    text = Text(curves.name if len(curves.name) <= MAX_NAME else curves.name[: MAX_NAME - 1] + "…")
    text.append(f" {_spark(before, after, 'performance', plain)}", style="blue")
    if any(point.belief is not None for point in (*before, *after)):
        text.append(f" {_spark(before, after, 'belief', plain)}", style="yellow")
    return text


def _spark(before: Sequence[Point], after: Sequence[Point], what: str, plain: bool) -> str:
    sides = ("".join(_levels((getattr(point, what) for point in side), plain)) for side in (before, after))
    return (PLAIN_CHANGE if plain else CHANGE).join(sides)


def _levels(values: Iterable[float | None], plain: bool) -> Iterable[str]:
    signs = PLAIN_LEVELS if plain else LEVELS
    for value in values:
        yield " " if value is None else signs[round(min(max(value, 0.0), 1.0) * (len(signs) - 1))]
