"""`openfield import`: read results that were played elsewhere into a run file, to stand beside new ones in a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.cli.shared.parameters import Output
from openfield.console import say_count


def import_results(
    domain: str,
    files: list[Path],
    /,
    *,
    output: Output = None,
    agent_name: Annotated[str | None, Parameter(metavar="NAME")] = None,
) -> None:
    """Read results that were played elsewhere into a run file. Report it together with runs of your own.

    Args:
        domain: A domain's name, `module:attribute` or `file.py`.
        files: Files of results, or folders of them; for birds the CSV logs of the original game and published tables.
        output: The run file [runs/DOMAIN-imported.sqlite]. What it holds already stays.
        agent_name: The name of the agent that played [the one in the file, else the name of its folder or file].

    Example:
        openfield import birds EvaluationData.csv --agent-name datalab
    """
    from openfield.capabilities import ImportsResults
    from openfield.errors import InvalidInput
    from openfield.registry import find_domain
    from openfield.runner.importing import import_trials

    known = find_domain(domain)
    if not isinstance(known, ImportsResults):
        raise InvalidInput(f"{known.name} has no reader for results of other systems.")
    path = output or Path(f"runs/{known.name}-imported.sqlite")
    found = list(known.import_results(files, agent_name))
    count = import_trials(known, found, path)
    agents = ", ".join(dict.fromkeys(each.agent for each in found))
    episodes = sum(len(each.episodes) for each in found)
    known_before = f"; {len(found) - count} were there before" if count < len(found) else ""
    counts = f"{say_count(len(found), 'trial')} with {say_count(episodes, 'episode')}"
    print(f"{counts} of {agents} in {path}{known_before}")
    print(f"Beside a run of your own: openfield report {path} RUN")
