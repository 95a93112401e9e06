"""`openfield watch`: follow a run that another process plays."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from openfield.console import print_json

if TYPE_CHECKING:
    from rich.table import Table

    from openfield.journal.reader import AgentProgress

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
        print_json({agent: each._asdict() for agent, each in _read(run)[0].items()})
        return
    console = make_console()
    if once or not console.is_terminal:
        console.print(Escaped(_draw(*_read(run))))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            began = time.monotonic()
            agents, is_live = _read(run)
            live.update(Escaped(_draw(agents, is_live)), refresh=True)
            if all(each.played >= each.planned for each in agents.values()):
                return
            time.sleep(max(LOOK_SECONDS, (time.monotonic() - began) / MAX_SHARE))


def _read(path: Path) -> tuple[dict[str, AgentProgress], bool]:
    """Return how far the agents are, and whether a process plays. The file is opened anew: it may be replaced."""
    from openfield.journal.reader import Run

    with Run(path) as run:
        return run.progress(), run.is_held(time.time())


def _draw(agents: dict[str, AgentProgress], is_live: bool) -> Table:
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
