"""`openfield compare`: print the numbers of two agents side by side, or those of two run files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from openfield.cli.shared.parameters import AS_PLAYED, NUMBERS, NumberOptions, VersionOptions
from openfield.cli.shared.results import print_result
from openfield.files.near import RUN_SUFFIX, RUNS

if TYPE_CHECKING:
    from openfield.result import Result

RunFiles = Annotated[list[Path] | None, Parameter(name="--run", consume_multiple=False, metavar="FILE")]


def print_comparison(
    first: Annotated[str, Parameter(metavar="A")],
    second: Annotated[str, Parameter(metavar="B")],
    /,
    *,
    run: RunFiles = None,
    numbers: NumberOptions = NUMBERS,
    versions: VersionOptions = AS_PLAYED,
    json: bool = False,
) -> None:
    """Compare two agents in the trials that both played, or the agents of two run files.

    Args:
        first: An agent, or a run file.
        second: Another one.
        run: The run file of the agents. Repeat it for further ones [those in runs in which both played].
        numbers: Which numbers are shown, and how they are computed.
        versions: How versions of agents are shown.
        json: Print the numbers as JSON.

    Example:
        openfield compare planner naive --run runs/birds.sqlite
    """
    from openfield.errors import InvalidInput
    from openfield.result import Result

    if first == second:
        raise InvalidInput("Compare two different agents, or two different run files.")
    files = [Path(word) for word in (first, second) if _is_run(word)]
    if len(files) == 1:
        raise InvalidInput("Compare either two agents or two run files.")
    if files and run:
        raise InvalidInput("Compare either two run files, or two agents of --run.")
    result = Result(files or run or list(_find_runs((first, second))), **versions.choose())
    if not files:
        _keep_agents(result, (first, second))
    print_result(result, json, numbers=numbers)


def _is_run(word: str) -> bool:
    return word.endswith(RUN_SUFFIX) or Path(word).is_file()


def _find_runs(agents: Sequence[str]) -> Iterator[Path]:
    """Yield the run files of the usual folder in which all of the agents played.

    Raises:
        InvalidInput: No run has both.
    """
    from openfield.errors import InvalidInput
    from openfield.report.run_list import list_runs

    runs = list_runs([RUNS]) if RUNS.is_dir() else []
    found = [Path(each.run) for each in runs if {*agents} <= {*each.agents}]
    if not found:
        named = " and ".join(agents)
        raise InvalidInput(
            f"No run in {RUNS} has both {named}. Name it: openfield compare {' '.join(agents)} --run FILE"
        )
    yield from found


def _keep_agents(result: Result, agents: Sequence[str]) -> None:
    """Leave only the cells of some agents.

    Raises:
        UnknownName: One of them did not play.
    """
    from openfield.errors import UnknownName

    known = {cell.agent for cell in result.cells}
    for name in agents:
        if name not in known:
            raise UnknownName("agent", name, known, label="In this run")
    result.cells = [cell for cell in result.cells if cell.agent in agents]
