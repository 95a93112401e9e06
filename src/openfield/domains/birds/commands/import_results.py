"""`openfield birds import`: read results that were played elsewhere into a run file, to stand beside new ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from openfield.console import say_count


def import_results(
    files: list[Path],
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], metavar="FILE")] = Path("runs/birds-imported.sqlite"),
    agent_name: Annotated[str | None, Parameter(metavar="NAME")] = None,
) -> None:
    """Read results that were played elsewhere into a run file. Report it together with runs of your own.

    Args:
        files: The CSV logs of the original game and published tables, or folders of them.
        output: The run file [runs/birds-imported.sqlite]. Its present cells stay.
        agent_name: The name of the agent that played [the one in the file, else the name of its folder or file].

    Example:
        openfield birds import EvaluationData.csv --agent-name datalab
    """
    from openfield.domains.birds import DOMAIN
    from openfield.domains.birds.files.results import read_results
    from openfield.runner.importing import import_trials

    found = list(read_results(files, agent_name, DOMAIN.version))
    count = import_trials(DOMAIN, found, output)
    agents = ", ".join(dict.fromkeys(each.agent for each in found))
    episodes = sum(len(each.episodes) for each in found)
    known_before = f"; {len(found) - count} were there before" if count < len(found) else ""
    counts = f"{say_count(len(found), 'trial')} with {say_count(episodes, 'episode')}"
    print(f"{counts} of {agents} in {output}{known_before}")
    print(f"Beside a run of your own: openfield report {output} RUN")
