"""`openfield watch`: follow a run that another process plays."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from openfield.console import print_json

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from openfield.journal.reader import AgentProgress
    from openfield.metrics.summary import Summary
    from openfield.result import Result

LOOK_SECONDS = 1.0
"""How often the file is read."""
MAX_SHARE = 0.1
"""The share of time that reading may take: a large run is looked at less often."""


def watch(
    run: Path,
    /,
    *,
    once: bool = False,
    json: bool = False,
) -> None:
    """Follow a run from another terminal until all its cells are over. Ctrl-C leaves the run alone.

    Args:
        run: The run file.
        once: Print how far it is now, and leave.
        json: Print how far the run is now as JSON.

    Example:
        openfield watch runs/birds.sqlite
    """
    from rich.live import Live

    from openfield.console import Escaped, make_console

    if json:
        numbers = _list_numbers(run)
        print_json({agent: each._asdict() | {"numbers": numbers[agent]} for agent, each in _read(run)[0].items()})
        return
    console = make_console()
    if once or not console.is_terminal:
        console.print(Escaped(_draw(run)))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            began = time.monotonic()
            agents, _ = _read(run)
            live.update(Escaped(_draw(run)), refresh=True)
            if all(each.played >= each.planned for each in agents.values()):
                return
            time.sleep(max(LOOK_SECONDS, (time.monotonic() - began) / MAX_SHARE))


def _read(path: Path) -> tuple[dict[str, AgentProgress], bool]:
    """Return how far the agents are, and whether a process plays. The file is opened anew: it may be replaced."""
    from openfield.journal.reader import Run

    with Run(path) as run:
        return run.progress(), run.is_held(time.time())


def _summarise(path: Path) -> tuple[Result, Summary]:
    """Return the numbers as far as a run is. What a domain that is not installed leaves out was said elsewhere."""
    from openfield.result import Result

    with warnings.catch_warnings(action="ignore"):
        result = Result([path])
    return result, result.summary()


def _list_numbers(path: Path) -> defaultdict[str, list[dict[str, Any]]]:
    """Return the numbers that a table shows, with their intervals, by agent."""
    from openfield.metrics.selection import pick_numbers

    _, summary = _summarise(path)
    found = defaultdict[str, list[dict[str, Any]]](list)
    for group in summary.groups:
        for number in pick_numbers(summary, [group]):
            where = to_builtins(group.scenario) | {"number": number.name, "valid": group.valid}
            found[group.agent].append(where | to_builtins(group.estimates[number.name]))
    return found


def _draw(path: Path) -> Group:
    """Return how far the agents are, and below it their most telling numbers."""
    from rich.console import Group

    from openfield.report.terminal import list_headlines

    agents, is_live = _read(path)
    result, summary = _summarise(path)
    return Group(_draw_progress(agents, is_live), *list_headlines(summary, result.domains))


def _draw_progress(agents: dict[str, AgentProgress], is_live: bool) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    caption = "playing" if is_live else "no process plays it now"
    table = Table(box=None, caption=caption, caption_justify="left", padding=(0, 2, 0, 0))
    for title, justify in (("agent", "left"), ("", "left"), ("cells", "right"), ("episodes", "right")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    table.add_column("performance", justify="right")
    table.add_column("failed", justify="right")
    for agent, each in agents.items():
        mean = "–" if each.performance is None else f"{each.performance:.2f}"
        bar = ProgressBar(total=max(each.planned, 1), completed=each.played, width=30)
        table.add_row(agent, bar, f"{each.played}/{each.planned}", str(each.episodes), mean, str(each.failed or ""))
    return table
