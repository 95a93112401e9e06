"""`openfield demo`: play a small evaluation with a novelty in every installed domain, in under a minute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from openfield.cli.shared.results import play_plan, print_result
from openfield.options import Count, Whole

if TYPE_CHECKING:
    from openfield.domain import Domain
    from openfield.metrics.scenario import Scenario
    from openfield.metrics.summary import AgentResults, Summary
    from openfield.report.figures.curves import AgentCurves, Point
    from openfield.report.words import Domains
    from openfield.result import Result

MAX_LINES = 24
"""Lines of a screen."""
FRAME_LINES = 8
"""Lines above and below those about domains."""
POINTS = 6
"""How many points of a curve are shown on each side of the change."""
MAX_AGENTS = 2
"""How many agents have curves."""
MAX_NAME = 12
"""Letters of an agent's name."""
LEVELS, PLAIN_LEVELS = "▁▂▃▄▅▆▇█", "0123456789"
"""The heights of a small curve, and what stands for them where a terminal has no such signs."""
CHANGE, PLAIN_CHANGE = "│", "|"


def demo(
    *domains: str,
    output: Annotated[Path, Parameter(name=["--output", "-o"], metavar="FILE")] = Path("runs/demo.sqlite"),
    workers: Whole = 2,
    trials: Count = 6,
    all_: Annotated[bool, Parameter(name="--all")] = False,
) -> None:
    """See what openfield does: two agents meet a change in every installed domain.

    Args:
        domains: Domains to show [all that are installed].
        output: The run file [runs/demo.sqlite]. The page is written beside it.
        workers: Processes that play [2].
        trials: Trials per domain [6].
        all_: Print the tables of numbers, too.

    Example:
        openfield demo doom --trials 3
    """
    from openfield.console import say_count
    from openfield.result import Result

    chosen, missing = _pick_domains(domains)
    print("Performance and belief of agents, before and after their world changes:", flush=True)
    cells, left, hidden = set[str](), MAX_LINES - FRAME_LINES - len({*missing.values()}), 0
    for domain in chosen:
        result = _play(domain, trials, output, workers)
        cells |= {cell.id for cell in result.cells}
        printed = _print_scenarios(result, left - (domain is not chosen[-1]))  # a line must be left to tell of the rest
        left, hidden = (left - printed, hidden) if printed else (0, hidden + 1)
    whole = _keep(Result([output]), cells)
    if hidden:
        print(f"{say_count(hidden, 'more domain')}: on the page, and with --all")
    if all_:
        print()
        print_result(whole, as_json=False)
    print(f"\nThe page: {_write_page(whole, output)}   The record: {output}")
    again = "" if all_ else " ".join(["demo", *map(quote, domains), "--all"])
    _say_next(output, domains[0] if domains else chosen[0].name, missing, again)


def _pick_domains(names: tuple[str, ...]) -> tuple[list[Domain[Any]], dict[str, str]]:
    """Return the domains to play, and the missing extra of each that is not installed."""
    from openfield.errors import InvalidInput
    from openfield.registry import check_extra, find_domain, find_missing_extra, installed_domains

    named = [find_domain(name) for name in names]
    for domain in named:
        check_extra(domain)
    found = named or installed_domains()
    missing = {domain.name: extra for domain in found if (extra := find_missing_extra(domain))}
    chosen = [domain for domain in found if domain.name not in missing]
    if not chosen:
        raise InvalidInput("No domain is installed. See what is missing: openfield doctor")
    return chosen, missing


def _play(domain: Domain[Any], trials: int, output: Path, workers: int) -> Result:
    """Play the demo of a domain, and return its results.

    Args:
        domain: The domain.
        trials: How many trials.
        output: The run file.
        workers: Processes that play.
    """
    from openfield.runner.plan import make_plan

    novelty = domain.demo_novelty or domain.default_novelty
    made = domain.trials(trials, novelty=novelty, **domain.demo_settings)
    plan = make_plan(list(domain.demo_agents), made)
    return _keep(play_plan(plan, output, workers, passing=True), {cell.id for cell in plan.cells})


def _print_scenarios(result: Result, room: int) -> int:
    """Print the results of a domain if they fit into as many lines, and return how many lines were printed."""
    from openfield.console import Escaped, make_console

    console, found = make_console(), _show_scenarios(result)
    count = sum(len(console.render_lines(lines)) for lines in found)
    if count > room:
        return 0
    for lines in found:
        console.print(Escaped(lines))
    return count


def _keep(result: Result, cells: set[str]) -> Result:
    """Return a result of these cells only: the file may hold those of an earlier demo."""
    result.cells = [cell for cell in result.cells if cell.id in cells]
    return result


def _write_page(result: Result, output: Path) -> Path:
    """Write the page, with films where the machine can draw them."""
    from rich.console import Console

    from openfield.errors import OpenfieldError

    with Console(stderr=True).status("Writing the page, with films"):
        try:
            films = result.films()
        except OpenfieldError:  # a page without films is better than none
            films = []
        return result.page(output.with_suffix(".html"), films=films)


def _say_next(run: Path, domain: str, missing: dict[str, str], again: str) -> None:
    """Say what to type next, and how to add what is missing: its extra by the name of each part.

    Args:
        run: The run file.
        domain: The domain that examples name.
        missing: Domain -> its extra, where that is not installed.
        again: The command that prints all numbers; empty if they were printed.
    """
    from openfield.installation import install_line, name_program
    from openfield.view.requirements import has_view

    name = name_program("openfield")
    if not has_view():
        missing["view"] = "view"
    view = {
        f"{name} play {quote(domain)}": "would you notice? a game of two minutes",
        f"{name} view {quote(str(run))}": "in the browser, turn by turn",
    }
    commands = {
        **({} if "view" in missing else view),
        f"{name} run {quote(domain)} --agent random": "your own: --agent my.py:Agent",
        **({f"{name} {again}": "all numbers"} if again else {}),
    }
    width = max(map(len, commands))
    print("What to type next:")
    for command, meaning in commands.items():
        print(f"  {command:{width}}   {meaning}")
    for extra in dict.fromkeys(missing.values()):
        parts = " and ".join(part for part, each in missing.items() if each == extra)
        print(f"To add {parts}: {install_line(extra)}")


def _show_scenarios(result: Result) -> list[_ScenarioLines]:
    """Return a few lines for each scenario of a result."""
    from openfield.metrics.scenario import group_cells
    from openfield.parameters import shorten_agents
    from openfield.report.figures.curves import trace_agent
    from openfield.report.words import group_scenarios, rank_agents, split_controls

    summary, members = result.summary(), group_cells(result.counted())
    found = []
    for scenario, groups in group_scenarios(summary):
        agents = rank_agents(split_controls(groups)[0], summary.comparisons)
        names = shorten_agents(group.agent for group in agents)
        traced = (trace_agent(each.agent, names[each.agent], members[scenario, each.agent], "") for each in agents)
        curves = [each for each in traced if each is not None and each.onset][:MAX_AGENTS]
        found.append(_ScenarioLines(_write_sentence(scenario, summary, agents, result.domains), curves))
    return found


def _write_sentence(scenario: Scenario, summary: Summary, agents: Sequence[AgentResults], domains: Domains) -> Text:
    from openfield.report.findings import sum_up
    from openfield.report.words import describe_novelty

    change = describe_novelty(scenario, domains)
    return Text(scenario.domain, style="bold").append(
        f": {change}. {sum_up(summary, scenario, agents)}", style="not bold"
    )


class _ScenarioLines:
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
